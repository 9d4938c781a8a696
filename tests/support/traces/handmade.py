"""Tiny traces by hand, and good ones by a reference sequencer: inputs for the checkers."""

import json
import random
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa

from antiphon.properties.judge import judge
from antiphon.properties.verdicts.verdict import Verdict
from antiphon.trace.schema import EVENTS
from antiphon.types import WORLD, ProcessId, process_id, split_process_id
from tests.support.traces.reference import WINDOW_MIN, Frame, Ledger


class Mid(NamedTuple):
    """A message as the builder knows it."""

    group: str
    sender: str
    number: int
    clock: int


@dataclass
class Trace:
    """Writes rows as the recorder would: indexes, times, numbers and current views are filled in."""

    groups: dict[str, Sequence[str]]
    run: str = "run-1"
    protocol: str = "newtop"
    service: str = "total"
    options: dict[str, Any] = field(default_factory=dict)
    numbering: str = "separate"
    rows: list[dict[str, Any]] = field(default_factory=list)
    time: int = 0
    clock: int = 0
    lengths: dict[str, int] = field(default_factory=dict)
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    views: dict[tuple[str, str], str] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    sent: list[Mid] = field(default_factory=list)
    had: set[tuple[str, Mid]] = field(default_factory=set)
    """By process, the messages that it sent or received."""
    marks: dict[tuple[str, str, str], dict[str, int]] = field(default_factory=dict)
    """Per kind, process and group: the messages that it reported as stable, or freed."""
    memberships: dict[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    outside: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By group: the send-only processes."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """By process, the role in its `start` row, for all groups."""
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By process: the only senders from which it receives."""
    modes: Mapping[str, str] = field(default_factory=dict)
    """By group: the sequencer, if senders do not number their own messages."""
    acknowledgments: int = 0

    @property
    def members(self) -> list[str]:
        """All processes, including those outside the group."""
        everybody = (*self.groups.values(), *self.outside.values())
        return sorted({member for members in everybody for member in members})

    def row(self, process: str, kind: str, **columns: Any) -> None:
        name, incarnation = split_process_id(ProcessId(process))
        index = self.lengths.get(process, 0)
        self.lengths[process] = index + 1
        self.time += 1
        place = {"process": name, "incarnation": incarnation, "index": index, "time": self.time}
        self.rows.append({"run": self.run, **place, "kind": kind, **columns})

    def begin(self, view: str = "v0") -> "Trace":
        """Start rows and first views of all processes."""
        for process in self.members:
            self.start(process)
            for group in self.groups_of(process):
                self.view(process, group, view, self.groups[group])
        return self

    def groups_of(self, process: str) -> list[str]:
        return [group for group in self.groups if process in (*self.groups[group], *self.outside.get(group, ()))]

    def service_of(self, process: str, group: str) -> str:
        return "sending" if process in self.outside.get(group, ()) else self.service

    def start(self, process: str) -> None:
        groups = {
            group: {
                "service": self.service_of(process, group),
                "members": list(self.groups[group]),
                "numbering": self.numbering,
                **({"mode": self.modes[group]} if group in self.modes else {}),
                **({"role": self.roles[process]} if process in self.roles else {}),
                **({"sources": list(self.sources[process])} if process in self.sources else {}),
            }
            for group in self.groups_of(process)
        }
        detail = {"protocol": self.protocol, "options": self.options, "groups": groups}
        self.row(process, "start", detail=json.dumps(detail))

    def view(
        self,
        process: str,
        group: str,
        view: str,
        members: Sequence[str],
        *,
        transitional: Sequence[str] | None = None,
        primary: bool | None = None,
        epoch: int | None = None,
        classes: Sequence[Sequence[str]] | None = None,
        **private: Sequence[str],
    ) -> None:
        """A private view also has `receivers` and `senders`, the first of a formed group `epoch` and `classes`.

        By default all members of the previous view come along.
        """
        previous = self.views.get((process, group))
        before = self.memberships.get((process, group), ()) if previous else ()
        along = [member for member in members if member in before] if transitional is None else transitional
        self.views[process, group] = view
        self.memberships[process, group] = members
        told: dict[str, Any] = {name: sorted(names) for name, names in private.items()}
        told |= {} if primary is None else {"primary": primary}
        told |= {} if epoch is None else {"epoch": epoch}
        told |= {} if classes is None else {"classes": sorted(map(sorted, classes))}
        self.row(
            process,
            "view",
            group=group,
            view=view,
            members=sorted(members),
            previous=previous,
            transitional=sorted(along),
            detail=json.dumps(told) if told else None,
        )

    def join(self, process: str, group: str = "orders", **detail: Any) -> None:
        """The application asks to join."""
        self.row(process, "join", group=group, detail=json.dumps(detail) if detail else None)

    def leave(self, process: str, group: str = "orders", *, graceful: bool = True) -> None:
        """From here on the process is not in the group."""
        view = self.views.pop((process, group))
        del self.memberships[process, group]
        self.row(process, "leave", group=group, view=view, detail=json.dumps({"graceful": graceful}))

    def state(self, process: str, role: str, digest: int, of: int | None = None, group: str = "orders") -> None:
        """A state is handed over, taken over or merged, in the current view."""
        detail = {"role": role} if of is None else {"role": role, "class": of}
        view = self.views[process, group]
        self.row(process, "state", group=group, view=view, digest=digest, detail=json.dumps(detail))

    def suspect(self, process: str, *peers: str, group: str = "orders") -> None:
        for peer in peers:
            self.row(process, "suspect", group=group, view=self.views[process, group], peer=peer)

    def confirm(self, process: str, *peers: str, group: str = "orders") -> None:
        left = sorted({*self.memberships[process, group]} - {*peers})
        for peer in peers:
            self.row(process, "confirm", group=group, view=self.views[process, group], peer=peer, members=left)

    def exclude(self, process: str, view: str, members: Sequence[str], group: str = "orders", **columns: Any) -> None:
        """The process suspects and confirms each process that is not among the members, and installs the view."""
        gone = sorted({*self.memberships[process, group]} - {*members})
        self.suspect(process, *gone, group=group)
        self.confirm(process, *gone, group=group)
        self.view(process, group, view, members, **columns)

    def fault(self, kind: str, **detail: Any) -> None:
        """Something breaks, or mends."""
        self.world("fault", {"kind": kind, "begins": True, **detail})

    def acknowledge(self, process: str, senders: Sequence[str], group: str = "orders") -> str:
        """An acknowledgment leaves; gives its name."""
        self.acknowledgments += 1
        name = f"{group}/{process}/acknowledgment/{self.acknowledgments}"
        detail = {"type": "acknowledgment", "frame": name, "senders": sorted(senders)}
        self.row(process, "transmit", group=group, view=self.views.get((process, group)), detail=json.dumps(detail))
        return name

    def acknowledged(self, process: str, name: str, group: str = "orders") -> None:
        """It arrives."""
        detail = json.dumps({"type": "acknowledgment", "frame": name})
        self.row(process, "receive", group=group, peer=name.split("/")[1], detail=detail)

    def send(self, process: str, group: str = "orders", *, clock: int | None = None) -> Mid:
        number = self.numbers.get((group, process), 0)
        self.numbers[group, process] = number + 1
        self.clock = self.clock + 1 if clock is None else clock
        mid = Mid(group, process, number, self.clock)
        self.row(process, "send", requested=self.time, **self._message(process, mid))
        self.sent.append(mid)
        self.had.add((process, mid))
        return mid

    def receive(self, process: str, *mids: Mid, **detail: Any) -> None:
        """The frame of each message arrives; several packed in one frame have its name alike."""
        for mid in mids:
            name = {"frame": f"{mid.group}/{mid.sender}/{mid.clock}", "type": "data", **detail}
            message = self._message(process, mid)
            columns = {
                key: message[key] for key in ("group", "sender", "sender_incarnation", "number", "view", "clock")
            }
            self.row(process, "receive", **columns, peer=mid.sender, detail=json.dumps(name))
            self.had.add((process, mid))

    def transmit(
        self,
        process: str,
        frame: str,
        flow: list[int] | None,
        kind: str = "data",
        group: str = "orders",
        senders: list[str] | None = None,
    ) -> None:
        """A frame leaves; `flow` is its flow-control header, `senders` are the senders that it acknowledges."""
        told = {"flow": flow, "senders": senders}
        detail: dict[str, Any] = {"frame": f"{group}/{process}/{frame}", "type": kind}
        detail |= {name: value for name, value in told.items() if value is not None}
        self.row(process, "transmit", group=group, view=self.views[process, group], detail=json.dumps(detail))

    def stable(self, process: str, upto: dict[str, int], group: str = "orders") -> None:
        self._mark("stable", process, group, upto, None)

    def discard(self, process: str, upto: dict[str, int], group: str = "orders", *, evicted: bool = False) -> None:
        self._mark("discard", process, group, upto, '{"evicted": true}' if evicted else None)

    def gauge(self, process: str, name: str, value: int, peer: str | None = None, group: str = "orders") -> None:
        detail = json.dumps({"name": name, "value": value})
        self.row(process, "gauge", group=group, view=self.views[process, group], peer=peer, detail=detail)

    def block(self, process: str, peer: str | None = None, group: str = "orders") -> None:
        self.row(process, "block", group=group, peer=peer)

    def unblock(self, process: str, group: str = "orders") -> None:
        self.row(process, "unblock", group=group)

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

    def stop(self, process: str, **counts: dict[str, int]) -> None:
        """`waiting` and `held` count by group."""
        self.closed.add(process)
        self.row(process, "stop", detail=json.dumps(counts) if counts else None)

    def world(self, kind: str, detail: dict[str, Any] | None = None) -> None:
        self.row(WORLD, kind, detail=None if detail is None else json.dumps(detail))

    def settle(self) -> None:
        """All running processes receive all messages, then learn that they are stable, then free them."""
        up = [(process, group) for process, group in self.memberships if process not in self.closed]
        for process, group in up:
            lacking = [mid for mid in self.sent if mid.group == group and (process, mid) not in self.had]
            self.receive(process, *lacking)
        for kind in ("stable", "discard"):
            for process, group in up:
                old, new = self.marks.get((kind, process, group), {}), self._everywhere(process, group)
                upto = {sender: number for sender, number in new.items() if number > old.get(sender, -1)}
                if upto:
                    self._mark(kind, process, group, upto, None)

    def _everywhere(self, process: str, group: str) -> dict[str, int]:
        """Per sender the last number up to which all members of the process's view have its messages."""
        upto: dict[str, int] = {}
        for mid in self.sent:
            everybody = all((member, mid) in self.had for member in self.memberships[process, group])
            if mid.group == group and everybody and mid.number == upto.get(mid.sender, -1) + 1:
                upto[mid.sender] = mid.number
        return upto

    def _mark(self, kind: str, process: str, group: str, upto: dict[str, int], detail: str | None) -> None:
        self.marks.setdefault((kind, process, group), {}).update(upto)
        view = self.views[process, group]
        self.row(process, kind, group=group, view=view, upto=sorted(upto.items()), detail=detail)

    def end(self, *, quiet: bool = True, components: list[list[str]] | None = None, settled: bool = True) -> pa.Table:
        """Close every open log, write the end of the run, and return the table; a quiet end settles the run first."""
        if quiet and settled:
            self.settle()
        self.world("faults_end", None if components is None else {"components": components})
        for process in [each for each in self.lengths if each != WORLD and each not in self.closed]:
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
            "service": self.service_of(process, mid.group),
            "payload_bytes": 8,
            "digest": zlib.crc32(repr(mid[:3]).encode()),
        }


