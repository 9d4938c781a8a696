"""`antiphon check DIR`: judge every promised property over every run of a directory, with Spark or without."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from antiphon.cli.shared.output import Json, out, print_json, progress
from antiphon.cli.shared.paths import place_argument
from antiphon.cli.shared.sessions import Conf, DriverMemory, Master, Quick, ShipPackages, spark_choice, started_unless
from antiphon.cli.shared.traces import collected
from antiphon.cli.shared.verdicts import Every, as_document, exit_code, print_verdicts
from antiphon.properties.promises import known
from antiphon.properties.verdicts.summary import VerdictSummary
from antiphon.trace.places import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from antiphon.pipeline.dataset import Dataset


def check(
    directory: Annotated[Place, place_argument("DIR", "A run directory, or a directory of many runs.")],
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            metavar="ID,…",
            help="Judge these properties as if every service promised them, e.g. O6,O3; may be repeated.",
            show_default=False,
        ),
    ] = None,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Skip unreadable files and judge the rest.")] = False,
    rows_per_task: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Judge a run with more events in parts of about this many."),
    ] = 2_000_000,
    quick: Quick = False,
    every: Every = False,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
    driver_memory: DriverMemory = None,
    ship_packages: ShipPackages = False,
) -> None:
    """Judge traces: whether every property holds that the services in use promise, or that --require names.

    Exit code 0: every judged property holds. 1: a property is violated. 3: cannot tell, because a trace is ill-formed
    or some files are damaged, and nothing else is violated. A property without an opportunity in these runs is shown
    as vacuous and counts as holding. Liveness is judged only for runs that ended quiet.
    """
    choice = spark_choice(master, conf, driver_memory, ship_packages)
    required = known(name.strip() for text in require or () for name in text.split(","))
    from antiphon.pipeline.dataset import Dataset  # noqa: PLC0415 - PyArrow takes long to import

    found = Dataset.of(collected(directory))  # report a wrong directory before Spark starts
    if not (keep_going and found.files):
        found.sound()
    spark = started_unless(quick, choice)
    with progress("judging") as advance:
        summary = _judged(spark, found, required, rows_per_task, advance, keep_going=keep_going)
    if json:
        print_json(as_document(summary, required))
    else:
        print_verdicts(summary, required, every=every)
        if spark is None:
            out.print("judged in this process, without Spark", highlight=False)
    raise typer.Exit(exit_code(summary))


def _judged(
    spark: "SparkSession | None",
    found: "Dataset",
    required: frozenset[str],
    rows_per_task: int,
    advance: Callable[[int, int], None],
    *,
    keep_going: bool,
) -> VerdictSummary:
    if spark is None:
        from antiphon.pipeline.jobs.in_process import verify_in_process  # noqa: PLC0415 - only one of the two is needed

        return VerdictSummary.of(verify_in_process(found, required=required, keep_going=keep_going, progress=advance))
    from antiphon.pipeline.jobs.verify import verify_in_total  # noqa: PLC0415

    return verify_in_total(
        spark, found, required=required, keep_going=keep_going, progress=advance, rows_per_task=rows_per_task
    )
