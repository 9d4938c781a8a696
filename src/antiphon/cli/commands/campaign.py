"""`antiphon campaign NAME --runs N --out DIR`: simulate random scenarios of a family and judge each."""

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

import typer
from rich.markup import escape
from rich.table import Table

from antiphon import __version__
from antiphon.campaign.families import FAMILIES, Family
from antiphon.campaign.run import OUTCOMES, Runner, Traces, outcomes_of, write_outcomes
from antiphon.campaign.tally import Tally, Trouble
from antiphon.cli.shared.interrupts import interrupted
from antiphon.cli.shared.output import Json, as_json, out, print_json, progress, waiting
from antiphon.cli.shared.paths import place_option
from antiphon.cli.shared.sessions import (
    Conf,
    DriverMemory,
    Master,
    ShipPackages,
    SparkChoice,
    spark_choice,
    started,
)
from antiphon.errors import ConfigurationError, NotShared
from antiphon.properties.promises import NOT_JUDGED
from antiphon.properties.verdicts.wording import promise
from antiphon.scenario.read import run_id
from antiphon.trace.directory import PARTS, check_free, is_occupied, write_index
from antiphon.trace.places import Place
from antiphon.trace.unfinished import continued, unfinished

RUNS_MAX: Final = 100_000
SHOWN_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class _Request:
    """The parsed command line."""

    family: Family
    seeds: range
    directory: Place | None
    traces: Traces
    spark: SparkChoice
    force: bool

    def replay(self, trouble: Trouble) -> str:
        """The command that replays a run."""
        if self.directory is None:
            return f"antiphon campaign {self.family.name} --first {trouble.seed} --runs 1"
        return f"antiphon simulate --from {shlex.quote(str(self.directory))} --run {trouble.run} --check"


