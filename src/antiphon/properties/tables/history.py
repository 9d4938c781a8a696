"""One run in the terms of the properties: messages, first deliveries, stays in views, logs, components.

Built once per run from the decoded columns (docs/spec/properties.md 1 and 6), then only read. A *row* is a position in
`Rows`; within one process, rows are in the order of its local history. A *stay* is the time that a process spends in
one view of one group.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from antiphon.errors import TraceError
from antiphon.properties.tables.codes import coded, firsts, parts
from antiphon.properties.tables.columns import KIND, BoolArray, Columns, IntArray, Rows, read, read_once
from antiphon.types import WORLD, split_process_id

_NONE: Final = np.zeros(0, np.int64)
NEVER: Final = int(np.iinfo(np.int64).max)
"""Stands for a number or a row that does not occur."""

BULK: Final = frozenset("send transmit receive deliver stable discard gauge block unblock answer unanswered".split())
"""The kinds that make up the bulk of a large run; all others tell which processes took part, and the faults."""


class LackingError(LookupError):
    """A checker needs rows that this part of a run does not hold."""


@dataclass(frozen=True, slots=True)
class Logs:
    """The rows of each process and how they end; all arrays are by process code."""

    begin: IntArray
    end: IntArray
    """One past the last row; equal to `begin` for a process without rows of its own."""
    member: BoolArray
    """True if it wrote a log and is not the world."""
    crashed: BoolArray
    stopped: BoolArray


@dataclass(frozen=True, slots=True)
class Messages:
    """Every message that was sent or delivered, coded in the order of (group, sender, number)."""

    group: IntArray
    sender: IntArray
    number: IntArray
    stream: IntArray
    """Code of (group, sender); within a stream, message codes grow with `number`."""
    send_row: IntArray
    """The row of its first send, -1 if no log has one."""
    known: BoolArray
    """True if sent, or excused: beyond the end of a crashed sender's log (docs/spec/properties.md 1)."""


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Delivery events in the order of rows."""

    row: IntArray
    process: IntArray
    message: IntArray
    group: IntArray

    def where(self, chosen: BoolArray) -> "Deliveries":
        """The chosen deliveries; often all of them, which are not copied then."""
        if chosen.all():
            return self
        return Deliveries(self.row[chosen], self.process[chosen], self.message[chosen], self.group[chosen])


@dataclass(frozen=True, slots=True)
class Stays:
    """One for each `view` row: the time that a process spends in one view of one group."""

    row: IntArray
    at: IntArray
    """For each row of the run: the stay of its process in the group of the row; -1 before the first view."""
    process: IntArray
    group: IntArray
    view: IntArray
    following: IntArray
    """The stay in the view that replaces this one at that process; -1 if none does (the run ended, or it left)."""
    preceding: IntArray
    final: BoolArray
    """True if it is the last stay of its process in that group, whether or not the process left."""
    leave: IntArray
    """The row at which the process left the group voluntarily; NEVER if it did not."""
    formed: BoolArray
    """True if the view is the first of a formed group: it begins an epoch (docs/spec/newtop.md 11.1)."""
    root: IntArray
    """The stay with which the process entered the formation: the last formed one before, or its first.

    In InterGroup also one in which it was alone because it began again, and the one after that.
    """
    members: tuple[tuple[int, ...], ...]
    classes: tuple[tuple[tuple[int, ...], ...], ...]
    """For a formed view: the members that came from one view together, as the row tells; else empty."""
    transitional: tuple[tuple[int, ...] | None, ...]
    """The members that came along from the view before, as the row tells; None if it does not tell."""
    receiving: BoolArray
    """True if the row says that its process only receives in the view, and is none of its members (InterGroup)."""
    alone: BoolArray
    """True if its process began again: it only receives, and is the only member (InterGroup)."""
    private: BoolArray
    """True if the view belongs to its process alone: its id is used by no other process."""
    receivers: tuple[tuple[int, ...], ...]
    """The processes to which it sends during the stay; in a shared view, every member."""
    senders: tuple[tuple[int, ...], ...]
    """The processes from which it receives."""


@dataclass(frozen=True, slots=True)
class World:
    """What the world tells about the end of the run (docs/spec/properties.md 6)."""

    quiet: bool
    """True if the run settled after the last fault, so that "eventually" can be judged."""
    reason: str
    """If not quiet: why liveness cannot be judged."""
    component: IntArray
    """For each process its stable component, -1 if it is in none."""
    is_open: bool = False
    """True if members started and ended independently: no row tells when one was paused, or read no events."""


class History:
    """One decoded run; or a part of it, which holds only some kinds of rows of the bulk."""

    def __init__(self, columns: Columns, own: frozenset[str] | None = None, kinds: frozenset[str] = BULK) -> None:
        self.run = columns.run
        self.processes, self.groups, self.views = columns.processes, columns.groups, columns.views
        self.services, self.details = columns.services, columns.details
        self.rows: Rows = columns.rows
        self.columns = columns
        self.logs = _logs(columns)
        self.stays = _stays(columns)
        self._lacking = BULK - kinds
        self._messages = _messages(self.rows, self.logs)
        self._of_kinds: dict[tuple[str, ...], IntArray] = {}
        self.in_part: BoolArray = np.array([own is None or who in own for who in self.processes], np.bool_)
        """For each process: True if this part of a run covers it. A whole run covers all."""

    @property
    def messages(self) -> Messages:
        """All messages that were sent or delivered."""
        self.require("send")
        return self._messages[0]

    @property
    def deliveries(self) -> Deliveries:
        """The `deliver` rows."""
        self.require("deliver")
        return self._messages[1]

    @property
    def sends(self) -> Deliveries:
        """The `send` rows."""
        self.require("send")
        return self._messages[2]

    def require(self, *kinds: str) -> None:
        """Raise LackingError unless this part of the run has all rows of these kinds that it should cover."""
        if not self._lacking.isdisjoint(kinds):
            raise LackingError(f"this part of run {self.run} is without some {' and '.join(sorted(kinds))} rows")

    @cached_property
    def world(self) -> World:
        """Whether the run ended quiet, and the stable components."""
        return _world(self)

    @cached_property
    def first(self) -> Deliveries:
        """The first delivery of each message at each process; order and sets are judged by these."""
        key = self.deliveries.process * len(self.messages.number) + self.deliveries.message
        chosen = np.zeros(len(key), np.bool_)
        chosen[firsts(key)] = True
        return self.deliveries.where(chosen)

    @cached_property
    def first_stay(self) -> IntArray:
        """For each first delivery the stay in which it happened."""
        return self.stay_at(self.first.row)

    @cached_property
    def left(self) -> BoolArray:
        """By process and group: it left the group voluntarily, and neither joined nor formed it again."""
        gone = np.zeros((len(self.processes), len(self.groups)), np.bool_)
        rows = self.of_kind("leave", "join")
        rows = np.sort(np.concatenate([rows[self.rows.group[rows] >= 0], self.stays.row[self.stays.formed]]))
        for row in rows.tolist():  # in order, so that the last event counts
            gone[self.rows.process[row], self.rows.group[row]] = self.rows.kind[row] == KIND["leave"]
        return gone

    @cached_property
    def asked(self) -> BoolArray:
        """By process and group: it has asked to join."""
        rows, asked = self.of_kind("join"), np.zeros((len(self.processes), len(self.groups)), np.bool_)
        rows = rows[self.rows.group[rows] >= 0]
        asked[self.rows.process[rows], self.rows.group[rows]] = True
        return asked

    @cached_property
    def away(self) -> BoolArray:
        """By process and group: it is in no view, because it left or has none yet."""
        away = np.ones((len(self.processes), len(self.groups)), np.bool_)
        present = self.stays.final & (self.stays.leave == NEVER)
        away[self.stays.process[present], self.stays.group[present]] = False
        return away

    @cached_property
    def _of_kind(self) -> dict[int, IntArray]:
        return dict(parts(self.rows.kind))

    def of_kind(self, *kinds: str) -> IntArray:
        """The rows of these kinds, in order. Do not modify the result."""
        self.require(*kinds)
        if len(kinds) == 1:
            return self._of_kind.get(KIND[kinds[0]], _NONE)
        known = self._of_kinds.get(kinds)
        if known is None:
            known = np.concatenate([self.of_kind(kind) for kind in kinds])
            known.sort(kind="stable")  # it merges what is sorted
            self._of_kinds[kinds] = known
        return known

    def stay_at(self, rows: IntArray) -> IntArray:
        """For each row the stay of its process in the group of the row; -1 before the first view."""
        return self.stays.at.take(rows)

    def membership_at(self, rows: IntArray) -> IntArray:
        """The same, but -1 also after the process left the group, until it installs a view there again."""
        stay = self.stay_at(rows)
        gone = (stay >= 0) & (self.stays.leave[stay] < rows) if len(self.stays.leave) else stay < 0
        return np.where(gone, -1, stay)

    @cached_property
    def over(self) -> IntArray:
        """For each stay the row at which it ends: the next view of the process there, its leave, or its log's end."""
        stays, ends = self.stays, self.logs.end[self.stays.process]
        following = np.where(stays.following >= 0, np.append(stays.row, 0)[stays.following], ends)
        return np.minimum(following, stays.leave)

    def process_name(self, process: int | np.int64) -> str:
        """`name` or `name#incarnation`."""
        return str(self.processes[process])

    def message_name(self, message: int | np.int64) -> str:
        """`group/sender:number`."""
        group, sender = self.messages.group[message], self.messages.sender[message]
        return f"{self.groups[group]}/{self.processes[sender]}:{self.messages.number[message]}"

    def message_at(self, row: int) -> str:
        """The name of the message that is sent or delivered at that row."""
        rows = self.rows
        return f"{self.groups[rows.group[row]]}/{self.processes[rows.sender[row]]}:{rows.number[row]}"

    def located(self, row: int) -> str:
        """The message of that row with its index, as sentences name it."""
        return f"{self.message_at(row)} (index {self.index(row)})"

    def seen(self, row: int) -> tuple[int, str, int]:
        """Time, process and index of a row."""
        return int(self.rows.time[row]), self.process_name(self.rows.process[row]), self.index(row)

    def index(self, row: int | np.int64) -> int:
        """The position of a row in the history of its own process."""
        return int(self.rows.index[row])


