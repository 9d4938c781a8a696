"""F1 and F2: flow control keeps its bounds, and a frame leaves only when allowed (docs/spec/properties.md 5).

The conditions and bounds are those of docs/spec/flow-control.md 3 and 4, for the algorithm, the window N and the
numbering that the `start` row of each process names. Without flow control nothing is promised, so there is no
opportunity.
"""

from dataclasses import dataclass
from heapq import heappush, heapreplace
from typing import Final

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.codes import coded, distinct, parts
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.flow_frames import FlowFrames
from antiphon.properties.tables.frames import NOTHING_KNOWN, Frames
from antiphon.properties.tables.history import NEVER, Deliveries, History
from antiphon.properties.tables.stability_reports import StabilityReports
from antiphon.properties.tables.windows import UNBOUNDED, Windows
from antiphon.properties.verdicts.findings import Violations, no_opportunity, over_groups
from antiphon.properties.verdicts.verdict import Verdict, Violation

# -------------------------------------------------------------------------------- F1


@dataclass(frozen=True, slots=True)
class _Gauge:
    """One reading of a bounded quantity."""

    row: int
    name: str
    value: int
    bound: int


def check_bounds(
    history: History, promises: Promises, flow_frames: FlowFrames, stability: StabilityReports
) -> list[Verdict]:
    """F1: the bounds of the configured algorithm hold, by the gauges and by the frames received.

    By the gauges: algorithm 1 has at most N unstable blocks; algorithms 2 and 3 have at most N unstable frames of one
    sender; all have at most N buffers per member and `window_bytes` of own payloads. By the frames: a received frame
    says up to which number its sender knew stability. Between that number and its own number there are at most N
    frames of that sender (algorithm 1: distinct numbers). InterGroup: by its own rows, a sender has at most `window`
    messages that it does not know to be stable.
    """
    windows, promised = flow_frames.windows, promises.pairs("F1")
    if (windows.own < UNBOUNDED).any():
        return _check_own(history, promises, windows, stability)
    if not windows.on.any():
        return no_opportunity(history, promises, "F1", note="flow control is off")
    bounded, over = _gauges(history, windows, promised)
    arrived, count = _outstanding(flow_frames, promised)
    frames = flow_frames.frames
    crowded = np.flatnonzero(count > windows.frames[frames.process[arrived]])

    def describe(position: int) -> Violation:
        if position < len(over):
            return _describe_gauge(history, over[position])
        at = crowded[position - len(over)]
        return _describe_crowded(history, flow_frames, int(arrived[at]), int(count[at]))

    rows = np.concatenate([np.array([gauge.row for gauge in over], np.int64), frames.receive_row[arrived[crowded]]])
    judged = np.concatenate([bounded, frames.row[arrived]])
    opportunities = np.bincount(history.rows.group[judged], minlength=len(history.groups))
    return over_groups(history, promises, "F1", opportunities, Violations(rows, history.rows.group[rows], describe))


def _check_own(history: History, promises: Promises, windows: Windows, stability: StabilityReports) -> list[Verdict]:
    """F1 for a window that limits only a sender's own messages."""
    sends, number = history.sends, history.messages.number
    asked = sends.where((promises.pairs("F1")[sends.process, sends.group]) & (windows.own[sends.process] < UNBOUNDED))
    known = stability.stable.at(asked.process, asked.group, asked.process, asked.row)
    known = np.maximum(known, _given_up(history, asked))
    count = number[asked.message] - known
    over = np.flatnonzero(count > windows.own[asked.process])

    def describe(position: int) -> Violation:
        at = over[position]
        who, name = history.process_name(asked.process[at]), history.message_name(asked.message[at])
        index, allowed = history.index(asked.row[at]), windows.own[asked.process[at]]
        sentence = f"{who} sent {name} (index {index}) as one of {count[at]} that it did not know to be stable; "
        return Violation(f"{sentence}at most {allowed} are allowed", (who,), (name,), (index,))

    opportunities = np.bincount(asked.group, minlength=len(history.groups))
    return over_groups(history, promises, "F1", opportunities, Violations(asked.row[over], asked.group[over], describe))


def _given_up(history: History, sends: Deliveries) -> IntArray:
    """For each send, the number of its sender's last message before it began again; -1 if it never did.

    Then it holds none of these messages, and never learns whether they are stable (InterGroup M16).
    """
    stays, given_up = history.stays, np.full(len(sends.row), -1, np.int64)
    for stay in np.flatnonzero(stays.alone).tolist():  # in the order of their rows
        own = (sends.process == stays.process[stay]) & (sends.group == stays.group[stay])
        before, after = own & (sends.row < stays.row[stay]), own & (sends.row > stays.row[stay])
        given_up[after] = history.messages.number[sends.message[before]].max(initial=-1)
    return given_up


