"""Tiny traces by hand, and good ones by a reference sequencer; what the checkers are tried on."""

import json
import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from antiphon.properties.judge import judge
from antiphon.properties.verdict import Verdict
from antiphon.trace.schema import EVENTS
from antiphon.types import WORLD, ProcessId, process_id, split_process_id


class Mid(NamedTuple):
    """A message as the builder knows it."""

    group: str
    sender: str
    number: int
    clock: int


@dataclass
class Trace:
    """Writes rows as the recorder would: indexes, times, numbers and views in force are filled in."""

    groups: dict[str, Sequence[str]]
    run: str = "run-1"
    protocol: str = "newtop"
    service: str = "total"
    rows: list[dict[str, Any]] = field(default_factory=list)
    time: int = 0
    clock: int = 0
    lengths: dict[str, int] = field(default_factory=dict)
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    views: dict[tuple[str, str], str] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)

    @property
    def members(self) -> list[str]:
        return sorted({member for members in self.groups.values() for member in members})

    def row(self, process: str, kind: str, **columns: Any) -> None:
        name, incarnation = split_process_id(ProcessId(process))
        index = self.lengths.get(process, 0)
        self.lengths[process] = index + 1
        self.time += 1
        place = {"process": name, "incarnation": incarnation, "index": index, "time": self.time}
        self.rows.append({"run": self.run, **place, "kind": kind, **columns})

    def begin(self) -> "Trace":
        """Start rows and first views of everybody."""
        for process in self.members:
            self.start(process)
            for group in self.groups_of(process):
                self.view(process, group, "v0", self.groups[group])
        return self

    def groups_of(self, process: str) -> list[str]:
        return [group for group, members in self.groups.items() if process in members]

    def start(self, process: str) -> None:
        groups = {
            group: {"service": self.service, "members": list(self.groups[group])} for group in self.groups_of(process)
        }
        detail = {"protocol": self.protocol, "options": {}, "groups": groups}
        self.row(process, "start", detail=json.dumps(detail))

    def view(self, process: str, group: str, view: str, members: Sequence[str]) -> None:
        previous = self.views.get((process, group))
        self.views[process, group] = view
        self.row(process, "view", group=group, view=view, members=sorted(members), previous=previous)

    def send(self, process: str, group: str = "orders", *, clock: int | None = None) -> Mid:
        number = self.numbers.get((group, process), 0)
        self.numbers[group, process] = number + 1
        self.clock = self.clock + 1 if clock is None else clock
        mid = Mid(group, process, number, self.clock)
        self.row(process, "send", requested=self.time, **self._message(process, mid))
        return mid

    def deliver(self, process: str, *mids: Mid, **columns: Any) -> None:
        for mid in mids:
            self.row(process, "deliver", **{**self._message(process, mid), **columns})

    def deliver_everywhere(self, *mids: Mid) -> None:
        for mid in mids:
            for process in self.groups[mid.group]:
                self.deliver(process, mid)

    def crash(self, process: str) -> None:
        self.closed.add(process)
        self.row(process, "crash")

    def stop(self, process: str) -> None:
        self.closed.add(process)
        self.row(process, "stop")

    def world(self, kind: str, detail: dict[str, Any] | None = None) -> None:
        self.row(WORLD, kind, detail=None if detail is None else json.dumps(detail))

    def end(self, *, quiet: bool = True, components: list[list[str]] | None = None) -> pa.Table:
        """Close every open log, say how the run ended, and give the table."""
        self.world("faults_end", None if components is None else {"components": components})
        for process in [who for who in self.lengths if who != WORLD and who not in self.closed]:
            self.stop(process)
        self.world("end", {"quiet": quiet, "reason": "drained" if quiet else "duration"})
        return self.table()

    def table(self) -> pa.Table:
        return pa.Table.from_pylist(self.rows, schema=EVENTS)

    def _message(self, process: str, mid: Mid) -> dict[str, Any]:
        sender, incarnation = split_process_id(ProcessId(mid.sender))
        return {
            "group": mid.group,
            "sender": sender,
            "sender_incarnation": incarnation,
            "number": mid.number,
            "view": self.views.get((process, mid.group)),
            "clock": mid.clock,
            "service": self.service,
            "payload_bytes": 8,
            "digest": zlib.crc32(repr(mid[:3]).encode()),
        }


