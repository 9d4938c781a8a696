"""What happened in a run of real processes: one line for each step, with its time, for a first-time reader.

A pure function of the trace. It tells faults, agreements on views, and whether the members delivered the same messages.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from antiphon.sim.run import Run
from antiphon.trace.recorder import Recorder
from antiphon.types import WORLD, process_id

_HASH_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the story."""

    time_ns: int
    text: str


@dataclass(frozen=True, slots=True)
class _Fault:
    time_ns: int
    kind: str
    process: str
    begins: bool


@dataclass(frozen=True, slots=True)
class _Install:
    """One view at all members that installed it."""

    first_ns: int
    last_ns: int
    members: tuple[str, ...]
    left: tuple[str, ...]
    by: tuple[str, ...]
    group: str


def story(run: Run) -> list[Step]:
    """The steps in the order of time; times count from the moment at which the members began to send."""
    faults, installs = [*_faults(run)], _installs(run)
    steps = [*_first_views(installs), *_fault_steps(faults, installs), *_agreements(faults, installs), *_ends(run)]
    return sorted(steps, key=lambda step: step.time_ns)


def agreement(run: Run) -> list[str]:
    """For each group, what the members that ran to the end delivered, and what the others did."""
    return [line for group in run.scenario.group for line in _delivered(run, group.name)]


def _faults(run: Run) -> Iterator[_Fault]:
    for row in _rows(run, "fault", world=True):
        detail = json.loads(row["detail"])
        if "process" in detail:
            yield _Fault(row["time"], detail["kind"], detail["process"], detail.get("begins", True))


def _installs(run: Run) -> list[_Install]:
    found: dict[tuple[str, str], list[tuple[int, str, Mapping[str, Any]]]] = {}
    for history in run.histories:
        for row in history.rows:
            if row["kind"] == "view":
                found.setdefault((row["group"], row["view"]), []).append((row["time"], _name(history), row))
    return [_install(group, sorted(rows, key=lambda row: row[:2])) for (group, _), rows in found.items()]


def _install(group: str, rows: Sequence[tuple[int, str, Mapping[str, Any]]]) -> _Install:
    first = rows[0][2]
    left = [each["process"] for each in json.loads(first["detail"] or "{}").get("left", ())]
    by = tuple(sorted(process for _, process, _ in rows))
    return _Install(rows[0][0], rows[-1][0], tuple(first["members"]), tuple(left), by, group)


def _first_views(installs: Sequence[_Install]) -> Iterator[Step]:
    for install in installs:
        if not install.left and len(install.members) > 1:
            members = " ".join(install.members)
            yield Step(install.last_ns, f"{members} have started and agree on the first view of {install.group}")


def _fault_steps(faults: Sequence[_Fault], installs: Sequence[_Install]) -> Iterator[Step]:
    for fault in faults:
        if fault.kind == "crash":
            yield Step(fault.time_ns, f"{fault.process} is killed (SIGKILL) while it sends")
        elif fault.kind == "pause" and fault.begins:
            yield Step(fault.time_ns, f"{fault.process} is paused (SIGSTOP)")
        elif fault.kind == "pause":
            began = max(each.time_ns for each in faults if each.process == fault.process and each.begins)
            view = _consequence(fault.process, began, fault.time_ns, installs)
            seconds = (fault.time_ns - began) / 1e9
            yield Step(fault.time_ns, f"{fault.process} continues (SIGCONT) after {seconds:.3f} s; {view}")
        else:
            yield Step(fault.time_ns, f"{fault.kind} of {fault.process} {'begins' if fault.begins else 'ends'}")


def _consequence(process: str, began_ns: int, ended_ns: int, installs: Sequence[_Install]) -> str:
    """What the others did about a pause."""
    exclusions = [each.first_ns for each in installs if process in each.left and each.first_ns >= began_ns]
    if not exclusions:
        return "the others waited, and it stays a member"
    return "the others have excluded it" if min(exclusions) <= ended_ns else "the others waited"


def _agreements(faults: Sequence[_Fault], installs: Sequence[_Install]) -> Iterator[Step]:
    kills = {fault.process: fault.time_ns for fault in faults if fault.kind == "crash"}
    for install in installs:
        if install.left:
            seconds = [(install.last_ns - kills[process]) / 1e9 for process in install.left if process in kills]
            after = f", {max(seconds):.3f} s after the kill" if seconds else ""
            members, gone = " ".join(install.members), " ".join(install.left)
            yield Step(install.last_ns, f"{members} agree that {gone} has failed{after}, and continue without it")


def _ends(run: Run) -> Iterator[Step]:
    deliveries = [row["time"] for row in _rows(run, "deliver")]
    if deliveries:
        yield Step(max(deliveries), "the last message is delivered")


def _sequence(history: Recorder, group: str) -> list[tuple[Any, ...]]:
    """What a process delivered in the group, in its order."""
    return [
        (row["sender"], row.get("sender_incarnation"), row["number"], row.get("digest"))
        for row in history.rows
        if row["kind"] == "deliver" and row["group"] == group
    ]


def _delivered(run: Run, group: str) -> Iterator[str]:
    sequences = {_name(history): _sequence(history, group) for history in run.histories if history.process != WORLD}
    stopped = {_name(history) for history in run.histories for row in history.rows[-1:] if row["kind"] == "stop"}
    whole = {process: sequence for process, sequence in sequences.items() if process in stopped}
    alike: dict[str, list[str]] = {}
    for process, sequence in whole.items():
        alike.setdefault(_hash(sequence), []).append(process)
    for digest, processes in alike.items():
        count = len(sequences[processes[0]])
        same = "the same " if len(processes) > 1 else ""
        order = " in the same order" if len(processes) > 1 else ""
        yield f"{' '.join(processes)} delivered {same}{count:,} messages{order} (SHA-256 {digest})"
    longest = max(whole.values(), key=len, default=[])
    for process in sequences.keys() - stopped:
        sequence = sequences[process]
        if sequence and longest[: len(sequence)] == sequence:
            yield f"{process} delivered the first {len(sequence):,} of them before it was killed"


def _hash(sequence: Sequence[tuple[Any, ...]]) -> str:
    return sha256(json.dumps(sequence).encode()).hexdigest()[:_HASH_DIGITS]


def _rows(run: Run, kind: str, *, world: bool = False) -> Iterator[Mapping[str, Any]]:
    for history in run.histories:
        if (history.process == WORLD) is world:
            yield from (row for row in history.rows if row["kind"] == kind)


def _name(history: Recorder) -> str:
    return process_id(history.process, history.incarnation)