def load(events: pa.Table, own: frozenset[str] | None = None, kinds: frozenset[str] = BULK) -> History:
    """Decode the table of one run, or of a part of it that covers these processes and these kinds of bulk rows."""
    return History(read(events), own, kinds)


def load_part(holder: list[pa.Table], own: frozenset[str] | None, kinds: frozenset[str]) -> History:
    """The same for a large part that is in this list only: its columns are given up while they are decoded."""
    return History(read_once(holder), own, kinds)


def _logs(columns: Columns) -> Logs:
    rows, total = columns.rows, len(columns.processes)
    codes = np.arange(total)
    begin = np.searchsorted(rows.process, codes)
    end = np.searchsorted(rows.process, codes, side="right")
    world = np.array([who.partition("#")[0] == WORLD for who in columns.processes], np.bool_)
    member = (end > begin) & ~world
    last_kind = np.where(member, rows.kind[np.maximum(end - 1, 0)], -1)
    return Logs(begin, end, member, last_kind == KIND["crash"], last_kind == KIND["stop"])


def _stays(columns: Columns) -> Stays:
    rows = columns.rows
    at = np.flatnonzero(rows.kind == KIND["view"])
    process, group = rows.process[at], rows.group[at]
    order = np.lexsort((at, group, process))
    same = (process[order][1:] == process[order][:-1]) & (group[order][1:] == group[order][:-1])
    following, preceding = np.full(len(at), -1, np.int64), np.full(len(at), -1, np.int64)
    following[order[:-1][same]] = order[1:][same]
    preceding[order[1:][same]] = order[:-1][same]
    by_row = _stay_by_row(rows, at, following)
    final, leave = following < 0, _leaves(rows, by_row, len(at))
    # A process that left and came back continues from no view.
    afresh = np.flatnonzero((preceding >= 0) & (np.append(leave, NEVER)[preceding] < NEVER) & (rows.previous[at] < 0))
    following[preceding[afresh]] = -1
    preceding[afresh] = -1
    classes = tuple(columns.classes.get(row, ()) for row in at.tolist())
    formed = np.array([bool(each) for each in classes], np.bool_)
    members = tuple(columns.members[row] for row in at.tolist())
    receiving = np.array([columns.details.get(row, {}).get("role") == "receiver" for row in at.tolist()], np.bool_)
    single = [who == (process[place],) for place, who in enumerate(members)]
    alone = receiving & np.array(single, np.bool_)
    begins = formed | alone | ((preceding >= 0) & np.append(alone, False)[preceding])
    sets = [columns.private.get(row, (all_of, all_of)) for row, all_of in zip(at.tolist(), members, strict=True)]
    return Stays(
        row=at,
        at=by_row,
        process=process,
        group=group,
        view=rows.view[at],
        following=following,
        preceding=preceding,
        final=final,
        leave=leave,
        formed=formed,
        root=_roots(preceding, begins),
        members=members,
        classes=classes,
        transitional=tuple(columns.transitional.get(row) for row in at.tolist()),
        receiving=receiving,
        alone=alone,
        private=np.array([row in columns.private for row in at.tolist()], np.bool_),
        receivers=tuple(receivers for receivers, _ in sets),
        senders=tuple(senders for _, senders in sets),
    )


