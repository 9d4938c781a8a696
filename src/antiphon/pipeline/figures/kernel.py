"""The tallies and latencies of one run, from its rows. Every figure of `stats`, `tables` and sweeps is made of them.

A run is read in parts, each with whole logs of processes. What a part needs to know about the others is found first
(`Course`): the sends, and when all useful work was done. A small run is one part.
"""

from collections import defaultdict
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.errors import TraceError
from antiphon.pipeline.figures.arrays import (
    FOR_EVER,
    UNKNOWN,
    BoolArray,
    IntArray,
    dense,
    largest,
    looked_up,
    parts,
    positions,
    since,
)
from antiphon.pipeline.figures.rows import Rows, found_at
from antiphon.pipeline.figures.spreads import Spread
from antiphon.pipeline.figures.summing import SPEAKS_ALWAYS, USEFUL, Measure, Row
from antiphon.pipeline.figures.tallies import tallies

Scope = tuple[Measure, str | None, str | None]
"""What is measured, the group and the process; None stands for all."""

_STREAMS_MAX: Final = 1 << 31


class Course:
    """What must be known of a whole run before its parts can be measured. Take every part once, then `close`."""

    def __init__(self) -> None:
        self.done_ns: int | None = None
        """When all useful work was done."""
        self.sends: tuple[IntArray, IntArray, IntArray]
        """The messages in ascending order; for each the time of its request, and of its transmission."""
        self._later: set[tuple[int, int]] = set()
        self._quiet_ns: int | None = None
        self._is_waited_out = False
        self._numbers = 1
        self._streams: dict[tuple[int, int, int], int] = {}
        self._sent: list[tuple[IntArray, IntArray, IntArray, IntArray]] = []

    def take(self, rows: Rows) -> None:
        """Take the rows of one part."""
        useful = rows.of_kind(*USEFUL)
        if len(useful):
            self.done_ns = max(self.done_ns or 0, int(rows.time[useful].max()))
        views = rows.of_kind("view")
        views = views[rows.previous[views] > 0]
        self._later |= set(zip(rows.group[views].tolist(), rows.view[views].tolist(), strict=True))
        ends = rows.of_kind("end")
        for row, detail in zip(ends.tolist(), rows.details(ends), strict=True):
            if detail.get("quiet") is True:
                self._quiet_ns = max(self._quiet_ns or 0, int(rows.time[row]))
            self._is_waited_out |= detail.get("reason") == "duration"
        for detail in rows.details(rows.of_kind("start")):
            self._is_waited_out |= found_at(detail, *SPEAKS_ALWAYS) is not None
        self._take_messages(rows)

    def _take_messages(self, rows: Rows) -> None:
        self._numbers = max(self._numbers, int(rows.number.max(initial=0)) + 1)
        sends = rows.of_kind("send")
        sends = sends[rows.number[sends] >= 0]
        stream = self._stream(rows.group[sends], rows.process[sends], rows.incarnation[sends])
        self._sent.append((stream, rows.number[sends], rows.requested[sends], rows.time[sends]))

    def close(self) -> None:
        """All parts are taken."""
        if max(len(self._streams), 1) * self._numbers >= FOR_EVER // 4 or len(self._streams) >= _STREAMS_MAX:
            raise TraceError(f"a message has number {self._numbers - 1:,}, which cannot be true")
        stream, number, requested, sent = (np.concatenate(each) for each in zip(*self._sent, strict=True))
        message, first = np.unique(stream * self._numbers + number, return_index=True)
        self.sends = message, requested[first], sent[first]
        self._sent.clear()

    @property
    def idle_ns(self) -> int | None:
        """How long the run was idle after its work, if it did not end by itself."""
        if self.done_ns is None or self._quiet_ns is None or not self._is_waited_out:
            return None
        return self._quiet_ns - self.done_ns

    @property
    def view_changes(self) -> int:
        """The number of views that replaced another."""
        return len(self._later)

    def messages(self, rows: Rows, at: IntArray, sender: IntArray, incarnation: IntArray) -> IntArray:
        """For each of these rows a number that stands for its message."""
        return self._stream(rows.group[at], sender[at], incarnation[at]) * self._numbers + rows.number[at]

    def _stream(self, group: IntArray, sender: IntArray, incarnation: IntArray) -> IntArray:
        """The numbers of streams; a stream is what one sender incarnation sends to a group."""
        pair, pairs = dense(sender << 32 | incarnation)
        code, known = dense(group << 32 | pair)
        streams = [
            self._streams.setdefault((each >> 32, *divmod(int(pairs[each & 0xFFFFFFFF]), 1 << 32)), len(self._streams))
            for each in known.tolist()
        ]
        numbers: IntArray = np.array([*streams, 0], np.int64)[code]
        return numbers


