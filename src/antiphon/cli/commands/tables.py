"""`antiphon tables DIR --out NEW`: export the trace as typed Parquet tables, for notebooks."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from antiphon.cli.shared.described import described
from antiphon.cli.shared.output import Json, as_json, out, print_json, progress
from antiphon.cli.shared.paths import place_argument, place_option
from antiphon.cli.shared.sessions import Conf, DriverMemory, Master, ShipPackages, spark_choice, started
from antiphon.cli.shared.traces import collected
from antiphon.errors import TraceError
from antiphon.trace.directory import appearing, is_occupied, require_complete
from antiphon.trace.places import Place

if TYPE_CHECKING:
    from antiphon.pipeline.tables.export import Written


def tables(
    directory: Annotated[Place, place_argument("DIR", "A run directory, or a directory of many runs.")],
    new: Annotated[Place, place_option("--out", "NEW", "A new directory for the tables.")],
    force: Annotated[bool, typer.Option("--force", help="Replace existing tables.")] = False,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
    driver_memory: DriverMemory = None,
    ship_packages: ShipPackages = False,
) -> None:
    """Write silver tables (messages, deliveries, views, stability, waits) and gold tables (runs, verdicts, figures).

    The events themselves, in DIR/events, are the bronze table. Without traces, only what DIR keeps of its runs is
    written. docs/guide/tables.md has all columns; `antiphon sql` asks for them by name.
    """
    from antiphon.pipeline.tables.catalog import CONTENTS, TablesOfRuns  # noqa: PLC0415
    from antiphon.pipeline.tables.export import write_tables  # noqa: PLC0415 - Spark takes a second to import

    choice = spark_choice(master, conf, driver_memory, ship_packages)
    _check_free(new, CONTENTS, force=force)
    source = TablesOfRuns(collected(directory))  # report a wrong directory before Spark starts
    folder = str(directory / "events") if "events" in source.tables else None
    spark = started(choice)
    with appearing(new) as aside:
        with progress("writing tables") as advance:
            written = write_tables(spark, source, aside, advance)
        contents = {
            "events": folder,
            "tables": [described(each.table) | {"rows": each.rows} for each in written],
        }
        (aside / CONTENTS).write_text(as_json(contents), "utf-8")
    if json:
        print_json(contents | {"directory": str(new)})
    else:
        out.print(_listed(written))
        traces = "" if folder is None else f"; the events themselves are in {escape(folder)}"
        out.print(f"tables in {escape(str(new))}{traces}", highlight=False)


def _check_free(new: Place, contents: str, *, force: bool) -> None:
    """Refuse to overwrite anything else; a directory that does not hold tables is never replaced."""
    if new.is_file():
        raise TraceError(f"{new} is a file; name a new directory for the tables")
    if not is_occupied(new):
        return
    if not force:
        require_complete(new)
    if not (new / contents).is_file():
        raise TraceError(f"{new} holds something other than tables; name a new directory for the tables")
    if not force:
        raise TraceError(f"{new} already holds tables; choose another directory or use --force")


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
