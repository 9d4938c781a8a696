"""The tallies and latencies of one run, from its rows. Every figure of `stats`, `tables` and sweeps is made of them.

A run is read in parts, each with whole logs of processes. What a part needs to know about the others is found first
(`Course`): the sends, and when all useful work was done. A small run is one part.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.errors import TraceError
from antiphon.pipeline.figures.rows import UNKNOWN, BoolArray, IntArray, Rows, dense
from antiphon.pipeline.figures.spreads import Spread
from antiphon.pipeline.figures.summing import SPEAKS_ALWAYS, USEFUL, Measure, Row
from antiphon.types import WORLD

Scope = tuple[Measure, str | None, str | None]
"""What is measured, the group and the process; None stands for all."""

_STREAMS_MAX: Final = 1 << 31
_FOR_EVER: Final = int(np.iinfo(np.int64).max)
_WORK: Final = ("sender_work", "receiver_work")


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
        option = SPEAKS_ALWAYS.split(".")
        self._is_waited_out |= any(_at(detail, option) is not None for detail in rows.details(rows.of_kind("start")))
        self._take_messages(rows)

    def _take_messages(self, rows: Rows) -> None:
        self._numbers = max(self._numbers, int(rows.number.max(initial=0)) + 1)
        sends = rows.of_kind("send")
        sends = sends[rows.number[sends] >= 0]
        stream = self._stream(rows.group[sends], rows.process[sends], rows.incarnation[sends])
        self._sent.append((stream, rows.number[sends], rows.requested[sends], rows.time[sends]))

    def close(self) -> None:
        """All parts are taken."""
        if max(len(self._streams), 1) * self._numbers >= _FOR_EVER // 4 or len(self._streams) >= _STREAMS_MAX:
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
        self.tallies += tallies(rows, self._course)
        delivered = _Deliveries(rows, self._course)
        self._spread("delivery", rows, delivered.at, delivered.latency_ns)
        self._add_overheads(rows, delivered)
        answers = rows.of_kind("answer")
        self._spread("request", rows, answers, _since(rows.requested[answers], rows.time[answers]))
        stable, latency_ns, to_nobody = stabilities(rows)
        self._spread("stability", rows, stable[~to_nobody], latency_ns[~to_nobody])
        self._spread("to nobody", rows, stable[to_nobody], latency_ns[to_nobody])

    def _spread(self, measure: Measure, rows: Rows, at: IntArray, latency_ns: IntArray) -> None:
        """Add latencies to their member, their group and the run."""
        known = latency_ns != UNKNOWN
        at, latency_ns = at[known], latency_ns[known]
        for group, of_group in _parts(rows.group[at]):
            name = rows.codes.groups.texts[group]
            for process, of_member in _parts(rows.process[at[of_group]]):
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
        requested, sent = _looked_up(message, course.sends[0], course.sends[1:])
        self.latency_ns = _since(requested, rows.time[at])
        is_own = (rows.process[at] == rows.sender[at]) & (rows.incarnation[at] == rows.sender_incarnation[at])
        arrived = np.where(is_own, sent, _arrivals(rows, course, message))
        self.overhead_ns = _since(arrived, rows.time[at])


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
    [time] = _looked_up(key[len(received) :], keys[is_first], (rows.time[received][earliest][is_first],))
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
    of_reports = _positions(stream[: len(stable)][order], len(streams))
    of_sends = _positions(stream[len(stable) :], len(streams))
    for reports, own in zip(of_reports, of_sends, strict=True):
        if len(reports) and len(own):
            chosen = order[reports]
            upto = np.maximum.accumulate(reach[chosen])
            first = np.searchsorted(upto, rows.number[sends[own]])
            covered = first < len(chosen)
            found.append(sends[own[covered]])
            times.append(rows.time[stable[chosen[first[covered]]]])
    at, time = np.concatenate(found), np.concatenate(times)
    return at, _since(rows.requested[at], time), _to_nobody(rows, at)


def _own_reach(rows: Rows, stable: IntArray) -> IntArray:
    """The number up to which each report covers the messages of its own process; -1 if it tells nothing of them."""
    reach: IntArray = np.full(len(stable), -1, np.int64)
    for owner, place in _parts(rows.owner[stable]):
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


# -------------------------------------------------------------------------------- tallies


def tallies(rows: Rows, course: Course) -> list[Row]:
    """Everything that can be added up, for each group, process incarnation and frame type, busy and idle."""
    frames = _Frames(rows)
    idle = rows.time > (_FOR_EVER if course.done_ns is None else course.done_ns)
    width, owners = len(frames.names), len(rows.owners)
    code, keys = dense(((rows.group * owners + rows.owner) * width + frames.type) * 2 + idle)
    sums = _Sums(rows, code, len(keys))
    columns = {**sums.of_all(), **frames.sums(code, len(keys)), **sums.of_waits(), **sums.of_gauges(), **sums.of_work()}
    of_run = {"idle_ns": course.idle_ns, "view_changes": course.view_changes}
    found: list[Row] = []
    for place, each in enumerate(keys.tolist()):
        rest, is_idle = divmod(each, 2)
        rest, kind = divmod(rest, width)
        group, who = divmod(rest, owners)
        process, incarnation = rows.owners[who]
        name = rows.codes.processes.texts[process]
        if name != WORLD:
            named = {"group": rows.codes.groups.texts[group], "process": name, "incarnation": incarnation}
            values = {column: values[place] for column, values in columns.items()}
            found.append({**named, "type": frames.names[kind], "idle": bool(is_idle), **values, **of_run})
    return found


class _Frames:
    """The `transmit` rows of a part."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._at = rows.of_kind("transmit")
        details = rows.details(self._at)
        self.names: list[str | None] = [None]
        """The types of frames; the first stands for rows that are no frames."""
        code_of: dict[str | None, int] = {None: 0}
        types = [_text(detail.get("type")) for detail in details]
        for name in types:
            if name not in code_of:
                code_of[name] = len(self.names)
                self.names.append(name)
        self.type: IntArray = np.zeros(len(rows.kind), np.int64)
        self.type[self._at] = [code_of[name] for name in types]
        self._told = {name: _numbers(details, name) for name in ("stamp_bytes", "count", "copies")}

    def sums(self, code: IntArray, size: int) -> Mapping[str, list[Any]]:
        """By code: the frames, their bytes and copies."""
        own, at = code[self._at], self._at
        copies = self._told["copies"]
        tells = copies != UNKNOWN
        frame_bytes = self._rows.payload_bytes[at] + self._rows.header_bytes[at]
        return {
            "frames": _counted(own, size),
            "payload_bytes": _added(own, self._rows.payload_bytes[at], size),
            "header_bytes": _added(own, self._rows.header_bytes[at], size),
            "stamp_bytes": _added(own, _or_zero(self._told["stamp_bytes"]), size),
            "packed": _added(own, _or_zero(self._told["count"]), size),
            "frames_with_copies": _counted(own[tells], size),
            "copies": _added(own, _or_zero(copies), size),
            "wire_bytes": _added(own, _or_zero(copies) * frame_bytes, size),
        }