def trio(**settings: Any) -> Trace:
    """Three members of one group, begun."""
    return Trace({"orders": ["p1", "p2", "p3"]}, **settings).begin()


def ring(*, quiet: bool = False) -> pa.Table:
    """Three processes, three groups, each process in two: a before b, b before c, c before a, and no two disagree."""
    trace = Trace({"a": ["p1", "p3"], "b": ["p1", "p2"], "c": ["p2", "p3"]}).begin()
    first, second, third = trace.send("p1", "a"), trace.send("p2", "b"), trace.send("p3", "c")
    trace.deliver("p1", first, second)
    trace.deliver("p2", second, third)
    trace.deliver("p3", third, first)
    return trace.end(quiet=quiet)


def verdicts(events: pa.Table, *required: str) -> dict[tuple[str, str | None], Verdict]:
    """The verdicts by property and group."""
    return {(verdict.property, verdict.group): verdict for verdict in judge(events, frozenset(required))}


def verdict(events: pa.Table, property_id: str, group: str | None = None, *required: str) -> Verdict:
    """The one verdict of a property."""
    return verdicts(events, *required)[property_id, group]


def sentence(events: pa.Table, property_id: str, group: str | None = None, *required: str) -> str:
    """The sentence about the violation of a property."""
    example = verdict(events, property_id, group, *required).example
    assert example is not None
    return example.sentence


