"""`antiphon simulate SCENARIO --out DIR`: run a scenario deterministically in virtual time."""

import time
from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.markup import escape

from antiphon import __version__
from antiphon.cli.shared.output import Json, out, print_json, progress
from antiphon.cli.shared.paths import path_argument, place_option
from antiphon.cli.shared.pool import map_parallel
from antiphon.cli.shared.verdicts import Every, as_document, exit_code, print_verdicts
from antiphon.cli.shared.views import ViewChange, sentences, view_changes
from antiphon.errors import ConfigurationError, abbreviated
from antiphon.properties.judge import judge
from antiphon.properties.verdicts.summary import VerdictSummary
from antiphon.properties.verdicts.verdict import Verdict
from antiphon.scenario.model import Scenario
from antiphon.scenario.read import parse_scenario, read_scenario, run_id, scenario_toml, with_seed
from antiphon.sim.network import Carry
from antiphon.sim.run import Run
from antiphon.sim.run import simulate as run_simulation
from antiphon.trace.directory import (
    RunRecord,
    appearing,
    check_free,
    read_index,
    write_events,
    write_index,
    write_run,
)
from antiphon.trace.places import Place
from antiphon.trace.table import events_table

SEEDS_MAX: Final = 1_000_000
VIEWS_SHOWN_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of one run."""

    run: str
    seed: int
    requests: int
    deliveries: int
    virtual_seconds: float
    quiet: bool
    wall_seconds: float
    views: list[ViewChange]
    """The view changes, in the order of installation; empty without a trace."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run: its summary, what replays it, and its verdicts if it was judged."""

    summary: Summary
    record: RunRecord
    scenario_toml: str
    verdicts: list[Verdict]


