"""`antiphon demo`: real processes, one paused and one killed; what happened, whether it was right, and a page."""

import shlex
import time
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.markup import escape

from antiphon.cli.commands.report import write_page
from antiphon.cli.commands.simulate import outcome_of
from antiphon.cli.commands.stats import print_statistics
from antiphon.cli.shared.output import Json, out, print_json, progress, waiting
from antiphon.cli.shared.paths import path_option
from antiphon.cli.shared.run_table import watching
from antiphon.cli.shared.sessions import Conf, DriverMemory, Master, ShipPackages, spark_choice, started
from antiphon.cli.shared.story import agreement, story
from antiphon.cli.shared.verdicts import Every, as_document, exit_code, print_verdicts
from antiphon.node.supervisor import run_locally
from antiphon.properties.verdicts.summary import VerdictSummary
from antiphon.scenario.read import parse_scenario, run_id
from antiphon.sim.run import Run
from antiphon.trace.directory import appearing, check_free, write_run

if TYPE_CHECKING:
    from antiphon.pipeline.figures.measures import Statistics

_NEXT: Final = (
    ("antiphon check {directory} --all", "every property that was judged, with its opportunities"),
    ("antiphon simulate scenarios/merge.toml --check", "a split that heals, in the simulator"),
    ("antiphon simulate scenarios/errata/E-13.toml --check", "a rule as its paper prints it, and what it breaks"),
)


def demo(
    directory: Annotated[Path, path_option("--out", "DIR", "Directory for trace and page.")] = Path("demo-run"),
    force: Annotated[bool, typer.Option("--force", help="Replace other runs in the output directory.")] = False,
    every: Every = False,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
    driver_memory: DriverMemory = None,
    ship_packages: ShipPackages = False,
) -> None:
    """Run five processes that multicast in total order; pause one, kill another; judge the trace; draw a page.

    Takes about half a minute. Exit code 0: everything judged holds; 1: violated; 3: cannot tell.
    """
    from antiphon.pipeline.dataset import Dataset  # noqa: PLC0415
    from antiphon.pipeline.figures.statistics import statistics  # noqa: PLC0415
    from antiphon.pipeline.jobs.verify import verify  # noqa: PLC0415
    from antiphon.report.collect import collect  # noqa: PLC0415
    from antiphon.report.page import render  # noqa: PLC0415

    choice = spark_choice(master, conf, driver_memory, ship_packages)
    scenario = parse_scenario(files("antiphon.cli.commands").joinpath("demo.toml").read_text(encoding="utf-8"))
    check_free(directory, [run_id(scenario)], force=force)
    if not json:
        _say("Five processes on this machine, each sending 500 messages to all; about fifteen seconds.")
    began = time.perf_counter()
    with appearing(directory) as aside:
        with watching("five members, all sending; p3 is paused, then p5 is killed") as watch:
            played = run_locally(scenario, watch)
        outcome = outcome_of(played, began, check=False, directory=aside, clock="wall")
        write_run(aside, outcome.record, outcome.scenario_toml)
    if not json:
        _narrate(played)
    spark = started(choice, light=True)
    with progress("judging") as advance:
        found = Dataset.of(directory)
        verdicts = verify(spark, found, progress=advance)
    with waiting("measuring"):
        figures = statistics(spark, found)
    page = directory / "report.html"
    with waiting("drawing the page"):
        write_page(page, render(collect(spark, found, verdicts=verdicts, statistics=figures)))
    summary = VerdictSummary.of(verdicts)
    if json:
        print_json({"check": as_document(summary), "statistics": asdict(figures), "page": str(page)})
    else:
        if every:
            print_statistics(figures)
        _print_speed(figures)
        print_verdicts(summary, every=every)
        _say(f"page: {page}")
        _suggest(directory)
    raise typer.Exit(exit_code(summary))


def _narrate(run: Run) -> None:
    for step in story(run):
        _say(f"{max(0, step.time_ns) / 1e9:7.3f} s  {step.text}")
    for line in agreement(run):
        _say(f"           {line}")


def _print_speed(figures: "Statistics") -> None:
    latency = figures.overall.latency
    if latency is not None:
        p50, p99 = latency.p50_ns / 1e6, latency.p99_ns / 1e6
        _say(f"latency from send to delivery: median {p50:.1f} ms, 99 % {p99:.1f} ms; the kill made the others wait")


def _suggest(directory: Path) -> None:
    _say("next:")
    commands = [(command.format(directory=shlex.quote(str(directory))), what) for command, what in _NEXT]
    width = max(len(command) for command, _ in commands)
    for command, what in commands:
        _say(f"  {command:<{width}}  # {what}")


def _say(sentence: str) -> None:
    out.print(escape(sentence), highlight=False, soft_wrap=True)