def campaign(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A family of scenarios; see --list.")] = None,
    runs: Annotated[int, typer.Option("--runs", metavar="N", help="Number of runs.")] = 1_000,
    first: Annotated[int, typer.Option("--first", metavar="SEED", help="Seed of the first run.")] = 1,
    out_directory: Annotated[
        Place | None,
        place_option("--out", "DIR", "Directory for scenarios and traces; without it none are kept."),
    ] = None,
    traces: Annotated[
        Traces,
        typer.Option(
            "--traces", help="Keep the traces of runs that violate a property or never settle, of all runs, or of none."
        ),
    ] = "failures",
    force: Annotated[
        bool, typer.Option("--force", help="Replace other runs in the output directory, also unfinished ones.")
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the families and exit.")] = False,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
    driver_memory: DriverMemory = None,
    ship_packages: ShipPackages = False,
) -> None:
    """Simulate random scenarios of a family and judge each, as Spark tasks. The seed determines the run completely.

    After an interrupt the results are kept beside --out, and the same command does the rest. Exit code 0: every run
    settled and kept every judged promise, and every property had enough opportunities. 1: otherwise.
    """
    if list_:
        _list(json)
        return
    choice = spark_choice(master, conf, driver_memory, ship_packages)
    request = _Request(_family(name), _seeds(first, runs), out_directory, traces, choice, force)
    if out_directory is None and traces == "all":
        raise ConfigurationError("--traces all needs --out DIR to keep them in")
    _check_free(request)
    tally, began = Tally(), time.perf_counter()
    try:
        _judge(request, tally)
    except KeyboardInterrupt:
        _print(replace(request, directory=None), tally, json, time.perf_counter() - began)
        if out_directory is not None:
            raise interrupted(tally.runs, runs, unfinished(out_directory, _plan(request))) from None
        raise
    _print(request, tally, json, time.perf_counter() - began)
    raise typer.Exit(1 if any(tally.objections()) else 0)


def _judge(request: _Request, tally: Tally) -> None:
    """Run everything that has not run yet, and count all runs; the directory appears when the last run is done."""
    from antiphon.pipeline.jobs.spread import Work, results, spread  # noqa: PLC0415 - Spark takes a second to import

    with _workplace(request) as place:
        runner = Runner(request.family.name, request.traces, None if request.directory is None else place)
        parts = place / PARTS
        try:
            with progress("judging") as advance:
                work = Work(runner, runner.lost, OUTCOMES)
                spread(partial(started, request.spark, light=True), work, request.seeds, parts, advance)
        finally:
            rows = results(parts, OUTCOMES)
            outcomes = outcomes_of(rows)
            for outcome in outcomes:
                tally.add(outcome)
        if request.directory is not None:
            write_index(place, [(outcome.record, outcome.scenario_toml) for outcome in outcomes])
            write_outcomes(rows, place)
            (place / "campaign.json").write_text(as_json(_document(request, tally)), "utf-8")


@contextmanager
def _workplace(request: _Request) -> Iterator[Place]:
    """The directory for results until all are complete."""
    if request.directory is None:
        # A worker that outlives an interrupt may still write there: that must not hide the interrupt.
        with TemporaryDirectory(prefix="antiphon-campaign-", ignore_cleanup_errors=True) as scratch:
            try:
                yield Path(scratch)
            except NotShared as error:
                raise ConfigurationError(f"{error}; name such a directory with --out") from error
        return
    with continued(request.directory, _plan(request), force=request.force) as place:
        yield place


def _plan(request: _Request) -> dict[str, Any]:
    return {
        "command": "campaign",
        "family": request.family.name,
        "first": request.seeds.start,
        "runs": len(request.seeds),
        "traces": request.traces,
    }


def _family(name: str | None) -> Family:
    if name is not None and name in FAMILIES:
        return FAMILIES[name]
    asked = "name a scenario family" if name is None else f"there is no family {name!r}"
    raise ConfigurationError(f"{asked}; the families are {', '.join(FAMILIES)}")


def _seeds(first: int, runs: int) -> range:
    if not 1 <= runs <= RUNS_MAX:
        raise ConfigurationError(f"--runs {runs} is not between 1 and {RUNS_MAX:,}; split a longer campaign by --first")
    if not 0 <= first < 2**63 - runs:
        raise ConfigurationError(f"--first {first} is not a seed: a non-negative 64-bit number")
    return range(first, first + runs)


def _check_free(request: _Request) -> None:
    """Refuse early. The runs are drawn only if they must be compared, because that takes seconds."""
    directory = request.directory
    if directory is None:
        return
    occupied = is_occupied(directory)
    with waiting("comparing with existing runs"):
        runs = [run_id(request.family.draw(seed)) for seed in request.seeds] if occupied and not request.force else []
    check_free(directory, runs, force=request.force)


def _list(json: bool) -> None:
    if json:
        print_json({"families": [{"name": each.name, "sentence": each.sentence} for each in FAMILIES.values()]})
        return
    for family in FAMILIES.values():
        out.print(f"{family.name:<12} {family.sentence}", highlight=False, soft_wrap=True)


def _document(request: _Request, tally: Tally) -> dict[str, Any]:
    """The document of `--json` and `campaign.json`; it depends on the machine only through the time limit of a run."""
    objections = [*tally.objections()]
    verdict = "fail" if objections else "pass" if tally.runs == len(request.seeds) else "interrupted"
    return {
        "campaign": request.family.name,
        "antiphon_version": __version__,
        "first": request.seeds.start,
        "asked": len(request.seeds),
        "runs": tally.runs,
        "rows": tally.rows(),
        "verdict": verdict,
        "objections": objections,
        "properties": tally.properties(),
        "untested": tally.untested(),
        "not_judged": list(NOT_JUDGED),
        "kinds": tally.counts(),
        "violated": [_with_replay(request, trouble) for trouble in tally.violated],
        "not_settled": [_with_replay(request, trouble) for trouble in tally.unsettled],
        "failed": [_with_replay(request, trouble) for trouble in tally.failed],
        "traces": tally.kept,
    }


def _with_replay(request: _Request, trouble: Trouble) -> dict[str, Any]:
    return asdict(trouble) | {"replay": request.replay(trouble)}


def _print(request: _Request, tally: Tally, json: bool, seconds: float) -> None:
    if json:
        print_json(_document(request, tally))
        return
    if not tally.runs:
        _say(f"no run of {request.family.name} was judged in {seconds:.0f} s")
        return
    _say(
        f"{tally.runs:,} of {len(request.seeds):,} runs of {request.family.name} in {seconds:.0f} s, "
        f"seeds {request.seeds.start} to {request.seeds.stop - 1}, {tally.rows()['total']:,} events"
    )
    out.print(_verdicts(tally))
    out.print(_kinds(tally))
    for troubles in (tally.violated, tally.unsettled, tally.failed):
        for trouble in troubles[:SHOWN_MAX]:
            _say(f"{trouble.property or trouble.run}: {trouble.sentence}\n    {request.replay(trouble)}")
        if len(troubles) > SHOWN_MAX:
            _say(f"and {len(troubles) - SHOWN_MAX:,} more; --json lists them all")
    if request.directory is not None:
        _say(f"scenarios of all runs and traces of {len(tally.kept):,} in {request.directory}")
    objections = "; ".join(tally.objections())
    if objections:
        _say(f"fail: {objections}")
    elif tally.runs < len(request.seeds):
        _say("interrupted: so far every run settled and kept every judged promise")
    else:
        _say("pass: every run settled and kept every judged promise")
    if NOT_JUDGED:
        _say(f"promised but without a checker yet: {', '.join(NOT_JUDGED)}")


def _say(sentence: str) -> None:
    out.print(escape(sentence), highlight=False, soft_wrap=True)


def _verdicts(tally: Tally) -> Table:
    table = Table(title="Verdicts", title_justify="left")
    table.add_column("property")
    for heading in ("runs promising", "with opportunities", "median", "opportunities", "violations"):
        table.add_column(heading, justify="right")
    for entry in tally.properties():
        violations = f"{entry['violations']:,}"
        table.add_row(
            f"{entry['property']:<3} {promise(entry['property']).name}",
            f"{entry['runs']:,}",
            f"{entry['runs_with_opportunities']:,}",
            f"{entry['opportunities_median']:,.0f}",
            f"{entry['opportunities']:,}",
            f"[bold red]{violations}[/]" if entry["violations"] else violations,
        )
    return table


def _kinds(tally: Tally) -> Table:
    """The number of runs of each shape, and their distribution; `--json` has every combination."""
    table = Table(title="Runs by kind", title_justify="left")
    table.add_column("shape")
    table.add_column("runs", justify="right")
    keys = ("service", "view_change", "flow_control", "transport")
    columns = [(key, value) for key in keys for value in tally.values(key) if value != "none"]
    for key, value in columns:
        table.add_column(
            f"flow {value}" if key == "flow_control" else str(value).removeprefix("causal-"), justify="right"
        )
    for shape in tally.values("shape"):
        own = [(kind, count) for kind, count in tally.kinds.items() if kind.shape == shape]
        parts = [sum(count for kind, count in own if getattr(kind, key) == value) for key, value in columns]
        table.add_row(str(shape), *(f"{number:,}" for number in (sum(count for _, count in own), *parts)))
    return table