def _stay_by_row(rows: Rows, views: IntArray, following: IntArray) -> IntArray:
    """For each row the position, among these `view` rows, of the last one before it in its process and group, or -1."""
    stay: IntArray = np.full(len(rows.kind), -1, np.int64)
    last = np.searchsorted(rows.process, rows.process[views], side="right") - 1
    upto = np.where(following >= 0, np.append(views, 0)[following], last)
    for place, (view, end) in enumerate(zip(views.tolist(), upto.tolist(), strict=True)):
        behind = slice(view + 1, end + 1)
        stay[behind][rows.group[behind] == rows.group[view]] = place
    return stay


def _leaves(rows: Rows, at: IntArray, total: int) -> IntArray:
    """For each stay the first `leave` row of its process in it."""
    leave = np.full(total, NEVER, np.int64)
    leaves = np.flatnonzero((rows.kind == KIND["leave"]) & (at >= 0))[::-1]  # backwards, so that the first wins
    leave[at[leaves]] = leaves
    return leave


def _roots(preceding: IntArray, begins: BoolArray) -> IntArray:
    roots = list[int]()
    for stay, (before, anew) in enumerate(zip(preceding.tolist(), begins.tolist(), strict=True)):
        roots.append(stay if anew or before < 0 else roots[before])  # a stay comes after the one that precedes it
    return np.array(roots, np.int64)