class _Sums:
    """Sums, least and largest values by code."""

    def __init__(self, rows: Rows, code: IntArray, size: int) -> None:
        self._rows, self._code, self._size = rows, code, size

    def of_all(self) -> Mapping[str, list[Any]]:
        """Counts of kinds, and the ranges of times."""
        rows, code, size = self._rows, self._code, self._size
        sends, delivers = rows.of_kind("send"), rows.of_kind("deliver")
        asked = sends[rows.requested[sends] != UNKNOWN]
        held = np.flatnonzero(rows.unstable != UNKNOWN)
        everywhere = np.arange(len(code))
        return {
            "sent": _counted(code[sends], size),
            "delivered": _counted(code[delivers], size),
            "moves": _counted(code[rows.of_kind("crash", "leave", "join")], size),
            "blocks": _counted(code[rows.of_kind("block")], size),
            "first_request_ns": _least(code, rows.requested, asked, size),
            "last_delivery_ns": _largest(code, rows.time, delivers, size),
            "unstable_max": _largest(code, rows.unstable, held, size),
            "first_ns": _least(code, rows.time, everywhere, size),
            "last_ns": _largest(code, rows.time, everywhere, size),
        }

    def of_waits(self) -> Mapping[str, list[Any]]:
        """How long senders waited: the ends of all waits minus their beginnings; the last wait may have no end."""
        rows = self._rows
        end_ns = _largest(rows.owner, rows.time, np.arange(len(rows.owner)), len(rows.owners))
        blocked_ns = [0] * self._size
        begins = rows.codes.kinds.code("block")
        for row in rows.of_kind("block", "unblock").tolist():
            end = end_ns[rows.owner[row]]
            assert end is not None
            remaining = end - int(rows.time[row])
            blocked_ns[self._code[row]] += remaining if rows.kind[row] == begins else -remaining
        return {"blocked_ns": blocked_ns}

    def of_gauges(self) -> Mapping[str, list[Any]]:
        """The highest readings."""
        at = self._rows.of_kind("gauge")
        details = self._rows.details(at)
        values, named = _numbers(details, "value"), [detail.get("name") for detail in details]
        readings: IntArray = np.full(len(self._code), UNKNOWN, np.int64)
        readings[at] = values
        highest = {}
        for name in ("unstable_blocks", "buffers"):
            chosen = at[np.array([each == name for each in named], np.bool_) & (values != UNKNOWN)]
            highest[f"{name}_max"] = _largest(self._code, readings, chosen, self._size)
        return highest

    def of_work(self) -> Mapping[str, list[Any]]:
        """What protocols count of their own work; None where they do not."""
        sums: dict[str, list[int | None]] = {name: [None] * self._size for name in _WORK}
        stops = self._rows.of_kind("stop")
        for row, detail in zip(stops.tolist(), self._rows.details(stops), strict=True):
            for name in _WORK:
                value = _at(detail, ["costs", name])
                if isinstance(value, int) and not isinstance(value, bool):
                    place = self._code[row]
                    sums[name][place] = (sums[name][place] or 0) + value
        return sums


