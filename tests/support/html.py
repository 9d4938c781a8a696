"""How the page of the tables shows a schema."""

from antiphon.pipeline.tables.schemas import Table, meaning


def section(table: Table) -> str:
    """A table as docs/guide/tables.md has it."""
    lines = [f"### {table.layer}/{table.name}", "", f"One row for each {table.row}.", ""]
    lines += ["| column | type | meaning |", "|---|---|---|"]
    lines += [f"| `{field.name}` | {field.type} | {meaning(field)} |" for field in table.columns]
    return "\n".join(lines).replace("<element: string>", "<string>").replace("<item: string>", "<string>") + "\n"
