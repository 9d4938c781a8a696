"""Evidence in a trace that each fault of its scenario has happened, and that it affected a process.

A run without a blocked sender shows nothing about flow control; a run without loss shows nothing about repairs.
"""

import json
import sys
from collections.abc import Iterable, Iterator

from antiphon.protocols.newtop.options import NewtopOptions
from antiphon.scenario.model import (
    Crash,
    Demote,
    Fault,
    Group,
    Join,
    Leave,
    Partition,
    Pause,
    Promote,
    Recover,
    Stall,
    Suspect,
    accusers,
    members_of,
    senders_of,
)
from antiphon.sim.run import Run
from antiphon.trace.recorder import Row
from antiphon.types import ProcessId, process_id, split_process_id


def evidence_in(run: Run) -> "Evidence":
    """The evidence checker for this run."""
    return InterGroupEvidence(run) if run.scenario.protocol == "intergroup" else Evidence(run)


class Evidence:
    """Evidence for the faults of a scenario."""

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
        options = self._run.scenario.options
        if isinstance(options, NewtopOptions) and options.merge_every:
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
        """Survivors that never installed a view without the killed process."""
        for process, group, view in self._last_views():
            if victim in view:
                yield f"{process} has {victim} in its last view of {group}"

    def _last_views(self) -> Iterator[tuple[str, str, list[str]]]:
        """The last views of all processes that are present at the end, in all their groups."""
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
            yield f"no process excluded {fault.process} in its pause"

    def _not_stalled(self, fault: Stall) -> Iterator[str]:
        begin, end = self._span(fault)
        if self._went_on(fault.process, begin, end, kinds={"deliver"}):
            yield f"the application of {fault.process} was not stalled"
        others = [process for process in self._rows if process != fault.process]
        if not any(self._of(process, "block", begin, end) for process in others):
            yield f"no process was blocked while {fault.process} was stalled"

    def _went_on(self, process: str, begin: int, end: int, kinds: set[str] | None) -> bool:
        """True if it has rows of these kinds, or of any kind, in the second half of a fault; faults may begin late.

        A fault that the trace does not contain has no length, and stopped no process.
        """
        middle = (begin + end) // 2
        rows = [row for row in self._rows[process] if kinds is None or row["kind"] in kinds]
        return begin == end or any(middle < row["time"] < end for row in rows)

    def _span(self, fault: Pause | Stall | Partition) -> tuple[int, int]:
        """When it began and ended, by the supervisor's clock; never, if it is not told of."""
        told = [(row["time"], json.loads(row["detail"])) for row in self._of("world", "fault")]
        mine: dict[str, object] = {"kind": type(fault).__name__.lower(), "at": str(fault.at)}
        if not isinstance(fault, Partition):
            mine["process"] = fault.process
        times = [moment for moment, detail in told if detail.items() >= mine.items()]
        return (times[0], times[-1]) if times else (0, 0)

    def _not_parted(self, fault: Partition) -> Iterator[str]:
        for side in fault.sides:
            others = {name for other in fault.sides if other is not side for name in other}
            for process in side:
                if not any(others.isdisjoint(row["members"]) for row in self._of(process, "view")):
                    yield f"{process} never did without the other side of the split"

    def _silent(self) -> Iterator[str]:
        """Members that delivered nothing."""
        for group in self._run.scenario.group:
            for name in members_of(group):
                rows = [row for process in self._incarnations(name) for row in self._of(process, "deliver")]
                if not any(row["group"] == group.name for row in rows):
                    yield f"{name} delivered nothing in {group.name}"

    def _unordered(self) -> Iterator[str]:
        """Groups with a sequencer in which only the senders gave stamps."""
        rows = [row for process in self._rows for row in self._of(process, "deliver")]
        ordered = {row["group"] for row in rows if row.get("orderer") is not None}
        for group in self._run.scenario.group:
            if group.mode == "asymmetric" and group.name not in ordered:
                yield f"no sequencer ordered anything in {group.name}"

    def _apart(self) -> Iterator[str]:
        """Processes that look for each other and are not in one view at the end."""
        live = {process for process in self._rows.keys() - self._crashed if process != "world"}
        for process, group, members in self._last_views():
            wanted = {each for each in live if split_process_id(ProcessId(each))[0] in self._members(group)}
            if not wanted <= {*members}:
                yield f"{process} is without {', '.join(sorted(wanted - {*members}))} in {group} at the end"

    def _members(self, name: str) -> tuple[str, ...]:
        return next(members_of(group) for group in self._run.scenario.group if group.name == name)