def _repetition(rows: Rows) -> str | None:
    """A sentence about the first process with more rows than indexes: a file that is there twice would count twice."""
    count = np.bincount(rows.owner, minlength=len(rows.owners)).tolist()
    last = _largest(rows.owner, rows.index, np.arange(len(rows.owner)), len(rows.owners))
    for owner, (number, highest) in enumerate(zip(count, last, strict=True)):
        if highest is not None and number > highest + 1:
            told = f"{rows.name(owner)} has {number:,} rows, but their last index is {highest:,}"
            return f"{told}: some rows occur more than once"
    return None


# -------------------------------------------------------------------------------- arrays


def _looked_up(asked: IntArray, known: IntArray, values: Iterable[IntArray]) -> list[IntArray]:
    """The values of what was asked for among what is known, in ascending order; `UNKNOWN` for the rest."""
    place = np.searchsorted(known, asked)
    place[place == len(known)] = 0
    hit = known[place] == asked if len(known) else np.zeros(len(asked), np.bool_)
    return [np.where(hit, each[place], UNKNOWN) if len(known) else np.full(len(asked), UNKNOWN) for each in values]


def _since(begin: IntArray, end: IntArray) -> IntArray:
    return np.where(begin == UNKNOWN, UNKNOWN, end - np.where(begin == UNKNOWN, 0, begin))


def _parts(codes: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Each code that occurs, with its positions."""
    place, known = dense(codes)
    yield from zip(known.tolist(), _positions(place, len(known)), strict=True)


def _positions(codes: IntArray, size: int) -> list[IntArray]:
    """For each code its positions, in ascending order."""
    if size == 1:
        return [np.arange(len(codes))]
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.searchsorted(codes[order], np.arange(1, size))) if size else []


def _counted(codes: IntArray, size: int) -> list[int]:
    counts: list[int] = np.bincount(codes, minlength=size).tolist()
    return counts


def _added(codes: IntArray, values: IntArray, size: int) -> list[int]:
    """Sums of small numbers: a double holds them exactly."""
    sums: list[int] = np.bincount(codes, weights=values, minlength=size).astype(np.int64).tolist()
    return sums


def _least(codes: IntArray, values: IntArray, at: IntArray, size: int) -> list[int | None]:
    found: IntArray = np.full(size, _FOR_EVER, np.int64)
    np.minimum.at(found, codes[at], values[at])
    return [None if value == _FOR_EVER else value for value in found.tolist()]


def _largest(codes: IntArray, values: IntArray, at: IntArray, size: int) -> list[int | None]:
    found: IntArray = np.full(size, UNKNOWN, np.int64)
    np.maximum.at(found, codes[at], values[at])
    return [None if value == UNKNOWN else value for value in found.tolist()]


def _numbers(details: Iterable[Mapping[str, Any]], name: str) -> IntArray:
    found = (detail.get(name) for detail in details)
    return np.array([each if type(each) is int else UNKNOWN for each in found], np.int64)


def _or_zero(values: IntArray) -> IntArray:
    return np.where(values == UNKNOWN, 0, values)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else str(value)


def _at(detail: Any, path: Iterable[str]) -> Any:
    for key in path:
        detail = detail.get(key) if isinstance(detail, dict) else None
    return detail