def trio(**settings: Any) -> Trace:
    """Three members of one group, begun."""
    return Trace({"orders": ["p1", "p2", "p3"]}, **settings).begin()


def ring() -> pa.Table:
    """Three processes, three groups, each process in two: a before b, b before c, c before a, and no two disagree."""
    trace = Trace({"a": ["p1", "p3"], "b": ["p1", "p2"], "c": ["p2", "p3"]}).begin()
    first, second, third = trace.send("p1", "a"), trace.send("p2", "b"), trace.send("p3", "c")
    trace.deliver("p1", first, second)
    trace.deliver("p2", second, third)
    trace.deliver("p3", third, first)
    return trace.end(quiet=False)


def verdicts(events: pa.Table) -> dict[tuple[str, str | None], Verdict]:
    """The verdicts by property and group."""
    return {(verdict.property, verdict.group): verdict for verdict in judge(events)}


def verdict(events: pa.Table, property_id: str, group: str | None = None) -> Verdict:
    """The one verdict of a property."""
    return verdicts(events)[property_id, group]


def sentence(events: pa.Table, property_id: str, group: str | None = None) -> str:
    """What is said about the violation of a property."""
    example = verdict(events, property_id, group).example
    assert example is not None
    return example.sentence


def violated(events: pa.Table) -> set[str]:
    """The identifiers that a trace breaks; `harness error` for one that is not well formed."""
    found = judge(events)
    if found[0].violations:
        return {"harness error"}
    return {verdict.property for verdict in found if verdict.violations}


def good_trace(seed: int) -> pa.Table:
    """A run of the reference sequencer: right by construction, in one or two groups, some with a crash."""
    return _Sequencer(random.Random(seed)).run()


class _Sequencer:
    """One list of messages and view changes for all; each member follows it at its own pace."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        members = [process_id(f"p{number}") for number in range(1, rng.randint(3, 6))]
        groups: dict[str, Sequence[str]] = {"orders": members}
        if len(members) > 2 and rng.random() < 0.4:
            groups["audit"] = members[1:]
        self._trace = Trace(groups).begin()
        self._live = list(self._trace.members)
        self._crashed: list[str] = []
        self._sequence: list[Mid | tuple[str, list[str]]] = []
        self._at = dict.fromkeys(self._live, 0)
        self._crash_at = rng.randint(10, 60) if len(members) > 2 and rng.random() < 0.5 else None

    def run(self) -> pa.Table:
        for step in range(self._rng.randint(60, 120)):
            if step == self._crash_at:
                self._crash(self._rng.choice(self._live))
            process = self._rng.choice(self._live)
            if self._rng.random() < 0.3:
                self._send(process)
            else:
                self._follow(process)
        self._drain()
        return self._trace.end()

    def _send(self, process: str) -> None:
        # The sequencer is central: being sent and being given a place in the order are one step.
        self._sequence.append(self._trace.send(process, self._rng.choice(self._trace.groups_of(process))))

    def _follow(self, process: str) -> bool:
        if self._at[process] == len(self._sequence):
            return False
        item = self._sequence[self._at[process]]
        self._at[process] += 1
        if isinstance(item, Mid):
            if item.group in self._trace.groups_of(process):
                self._trace.deliver(process, item)
        elif item[0] in self._trace.groups_of(process):
            self._trace.view(process, item[0], "v1", item[1])
        return True

    def _crash(self, process: str) -> None:
        self._live.remove(process)
        self._trace.crash(process)
        for group in self._trace.groups_of(process):
            left = [member for member in self._trace.groups[group] if member != process]
            self._sequence.append((group, left))

    def _drain(self) -> None:
        behind = list(self._live)
        while behind:
            process = self._rng.choice(behind)
            if not self._follow(process):
                behind.remove(process)
