"""`antiphon tables DIR --out NEW`: export the trace as typed Parquet tables, for notebooks."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.markup import escape
from rich.table import Table

from antiphon.cli.shared.output import Json, as_json, out, print_json, progress
from antiphon.cli.shared.paths import path_argument, path_option
from antiphon.cli.shared.sessions import Conf, DriverMemory, Master, ShipPackages, spark_choice, started
from antiphon.cli.shared.traces import collected
from antiphon.errors import TraceError
from antiphon.trace.directory import appearing

if TYPE_CHECKING:
    from antiphon.pipeline.tables.export import Written

CONTENTS: Final = "tables.json"
"""The file beside the tables that describes them; `--force` replaces only a directory that has it."""


def tables(
    directory: Annotated[Path, path_argument("DIR", "A run directory, or a directory of many runs.")],
    new: Annotated[Path, path_option("--out", "NEW", "A new directory for the tables.")],
    force: Annotated[bool, typer.Option("--force", help="Replace existing tables.")] = False,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
    driver_memory: DriverMemory = None,
    ship_packages: ShipPackages = False,
) -> None:
    """Write silver tables (messages, deliveries, views, stability, waits) and gold tables (figures) as Parquet.

    The events themselves, in DIR/events, are the bronze table. docs/guide/tables.md has all columns and some queries.
    """
    from antiphon.pipeline.dataset import find_event_files  # noqa: PLC0415
    from antiphon.pipeline.tables.export import write_tables  # noqa: PLC0415 - Spark takes a second to import

    choice = spark_choice(master, conf, driver_memory, ship_packages)
    _check_free(new, force=force)
    find_event_files(collected(directory))
    spark = started(choice)
    with appearing(new) as aside:
        with progress("writing tables") as advance:
            written = write_tables(spark, directory, aside, advance)
        contents = {"events": str(directory / "events"), "tables": [_described(each) for each in written]}
        (aside / CONTENTS).write_text(as_json(contents), encoding="utf-8")
    if json:
        print_json(contents | {"directory": str(new)})
    else:
        out.print(_listed(written))
        out.print(f"tables in {escape(str(new))}; the events themselves are in {contents['events']}", highlight=False)


def _check_free(new: Path, *, force: bool) -> None:
    """Refuse to overwrite anything else; a directory that does not hold tables is never replaced."""
    if new.is_file():
        raise TraceError(f"{new} is a file; name a new directory for the tables")
    if not new.exists() or not any(new.iterdir()):
        return
    if not (new / CONTENTS).is_file():
        raise TraceError(f"{new} holds something other than tables; name a new directory for the tables")
    if not force:
        raise TraceError(f"{new} already holds tables; choose another directory or use --force")


def _described(written: "Written") -> dict[str, Any]:
    from antiphon.pipeline.tables.schemas import meaning  # noqa: PLC0415 - pyarrow alone, but beside Spark

    table = written.table
    return {
        "layer": table.layer,
        "name": table.name,
        "rows": written.rows,
        "row": table.row,
        "columns": [
            {"name": field.name, "type": str(field.type), "meaning": meaning(field)} for field in table.columns
        ],
    }


def _listed(written: "Iterable[Written]") -> Table:
    listing = Table()
    listing.add_column("table")
    listing.add_column("rows", justify="right")
    listing.add_column("columns", justify="right")
    listing.add_column("one row for each")
    for each in written:
        table = each.table
        listing.add_row(f"{table.layer}/{table.name}", f"{each.rows:,}", str(len(table.columns)), table.row)
    return listing
