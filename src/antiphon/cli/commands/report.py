"""`antiphon report DIR`: write one self-contained HTML page about a run directory."""

from typing import Annotated

import typer
from rich.markup import escape

from antiphon.cli.shared.output import Json, out, print_json, waiting
from antiphon.cli.shared.paths import place_argument, place_option
from antiphon.cli.shared.sessions import Conf, DriverMemory, Master, ShipPackages, spark_choice, started
from antiphon.cli.shared.traces import collected
from antiphon.errors import ConfigurationError, TraceError
from antiphon.scenario.units import Duration
from antiphon.trace.places import Place, written


def report(
    directory: Annotated[Place, place_argument("DIR", "A run directory, or a directory of many runs.")],
    page: Annotated[
        Place | None,
        place_option("--out", "FILE", "Path of the page; default: DIR/report.html."),
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", metavar="ID", help="The run that the space-time diagram shows.")
    ] = None,
    begin: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help='Start of the diagram, such as "1.5s".')
    ] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help='End of the diagram, such as "1.6s".')] = None,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
    driver_memory: DriverMemory = None,
    ship_packages: ShipPackages = False,
) -> None:
    """Write a page with verdicts, latency, messages over time, and a space-time diagram of a chosen window."""
    from antiphon.pipeline.dataset import Dataset  # noqa: PLC0415 - Spark takes a second to import
    from antiphon.report.collect import collect  # noqa: PLC0415
    from antiphon.report.page import render  # noqa: PLC0415

    choice = spark_choice(master, conf, driver_memory, ship_packages)
    window = _window(begin, end)
    found = Dataset.of(collected(directory)).sound()
    spark = started(choice)
    with waiting("collecting"):
        text = render(collect(spark, found, run=run, window=window))
    path = page or directory / "report.html"
    write_page(path, text)
    if json:
        print_json({"page": str(path)})
    else:
        out.print(f"page in {escape(str(path))}", highlight=False)


def write_page(path: Place, text: str) -> None:
    """Write a page completely or not at all."""
    try:
        with written(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise TraceError(f"cannot write {path}: {error.strerror}") from error


def _window(begin: str | None, end: str | None) -> tuple[int, int] | None:
    if begin is None and end is None:
        return None
    if begin is None or end is None:
        raise ConfigurationError("--from and --to must be given together")
    try:
        window = Duration.parse(begin), Duration.parse(end)
    except ValueError as error:
        raise ConfigurationError(f"--from {begin} --to {end}: {error}") from error
    if window[0] >= window[1]:
        raise ConfigurationError(f"--from {begin} is not before --to {end}")
    return window
