"""Every scenario of `scenarios/real` with real processes, over TCP and UDP: what it is about happens, and all holds.

A run counts if its trace shows each fault at work (a process that was killed and is done without, senders that were
blocked, a state that a newcomer took, a view in which both sides of a split are again), if it came to rest, and if
every property that its services promise holds. Exit code 1 if one does not. Run from the root:

    python -m benchmarks.real_runs [--only NAME] [--transport tcp|udp] [--rounds 1] [--keep DIR] [--json]
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from antiphon import __version__
from antiphon.cli.run import TRANSPORTS, Sockets
from antiphon.errors import AntiphonError
from antiphon.local.supervisor import run_locally
from antiphon.properties.judge import judge
from antiphon.scenario.model import (
    Crash,
    Fault,
    Join,
    Leave,
    Partition,
    Pause,
    Recover,
    Stall,
    members_of,
)
from antiphon.scenario.read import read_scenario, scenario_toml, with_transport
from antiphon.sim.run import Run
from antiphon.trace.directory import RunRecord, appearing, write_events, write_run
from antiphon.trace.recorder import Row
from antiphon.trace.table import events_table
from antiphon.types import ProcessId, process_id, split_process_id

SCENARIOS: Final = Path(__file__).parents[1] / "scenarios/real"


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
    """What the scenario says and the trace does not show."""
    violated: tuple[str, ...] = ()
    """One sentence each."""

    @property
    def holds(self) -> bool:
        """Whether it is as it should be."""
        return not self.missing and not self.violated


class Evidence:
    """What a trace shows of its scenario's faults."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._rows: dict[str, list[Row]] = {
            process_id(each.process, each.incarnation): each.rows for each in run.histories
        }
        self._crashed = {process for process in self._rows if self._of(process, "crash")}
        self._left = {(process, row["group"]) for process in self._rows for row in self._of(process, "leave")}

    def missing(self) -> Iterator[str]:
        """A sentence for each thing that did not happen."""
        if not self._run.quiet:
            yield "the run did not come to rest"
        for fault in self._run.scenario.fault:
            yield from self._missing(fault)
        yield from self._silent()
        yield from self._unordered()
        if self._run.scenario.options.merge_every:
            yield from self._apart()

    def _of(self, process: str, kind: str, begin: int = -sys.maxsize, end: int = sys.maxsize) -> list[Row]:
        """The rows of this kind at a process, between two moments."""
        return [row for row in self._rows.get(process, ()) if row["kind"] == kind and begin <= row["time"] < end]

    def _missing(self, fault: Fault) -> Iterator[str]:
        match fault:
            case Crash():
                if fault.process not in self._crashed:
                    yield f"{fault.process} was not killed"
                yield from self._kept(fault.process)
            case Pause():
                yield from self._not_paused(fault)
            case Stall():
                yield from self._not_stalled(fault)
            case Join():
                if not self._took_state(fault.process):
                    yield f"{fault.process} joined, and took no state"
            case Recover():
                if not any(self._took_state(process) for process in self._incarnations(fault.process)[1:]):
                    yield f"{fault.process} was started again, and took no state"
            case Leave():
                if (fault.process, fault.group) not in self._left:
                    yield f"{fault.process} has not left {fault.group}"
            case Partition():
                yield from self._not_parted(fault)
            case _:
                raise AssertionError(f"nothing is known of how a trace shows {fault}")

    def _incarnations(self, name: str) -> list[str]:
        return sorted(process for process in self._rows if split_process_id(ProcessId(process))[0] == name)

    def _took_state(self, process: str) -> bool:
        roles = [json.loads(row["detail"])["role"] for row in self._of(process, "state")]
        return "installed" in roles and bool(self._of(process, "view"))

    def _kept(self, victim: str) -> Iterator[str]:
        """Survivors who did not get to a view without somebody who was killed."""
        for process, group, view in self._last_views():
            if victim in view:
                yield f"{process} has {victim} in its last view of {group}"

    def _last_views(self) -> Iterator[tuple[str, str, list[str]]]:
        """Of all who are there at the end, in every group that they are in."""
        for process in self._rows.keys() - self._crashed:
            last = {row["group"]: row["members"] for row in self._of(process, "view")}
            for group, members in last.items():
                if (process, group) not in self._left:
                    yield process, group, members

    def _not_paused(self, fault: Pause) -> Iterator[str]:
        begin, end = self._span(fault)
        if self._went_on(fault.process, begin, end, kinds=None):
            yield f"{fault.process} was not paused"
        if not self._of(fault.process, "deliver", end):
            yield f"{fault.process} delivered nothing after its pause"
        others = [process for process in self._rows if process != fault.process]
        views = [row["members"] for process in others for row in self._of(process, "view", begin)]
        if end - begin > 2 * self._run.scenario.options.suspect_after and all(fault.process in view for view in views):
            yield f"nobody did without {fault.process} in its pause"

    def _not_stalled(self, fault: Stall) -> Iterator[str]:
        begin, end = self._span(fault)
        if self._went_on(fault.process, begin, end, kinds={"deliver"}):
            yield f"the application of {fault.process} was not stalled"
        others = [process for process in self._rows if process != fault.process]
        if not any(self._of(process, "block", begin, end) for process in others):
            yield f"nobody was blocked while {fault.process} was stalled"

    def _went_on(self, process: str, begin: int, end: int, kinds: set[str] | None) -> bool:
        """Whether it has such rows, or of any kind, in the second half of a fault, which may begin late at a process.

        A fault that is not told of has no length, and stopped nobody.
        """
        middle = (begin + end) // 2
        rows = [row for row in self._rows[process] if kinds is None or row["kind"] in kinds]
        return begin == end or any(middle < row["time"] < end for row in rows)

    def _span(self, fault: Pause | Stall) -> tuple[int, int]:
        """When it began and ended, by the supervisor's clock; never, if it is not told of."""
        told = [(row["time"], json.loads(row["detail"])) for row in self._of("world", "fault")]
        mine = {"kind": type(fault).__name__.lower(), "at": str(fault.at), "process": fault.process}
        times = [moment for moment, detail in told if detail.items() >= mine.items()]
        return (times[0], times[-1]) if times else (0, 0)

    def _not_parted(self, fault: Partition) -> Iterator[str]:
        for side in fault.sides:
            others = {name for other in fault.sides if other is not side for name in other}
            for process in side:
                if not any(others.isdisjoint(row["members"]) for row in self._of(process, "view")):
                    yield f"{process} never did without the other side of the split"

    def _silent(self) -> Iterator[str]:
        """Members to whom nothing was delivered."""
        for group in self._run.scenario.group:
            for name in members_of(group):
                rows = [row for process in self._incarnations(name) for row in self._of(process, "deliver")]
                if not any(row["group"] == group.name for row in rows):
                    yield f"{name} delivered nothing in {group.name}"

    def _unordered(self) -> Iterator[str]:
        """Groups with a sequencer in which nobody but the senders gave stamps."""
        rows = [row for process in self._rows for row in self._of(process, "deliver")]
        ordered = {row["group"] for row in rows if row.get("orderer") is not None}
        for group in self._run.scenario.group:
            if group.mode == "asymmetric" and group.name not in ordered:
                yield f"no sequencer ordered anything in {group.name}"

    def _apart(self) -> Iterator[str]:
        """Those who look for each other and are not in one view at the end."""
        live = {process for process in self._rows.keys() - self._crashed if process != "world"}
        for process, group, members in self._last_views():
            wanted = {each for each in live if split_process_id(ProcessId(each))[0] in self._members(group)}
            if not wanted <= {*members}:
                yield f"{process} is without {', '.join(sorted(wanted - {*members}))} in {group} at the end"

    def _members(self, name: str) -> tuple[str, ...]:
        return next(members_of(group) for group in self._run.scenario.group if group.name == name)


