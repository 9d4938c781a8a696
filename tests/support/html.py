"""How the page of the tables shows a schema."""

from antiphon.pipeline.tables.columns import Table, meaning, type_name


def section(table: Table) -> str:
    """A table as docs/guide/tables.md has it."""
    lines = [f"### {table.layer}/{table.name}", "", f"One row for each {table.row}.", ""]
    lines += ["| column | type | meaning |", "|---|---|---|"]
    lines += [f"| `{field.name}` | {type_name(field)} | {meaning(field)} |" for field in table.columns]
    return "\n".join(lines) + "\n"
