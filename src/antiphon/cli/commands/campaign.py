"""`antiphon campaign NAME --runs N --out DIR`: random scenarios of a family, each judged."""

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

import typer
from rich.markup import escape
from rich.table import Table

from antiphon import __version__
from antiphon.campaign.families import FAMILIES, Family
from antiphon.campaign.run import OUTCOMES, Runner, Traces, outcomes_of
from antiphon.campaign.tally import Tally, Trouble
from antiphon.cli.shared.output import Json, Master, as_json, out, print_json, progress, waiting
from antiphon.cli.shared.sessions import starting, tell_what_is_kept
from antiphon.errors import ConfigurationError
from antiphon.properties.promises import NOT_JUDGED
from antiphon.properties.verdicts.wording import promise
from antiphon.scenario.read import run_id
from antiphon.trace.directory import check_free, write_index
from antiphon.trace.unfinished import PARTS, continued, unfinished

RUNS_MAX: Final = 100_000
SHOWN_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class _Order:
    """What was asked for."""

    family: Family
    seeds: range
    directory: Path | None
    traces: Traces
    master: str | None
    force: bool

    def replay(self, trouble: Trouble) -> str:
        """The command that shows a run again."""
        if self.directory is None:
            return f"antiphon campaign {self.family.name} --first {trouble.seed} --runs 1"
        return f"antiphon simulate --from {shlex.quote(str(self.directory))} --run {trouble.run} --check"


def campaign(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A family of scenarios; see --list.")] = None,
    runs: Annotated[int, typer.Option("--runs", metavar="N", help="How many runs.")] = 1_000,
    first: Annotated[int, typer.Option("--first", metavar="SEED", help="Seed of the first run.")] = 1,
    out_directory: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Where scenarios and traces go; without it none is kept."),
    ] = None,
    traces: Annotated[
        Traces,
        typer.Option("--traces", help="Keep traces of runs that break a promise or never settle, of all, or of none."),
    ] = "failures",
    force: Annotated[
        bool, typer.Option("--force", help="Replace other runs in the output directory, also unfinished ones.")
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the families and leave.")] = False,
    json: Json = False,
    master: Master = None,
) -> None:
    """Simulate random scenarios of a family and judge each, as tasks of Spark: the seed says all of a run.

    What is interrupted is kept beside --out; the same command does the rest. Exit code 0: every run settled and kept
    every promise that is judged, and every property was put to the test often enough; 1: not so.
    """
    if list_:
        _list(json)
        return
    order = _Order(_family(name), _seeds(first, runs), out_directory, traces, master, force)
    if out_directory is None and traces == "all":
        raise ConfigurationError("--traces all needs --out: there is no place to keep them")
    _check_free(order)
    tally, began = Tally(), time.perf_counter()
    try:
        _judge(order, tally)
    except KeyboardInterrupt:
        _print(replace(order, directory=None), tally, json, time.perf_counter() - began)
        if out_directory is not None:
            tell_what_is_kept(tally.runs, runs, unfinished(out_directory))
        raise
    _print(order, tally, json, time.perf_counter() - began)
    raise typer.Exit(1 if any(tally.objections()) else 0)


def _judge(order: _Order, tally: Tally) -> None:
    """Run all that has not run yet, and count all; the directory appears when the last is done."""
    from antiphon.pipeline.jobs.spread import Work, results, spread  # noqa: PLC0415 - Spark takes a second to import

    with _workplace(order) as place:
        runner = Runner(order.family.name, order.traces, None if order.directory is None else place)
        parts = place / PARTS
        try:
            with progress("judging") as advance:
                work = Work(runner, runner.lost, OUTCOMES)
                spread(starting(order.master), work, order.seeds, parts, advance)
        finally:
            outcomes = outcomes_of(results(parts, OUTCOMES))
            for outcome in outcomes:
                tally.add(outcome)
        if order.directory is not None:
            write_index(place, [(outcome.record, outcome.scenario_toml) for outcome in outcomes])
            (place / "campaign.json").write_text(as_json(_document(order, tally)), encoding="utf-8")


