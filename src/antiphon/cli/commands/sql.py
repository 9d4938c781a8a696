"""`antiphon sql DIR "SELECT …"`: questions about runs in SQL; every table is ready as a view by its name."""

import csv as csv_format
import io
import json as json_format
import math
import sys
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.markup import escape
from rich.table import Table

from antiphon.cli.shared.described import described
from antiphon.cli.shared.output import Json, out, print_json, print_text, waiting
from antiphon.cli.shared.paths import path_option, place_argument, place_option
from antiphon.cli.shared.sessions import Conf, DriverMemory, Master, ShipPackages, SparkChoice, spark_choice, started
from antiphon.cli.shared.traces import collected
from antiphon.errors import ConfigurationError
from antiphon.trace.places import Place, is_local, written

if TYPE_CHECKING:
    import pyarrow as pa

    from antiphon.pipeline.tables.catalog import Catalog

SHOWN_MAX: Final = 100
"""A table on the terminal has at most this many rows, unless `--limit` says otherwise."""


def sql(
    directory: Annotated[
        Place, place_argument("DIR", "A run directory, a directory of many runs, or one that `antiphon tables` wrote.")
    ],
    question: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="A query in Spark SQL; `-` reads it from standard input.")
    ] = None,
    file: Annotated[Path | None, path_option("--file", "FILE", "Read the query from a file.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the tables with their columns and exit.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    new: Annotated[
        Place | None, place_option("--out", "FILE", "Write the answer to a new file instead: FILE.parquet or FILE.csv.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, metavar="N", help=f"At most N rows; default: {SHOWN_MAX} on the terminal."),
    ] = None,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
    driver_memory: DriverMemory = None,
    ship_packages: ShipPackages = False,
) -> None:
    """Answer a question about runs in Spark SQL, over the tables of docs/guide/tables.md.

    Only tables that the query names are computed. `antiphon tables` writes them once for many queries.
    """
    choice = spark_choice(master, conf, driver_memory, ship_packages)
    if sum((json, csv, new is not None)) > 1:
        raise ConfigurationError("--json, --csv and --out exclude each other")
    if new is not None:
        _check_writable(new)
    text = None if list_ else _question(question, file)
    from antiphon.pipeline.tables.catalog import catalog  # noqa: PLC0415 - Spark takes a second to import

    tables = catalog(collected(directory))
    if text is None:
        _list(tables, json=json)
        return
    most = limit if limit is not None or json or csv or new is not None else SHOWN_MAX
    rows = _answer(choice, directory, tables, text, most)
    shown = rows if most is None else rows.slice(0, most)
    if new is not None:
        _write(shown, new)
    elif json:
        print_json(_document(shown))
    elif csv:
        print_text(_comma_separated(shown))
    else:
        out.print(as_shown(shown))
        if shown.num_rows < rows.num_rows:
            out.print(f"the first {shown.num_rows:,} rows; --limit N shows more", highlight=False)


def _question(question: str | None, file: Path | None) -> str:
    """The text of the query, from wherever it comes."""
    if (question is None) == (file is None):
        raise ConfigurationError("name one query: as QUERY, as `-` for standard input, or with --file FILE")
    try:
        if file is not None:
            return file.read_text(encoding="utf-8")
        return sys.stdin.read() if question == "-" else str(question)
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"the query in {file or 'standard input'} is not UTF-8 text") from error
    except OSError as error:
        raise ConfigurationError(f"cannot read the query in {file}: {error.strerror}") from error


def _check_writable(new: Place) -> None:
    if new.suffix not in (".parquet", ".csv"):
        raise ConfigurationError(f"--out {new} ends neither in .parquet nor in .csv")
    if new.exists():
        raise ConfigurationError(f"{new} already exists; name a new file")
    if is_local(new) and not new.parent.is_dir():
        raise ConfigurationError(f"{new.parent} is not a directory; name a new file in an existing one")