def simulate(
    scenario: Annotated[Path | None, path_argument("SCENARIO", "A scenario file (TOML).")] = None,
    out_directory: Annotated[
        Place | None,
        place_option("--out", "DIR", "Directory for the trace; without it nothing is kept."),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Judge the run at once, in this process.")] = False,
    seeds: Annotated[
        str | None, typer.Option("--seeds", metavar="A..B", help="Run every seed from A to B, on all cores.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Use this seed instead of the scenario's.")] = None,
    source: Annotated[
        Place | None,
        place_option("--from", "DIR", "Replay a run kept in this directory; see --run."),
    ] = None,
    run: Annotated[str | None, typer.Option("--run", metavar="ID", help="The run of --from to replay.")] = None,
    carry: Annotated[
        Carry, typer.Option("--carry", help="What the simulated network carries; frames are faster than bytes.")
    ] = "bytes",
    force: Annotated[bool, typer.Option("--force", help="Replace other runs in the output directory.")] = False,
    every: Every = False,
    json: Json = False,
) -> None:
    """Run a scenario in virtual time: the same scenario and seed give the same trace, byte for byte."""
    chosen = _scenario(scenario, source, run)
    scenarios = [with_seed(chosen, number) for number in parse_seeds(chosen, seeds, seed)]
    if check and chosen.trace == "off":
        raise ConfigurationError('--check needs a trace, but the scenario has trace = "off"')
    if out_directory is not None:
        check_free(out_directory, [run_id(each) for each in scenarios], force=force)
    with nullcontext(None) if out_directory is None else appearing(out_directory) as aside:
        outcomes = _outcomes(scenarios, carry, check, aside)
        if aside is not None and seeds is None:
            write_run(aside, outcomes[0].record, outcomes[0].scenario_toml)
        elif aside is not None:
            write_index(aside, [(outcome.record, outcome.scenario_toml) for outcome in outcomes])
    print_outcomes(outcomes, out_directory, check, json, traced=chosen.trace == "full", every=every)
    if check:
        raise typer.Exit(exit_code(VerdictSummary.of(verdict for outcome in outcomes for verdict in outcome.verdicts)))


def simulate_one(scenario: Scenario, carry: Carry, check: bool, directory: Place | None) -> Outcome:
    """Simulate one scenario, judge it if requested, and write its events to `directory`."""
    started = time.perf_counter()
    return outcome_of(run_simulation(scenario, carry), started, check, directory, clock="virtual")


def outcome_of(run: Run, started: float, check: bool, directory: Place | None, *, clock: str) -> Outcome:
    """Return the result of a run; its events are written to `directory`."""
    scenario = run.scenario
    traced = scenario.trace == "full" and (check or directory is not None)
    events = events_table(run.id, run.histories) if traced else None
    if events is not None and directory is not None:
        write_events(events, directory, run.id)
    verdicts = judge(events) if check and events is not None else []
    summary = Summary(
        run=run.id,
        seed=scenario.seed,
        requests=run.requests,
        deliveries=run.deliveries,
        virtual_seconds=run.virtual_ns / 1e9,
        quiet=run.quiet,
        wall_seconds=time.perf_counter() - started,
        views=view_changes(run),
    )
    record = RunRecord(run.id, scenario.name, scenario.seed, __version__, clock=clock, finished=not run.interrupted)
    return Outcome(summary, record, scenario_toml(scenario), verdicts)


def _outcomes(scenarios: Sequence[Scenario], carry: Carry, check: bool, directory: Place | None) -> list[Outcome]:
    """One outcome for each scenario, in the order of the seeds."""
    outcomes: list[Outcome] = []
    work = partial(simulate_one, carry=carry, check=check, directory=directory)
    with closing(map_parallel(work, scenarios)) as results, progress("simulating") as advance:
        for outcome in results:
            outcomes.append(outcome)
            advance(len(outcomes), len(scenarios))
    return outcomes


def _scenario(path: Path | None, source: Place | None, run: str | None) -> Scenario:
    if (path is None) == (source is None):
        raise ConfigurationError("give either a SCENARIO file or --from DIR, with --run ID if DIR holds several runs")
    if path is not None:
        return read_scenario(path)
    assert source is not None
    held = {record.run: text for record, text in read_index(source)}
    if run is None and len(held) == 1:
        run = next(iter(held))
    if run is None:
        raise ConfigurationError(f"{source} holds {len(held)} runs ({abbreviated([*held])}); name one with --run")
    if run not in held:
        raise ConfigurationError(f"{source} holds no run {run!r}; it holds {abbreviated([*held])}")
    return parse_scenario(held[run])


def parse_seeds(scenario: Scenario, seeds: str | None, seed: int | None) -> Sequence[int]:
    """The seeds to run: a range, a single one, or the scenario's own."""
    if seeds is not None and seed is not None:
        raise ConfigurationError("--seed and --seeds exclude each other")
    if seeds is None:
        return [scenario.seed if seed is None else _seed(str(seed))]
    first, dots, last = seeds.partition("..")
    if not dots or _seed(first) > _seed(last):
        raise ConfigurationError(f"--seeds {seeds!r} is not a range such as 1..100")
    if _seed(last) - _seed(first) >= SEEDS_MAX:
        raise ConfigurationError(f"--seeds {seeds} asks for more than {SEEDS_MAX:,} runs; split them")
    return range(_seed(first), _seed(last) + 1)


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**63:
        raise ConfigurationError(f"{text!r} is not a seed: a non-negative 64-bit number")
    return int(text)


def _print_run(outcome: Outcome) -> None:
    summary = outcome.summary
    out.print(
        f"{escape(summary.run)}: {summary.requests:,} messages, {summary.deliveries:,} deliveries in "
        f"{summary.virtual_seconds:.3f} s{_timed(outcome)}, "
        f"{'quiet' if summary.quiet else 'cut off before it was quiet'}",
        highlight=False,
        soft_wrap=True,
    )


def print_outcomes(
    outcomes: Sequence[Outcome], directory: Place | None, check: bool, json: bool, *, traced: bool, every: bool
) -> None:
    """Print the results of the runs, as sentences or as one document."""
    verdicts = [verdict for outcome in outcomes for verdict in outcome.verdicts]
    if json:
        document: dict[str, Any] = {"runs": [asdict(outcome.summary) for outcome in outcomes]}
        document["directory"] = str(directory) if directory is not None else None
        if check:
            document["check"] = as_document(VerdictSummary.of(verdicts))
        print_json(document)
        return
    if len(outcomes) > 10:
        messages = sum(outcome.summary.requests for outcome in outcomes)
        out.print(f"{len(outcomes)} runs, {messages:,} messages", highlight=False)
    else:
        for outcome in outcomes:
            _print_run(outcome)
    if len(outcomes) == 1:
        _print_views(outcomes[0].summary.views)
    if directory is not None:
        held = "trace" if traced else "scenario (tracing is off)"
        out.print(f"{held} in {escape(str(directory))}", highlight=False)
    if check:
        print_verdicts(VerdictSummary.of(verdicts), every=every)


def _timed(outcome: Outcome) -> str:
    if outcome.record.clock == "wall":
        return ""
    return f" of virtual time, simulated in {outcome.summary.wall_seconds:.1f} s"


def _print_views(views: list[ViewChange]) -> None:
    lines = [*sentences(views)]
    for line in lines[:VIEWS_SHOWN_MAX]:
        out.print(escape(line), highlight=False, soft_wrap=True)
    if len(lines) > VIEWS_SHOWN_MAX:
        out.print(f"and {len(lines) - VIEWS_SHOWN_MAX} more views; --json lists them all", highlight=False)