def _gauges(history: History, windows: Windows, promised: BoolArray) -> tuple[IntArray, list[_Gauge]]:
    """The rows of gauges that have a bound, and the readings that exceed it."""
    rows = history.of_kind("gauge")
    process, group = history.rows.process[rows], history.rows.group[rows]
    asked = windows.on[process] & (group >= 0)
    asked &= promised[process, group]
    rows, process, group = rows[asked], process[asked], group[asked]
    members, typed = _largest_views(history), history.columns.typed
    name_code, names = typed.gauges(rows)
    value = typed.numbers("gauge_value", rows, NOTHING_KNOWN)
    # A few combinations of process, group and name cover all readings.
    keys, key = coded((process * len(history.groups) + group) * (len(names) + 1) + name_code)
    places, code = np.divmod(keys, len(names) + 1)
    bounds = [
        _bound(windows, (*divmod(place, len(history.groups)), [*names, None][each]), members)
        for place, each in zip(places.tolist(), code.tolist(), strict=True)
    ]
    bound = np.array(bounds, np.int64)[key]
    bounded = (bound < UNBOUNDED) & (value > NOTHING_KNOWN)
    over = [
        _Gauge(int(rows[at]), names[name_code[at]], int(value[at]), int(bound[at]))
        for at in np.flatnonzero(bounded & (value > bound)).tolist()
    ]
    return rows[bounded], over


def _bound(windows: Windows, key: tuple[int, int, str | None], members: dict[tuple[int, int], int]) -> int:
    """The bound of the gauge of that name, for that process in that group."""
    process, group, name = key
    algorithm, frames = windows.algorithm[process], int(windows.frames[process])
    if name == "own_unstable_bytes":
        return int(windows.bytes[process])
    if name == "buffers":
        return frames * members.get((process, group), 0)
    counted = "unstable_blocks" if algorithm == 1 else "unstable_frames_of_sender"
    return frames if name == counted else UNBOUNDED


def _largest_views(history: History) -> dict[tuple[int, int], int]:
    """For each process and group, the size of its largest view: frames of a removed member still occupy buffers."""
    stays, largest = history.stays, dict[tuple[int, int], int]()
    for process, group, members in zip(stays.process.tolist(), stays.group.tolist(), stays.members, strict=True):
        largest[process, group] = max(largest.get((process, group), 0), len(members))
    return largest


def _outstanding(flow_frames: FlowFrames, promised: BoolArray) -> tuple[IntArray, IntArray]:
    """The frames that were received, and how many frames of the same sender the window held when each left."""
    frames, chosen = flow_frames.frames, flow_frames.chosen[flow_frames.frames.has_header[flow_frames.chosen]]
    stream = _streams(frames)
    numbers = distinct(np.concatenate([frames.number, frames.stable]))
    width = len(numbers) + 1
    place = stream * width + np.searchsorted(numbers, frames.number)
    every = np.sort(place[chosen])
    # With algorithm 1 the window holds blocks: frames with the same number count once.
    once = every[np.diff(every, prepend=-1) != 0]
    arrived = chosen[(frames.receive_row[chosen] >= 0) & promised[frames.process[chosen], frames.group[chosen]]]
    known = (stream * width + np.searchsorted(numbers, frames.stable))[arrived]
    by_block = flow_frames.windows.algorithm[frames.process[arrived]] == 1
    counts = [
        np.searchsorted(held, place[arrived], "right") - np.searchsorted(held, known, "right") for held in (once, every)
    ]
    return arrived, np.where(by_block, *counts)


def _describe_gauge(history: History, gauge: _Gauge) -> Violation:
    who, index = history.process_name(history.rows.process[gauge.row]), history.index(gauge.row)
    of = history.columns.texts("peer", np.array([gauge.row]))[0].as_py()
    about = f", of {of}" if of else ""
    group = history.groups[history.rows.group[gauge.row]]
    sentence = (
        f"{who} reached {gauge.value} {gauge.name} in {group}{about} (index {index}); at most {gauge.bound} are allowed"
    )
    return Violation(sentence, (who,), (), (index,))


def _describe_crowded(history: History, flow_frames: FlowFrames, frame: int, count: int) -> Violation:
    frames, row = flow_frames.frames, int(flow_frames.frames.receive_row[frame])
    sender, who = history.process_name(frames.process[frame]), history.process_name(history.rows.process[row])
    places = (history.index(frames.row[frame]), history.index(row))
    what = "numbers" if flow_frames.windows.algorithm[frames.process[frame]] == 1 else "frames"
    sentence = (
        f"{who} received frame {frames.number[frame]} of {sender} (index {places[1]}), which left (index {places[0]}) "
        f"when {sender} knew number {frames.stable[frame]} to be stable: it is one of {count} {what} of {sender} above "
        f"that; at most {flow_frames.windows.frames[frames.process[frame]]} are allowed"
    )
    return Violation(sentence, (sender, who), (), places)


