"""`antiphon demo`: the whole story in one go, from message to verdict to page."""

import time
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from antiphon.cli.commands.report import write_page
from antiphon.cli.commands.simulate import outcome_of
from antiphon.cli.commands.stats import print_statistics
from antiphon.cli.shared.output import Json, Master, out, print_json, progress, waiting
from antiphon.cli.shared.run_table import watching
from antiphon.cli.shared.verdicts import as_document, exit_code, print_verdicts
from antiphon.node.supervisor import run_locally
from antiphon.scenario.read import parse_scenario, run_id
from antiphon.trace.directory import appearing, check_free, write_run


def demo(
    directory: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where trace and page go.")] = Path(
        "demo-run"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace other runs in the output directory.")] = False,
    json: Json = False,
    master: Master = None,
) -> None:
    """Five processes multicast in total order, one is killed; Spark judges the trace; the page shows what happened."""
    from antiphon.pipeline.figures.statistics import statistics  # noqa: PLC0415
    from antiphon.pipeline.jobs.verify import verify  # noqa: PLC0415
    from antiphon.pipeline.spark.session import spark_session  # noqa: PLC0415 - Spark takes a second to import
    from antiphon.report.collect import collect  # noqa: PLC0415
    from antiphon.report.page import render  # noqa: PLC0415

    scenario = parse_scenario(files("antiphon.cli.commands").joinpath("demo.toml").read_text(encoding="utf-8"))
    check_free(directory, [run_id(scenario)], force=force)
    started = time.perf_counter()
    with appearing(directory) as aside:
        with watching("five members, all sending; p5 will be killed") as watch:
            played = run_locally(scenario, watch)
        outcome = outcome_of(played, started, check=False, directory=aside, clock="wall")
        write_run(aside, outcome.record, outcome.scenario_toml)
    with waiting("starting Spark"):
        spark = spark_session(master)
    with progress("judging") as advance:
        verdicts = verify(spark, directory, progress=advance)
    with waiting("measuring"):
        figures = statistics(spark, directory)
    page = directory / "report.html"
    with waiting("drawing the page"):
        write_page(page, render(collect(spark, directory, verdicts=verdicts, statistics=figures)))
    if json:
        print_json({"check": as_document(verdicts), "statistics": asdict(figures), "page": str(page)})
    else:
        print_statistics(figures)
        print_verdicts(verdicts)
        out.print(f"trace in {escape(str(directory))}, page in {escape(str(page))}", highlight=False)
    raise typer.Exit(exit_code(verdicts))
