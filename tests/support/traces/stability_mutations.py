"""Faults of stability and flow control seeded into good traces (docs/spec/properties.md 9, and more of our own).

As in `mutations.py`: the edited trace is still well formed and wrong in one place, or there is no such place.
"""

import json
import random
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tests.support.traces.mutations import Log, Mutation, Row, choice, ids, renumbered, with_column

Story = list[Row]
"""All rows of a run, whole, sorted by process, incarnation and index."""
Key = tuple[str, int, str]
"""Process, incarnation, group."""


def story_of(log: Log) -> Story:
    rows: Story = log.table.to_pylist()
    return rows


def key_of(row: Row) -> Key:
    return row["process"], row["incarnation"], row["group"]


def name_of(row: Row, column: str = "process", incarnation: str = "incarnation") -> str:
    return f"{row[column]}#{row[incarnation]}" if row[incarnation] else str(row[column])


def rows_of(story: Story, *kinds: str) -> Iterator[tuple[int, Row]]:
    return ((at, row) for at, row in enumerate(story) if row["kind"] in kinds)


def additions(story: Story, kind: str) -> list[tuple[int, str, int, int]]:
    """Per report that raises a mark: its place, the sender, the mark before, the mark now."""
    marks: dict[tuple[Key, str], int] = {}
    found = []
    for at, row in rows_of(story, kind):
        for sender, number in row["upto"]:
            before = marks.get((key_of(row), sender), -1)
            if number > before:
                found.append((at, sender, before, number))
                marks[key_of(row), sender] = number
    return found


def _evicted(row: Row) -> bool:
    return row["detail"] is not None and json.loads(row["detail"]).get("evicted") is True


def _moved(log: Log, at: int, behind: int, time: int) -> pa.Table:
    """The row at one place moved after an earlier one of its process, at that time."""
    order = [each for each in range(len(log.rows)) if each != at]
    order.insert(behind + 1, at)
    times = log.table["time"].to_pylist()
    times[at] = time
    return renumbered(with_column(log.table, "time", times).take(pa.array(order)))


def without(log: Log, *places: int) -> pa.Table:
    keep = np.ones(len(log.rows), np.bool_)
    keep[list(places)] = False
    return renumbered(log.table.filter(pa.array(keep)))


def with_detail(log: Log, at: int, change: Callable[[dict[str, Any]], None]) -> pa.Table:
    details = log.table["detail"].to_pylist()
    detail = json.loads(details[at] or "{}")
    change(detail)
    details[at] = json.dumps(detail)
    return with_column(log.table, "detail", details)


# -------------------------------------------------------------------------------- stability


def _is_of(chosen: Container[str] | None, row: Row) -> bool:
    """The row is of one of these processes; None: of any."""
    return chosen is None or row["process"] in chosen


def stable_before_the_slowest(log: Log, rng: random.Random, chosen: Container[str] | None = None) -> pa.Table | None:
    """Move a stable row to before the last receipt of a message that it adds; over no view or stable row."""
    story = story_of(log)
    arrived: dict[tuple[str, Any], int] = {}
    for _, row in rows_of(story, "send", "receive"):
        if row["number"] is not None:
            message = row["group"], name_of(row, "sender", "sender_incarnation"), row["number"]
            arrived.setdefault((name_of(row), message), row["time"])
    places = []
    barrier: dict[Key, tuple[int, list[str]]] = {}
    added: dict[int, list[tuple[str, int]]] = {}
    for at, sender, before, number in additions(story, "stable"):
        added.setdefault(at, []).extend((sender, each) for each in range(before + 1, number + 1))
    for at, row in rows_of(story, "view", "stable"):
        if at in added:
            low, members = barrier[key_of(row)]
            slowest = max(
                arrived[member, (row["group"], *message)]
                for member in members
                for message in added[at]
                if (member, (row["group"], *message)) in arrived
            )
            if story[low]["time"] < slowest and _is_of(chosen, row):
                places.append((at, low))
        members = row["members"] if row["kind"] == "view" else barrier[key_of(row)][1]
        barrier[key_of(row)] = at, members
    place = choice(rng, places)
    return None if place is None else _moved(log, *place, story[place[1]]["time"])


def discard_before_stable(log: Log, rng: random.Random, chosen: Container[str] | None = None) -> pa.Table | None:
    story = story_of(log)
    known: dict[tuple[Key, str], list[tuple[int, int]]] = {}
    for at, sender, _, number in additions(story, "stable"):
        known.setdefault((key_of(story[at]), sender), []).append((at, number))
    places = [
        (at, next(place for place, reached in known[key_of(story[at]), sender] if reached >= number))
        for at, sender, _, number in additions(story, "discard")
        if not _evicted(story[at]) and _is_of(chosen, story[at])
    ]
    place = choice(rng, places)
    return None if place is None else _moved(log, place[0], place[1] - 1, story[place[1]]["time"])


