"""Play a scenario with real processes on this machine, and check the result.

A run is correct if its trace shows the effect of each fault, if it became quiet, and if every promised property holds.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from antiphon import __version__
from antiphon.cli.commands.run import TRANSPORTS, Sockets
from antiphon.errors import AntiphonError
from antiphon.node.supervisor import run_locally
from antiphon.properties.judge import judge
from antiphon.scenario.read import read_scenario, scenario_toml, with_transport
from antiphon.sim.run import Run
from antiphon.trace.directory import RunRecord, appearing, write_events, write_run
from antiphon.trace.table import events_table
from tools.lab.evidence import evidence_in

SCENARIOS: Final = Path(__file__).parents[2] / "scenarios/real"


@dataclass(frozen=True, slots=True)
class Result:
    """One run."""

    scenario: str
    transport: Sockets
    wall_seconds: float
    delivered: int = 0
    views: int = 0
    """Different ones, of all groups."""
    blocks: int = 0
    """How often a sender was stopped by flow control."""
    missing: tuple[str, ...] = ()
    """Faults of the scenario that the trace does not show."""
    violated: tuple[str, ...] = ()
    """One sentence each."""

    @property
    def holds(self) -> bool:
        """True if the run is correct."""
        return not self.missing and not self.violated


def transports_of(scenario: Path) -> list[Sockets]:
    """The transports that can carry it."""
    return ["udp"] if read_scenario(scenario).protocol == "intergroup" else [*TRANSPORTS]


def play(scenario: Path, transport: Sockets, keep: Path | None = None) -> Result:
    """Run a scenario, and check the result. The trace of an incorrect run goes to `keep`."""
    started = time.perf_counter()
    try:
        run = run_locally(with_transport(read_scenario(scenario), TRANSPORTS[transport]))
    except AntiphonError as error:
        return Result(scenario.stem, transport, time.perf_counter() - started, missing=(str(error),))
    took = time.perf_counter() - started
    events = events_table(run.id, run.histories)
    verdicts = [verdict for verdict in judge(events) if verdict.violations]
    rows = [row for history in run.histories for row in history.rows]
    result = Result(
        scenario=scenario.stem,
        transport=transport,
        wall_seconds=took,
        delivered=run.deliveries,
        views=len({(row["group"], row["view"]) for row in rows if row["kind"] == "view"}),
        blocks=sum(row["kind"] == "block" for row in rows),
        missing=tuple(evidence_in(run).missing()),
        violated=tuple(f"{each.property}: {each.example and each.example.sentence}" for each in verdicts),
    )
    if keep is not None and not result.holds:
        keep_run(run, events, keep / f"{scenario.stem}-{transport}-{time.time_ns()}")
    return result


def keep_run(run: Run, events: Any, directory: Path) -> None:
    """Write a run and its trace as `antiphon run` does."""
    with appearing(directory) as aside:
        write_events(events, aside, run.id)
        record = RunRecord(run.id, run.scenario.name, run.scenario.seed, __version__, clock="wall", finished=True)
        write_run(aside, record, scenario_toml(run.scenario))