# -------------------------------------------------------------------------------- F2

_CONDITIONS: Final = {
    1: (("super_stable", 0), ("stable", 1), ("complete", 2)),
    2: (("stable", 0), ("complete", 1)),
    3: (("complete", 1),),
}
"""By algorithm: a field of the header, and the offset from b - N that it must reach (docs/spec/flow-control.md 3)."""

_KNOWLEDGE: Final = {"super_stable": "super-stable", "stable": "stable", "complete": "complete"}


def check_send_condition(history: History, promises: Promises, flow_frames: FlowFrames) -> list[Verdict]:
    """F2: a frame leaves only if the conditions of the configured algorithm hold, by the header that it carries.

    Data, fragments and removes are judged, and in groups that count blocks also nulls. Elsewhere nulls are never
    delayed. Flushes are never delayed.
    """
    if not flow_frames.windows.on.any():
        return no_opportunity(history, promises, "F2", note="flow control is off")
    frames, chosen = flow_frames.frames, flow_frames.chosen
    asked = chosen[promises.pairs("F2")[frames.process[chosen], frames.group[chosen]]]
    reasons = {**_below_condition(flow_frames, asked), **_beyond_window(flow_frames, asked)}
    reasons |= dict.fromkeys(asked[~frames.has_header[asked]].tolist(), "without a flow-control header")
    refused = np.array(sorted(reasons), np.int64)

    def describe(position: int) -> Violation:
        frame = int(refused[position])
        who, index = history.process_name(frames.process[frame]), history.index(frames.row[frame])
        group, number = history.groups[frames.group[frame]], frames.number[frame]
        what = f"frame {number}" if frames.has_header[frame] else "a frame"
        return Violation(f"{who} transmitted {what} in {group} (index {index}) {reasons[frame]}", (who,), (), (index,))

    opportunities = np.bincount(frames.group[asked], minlength=len(history.groups))
    broken = Violations(frames.row[refused], frames.group[refused], describe)
    return over_groups(history, promises, "F2", opportunities, broken)


def _below_condition(flow_frames: FlowFrames, asked: IntArray) -> dict[int, str]:
    """The frames that left before their sender knew enough, and why."""
    frames, windows, reasons = flow_frames.frames, flow_frames.windows, dict[int, str]()
    algorithm, window = windows.algorithm[frames.process[asked]], windows.frames[frames.process[asked]]
    for code, conditions in _CONDITIONS.items():
        for field, plus in conditions:
            known: IntArray = getattr(frames, field)
            least = frames.number[asked] - window + plus
            for at in np.flatnonzero((algorithm == code) & (known[asked] < least)).tolist():
                reasons.setdefault(
                    int(asked[at]),
                    f"when number {known[asked[at]]} was the last it knew to be {_KNOWLEDGE[field]}: "
                    f"with N = {window[at]}, algorithm {code} requires {least[at]}",
                )
    return reasons


def _beyond_window(flow_frames: FlowFrames, asked: IntArray) -> dict[int, str]:
    """Algorithm 3: the frames that left although N earlier frames of their sender were not known to be stable."""
    frames, windows, reasons = flow_frames.frames, flow_frames.windows, dict[int, str]()
    asked = asked[windows.algorithm[frames.process[asked]] == 3]
    for _, places in parts(_streams(frames)[asked]):
        own = asked[places]
        window = int(windows.frames[frames.process[own[0]]])
        least = _least_of_largest(frames.number[own], window)
        for frame in own[least > frames.stable[own]].tolist():
            reasons[frame] = (
                f"when {window} of its earlier frames were above number {frames.stable[frame]}, the last it knew to be "
                f"stable: algorithm 3 allows N = {window} including the new one"
            )
    return reasons


def _streams(frames: Frames) -> IntArray:
    """For each frame, a number for its sender, group and formation."""
    stream: IntArray = frames.process * (int(frames.group.max(initial=0)) + 1) + frames.group
    return stream * (int(frames.formation.max(initial=0)) + 1) + frames.formation


def _least_of_largest(number: IntArray, count: int) -> IntArray:
    """For each frame of a stream, the least of the `count` largest numbers before it; `_LESS` if there are fewer."""
    least = np.full(len(number), _LESS if count else NEVER, np.int64)
    if not 0 < count < len(number):
        return least
    if (np.diff(number) >= 0).all():  # the normal case: senders count upwards
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
"""Less than any number."""
