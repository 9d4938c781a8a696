"""`antiphon check DIR`: judge every promised property over every run of a directory, with Spark or without."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from antiphon.cli.shared.output import Json, print_json, progress
from antiphon.cli.shared.paths import path_argument
from antiphon.cli.shared.sessions import Conf, DriverMemory, Master, SparkChoice, spark_choice, started
from antiphon.cli.shared.traces import collected
from antiphon.cli.shared.verdicts import Every, as_document, exit_code, print_verdicts
from antiphon.errors import ConfigurationError
from antiphon.properties.promises import known
from antiphon.properties.verdicts.verdict import Verdict


def check(
    directory: Annotated[Path, path_argument("DIR", "A run directory, or a directory of many runs.")],
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
    ] = 4_000_000,
    in_process: Annotated[
        bool,
        typer.Option("--in-process", help="Judge in this process. This is the default if PySpark is not installed."),
    ] = False,
    every: Every = False,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
    driver_memory: DriverMemory = None,
) -> None:
    """Judge traces: whether every property holds that the services in use promise, or that --require names.

    Exit code 0: every judged property holds. 1: a property is violated. 3: cannot tell, because a trace is ill-formed
    or some files are damaged, and nothing else is violated. A property without an opportunity in these runs is shown
    as vacuous and counts as holding. Liveness is judged only for runs that ended quiet.
    """
    choice = spark_choice(master, conf, driver_memory)
    required = known(name.strip() for text in require or () for name in text.split(","))
    from antiphon.pipeline.dataset import sound_event_files  # noqa: PLC0415 - PyArrow takes long to import

    files, unusable = sound_event_files(collected(directory))  # report a wrong directory before Spark starts
    if unusable and not (keep_going and files):
        raise unusable[0]
    if in_process or find_spec("pyspark") is None:
        verdicts = _judge_in_process(directory, required, choice, keep_going=keep_going)
    else:
        verdicts = _judge_with_spark(directory, required, choice, keep_going=keep_going, rows_per_task=rows_per_task)
    if json:
        print_json(as_document(verdicts, required))
    else:
        print_verdicts(verdicts, required, every=every)
    raise typer.Exit(exit_code(verdicts))


def _judge_in_process(
    directory: Path, required: frozenset[str], choice: SparkChoice, *, keep_going: bool
) -> list[Verdict]:
    from antiphon.pipeline.jobs.in_process import verify_in_process  # noqa: PLC0415

    if choice:
        raise ConfigurationError(
            "--master, --conf and --driver-memory need PySpark and go without --in-process: install `antiphon[cli]`"
        )
    with progress("judging") as advance:
        return verify_in_process(directory, required=required, keep_going=keep_going, progress=advance)


def _judge_with_spark(
    directory: Path, required: frozenset[str], choice: SparkChoice, *, keep_going: bool, rows_per_task: int
) -> list[Verdict]:
    from antiphon.pipeline.jobs.verify import verify  # noqa: PLC0415 - Spark takes a second to import

    spark = started(choice)
    with progress("judging") as advance:
        return verify(
            spark,
            directory,
            required=required,
            keep_going=keep_going,
            progress=advance,
            rows_per_task=rows_per_task,
        )