@contextmanager
def _workplace(order: _Order) -> Iterator[Path]:
    """Where results lie until all are there."""
    if order.directory is None:
        # A worker that outlives an interrupt may still write there: that must not hide the interrupt.
        with TemporaryDirectory(prefix="antiphon-campaign-", ignore_cleanup_errors=True) as scratch:
            yield Path(scratch)
        return
    plan = {
        "command": "campaign",
        "family": order.family.name,
        "first": order.seeds.start,
        "runs": len(order.seeds),
        "traces": order.traces,
    }
    with continued(order.directory, plan, force=order.force) as place:
        yield place


def _family(name: str | None) -> Family:
    if name is not None and name in FAMILIES:
        return FAMILIES[name]
    asked = "name a family of scenarios" if name is None else f"there is no family {name!r}"
    raise ConfigurationError(f"{asked}; the families are {', '.join(FAMILIES)}")


def _seeds(first: int, runs: int) -> range:
    if not 1 <= runs <= RUNS_MAX:
        raise ConfigurationError(f"--runs {runs} is not between 1 and {RUNS_MAX:,}; split a longer campaign by --first")
    if not 0 <= first < 2**63 - runs:
        raise ConfigurationError(f"--first {first} is not a seed: a non-negative 64-bit number")
    return range(first, first + runs)


def _check_free(order: _Order) -> None:
    """Refuse early; the runs there will be are drawn only where they must be compared, for that takes seconds."""
    directory = order.directory
    if directory is None:
        return
    occupied = directory.is_dir() and any(directory.iterdir())
    with waiting("comparing with what is there"):
        runs = [run_id(order.family.draw(seed)) for seed in order.seeds] if occupied and not order.force else []
    check_free(directory, runs, force=order.force)


def _list(json: bool) -> None:
    if json:
        print_json({"families": [{"name": each.name, "sentence": each.sentence} for each in FAMILIES.values()]})
        return
    for family in FAMILIES.values():
        out.print(f"{family.name:<12} {family.sentence}", highlight=False, soft_wrap=True)


def _document(order: _Order, tally: Tally) -> dict[str, Any]:
    """What `--json` prints and `campaign.json` holds; the machine matters only by the limit on a run's time."""
    objections = [*tally.objections()]
    verdict = "fail" if objections else "pass" if tally.runs == len(order.seeds) else "interrupted"
    return {
        "campaign": order.family.name,
        "antiphon_version": __version__,
        "first": order.seeds.start,
        "asked": len(order.seeds),
        "runs": tally.runs,
        "rows": tally.rows(),
        "verdict": verdict,
        "objections": objections,
        "properties": tally.properties(),
        "untested": tally.untested(),
        "not_judged": list(NOT_JUDGED),
        "kinds": tally.counts(),
        "violated": [_told(order, trouble) for trouble in tally.violated],
        "not_settled": [_told(order, trouble) for trouble in tally.unsettled],
        "failed": [_told(order, trouble) for trouble in tally.failed],
        "traces": tally.kept,
    }


def _told(order: _Order, trouble: Trouble) -> dict[str, Any]:
    return asdict(trouble) | {"replay": order.replay(trouble)}


def _print(order: _Order, tally: Tally, json: bool, seconds: float) -> None:
    if json:
        print_json(_document(order, tally))
        return
    if not tally.runs:
        _say(f"no run of {order.family.name} was judged in {seconds:.0f} s")
        return
    _say(
        f"{tally.runs:,} of {len(order.seeds):,} runs of {order.family.name} in {seconds:.0f} s, "
        f"seeds {order.seeds.start} to {order.seeds.stop - 1}, {tally.rows()['total']:,} events"
    )
    out.print(_verdicts(tally))
    out.print(_kinds(tally))
    for troubles in (tally.violated, tally.unsettled, tally.failed):
        for trouble in troubles[:SHOWN_MAX]:
            _say(f"{trouble.property or trouble.run}: {trouble.sentence}\n    {order.replay(trouble)}")
        if len(troubles) > SHOWN_MAX:
            _say(f"and {len(troubles) - SHOWN_MAX:,} more like it; --json tells them all")
    if order.directory is not None:
        _say(f"scenarios of all runs and traces of {len(tally.kept):,} in {order.directory}")
    objections = "; ".join(tally.objections())
    if objections:
        _say(f"fail: {objections}")
    elif tally.runs < len(order.seeds):
        _say("interrupted: so far every run settled and kept every promise that is judged")
    else:
        _say("pass: every run settled and kept every promise that is judged")
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
    """How many runs of each shape there were, and how they divide; `--json` has every combination."""
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