def _answer(choice: SparkChoice, directory: Place, tables: "Catalog", question: str, most: int | None) -> "pa.Table":
    """The rows of the answer; one more than `most` if there are more."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    from antiphon.pipeline.spark.job import collected as collected_rows  # noqa: PLC0415
    from antiphon.pipeline.spark.session import as_trace_error  # noqa: PLC0415
    from antiphon.pipeline.tables.questions import answer, explained  # noqa: PLC0415

    spark = started(choice)
    with waiting("computing tables"), as_trace_error(directory):
        frame = answer(spark, tables, question)
    with waiting("answering"):
        try:
            wanted = frame if most is None else frame.limit(most + 1)
            return collected_rows(wanted, 1, lambda _done, _total: None, "antiphon sql")
        except (PySparkException, Py4JError) as error:
            raise ConfigurationError(explained(error)) from error


def _list(tables: "Catalog", *, json: bool) -> None:
    described_tables = [described(table) for table in tables.tables.values()]
    if json:
        print_json({"tables": described_tables})
        return
    for table in described_tables:
        listing = Table(
            title=f"{table['name']} ({table['layer']}): one row for each {table['row']}", title_justify="left"
        )
        for heading in ("column", "type", "meaning"):
            listing.add_column(heading, overflow="fold")
        for column in table["columns"]:
            listing.add_row(*(escape(column[key]) for key in ("name", "type", "meaning")))
        out.print(listing)


def _rows(table: "pa.Table") -> list[list[Any]]:
    """The rows, with values that JSON knows; columns may have equal names."""
    columns = [[_plain(value) for value in column.to_pylist(maps_as_pydicts="lossy")] for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float() | Decimal():
            return float(value) if math.isfinite(value) else None
        case list() | tuple():
            return [_plain(each) for each in value]
        case Mapping():
            return {str(key): _plain(each) for key, each in value.items()}
    return str(value)


def _document(table: "pa.Table") -> dict[str, Any]:
    _check_names(table)
    return {
        "columns": [{"name": field.name, "type": str(field.type)} for field in table.schema],
        "rows": [dict(zip(table.column_names, row, strict=True)) for row in _rows(table)],
    }


def _check_names(table: "pa.Table") -> None:
    for name in table.column_names:
        if table.column_names.count(name) > 1:
            raise ConfigurationError(f"the answer has two columns {name}; give one another name with AS")


def _comma_separated(table: "pa.Table") -> str:
    """Lists and maps are JSON; a null is an empty field."""
    text = io.StringIO()
    writer = csv_format.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows([_field(value) for value in row] for row in _rows(table))
    return text.getvalue()


def _field(value: Any) -> Any:
    if isinstance(value, bool | list | dict):
        return json_format.dumps(value, ensure_ascii=False)
    return value


def _write(table: "pa.Table", new: Place) -> None:
    """Write the file; it appears complete or not at all."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    _check_names(table)
    with written(new) as file:
        if new.suffix == ".csv":
            file.write(_comma_separated(table).encode())
        else:
            pq.write_table(table, file, compression="zstd")
    out.print(f"{table.num_rows:,} rows in {escape(str(new))}", highlight=False, soft_wrap=True)


def as_shown(table: "pa.Table") -> Table:
    """An answer as the terminal shows it."""
    shown = Table()
    rows = _rows(table)
    for place, name in enumerate(table.column_names):
        is_number = all(_is_number(row[place]) for row in rows)
        shown.add_column(escape(name), justify="right" if rows and is_number else "left", overflow="fold")
    for row in rows:
        shown.add_row(*_cells(row))
    return shown


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _cells(row: Iterable[Any]) -> Iterable[str]:
    for value in row:
        match value:
            case None:
                yield "-"
            case bool() | list() | dict():
                yield escape(json_format.dumps(value, ensure_ascii=False))
            case int():
                yield f"{value:,}"
            case float():
                yield f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"
            case _:
                yield escape(str(value))