def lower_a_mark(log: Log, rng: random.Random, chosen: Container[str] | None = None) -> pa.Table | None:
    story = story_of(log)
    marks = ((at, sender, number) for at, sender, _, number in additions(story, "stable") if number > 0)
    place = choice(rng, (mark for mark in marks if _is_of(chosen, story[mark[0]])))
    if place is None:
        return None
    at, sender, number = place
    lowered = with_column(log.table.slice(at, 1), "upto", [[(sender, number - 1)]])
    return renumbered(pa.concat_tables([log.table.slice(0, at + 1), lowered, log.table.slice(at + 1)]))


def _drop_the_last_stable(log: Log, rng: random.Random) -> pa.Table | None:
    """Of a member that stays: the row which adds the last message that a member of the same last view sent in it."""
    story = story_of(log)
    last_view = {key_of(row): row["view"] for _, row in rows_of(story, "view")}
    sent = {
        (row["group"], name_of(row), row["number"])
        for _, row in rows_of(story, "send")
        if not log.crashed(key_of(row)[:2]) and last_view[key_of(row)] == row["view"]
    }
    places = [
        at
        for at, sender, _, number in additions(story, "stable")
        if (story[at]["group"], sender, number) in sent
        and (story[at]["group"], sender, number + 1) not in sent
        and not log.crashed(key_of(story[at])[:2])
        and story[at]["view"] == last_view[key_of(story[at])]
    ]
    at = choice(rng, places)
    return None if at is None else without(log, at)


def _drop_the_last_discard(log: Log, rng: random.Random) -> pa.Table | None:
    story = story_of(log)
    last = {(key_of(story[at]), sender): at for at, sender, _, _ in additions(story, "discard")}
    at = choice(rng, [at for (key, _), at in last.items() if not log.crashed(key[:2])])
    return None if at is None else without(log, at)


# -------------------------------------------------------------------------------- flow control


def _options(story: Story) -> dict[str, Any]:
    detail = json.loads(next(row for _, row in rows_of(story, "start"))["detail"])
    options: dict[str, Any] = {"flow_control": 0, **detail["options"]}
    options["by_block"] = any(entry.get("numbering") == "block" for entry in detail["groups"].values())
    return options


def _skip_a_sender(log: Log, rng: random.Random) -> pa.Table | None:
    """Where stability is by blocks: leave one sender out of a row that calls a later message of another stable."""
    story = story_of(log)
    options = _options(story)
    if options["flow_control"] and not options["by_block"]:
        return None
    clocks = {
        (row["group"], name_of(row, "sender", "sender_incarnation"), row["number"]): row["clock"]
        for _, row in rows_of(story, "send")
    }
    delivered: dict[Key, set[Any]] = {}
    places = []
    added = {(at, sender): before for at, sender, before, _ in additions(story, "stable")}
    for at, row in rows_of(story, "deliver", "stable"):
        seen = delivered.setdefault(key_of(row), set())
        if row["kind"] == "deliver":
            seen.add((row["group"], name_of(row, "sender", "sender_incarnation"), row["number"]))
            continue
        for sender, before in ((sender, added[at, sender]) for sender, _ in row["upto"] if (at, sender) in added):
            first = row["group"], sender, before + 1
            others = [(row["group"], other, number) for other, number in row["upto"] if other != sender]
            if first in seen and any(other in seen and clocks[other] > clocks[first] for other in others):
                places.append((at, sender))
    place = choice(rng, places)
    if place is None:
        return None
    uptos = log.table["upto"].to_pylist()
    uptos[place[0]] = [entry for entry in uptos[place[0]] if entry[0] != place[1]]
    return with_column(log.table, "upto", uptos)


def _deny_an_eviction(log: Log, rng: random.Random) -> pa.Table | None:
    story = story_of(log)
    marks: dict[tuple[Key, str], list[tuple[int, int]]] = {}
    for at, sender, _, number in additions(story, "stable"):
        marks.setdefault((key_of(story[at]), sender), []).append((at, number))
    places = [
        at
        for at, sender, _, number in additions(story, "discard")
        if _evicted(story[at])
        and not any(place < at and reached >= number for place, reached in marks.get((key_of(story[at]), sender), []))
    ]
    chosen = choice(rng, places)
    return None if chosen is None else with_detail(log, chosen, dict.clear)


