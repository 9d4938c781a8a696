"""F1 and F2: flow control keeps its bounds, and lets a frame leave only when it may (docs/spec/properties.md 5).

The conditions and bounds are those of `flow-control.md` 3 and 4, for the algorithm, the window N and the numbering that
the `start` row of each process names. Without flow control nothing is promised, so there is no opportunity.
"""

from dataclasses import dataclass
from functools import cached_property
from heapq import heappush, heapreplace
from typing import Final

import numpy as np

from antiphon.properties.checks.stability import Prefixes
from antiphon.properties.promises import Promises
from antiphon.properties.tables.codes import distinct, parts
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.frames import Frames
from antiphon.properties.tables.history import NEVER, History
from antiphon.properties.tables.windows import UNBOUNDED, Windows
from antiphon.properties.verdicts.findings import Broken, nothing_asked, over_groups
from antiphon.properties.verdicts.verdict import Verdict, Violation


class Traffic:
    """The frames that flow control had a say in: all that take a number; nulls only where the group counts blocks."""

    def __init__(self, history: History, windows: Windows) -> None:
        self._history, self.windows = history, windows

    @cached_property
    def frames(self) -> Frames:
        """All numbered frames of processes with flow control."""
        return Frames(self._history, self.windows.on)

    @cached_property
    def chosen(self) -> IntArray:
        """Those that hold a place in the window."""
        frames = self.frames
        return np.flatnonzero(~frames.null | self.windows.by_block[frames.process, frames.group])


# -------------------------------------------------------------------------------- F1


@dataclass(frozen=True, slots=True)
class _Gauge:
    """One reading of a bounded quantity."""

    row: int
    name: str
    value: int
    bound: int


def check_bounds(history: History, promises: Promises, traffic: Traffic, prefixes: Prefixes) -> list[Verdict]:
    """F1: the bound of the algorithm in force; by the gauges, and from outside by the frames received.

    Gauges: 1: at most N unstable blocks; 2 and 3: at most N unstable frames of one sender; always at most N buffers a
    member and `window_bytes` of own payloads. From outside: a frame that arrives says up to which number its sender
    knew stability; above that, up to its own number, at most N frames of that sender exist (1: distinct numbers).
    InterGroup: of what a sender sent, at most `window` messages are not known to be stable there, by its own rows.
    """
    windows, promised = traffic.windows, promises.pairs("F1")
    if (windows.own < UNBOUNDED).any():
        return _check_own(history, promises, windows, prefixes)
    if not windows.on.any():
        return nothing_asked(history, promises, "F1", note="flow control is off")
    bounded, over = _gauges(history, windows, promised)
    arrived, count = _outstanding(traffic, promised)
    frames = traffic.frames
    crowded = np.flatnonzero(count > windows.frames[frames.process[arrived]])

    def tell(position: int) -> Violation:
        if position < len(over):
            return _tell_gauge(history, over[position])
        at = crowded[position - len(over)]
        return _tell_crowded(history, traffic, int(arrived[at]), int(count[at]))

    rows = np.concatenate([np.array([gauge.row for gauge in over], np.int64), frames.receive_row[arrived[crowded]]])
    judged = np.concatenate([bounded, frames.row[arrived]])
    opportunities = np.bincount(history.rows.group[judged], minlength=len(history.groups))
    return over_groups(history, promises, "F1", opportunities, Broken(rows, history.rows.group[rows], tell))


def _check_own(history: History, promises: Promises, windows: Windows, prefixes: Prefixes) -> list[Verdict]:
    """F1 of a window that bounds a sender's own messages."""
    sends, number = history.sends, history.messages.number
    asked = sends.where((promises.pairs("F1")[sends.process, sends.group]) & (windows.own[sends.process] < UNBOUNDED))
    known = prefixes.stable.at(asked.process, asked.group, asked.process, asked.row)
    count = number[asked.message] - known
    over = np.flatnonzero(count > windows.own[asked.process])

    def tell(position: int) -> Violation:
        at = over[position]
        who, name = history.process_name(asked.process[at]), history.message_name(asked.message[at])
        index, allowed = history.index(asked.row[at]), windows.own[asked.process[at]]
        sentence = f"{who} sent {name} (index {index}) as one of {count[at]} that it did not know to be stable, where "
        return Violation(f"{sentence}{allowed} are allowed", (who,), (name,), (index,))

    opportunities = np.bincount(asked.group, minlength=len(history.groups))
    return over_groups(history, promises, "F1", opportunities, Broken(asked.row[over], asked.group[over], tell))


