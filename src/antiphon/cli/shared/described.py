"""Tables of a directory as JSON: `tables.json`, and the list of `antiphon sql`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from antiphon.pipeline.tables.columns import Table


def described(table: "Table") -> dict[str, Any]:
    """A table with its columns."""
    from antiphon.pipeline.tables.columns import meaning, type_name  # noqa: PLC0415 - pyarrow alone, but beside Spark

    return {
        "layer": table.layer,
        "name": table.name,
        "row": table.row,
        "columns": [
            {"name": field.name, "type": type_name(field), "meaning": meaning(field)} for field in table.columns
        ],
    }