def _raise_a_gauge(log: Log, rng: random.Random) -> pa.Table | None:
    story = story_of(log)
    algorithm = _options(story)["flow_control"]
    bounded = {"buffers", "own_unstable_bytes", "unstable_blocks" if algorithm == 1 else "unstable_frames_of_sender"}
    rows = rows_of(story, "gauge") if algorithm else ()
    at = choice(rng, [at for at, row in rows if json.loads(row["detail"])["name"] in bounded])
    return None if at is None else with_detail(log, at, lambda detail: detail.update(value=10**12))


def _transmits(story: Story) -> Iterable[tuple[int, list[int], int]]:
    """Data frames under flow control: their place, header, and how many their sender had sent in the group before."""
    if not _options(story)["flow_control"]:
        return
    count: dict[Key, int] = {}
    for at, row in rows_of(story, "transmit"):
        detail = json.loads(row["detail"])
        if detail["type"] == "data":
            yield at, detail["flow"], count.get(key_of(row), 0)
            count[key_of(row)] = count.get(key_of(row), 0) + 1


def _forget_completion(log: Log, rng: random.Random) -> pa.Table | None:
    """A frame left although its sender had completed too little: C is one below the minimum of every algorithm."""
    story = story_of(log)
    place = choice(rng, [(at, flow) for at, flow, _ in _transmits(story)])
    if place is None:
        return None
    at, (number, _, stable, super_stable) = place
    least = number - _options(story)["window"]
    return with_detail(log, at, lambda detail: detail.update(flow=[number, least, stable, super_stable]))


def _forget_stability(log: Log, rng: random.Random) -> pa.Table | None:
    """A frame left with N earlier ones of its sender above the number that it calls stable."""
    story = story_of(log)
    window = _options(story).get("window", 0)
    received = {json.loads(row["detail"])["frame"] for _, row in rows_of(story, "receive")}
    places = [
        (at, flow)
        for at, flow, earlier in _transmits(story)
        if earlier >= window and json.loads(story[at]["detail"])["frame"] in received
    ]
    place = choice(rng, places)
    if place is None:
        return None
    at, (number, complete, _, super_stable) = place
    return with_detail(log, at, lambda detail: detail.update(flow=[number, complete, -1, super_stable]))


def _drop_the_last_unblock(log: Log, rng: random.Random) -> pa.Table | None:
    last = {key_of(row): at for at, row in rows_of(story_of(log), "unblock") if not log.crashed(key_of(row)[:2])}
    at = choice(rng, last.values())
    return None if at is None else without(log, at)


def _forget_a_request(log: Log, rng: random.Random) -> pa.Table | None:
    """A process that was once blocked stops with a request that never left."""
    story = story_of(log)
    blocked = {key_of(row) for _, row in rows_of(story, "block")}
    stops = {key_of(row)[:2]: at for at, row in rows_of(story, "stop")}
    place = choice(rng, [(stops[key[:2]], key[2]) for key in sorted(blocked) if key[:2] in stops])
    if place is None:
        return None
    return with_detail(log, place[0], lambda detail: detail.update(waiting={place[1]: 1}))


STABILITY_MUTATIONS: Final = (
    Mutation("move stable before the slowest receive", stable_before_the_slowest, (ids("S1"),)),
    Mutation("move discard before stable", discard_before_stable, (ids("S4"),)),
    Mutation("lower a stable mark", lower_a_mark, (ids("S2"),)),
    Mutation("drop the last stable row", _drop_the_last_stable, (ids("L6"),), ids("S2", "S4")),
    Mutation("drop the last discard row", _drop_the_last_discard, (ids("L8"),)),
)
"""Faults that every trace with stability has a place for."""

FLOW_MUTATIONS: Final = (
    Mutation("leave a sender out of a stable row", _skip_a_sender, (ids("S2"),), ids("S4", "L6")),
    Mutation("call an eviction a discard", _deny_an_eviction, (ids("S4"),)),
    Mutation("raise a gauge", _raise_a_gauge, (ids("F1"),)),
    Mutation("send with too little complete", _forget_completion, (ids("F2"),)),
    Mutation("send beyond the window", _forget_stability, (ids("F1"), ids("F2"))),
    Mutation("drop the last unblock", _drop_the_last_unblock, (ids("L7"),)),
    Mutation("forget a request that waited", _forget_a_request, (ids("F3"),), ids("L3")),
)
"""Faults that need active flow control, a blocked sender, or stability by blocks."""
