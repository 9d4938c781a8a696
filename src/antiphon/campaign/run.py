"""One run of a campaign: drawn, simulated, judged, told in a few lines. A run that breaks does not stop the others."""

import signal
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Final, Literal

import pyarrow as pa

from antiphon import __version__
from antiphon.campaign.families import FAMILIES
from antiphon.properties.judge import judge
from antiphon.properties.verdict import Verdict
from antiphon.scenario.model import Scenario, membership
from antiphon.scenario.read import run_id, scenario_toml
from antiphon.sim.run import simulate
from antiphon.trace.directory import RunRecord, write_events
from antiphon.trace.table import events_table

Traces = Literal["failures", "all", "none"]
WALL_SECONDS_MAX: Final = 60
"""A run takes a tenth of a second; one that goes on at one instant for ever must not stop the campaign."""
_REASON_MAX: Final = 300


@dataclass(frozen=True, slots=True)
class Task:
    """Which run, and where its trace goes."""

    family: str
    seed: int
    traces: Traces
    directory: Path | None


@dataclass(frozen=True, slots=True)
class Kind:
    """What a campaign counts its runs by."""

    shape: str
    service: str
    flow_control: int
    transport: str
    view_change: str = "none"
    """How views change; "none" where they never do, or without being agreed on."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one run says of one property it promises, all groups together."""

    property: str
    opportunities: int
    violations: int
    sentence: str | None
    """Tells the first violation."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run."""

    kind: Kind
    record: RunRecord
    scenario_toml: str
    findings: tuple[Finding, ...] = ()
    settled: bool = False
    """All was quiet at the end; always false where it failed."""
    failure: str | None = None
    """Why it could not be simulated or judged, in one line."""
    rows: int = 0
    """Length of its trace."""
    kept: bool = False
    """Its trace is in the directory."""

    @property
    def good(self) -> bool:
        """It settled, and kept every promise that was judged."""
        return self.settled and not any(finding.violations for finding in self.findings)


def run_one(task: Task) -> Outcome:
    """Draw, simulate and judge; the trace is written if it is wanted."""
    family = FAMILIES[task.family]
    scenario = family.draw(task.seed)
    outcome = Outcome(_kind(family.shape(scenario), scenario), _record(scenario), scenario_toml(scenario))
    events: pa.Table | None = None
    try:
        with _limited(WALL_SECONDS_MAX):
            run = simulate(scenario)
            events = events_table(run.id, run.histories)
            findings = _findings(judge(events))
        record = replace(outcome.record, finished=True)
        outcome = replace(outcome, record=record, findings=findings, settled=run.quiet, rows=len(events))
    except Exception as error:  # an assertion of a core is what a campaign is there to find
        outcome = replace(outcome, failure=_reason(error), rows=len(events) if events is not None else 0)
    wanted = task.traces == "all" or (task.traces == "failures" and not outcome.good)
    if events is None or task.directory is None or not wanted:
        return outcome
    write_events(events, task.directory, outcome.record.run)
    return replace(outcome, kept=True)


def _kind(shape: str, scenario: Scenario) -> Kind:
    services = {group.service for group in scenario.group}
    service: str = "mixed" if len(services) > 1 else services.pop()
    if scenario.protocol == "acks":
        service = scenario.options.acks  # what differs there
    flow_control = scenario.options.flow_control if scenario.protocol == "newtop" else 0
    view_change = scenario.options.view_change if membership(scenario) else "none"
    return Kind(shape, service, flow_control, scenario.network.transport, view_change)


def _record(scenario: Scenario) -> RunRecord:
    return RunRecord(run_id(scenario), scenario.name, scenario.seed, __version__, clock="virtual", finished=False)


def _findings(verdicts: Iterable[Verdict]) -> tuple[Finding, ...]:
    """The verdicts on all groups of a property taken together; what nobody promises is left out."""
    by_property: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.outcome != "not promised":
            by_property.setdefault(verdict.property, []).append(verdict)
    return tuple(
        Finding(
            name,
            sum(verdict.opportunities for verdict in own),
            sum(verdict.violations for verdict in own),
            next((verdict.example.sentence for verdict in own if verdict.example), None),
        )
        for name, own in by_property.items()
    )


def _reason(error: Exception) -> str:
    """The error, and the innermost place it comes from: a bare assertion says nothing else."""
    text = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")
    places = traceback.extract_tb(error.__traceback__)
    place = next(place for place in reversed(places) if place.name != _expire.__name__)
    text = text if len(text) <= _REASON_MAX else f"{text[:_REASON_MAX]}…"
    return f"{text} ({Path(place.filename).name}:{place.lineno}, {place.name})"


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Whatever takes longer is an error."""
    before = signal.signal(signal.SIGALRM, _expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _expire(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError(f"still at it after {WALL_SECONDS_MAX} s")