def violated(events: pa.Table, *required: str) -> set[str]:
    """The identifiers that a trace breaks; `harness error` for one that is not well formed."""
    found = judge(events, frozenset(required))
    if found[0].violations:
        return {"harness error"}
    return {verdict.property for verdict in found if verdict.violations}


@cache
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
        algorithm = rng.randrange(4)
        window = WINDOW_MIN[algorithm] + rng.randrange(3)
        options = {"flow_control": algorithm, "window": window, "window_bytes": 16 * window}
        numbering = "block" if len(groups) == 1 and rng.random() < 0.5 else "separate"
        self._trace = Trace(groups, options=options, numbering=numbering).begin()
        self._ledgers = {group: Ledger(algorithm, window, names) for group, names in groups.items()}
        self._live = list(self._trace.members)
        self._sequence: list[Mid | tuple[str, list[str]]] = []
        self._flow_of: dict[Mid, int] = {}
        self._waiting: dict[tuple[str, str], int] = {}
        self._at = dict.fromkeys(self._live, 0)
        self._crash_at = rng.randint(10, 60) if len(members) > 2 and rng.random() < 0.5 else None

    def run(self) -> pa.Table:
        for step in range(self._rng.randint(60, 120)):
            if step == self._crash_at:
                self._crash(self._rng.choice(self._live))
            process = self._rng.choice(self._live)
            group = self._rng.choice(self._trace.groups_of(process))
            act = self._rng.choices(
                (self._request, self._hear, self._learn, self._free, self._evict, self._null, self._follow),
                (30, 8, 8, 6, 4, 3, 50),
            )[0]
            act(process, group)
            self._release(process, group)
        self._drain()
        return self._trace.end(settled=False)

    def _request(self, process: str, group: str) -> bool:
        if self._waiting.get((process, group)) or not self._ledgers[group].may_send(process, self._live):
            if not self._waiting.get((process, group)):
                self._trace.block(process, None, group)
            self._waiting[process, group] = self._waiting.get((process, group), 0) + 1
        else:
            self._send(process, group)
        return True

    def _release(self, process: str, group: str) -> bool:
        """Send waiting messages, as far as flow control allows."""
        waiting = self._waiting.get((process, group), 0)
        if not waiting or not self._ledgers[group].may_send(process, self._live):
            return False
        self._waiting[process, group] = waiting - 1
        self._send(process, group)
        if waiting == 1:
            self._trace.unblock(process, group)
        return True

    def _send(self, process: str, group: str) -> None:
        # The sequencer is central: being sent and being given a place in the order are one step.
        ledger, clock = self._ledgers[group], self._trace.clock + 1
        header = ledger.header(process, self._live)
        mids = [self._trace.send(process, group, clock=clock) for _ in range(self._rng.choice((1, 1, 1, 2)))]
        self._trace.transmit(process, str(clock), header, "data", group)
        ledger.frames.append(Frame(process, header[0], [mid.number for mid in mids]))
        self._flow_of |= dict.fromkeys(mids, header[0])
        self._sequence += mids
        self._hold(process, group, header[0])

    def _null(self, process: str, group: str) -> bool:
        """Its number is an old one, so it is not held back; where blocks are counted it would need a new one."""
        if self._trace.numbering == "block":
            return False
        header = self._ledgers[group].header(process, self._live)
        name = f"null {self._trace.time}"
        self._trace.transmit(process, name, [header[0] - 1, *header[1:]], "null", group)
        detail = json.dumps({"frame": f"{group}/{process}/{name}", "type": "null"})
        for other in self._ledgers[group].members:
            if other != process and other in self._live:
                self._trace.row(other, "receive", group=group, sender=process, sender_incarnation=0, detail=detail)
        return True

    def _hear(self, process: str, group: str) -> bool:
        """A frame arrives ahead of its predecessors, as datagrams do."""
        lacking = [mid for mid in self._trace.sent if mid.group == group and (process, mid) not in self._trace.had]
        if lacking:
            self._receive(process, self._rng.choice(lacking))
        return bool(lacking)

    def _receive(self, process: str, mid: Mid) -> None:
        """The whole frame of the message."""
        flow = self._flow_of[mid]
        packed = [each for each in self._trace.sent if each.group == mid.group and self._flow_of[each] == flow]
        self._trace.receive(process, *packed)
        self._hold(process, mid.group, flow)

    def _hold(self, process: str, group: str, flow: int) -> None:
        ledger = self._ledgers[group]
        ledger.held[process].add(flow)
        for name, (value, peer) in ledger.gauges(process).items():
            self._trace.gauge(process, name, value, peer, group)

    def _follow(self, process: str, _group: str = "") -> bool:
        if self._at[process] == len(self._sequence):
            return False
        item = self._sequence[self._at[process]]
        self._at[process] += 1
        if isinstance(item, Mid):
            if item.group in self._trace.groups_of(process):
                self._deliver(process, item)
        elif item[0] in self._trace.groups_of(process):
            self._trace.exclude(process, "v1", item[1], item[0])
        return True

    def _deliver(self, process: str, mid: Mid) -> None:
        if (process, mid) not in self._trace.had:
            self._receive(process, mid)
        self._trace.deliver(process, mid)
        frame = self._ledgers[mid.group].frames[self._flow_of[mid] - 1]
        if mid.number == frame.numbers[-1]:
            self._ledgers[mid.group].complete[process] = frame.flow

    def _learn(self, process: str, group: str) -> bool:
        ledger = self._ledgers[group]
        above, flow = ledger.known[process], ledger.stable_for(self._trace.memberships[process, group])
        if flow > above:
            self._trace.stable(process, ledger.upto(above, flow), group)
            ledger.known[process] = flow
        return flow > above

    def _free(self, process: str, group: str) -> bool:
        ledger = self._ledgers[group]
        above, known = ledger.freed[process], ledger.known[process]
        if known <= above:
            return False
        ledger.freed[process] = self._rng.randint(above + 1, known)
        self._trace.discard(process, ledger.upto(above, ledger.freed[process]), group)
        return True

    def _evict(self, process: str, group: str) -> bool:
        """Free messages that others in the view know to be stable, and this process could know (flow-control.md I4)."""
        ledger, view = self._ledgers[group], self._trace.memberships[process, group]
        known = max(ledger.known[member] for member in view)
        above, flow = ledger.known[process], min(known, ledger.stable_for(view))
        if ledger.algorithm < 2 or ledger.freed[process] < above or flow <= ledger.freed[process]:
            return False
        self._trace.discard(process, ledger.upto(ledger.freed[process], flow), group, evicted=True)
        ledger.freed[process] = flow
        return True

    def _crash(self, process: str) -> None:
        self._live.remove(process)
        self._trace.crash(process)
        for group in self._trace.groups_of(process):
            left = [member for member in self._trace.groups[group] if member != process]
            self._sequence.append((group, left))

    def _drain(self) -> None:
        busy = True
        while busy:
            self._rng.shuffle(self._live)
            busy = False
            for process in self._live:
                for group in self._trace.groups_of(process):
                    for act in (self._release, self._follow, self._learn, self._free):
                        busy |= act(process, group)
