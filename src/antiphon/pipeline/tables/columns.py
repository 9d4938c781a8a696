"""What a table is: its layer, what one row stands for, and its columns, each with its meaning."""

import json
from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa

TEXT, TEXTS, TRUTH = pa.string(), pa.list_(pa.string()), pa.bool_()
SMALL, COUNT, RATIO = pa.int32(), pa.int64(), pa.float64()

_COMMENT: Final = b"comment"
_OF_SPARK: Final = b"org.apache.spark.sql.parquet.row.metadata"
"""Where Spark looks for the comments of columns in a Parquet file."""


@dataclass(frozen=True, slots=True)
class Table:
    """One table."""

    layer: Literal["bronze", "silver", "gold"]
    name: str
    row: str
    """What each row stands for."""
    columns: pa.Schema

    @property
    def comment(self) -> str:
        """The comment of the table."""
        return f"One row for each {self.row}."


def column(name: str, kind: pa.DataType, meaning: str, *, nullable: bool = True) -> pa.Field:
    """A column with its comment; times and durations end in `_ns`."""
    return pa.field(name, kind, nullable=nullable, metadata={_COMMENT: meaning.encode()})


def meaning(field: pa.Field) -> str:
    """The meaning of a column, in a few words; empty if its writer has not told it."""
    return str((field.metadata or {}).get(_COMMENT, b"").decode())


def type_name(field: pa.Field) -> str:
    """The type of a column; writers call the elements of a list `item` or `element`."""
    return str(field.type).replace("<element: ", "<").replace("<item: ", "<").replace(" not null", "")


def commented(table: Table) -> pa.Schema:
    """The columns of the table with all comments, as Arrow and Spark read them from a Parquet file."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - Spark takes a second to import

    described = json.loads(from_arrow_schema(table.columns).json())
    for field, own in zip(table.columns, described["fields"], strict=True):
        own["metadata"] = {"comment": meaning(field)}
    return table.columns.with_metadata(
        {_COMMENT: table.comment.encode(), _OF_SPARK: json.dumps(described, ensure_ascii=False).encode()}
    )