def play(scenario: Path, transport: Sockets, keep: Path | None = None) -> Result:
    """Run a scenario, and look at what came of it. The trace of a run that is not as it should be goes to `keep`."""
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
        missing=tuple(Evidence(run).missing()),
        violated=tuple(f"{each.property}: {each.example and each.example.sentence}" for each in verdicts),
    )
    if keep is not None and not result.holds:
        _keep(run, events, keep / f"{scenario.stem}-{transport}-{time.time_ns()}")
    return result


def _keep(run: Run, events: Any, directory: Path) -> None:
    with appearing(directory) as aside:
        write_events(events, aside, run.id)
        record = RunRecord(run.id, run.scenario.name, run.scenario.seed, __version__, clock="wall", finished=True)
        write_run(aside, record, scenario_toml(run.scenario))


def main() -> None:
    """Play all, print a table, and a sentence for each thing that is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", help="one scenario")
    parser.add_argument("--transport", choices=[*TRANSPORTS], help="one transport")
    parser.add_argument("--rounds", type=int, default=1, help="play the whole list so many times")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where traces of runs that fail go")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    arguments = parser.parse_args()
    scenarios = [path for path in sorted(SCENARIOS.glob("*.toml")) if arguments.only in (None, path.stem)]
    transports = [each for each in TRANSPORTS if arguments.transport in (None, each)]
    if not scenarios:
        parser.error(f"no scenario {arguments.only!r}; there are {', '.join(p.stem for p in SCENARIOS.glob('*.toml'))}")
    plan = [(path, each) for _ in range(arguments.rounds) for path in scenarios for each in transports]
    results = []
    for number, (path, transport) in enumerate(plan, 1):
        results.append(play(path, transport, arguments.keep))
        print(f"{number}/{len(plan)} {_line(results[-1])}", file=sys.stderr, flush=True)
    if arguments.json:
        print(json.dumps([asdict(result) | {"holds": result.holds} for result in results], indent=1))
    else:
        Console(width=None if sys.stdout.isatty() else 120).print(_table(results))
    sys.exit(not all(result.holds for result in results))


def _line(result: Result) -> str:
    said = "holds" if result.holds else "; ".join((*result.missing, *result.violated))
    return f"{result.scenario} over {result.transport}: {said}"


def _table(results: list[Result]) -> Table:
    table = Table("scenario", "transport", title="Real processes on this machine", title_justify="left")
    for name in ("wall s", "delivered", "views", "blocked"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for result in results:
        figures = f"{result.delivered:,}", str(result.views), str(result.blocks)
        verdict = "[green]holds[/]" if result.holds else "[bold red]does not hold[/]"
        table.add_row(result.scenario, result.transport, f"{result.wall_seconds:.1f}", *figures, verdict)
    return table


if __name__ == "__main__":
    main()