def _messages(rows: Rows, logs: Logs) -> tuple[Messages, Deliveries, Deliveries]:
    """The messages, then their deliveries and their sends as events."""
    at = np.flatnonzero((rows.kind == KIND["send"]) | (rows.kind == KIND["deliver"]))
    streams, stream = coded(rows.group[at] * len(logs.begin) + rows.sender[at])
    numbers, number = coded(rows.number[at])
    mids, message = coded(stream * max(len(numbers), 1) + number)
    group, sender = np.divmod(streams[mids // max(len(numbers), 1)], len(logs.begin))
    sending = rows.kind[at] == KIND["send"]
    send_row = np.full(len(mids), -1, np.int64)
    # Assigned backwards, so that the first of two sends of one message wins (W3 reports the second).
    send_row[message[sending][::-1]] = at[sending][::-1]
    events = Deliveries(at, rows.process[at], message, rows.group[at])
    messages = Messages(
        group=group,
        sender=sender,
        number=numbers[mids % max(len(numbers), 1)],
        stream=mids // max(len(numbers), 1),
        send_row=send_row,
        known=(send_row >= 0) | logs.crashed[sender],
    )
    return messages, events.where(~sending), events.where(sending)


_OPEN: Final = "members joined and left independently, and no row says that the run was quiet at its end"


def _world(history: History) -> World:
    ends = history.of_kind("end")
    component = _components(history)
    if not len(ends):
        is_open = any(history.details[row].get("open") is True for row in history.of_kind("start").tolist())
        reason = _OPEN if is_open else "the trace has no end row: the run was cut off"
        return World(quiet=False, reason=reason, component=component, is_open=is_open)
    detail = history.details[int(ends[-1])]
    if detail.get("quiet", True) is True:
        return World(quiet=True, reason="", component=component)
    why = detail.get("reason")
    reason = "the run did not end quiet" + (f": {why}" if why else "")
    return World(quiet=False, reason=reason, component=component)


def _components(history: History) -> IntArray:
    """Stable components as the world names them; if it names none, all processes that stopped form one."""
    faults_end = history.of_kind("faults_end")
    named: Any = history.details[int(faults_end[-1])].get("components") if len(faults_end) else None
    if named is None:
        return np.where(history.logs.stopped, 0, -1).astype(np.int64)
    component = np.full(len(history.processes), -1, np.int64)
    code_of: dict[str, int] = {who: code for code, who in enumerate(history.processes)}
    # A recovered process is also found by its plain name: only its last incarnation can have stopped.
    code_of |= {
        split_process_id(history.processes[code])[0]: code for code in np.flatnonzero(history.logs.stopped).tolist()
    }
    for number, names in enumerate(_lists_of_names(named)):
        for who in names:
            # A crashed process is in no component, and a process without a log is not judged.
            if who in code_of and history.logs.stopped[code_of[who]]:
                component[code_of[who]] = number
    return component


def _lists_of_names(named: Any) -> Sequence[Any]:
    lists = isinstance(named, list) and all(isinstance(names, list) for names in named)
    if lists and all(isinstance(name, str) for names in named for name in names):
        return list(named)
    raise TraceError("the faults_end row has `components` that are not lists of processes")