def _gauges(history: History, windows: Windows, promised: BoolArray) -> tuple[IntArray, list[_Gauge]]:
    """The rows of readings that have a bound, and those readings that are over it."""
    rows = history.of_kind("gauge")
    process, group = history.rows.process[rows], history.rows.group[rows]
    asked = windows.on[process] & (group >= 0)
    asked &= promised[process, group]
    members, bounds = _largest_views(history), dict[tuple[int, int, str], int]()
    bounded, over = [], []
    for row, who, where in zip(rows[asked].tolist(), process[asked].tolist(), group[asked].tolist(), strict=True):
        detail = history.details[row]
        name, value = str(detail.get("name")), detail.get("value")
        key = who, where, name
        bound = bounds.get(key)
        if bound is None:
            bound = bounds[key] = _bound(windows, key, members)
        if bound < UNBOUNDED and isinstance(value, int):
            bounded.append(row)
            if value > bound:
                over.append(_Gauge(row, name, value, bound))
    return np.array(bounded, np.int64), over


def _bound(windows: Windows, key: tuple[int, int, str], members: dict[tuple[int, int], int]) -> int:
    """Of the gauge of that name, of that process in that group."""
    process, group, name = key
    algorithm, frames = windows.algorithm[process], int(windows.frames[process])
    if name == "own_unstable_bytes":
        return int(windows.bytes[process])
    if name == "buffers":
        return frames * members.get((process, group), 0)
    counted = "unstable_blocks" if algorithm == 1 else "unstable_frames_of_sender"
    return frames if name == counted else UNBOUNDED


def _largest_views(history: History) -> dict[tuple[int, int], int]:
    """By process and group the most members it had in a view: frames of a removed member still hold their buffers."""
    stays, largest = history.stays, dict[tuple[int, int], int]()
    for process, group, members in zip(stays.process.tolist(), stays.group.tolist(), stays.members, strict=True):
        largest[process, group] = max(largest.get((process, group), 0), len(members))
    return largest


def _outstanding(traffic: Traffic, promised: BoolArray) -> tuple[IntArray, IntArray]:
    """The frames that somebody received, and how many of their sender's the window held when each left."""
    frames, chosen = traffic.frames, traffic.chosen[traffic.frames.has_header[traffic.chosen]]
    stream = _streams(frames)
    numbers = distinct(np.concatenate([frames.number, frames.stable]))
    width = len(numbers) + 1
    place = stream * width + np.searchsorted(numbers, frames.number)
    every = np.sort(place[chosen])
    # With algorithm 1 the window holds blocks: frames of one number count once.
    once = every[np.diff(every, prepend=-1) != 0]
    arrived = chosen[(frames.receive_row[chosen] >= 0) & promised[frames.process[chosen], frames.group[chosen]]]
    known = (stream * width + np.searchsorted(numbers, frames.stable))[arrived]
    by_block = traffic.windows.algorithm[frames.process[arrived]] == 1
    counts = [
        np.searchsorted(held, place[arrived], "right") - np.searchsorted(held, known, "right") for held in (once, every)
    ]
    return arrived, np.where(by_block, *counts)


def _tell_gauge(history: History, gauge: _Gauge) -> Violation:
    who, index = history.process_name(history.rows.process[gauge.row]), history.index(gauge.row)
    of = history.columns.texts("peer", np.array([gauge.row]))[0].as_py()
    about = f", of {of}" if of else ""
    group = history.groups[history.rows.group[gauge.row]]
    sentence = (
        f"{who} reached {gauge.value} {gauge.name} in {group}{about} (index {index}), where {gauge.bound} are allowed"
    )
    return Violation(sentence, (who,), (), (index,))


def _tell_crowded(history: History, traffic: Traffic, frame: int, count: int) -> Violation:
    frames, row = traffic.frames, int(traffic.frames.receive_row[frame])
    sender, who = history.process_name(frames.process[frame]), history.process_name(history.rows.process[row])
    places = (history.index(frames.row[frame]), history.index(row))
    what = "numbers" if traffic.windows.algorithm[frames.process[frame]] == 1 else "frames"
    sentence = (
        f"{who} received frame {frames.number[frame]} of {sender} (index {places[1]}), which left (index {places[0]}) "
        f"when {sender} knew number {frames.stable[frame]} to be stable: it makes {count} {what} of {sender} above "
        f"that, and {traffic.windows.frames[frames.process[frame]]} are allowed"
    )
    return Violation(sentence, (sender, who), (), places)


# -------------------------------------------------------------------------------- F2