class InterGroupEvidence(Evidence):
    """Evidence for InterGroup: views list the senders, and no sender waits for a receiver."""

    def missing(self) -> Iterator[str]:
        """A sentence for each thing that did not happen."""
        yield from super().missing()
        if self._run.scenario.network.loss:
            yield from self._unrepaired()

    def _missing(self, fault: Fault) -> Iterator[str]:
        match fault:
            case Crash():
                if fault.process not in self._crashed:
                    yield f"{fault.process} was not killed"
                yield from self._kept(fault.process)
            case Recover():
                yield from self._not_back(fault)
            case Promote() | Demote():
                yield from self._not_changed(fault)
            case Suspect():
                yield from self._not_suspected(fault)
            case Join():
                yield from self._not_joined(fault)
            case Leave():
                yield from self._not_left(fault)
            case _:
                yield from super()._missing(fault)

    def _not_back(self, fault: Recover) -> Iterator[str]:
        for group in fault.joins or ():
            if not any(self._delivered(process, group) for process in self._incarnations(fault.process)[1:]):
                yield f"{fault.process} was started again, and nothing was delivered to it in {group}"

    def _not_changed(self, fault: Promote | Demote) -> Iterator[str]:
        """Whether others installed a view with the new sender, or without the old one, after the order."""
        promotes = isinstance(fault, Promote)
        incarnations = self._incarnations(fault.process)
        begin = min((row["time"] for row in self._of("world", "fault") if self._tells(row, fault)), default=sys.maxsize)
        others = [process for process in self._rows if process not in incarnations]
        views = [row for process in others for row in self._of(process, "view", begin) if row["group"] == fault.group]
        if not any(promotes != {*incarnations}.isdisjoint(row["members"]) for row in views):
            yield f"no other process saw {fault.process} {'become' if promotes else 'end as'} a sender of {fault.group}"

    @staticmethod
    def _tells(row: Row, fault: Promote | Demote) -> bool:
        told = {"kind": type(fault).__name__.lower(), "at": str(fault.at), "process": fault.process}
        return bool(json.loads(row["detail"]).items() >= told.items())

    def _not_suspected(self, fault: Suspect) -> Iterator[str]:
        for accuser in accusers(fault):
            rows = [row for process in self._incarnations(accuser) for row in self._of(process, "suspect")]
            if not any(split_process_id(row["peer"])[0] == fault.process for row in rows):
                yield f"{accuser} did not suspect {fault.process}"

    def _not_joined(self, fault: Join) -> Iterator[str]:
        joins = [row["time"] for row in self._of(fault.process, "join") if row["group"] == fault.group]
        if not joins:
            yield f"{fault.process} has not joined {fault.group}"
        elif self._delivered(fault.process, fault.group, end=joins[0]) and not self._of(fault.process, "leave"):
            yield f"{fault.process} was in {fault.group} before it joined"
        elif not self._delivered(fault.process, fault.group, begin=joins[-1]):
            yield f"{fault.process} joined {fault.group}, and nothing was delivered to it"

    def _not_left(self, fault: Leave) -> Iterator[str]:
        leaves = [row["time"] for row in self._of(fault.process, "leave") if row["group"] == fault.group]
        if not leaves:
            yield f"{fault.process} has not left {fault.group}"
        elif not any(self._delivered(other, fault.group, begin=leaves[-1]) for other in self._rows):
            yield f"nothing was delivered in {fault.group} after {fault.process} had left"

    def _delivered(self, process: str, group: str, begin: int = -sys.maxsize, end: int = sys.maxsize) -> int:
        return sum(row["group"] == group for row in self._of(process, "deliver", begin, end))

    def _not_paused(self, fault: Pause) -> Iterator[str]:
        begin, end = self._span(fault)
        if self._went_on(fault.process, begin, end, kinds=None):
            yield f"{fault.process} was not paused"
        if not self._of(fault.process, "deliver", end):
            yield f"{fault.process} delivered nothing after its pause"

    def _not_stalled(self, fault: Stall) -> Iterator[str]:
        begin, end = self._span(fault)
        if self._went_on(fault.process, begin, end, kinds={"deliver"}):
            yield f"the application of {fault.process} was not stalled"
        if not any(self._of(process, "deliver", begin, end) for process in self._rows if process != fault.process):
            yield f"no process delivered anything while {fault.process} was stalled"
        if not self._of(fault.process, "deliver", end):
            yield f"{fault.process} delivered nothing after it was stalled"

    def _not_parted(self, fault: Partition) -> Iterator[str]:
        """Processes that heard the other side in the second half of a split, which may begin late at a process.

        In a long split, the senders of each side also have a view of their own.
        """
        begin, end = self._span(fault)
        if end - begin > 2 * self._run.scenario.options.suspect_after:
            yield from self._not_apart(fault)
        for side in fault.sides:
            others = {name for other in fault.sides if other is not side for name in other}
            for process in side:
                rows = self._of(process, "receive", (begin + end) // 2, end)
                if begin == end or any(split_process_id(row["peer"])[0] in others for row in rows):
                    yield f"{process} was not cut off from the other side of the split"

    def _not_apart(self, fault: Partition) -> Iterator[str]:
        for group in self._groups:
            senders = {*senders_of(self._run.scenario, group)}
            for side in fault.sides:
                others = {name for other in fault.sides if other is not side for name in other}
                views = [row for name in side for each in self._incarnations(name) for row in self._of(each, "view")]
                members = [{split_process_id(who)[0] for who in row["members"]} for row in views]
                if senders & {*side} and senders & others and not any(others.isdisjoint(view) for view in members):
                    yield f"the senders {', '.join(side)} never did without the other side of the split"

    def _unrepaired(self) -> Iterator[str]:
        """True if there was loss, but no sender requested a message, or no process sent a repair.

        A receiver may request older messages than its join; a sender is present from the start.
        """
        asked = any(
            self._transmitted("request", senders_of(self._run.scenario, each), each.name) for each in self._groups
        )
        if not asked or not any(self._transmitted("repair", members_of(each), each.name) for each in self._groups):
            yield "datagrams were to be lost, and no sender lacked anything"

    @property
    def _groups(self) -> tuple[Group, ...]:
        return self._run.scenario.group

    def _transmitted(self, kind: str, names: Iterable[str], group: str) -> bool:
        rows = [row for name in names for row in self._of(name, "transmit") if row["group"] == group]
        return any(json.loads(row["detail"])["type"] == kind for row in rows)
