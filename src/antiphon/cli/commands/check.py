"""`antiphon check DIR`: every promised property, over every run of a directory, under Spark."""

from pathlib import Path
from typing import Annotated

import typer

from antiphon.cli.shared.output import Json, Master, print_json, progress, waiting
from antiphon.cli.shared.traces import collected
from antiphon.cli.shared.verdicts import as_document, exit_code, print_verdicts
from antiphon.properties.promises import known


def check(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A run directory, or a directory of many runs.")],
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            metavar="ID,…",
            help="Properties to judge as if every service promised them, e.g. O6,O3; may be repeated.",
            show_default=False,
        ),
    ] = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Judge what can be judged although some files cannot.")
    ] = False,
    rows_per_task: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="A run with more events is judged in parts of about so many."),
    ] = 4_000_000,
    json: Json = False,
    master: Master = None,
) -> None:
    """Judge traces: whether every property that the services in use promise, or that is required of them, holds.

    Exit code 0: everything judged holds; 1: violated; 2: cannot tell, also where files are damaged and nothing else is
    violated. A property that the runs never put to the test
    is shown as vacuous and does not count against them; liveness is judged only of runs that ended quiet.
    """
    required = known(name.strip() for text in require or () for name in text.split(","))
    from antiphon.pipeline.dataset import sound_event_files  # noqa: PLC0415 - Spark takes a second to import
    from antiphon.pipeline.jobs.verify import verify  # noqa: PLC0415
    from antiphon.pipeline.spark.session import spark_session  # noqa: PLC0415

    files, unusable = sound_event_files(
        collected(directory)
    )  # a wrong directory is said at once, not after Spark has started
    if unusable and not (keep_going and files):
        raise unusable[0]
    with waiting("starting Spark"):
        spark = spark_session(master)
    with progress("judging") as advance:
        verdicts = verify(
            spark,
            directory,
            required=required,
            keep_going=keep_going,
            progress=advance,
            rows_per_task=rows_per_task,
        )
    if json:
        print_json(as_document(verdicts, required))
    else:
        print_verdicts(verdicts, required)
    raise typer.Exit(exit_code(verdicts))