class Kernel:
    """Adds up the parts of one run."""

    def __init__(self, course: Course, *, exact: bool, once: bool) -> None:
        self._course = course
        self._exact = exact
        self._once = once
        self.tallies: list[Row] = []
        """What can be added up, for each group, process incarnation and frame type, busy and idle."""
        self.spreads: dict[Scope, Spread] = defaultdict(lambda: Spread(exact=exact))
        """Each measure of members, of groups and of the run."""
        self._overheads: dict[tuple[str, str], tuple[float, int]] = defaultdict(lambda: (0.0, 0))
        """By group and process, the sum of delay overheads, and their number."""

    def take(self, rows: Rows) -> None:
        """Add a part; all rows of a process incarnation are in one part. TraceError if `once` and rows repeat."""
        if self._once and (sentence := _repetition(rows)) is not None:
            raise TraceError(sentence)
        of_run = {"idle_ns": self._course.idle_ns, "view_changes": self._course.view_changes}
        self.tallies += [{**row, **of_run} for row in tallies(rows, self._course.done_ns)]
        delivered = _Deliveries(rows, self._course)
        self._spread("delivery", rows, delivered.at, delivered.latency_ns)
        self._add_overheads(rows, delivered)
        answers = rows.of_kind("answer")
        self._spread("request", rows, answers, since(rows.requested[answers], rows.time[answers]))
        stable, latency_ns, to_nobody = stabilities(rows)
        self._spread("stability", rows, stable[~to_nobody], latency_ns[~to_nobody])
        self._spread("to nobody", rows, stable[to_nobody], latency_ns[to_nobody])

    def _spread(self, measure: Measure, rows: Rows, at: IntArray, latency_ns: IntArray) -> None:
        """Add latencies to their member, their group and the run."""
        known = latency_ns != UNKNOWN
        at, latency_ns = at[known], latency_ns[known]
        for group, of_group in parts(rows.group[at]):
            name = rows.codes.groups.texts[group]
            for process, of_member in parts(rows.process[at[of_group]]):
                member = Spread(exact=self._exact)
                member.add(latency_ns[of_group[of_member]])
                for scope in ((name, rows.codes.processes.texts[process]), (name, None), (None, None)):
                    self.spreads[measure, *scope].merge(member)

    def _add_overheads(self, rows: Rows, delivered: "_Deliveries") -> None:
        known = delivered.overhead_ns != UNKNOWN
        at, overhead_ns = delivered.at[known], delivered.overhead_ns[known]
        member, members = dense(rows.group[at] << 32 | rows.process[at])
        sums = np.bincount(member, weights=overhead_ns, minlength=len(members)).tolist()
        for each, total, count in zip(members.tolist(), sums, np.bincount(member).tolist(), strict=True):
            group, process = rows.codes.groups.texts[each >> 32], rows.codes.processes.texts[each & 0xFFFFFFFF]
            assert process is not None
            known_total, known_count = self._overheads[group or "", process]
            self._overheads[group or "", process] = known_total + total, known_count + count

    @property
    def overheads(self) -> dict[tuple[str, str], float]:
        """By group and process, the mean delay overhead."""
        return {member: total / count for member, (total, count) in self._overheads.items()}


class _Deliveries:
    """The deliveries of a part: since the request of the message, and since its arrival."""

    def __init__(self, rows: Rows, course: Course) -> None:
        self.at = at = rows.of_kind("deliver")
        message = course.messages(rows, at, rows.sender, rows.sender_incarnation)
        requested, sent = looked_up(message, course.sends[0], course.sends[1:])
        self.latency_ns = since(requested, rows.time[at])
        is_own = (rows.process[at] == rows.sender[at]) & (rows.incarnation[at] == rows.sender_incarnation[at])
        arrived = np.where(is_own, sent, _arrivals(rows, course, message))
        self.overhead_ns = since(arrived, rows.time[at])