_CONDITIONS: Final = {
    1: (("super_stable", 0), ("stable", 1), ("complete", 2)),
    2: (("stable", 0), ("complete", 1)),
    3: (("complete", 1),),
}
"""By algorithm: which field of the header must be at least b - N plus how much (docs/spec/flow-control.md 3)."""

_KNOWLEDGE: Final = {"super_stable": "super-stable", "stable": "stable", "complete": "complete"}


def check_send_condition(history: History, promises: Promises, traffic: Traffic) -> list[Verdict]:
    """F2: a frame leaves only if the conditions of the algorithm in force held, by the header it carries.

    Asked of data, fragments and removes, and in groups that count blocks of nulls too; elsewhere nulls are never
    delayed, and flushes nowhere.
    """
    if not traffic.windows.on.any():
        return nothing_asked(history, promises, "F2", note="flow control is off")
    frames, chosen = traffic.frames, traffic.chosen
    asked = chosen[promises.pairs("F2")[frames.process[chosen], frames.group[chosen]]]
    reasons = {**_below_condition(traffic, asked), **_beyond_window(traffic, asked)}
    reasons |= dict.fromkeys(asked[~frames.has_header[asked]].tolist(), "without a flow-control header")
    refused = np.array(sorted(reasons), np.int64)

    def tell(position: int) -> Violation:
        frame = int(refused[position])
        who, index = history.process_name(frames.process[frame]), history.index(frames.row[frame])
        group, number = history.groups[frames.group[frame]], frames.number[frame]
        what = f"frame {number}" if frames.has_header[frame] else "a frame"
        return Violation(f"{who} transmitted {what} in {group} (index {index}) {reasons[frame]}", (who,), (), (index,))

    opportunities = np.bincount(frames.group[asked], minlength=len(history.groups))
    broken = Broken(frames.row[refused], frames.group[refused], tell)
    return over_groups(history, promises, "F2", opportunities, broken)


def _below_condition(traffic: Traffic, asked: IntArray) -> dict[int, str]:
    """The frames that left before their sender knew enough, and why."""
    frames, windows, reasons = traffic.frames, traffic.windows, dict[int, str]()
    algorithm, window = windows.algorithm[frames.process[asked]], windows.frames[frames.process[asked]]
    for code, conditions in _CONDITIONS.items():
        for field, plus in conditions:
            known: IntArray = getattr(frames, field)
            least = frames.number[asked] - window + plus
            for at in np.flatnonzero((algorithm == code) & (known[asked] < least)).tolist():
                reasons.setdefault(
                    int(asked[at]),
                    f"when number {known[asked[at]]} was the last it knew to be {_KNOWLEDGE[field]}: "
                    f"with N = {window[at]}, algorithm {code} asks for {least[at]}",
                )
    return reasons


def _beyond_window(traffic: Traffic, asked: IntArray) -> dict[int, str]:
    """Algorithm 3: the frames that left although N earlier ones of their sender were not known stable."""
    frames, windows, reasons = traffic.frames, traffic.windows, dict[int, str]()
    asked = asked[windows.algorithm[frames.process[asked]] == 3]
    for _, places in parts(_streams(frames)[asked]):
        own = asked[places]
        window = int(windows.frames[frames.process[own[0]]])
        least = _least_of_largest(frames.number[own], window)
        for frame in own[least > frames.stable[own]].tolist():
            reasons[frame] = (
                f"when {window} of its earlier frames were above number {frames.stable[frame]}, the last it knew to be "
                f"stable: algorithm 3 allows N = {window} with the new one"
            )
    return reasons


def _streams(frames: Frames) -> IntArray:
    """By frame a number for its sender, its group and the formation of that."""
    stream: IntArray = frames.process * (int(frames.group.max(initial=0)) + 1) + frames.group
    return stream * (int(frames.formation.max(initial=0)) + 1) + frames.formation


def _least_of_largest(number: IntArray, count: int) -> IntArray:
    """By frame of a stream the least of the `count` largest numbers before it; less than any if there are fewer."""
    least = np.full(len(number), _LESS if count else NEVER, np.int64)
    if not 0 < count < len(number):
        return least
    if (np.diff(number) >= 0).all():  # as senders count
        least[count:] = number[:-count]
        return least
    held: list[int] = []
    for place, each in enumerate(number.tolist()):
        if len(held) == count:
            least[place] = held[0]
            heapreplace(held, max(each, held[0]))
        else:
            heappush(held, each)
    return least


_LESS: Final = int(np.iinfo(np.int64).min)