def _arrivals(rows: Rows, course: Course, delivered: IntArray) -> IntArray:
    """When each of these messages first arrived at the process that delivers it."""
    received = rows.of_kind("receive")
    received = received[(rows.number[received] != UNKNOWN) & (rows.sender[received] > 0)]
    message = course.messages(rows, received, rows.sender, rows.sender_incarnation)
    at = rows.of_kind("deliver")
    place, _ = dense(np.concatenate([message, delivered]))
    key = place * len(rows.owners) + rows.owner[np.concatenate([received, at])]
    earliest = np.lexsort((rows.time[received], key[: len(received)]))
    keys = key[: len(received)][earliest]
    is_first = np.diff(keys, prepend=-1) != 0
    [time] = looked_up(key[len(received) :], keys[is_first], (rows.time[received][earliest][is_first],))
    return time


def stabilities(rows: Rows) -> tuple[IntArray, IntArray, BoolArray]:
    """The sends that their own sender called stable: their rows, the time since the request, and if nobody received.

    The first report that covers a message is the earliest of those that reach its number or beyond.
    """
    stable = rows.of_kind("stable")
    reach = _own_reach(rows, stable)
    stable, reach = stable[reach >= 0], reach[reach >= 0]
    sends = rows.of_kind("send")
    stream, streams = dense(_stream_here(rows, np.concatenate([stable, sends])))
    order = np.lexsort((rows.index[stable], stream[: len(stable)]))
    found, times = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    of_reports = positions(stream[: len(stable)][order], len(streams))
    of_sends = positions(stream[len(stable) :], len(streams))
    for reports, own in zip(of_reports, of_sends, strict=True):
        if len(reports) and len(own):
            chosen = order[reports]
            upto = np.maximum.accumulate(reach[chosen])
            first = np.searchsorted(upto, rows.number[sends[own]])
            covered = first < len(chosen)
            found.append(sends[own[covered]])
            times.append(rows.time[stable[chosen[first[covered]]]])
    at, time = np.concatenate(found), np.concatenate(times)
    return at, since(rows.requested[at], time), _to_nobody(rows, at)


def _own_reach(rows: Rows, stable: IntArray) -> IntArray:
    """The number up to which each report covers the messages of its own process; -1 if it tells nothing of them."""
    reach: IntArray = np.full(len(stable), -1, np.int64)
    for owner, place in parts(rows.owner[stable]):
        column = rows.upto.take(pa.array(stable[place])).combine_chunks()
        upto = pc.map_lookup(column, rows.name(owner), "first")
        reach[place] = np.asarray(pc.fill_null(upto, -1).to_numpy(zero_copy_only=False), np.int64)
    return reach


def _to_nobody(rows: Rows, sends: IntArray) -> BoolArray:
    """Whether each message was sent in a private view without receivers."""
    views = rows.of_kind("view")
    private = [detail.get("receivers") == [] for detail in rows.details(views)]
    deserted = views[np.array(private, np.bool_)]
    place, _ = dense(np.concatenate([_stream_here(rows, deserted), _stream_here(rows, sends)]))
    width = len(rows.codes.views.texts) + 1
    key = place * width + rows.view[np.concatenate([deserted, sends])]
    return np.isin(key[len(deserted) :], key[: len(deserted)])


def _stream_here(rows: Rows, at: IntArray) -> IntArray:
    """One number for each group and process incarnation."""
    return rows.group[at] << 32 | rows.owner[at]


def _repetition(rows: Rows) -> str | None:
    """A sentence about the first process with more rows than indexes: a file that is there twice would count twice."""
    count = np.bincount(rows.owner, minlength=len(rows.owners)).tolist()
    last = largest(rows.owner, rows.index, np.arange(len(rows.owner)), len(rows.owners))
    for owner, (number, highest) in enumerate(zip(count, last, strict=True)):
        if highest is not None and number > highest + 1:
            told = f"{rows.name(owner)} has {number:,} rows, but their last index is {highest:,}"
            return f"{told}: some rows occur more than once"
    return None
