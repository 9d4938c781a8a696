"""Faults seeded into good traces of groups that change (properties.md 9): joins, leaves, recoveries, merges, states.

Like `mutations.py`: a mutation gives a table that is still well formed, or None where the trace offers no place for it.
"""

import json
import random
from collections.abc import Callable, Iterable
from typing import Any, Final

import pyarrow as pa

from tests.support.traces.membership_mutations import Stay, name, stays
from tests.support.traces.mutations import (
    Log,
    Mutation,
    choice,
    ids,
    mid,
    process_of,
    renumbered,
    with_column,
)


def details(log: Log) -> list[Any]:
    """The detail of each row, read."""
    return [json.loads(text) if text else {} for text in log.table["detail"].to_pylist()]


def with_detail(log: Log, changed: dict[int, Any]) -> pa.Table:
    texts = log.table["detail"].to_pylist()
    for at, detail in changed.items():
        texts[at] = json.dumps(detail)
    return with_column(log.table, "detail", texts)


def without(log: Log, rows: Iterable[int]) -> pa.Table:
    gone = {*rows}
    return renumbered(log.table.filter(pa.array([at not in gone for at in range(len(log.rows))])))


def moved(log: Log, at: int, behind: int) -> pa.Table:
    """The row at one position is moved directly after another of its log."""
    order = [row for row in range(len(log.rows)) if row != at]
    order.insert(order.index(behind) + 1, at)
    times = log.table["time"].to_pylist()
    times[at] = times[behind]
    return renumbered(with_column(log.table, "time", times).take(pa.array(order)))


def inserted(log: Log, behind: int, source: int, view: str) -> pa.Table:
    """The process of one row delivers the message of another row, directly after it and in that view."""
    row = log.table.slice(source, 1)
    for column in ("process", "incarnation", "time"):
        row = with_column(row, column, [log.table[column][behind].as_py()])
    row = with_column(row, "view", [view])
    return renumbered(pa.concat_tables([log.table.slice(0, behind + 1), row, log.table.slice(behind + 1)]))


def entries(log: Log) -> list[Stay]:
    """The stays in first views of formed groups."""
    told = details(log)
    return [stay for stay in stays(log) if "classes" in told[stay.at]]


def states(log: Log, role: str) -> list[int]:
    told = details(log)
    return [at for at, row in enumerate(log.rows) if row["kind"] == "state" and told[at].get("role") == role]


# ------------------------------------------------------------------------------------ states


def _flip_state(log: Log, rng: random.Random, places: Iterable[int]) -> pa.Table | None:
    at = choice(rng, places)
    if at is None:
        return None
    digests = log.table["digest"].to_pylist()
    digests[at] ^= 1 << rng.randrange(50)
    return with_column(log.table, "digest", digests)


def another_snapshot(log: Log, rng: random.Random) -> pa.Table | None:
    """One of two members of a class hands over something else."""
    told, handed = details(log), dict[Any, list[int]]()
    for at in states(log, "snapshot"):
        handed.setdefault((log.rows[at]["view"], told[at]["class"]), []).append(at)
    return _flip_state(log, rng, (at for rows in handed.values() if len(rows) > 1 for at in rows))


def another_state(log: Log, rng: random.Random) -> pa.Table | None:
    """A process takes over a different state than was handed over."""
    told = details(log)
    handed = {(log.rows[at]["view"], told[at]["class"]) for at in states(log, "snapshot")}
    return _flip_state(
        log, rng, (at for at in states(log, "installed") if (log.rows[at]["view"], told[at]["class"]) in handed)
    )


def another_merge(log: Log, rng: random.Random) -> pa.Table | None:
    """A process merges to a different state: a joiner with one state, or one of several that merge the same."""
    told, taken = details(log), dict[Any, set[int]]()
    for at in states(log, "installed"):
        taken.setdefault((log.rows[at]["view"], process_of(log.rows[at])), set()).add(told[at]["class"])
    fresh = {(stay.view, stay.process) for stay in entries(log) if stay.before is None or _left_before(stay)}
    merges = {at: (log.rows[at]["view"], process_of(log.rows[at])) for at in states(log, "merged")}
    return _flip_state(log, rng, (at for at, key in merges.items() if key in fresh and len(taken.get(key, ())) == 1))


def _left_before(stay: Stay) -> bool:
    return stay.log.table["previous"][stay.at].as_py() is None


def forget_a_state(log: Log, rng: random.Random) -> pa.Table | None:
    """A process continues without the state of a class that stays in its view until the end."""
    stays = [stay for stay in entries(log) if not stay.next and log.last[stay.process]["kind"] == "stop"]
    at = choice(rng, [at for stay in stays for at in states(log, "installed") if _in_stay(stay, at)])
    return None if at is None else without(log, [at])


def deliver_before_the_state(log: Log, rng: random.Random) -> pa.Table | None:
    """The first delivery in a formed group comes before the state is complete."""
    places = []
    for at in states(log, "merged"):
        row = log.rows[at]
        for later in range(at + 1, len(log.rows)):
            other = log.rows[later]
            if process_of(other) != process_of(row) or other["kind"] in ("view", "send", "leave", "stable", "discard"):
                break
            if other["kind"] == "deliver":
                places.append((at, later))
                break
    place = choice(rng, places)
    return None if place is None else moved(log, place[0], place[1])


def wait_for_ever(log: Log, rng: random.Random) -> pa.Table | None:
    """A process that is present until the end never gets the states, and therefore delivers nothing."""
    places = []
    for stay in entries(log):
        rows = [at for at in states(log, "merged") + states(log, "installed") if _in_stay(stay, at)]
        last = log.last[stay.process]["kind"] == "stop" and not stay.next and not stay.rows("send", "leave", "deliver")
        if last and any(at in states(log, "installed") for at in rows):
            places.append(rows)
    place = choice(rng, places)
    return None if place is None else without(log, place)


def _in_stay(stay: Stay, at: int) -> bool:
    row = stay.log.rows[at]
    return process_of(row) == stay.process and row["view"] == stay.view


def deliver_a_message_of_the_state(log: Log, rng: random.Random) -> pa.Table | None:
    """A joiner delivers, as its first message, one that is in the state that it has taken over."""
    places = []
    for stay in entries(log):
        merges = [at for at in states(log, "merged") if _in_stay(stay, at)]
        if stay.before is not None or not merges or (stay.next and stay.next.at < merges[0]):
            continue
        for other in entries(log):
            if other.view == stay.view and other.before and other.log.table["previous"][other.at].as_py():
                places += [
                    (merges[0], source, stay.view)
                    for source in other.before.rows("deliver")
                    if name(mid(log.rows[source])[1:3]) in stay.members
                ]
    place = choice(rng, places)
    return None if place is None else inserted(log, *place)


def deliver_in_both(log: Log, rng: random.Random) -> pa.Table | None:
    """A process delivers a message of the predecessor in the successor again."""
    places = [
        (stay.at, source, stay.view)
        for stay in entries(log)
        if stay.before and not states(log, "snapshot") and not _left_before(stay)
        for source in stay.before.rows("deliver")
        if name(mid(log.rows[source])[1:3]) in stay.members
    ]
    places = places or [
        (first, source, stay.view)
        for stay in entries(log)
        if stay.before and not _left_before(stay)
        for first in stay.rows("deliver")[:1]
        for source in stay.before.rows("deliver")
        if name(mid(log.rows[source])[1:3]) in stay.members
    ]
    place = choice(rng, places)
    return None if place is None else inserted(log, *place)


def lose_a_moved_message(log: Log, rng: random.Random) -> pa.Table | None:
    """No process delivers the first message that a remaining process sends in the successor of a group."""
    ends = {stay.at for stay in stays(log) if not stay.next and log.last[stay.process]["kind"] == "stop"}
    moved_over = [stay.rows("send")[0] for stay in entries(log) if stay.rows("send") and stay.at in ends]
    at = choice(rng, (at for at in moved_over if not _leaves(log, process_of(log.rows[at]), at)))
    if at is None:
        return None
    return without(log, (row for row in log.deliveries() if mid(log.rows[row]) == mid(log.rows[at])))


def _leaves(log: Log, process: Any, after: int) -> bool:
    rows = (row for row in log.rows[after:] if process_of(row) == process)
    return any(row["kind"] == "leave" for row in rows)


# ------------------------------------------------------------------------------------ views


def join_unasked(log: Log, rng: random.Random) -> pa.Table | None:
    """A group takes in a process that had not asked to join."""
    process = choice(rng, (stay.process for stay in entries(log) if stay.before is None))
    if process is None:
        return None
    return without(log, (at for at, row in enumerate(log.rows) if row["kind"] == "join" and process_of(row) == process))


def other_classes(log: Log, rng: random.Random) -> pa.Table | None:
    """One of the processes with the same first view of a formed group merges two of its classes into one."""
    told = details(log)
    shared = [
        stay
        for stay in entries(log)
        if len(told[stay.at]["classes"]) > 1
        and any(other.view == stay.view and other.process != stay.process for other in entries(log))
    ]
    stay = choice(rng, shared)
    if stay is None:
        return None
    first, second, *rest = told[stay.at]["classes"]
    return with_detail(log, {stay.at: told[stay.at] | {"classes": [sorted(first + second), *rest]}})


def wrongly_alike(log: Log, rng: random.Random) -> pa.Table | None:
    """A view tells that two of its classes with states are alike, but they have not delivered the same."""
    told, digests, handed = details(log), log.table["digest"].to_pylist(), dict[Any, dict[int, int]]()
    for at in states(log, "snapshot"):
        handed.setdefault(log.rows[at]["view"], {})[told[at]["class"]] = digests[at]
    view = choice(rng, [view for view, found in handed.items() if len({*found.values()}) > 1])
    if view is None:
        return None
    alike = {"alike": [sorted(handed[view])]}
    return with_detail(log, {stay.at: told[stay.at] | alike for stay in entries(log) if stay.view == view})


def other_company(log: Log, rng: random.Random) -> pa.Table | None:
    """A process does not know that another one came from the same view to the formed group."""
    lists = log.table["transitional"].to_pylist()
    stay = choice(rng, (stay for stay in entries(log) if len(lists[stay.at]) > 1))
    if stay is None:
        return None
    lists[stay.at] = [other for other in lists[stay.at] if other == stay.me]
    return with_column(log.table, "transitional", lists)


def old_epoch(log: Log, rng: random.Random) -> pa.Table | None:
    """A formed group takes up the epoch of a view that it replaces."""
    stay = choice(rng, (stay for stay in entries(log) if stay.before and not _left_before(stay)))
    if stay is None or stay.before is None:
        return None
    view = f"{stay.before.view[:4]}.000999.99"
    columns = {column: log.table[column].to_pylist() for column in ("view", "previous")}
    table = log.table
    for column, values in columns.items():
        table = with_column(table, column, [view if value == stay.view else value for value in values])
    return table


def other_primary(log: Log, rng: random.Random) -> pa.Table | None:
    """All processes that install the first view of a formed group have a wrong primary flag."""
    told = details(log)
    stay = choice(rng, (stay for stay in entries(log) if _all_entered(log, stay)))
    if stay is None or not any('"closed"' in text for text in log.table["detail"].to_pylist()[:1]):
        return None
    same = [other.at for other in entries(log) if other.view == stay.view]
    return with_detail(log, {at: told[at] | {"primary": not told[at]["primary"]} for at in same})


def _all_entered(log: Log, stay: Stay) -> bool:
    return {other.me for other in stays(log) if other.view == stay.view} == stay.members


def deliver_of_the_removed(log: Log, rng: random.Random) -> pa.Table | None:
    """The last message of a removed member comes directly after the view without it."""
    places, begins = [], {stay.at for stay in entries(log)}
    for stay in stays(log):
        rows = stay.rows("deliver")
        if stay.next and stay.next.at not in begins and rows:
            gone = name(mid(log.rows[rows[-1]])[1:3]) not in stay.next.members
            between = range(rows[-1] + 1, stay.next.at)
            if gone and not any(log.rows[at]["kind"] in ("send", "stable", "discard") for at in between):
                places.append((rows[-1], stay.next))
    place = choice(rng, places)
    if place is None:
        return None
    views = log.table["view"].to_pylist()
    views[place[0]] = place[1].view
    edited = Log(with_column(log.table, "view", views))
    return moved(edited, place[0], place[1].at)


def deliver_after_leaving(log: Log, rng: random.Random) -> pa.Table | None:
    """A process that left delivers a message that another sends afterwards."""
    times, places = log.table["time"].to_pylist(), []
    for at, row in enumerate(log.rows):
        if row["kind"] == "leave":
            members = next(stay for stay in reversed(stays(log)) if stay.at < at and stay.process == process_of(row))
            places += [
                (at, source, members.view)
                for source in log.deliveries()
                if times[log.send_at.get(mid(log.rows[source]), 0)] > times[at]
                and name(mid(log.rows[source])[1:3]) in members.members
                and (process_of(row), mid(log.rows[source])) not in log.delivered_at
            ]
    place = choice(rng, places)
    return None if place is None else inserted(log, *place)


# ------------------------------------------------------------------------------------ incarnations


def reuse_a_view(log: Log, rng: random.Random) -> pa.Table | None:
    """A recovered process gives its first view the id of one of its earlier life."""
    places = [
        (stay, old)
        for stay in stays(log)
        for old in stays(log)
        if stay.process[1] > 0 and old.process == (stay.process[0], stay.process[1] - 1) and not stay.before
    ]
    place = choice(rng, places)
    if place is None:
        return None
    stay, old = place
    views, previous = log.table["view"].to_pylist(), log.table["previous"].to_pylist()
    for at, row in enumerate(log.rows):
        if process_of(row) == stay.process:
            views[at] = old.view if views[at] == stay.view else views[at]
            previous[at] = old.view if previous[at] == stay.view else previous[at]
    return with_column(with_column(log.table, "view", views), "previous", previous)


def reuse_numbers(log: Log, rng: random.Random) -> pa.Table | None:
    """A message of a recovered process has the name of one of its earlier life, which was delivered."""
    places = [
        at
        for at in log.deliveries()
        if log.rows[at]["sender_incarnation"] > 0
        and (process_of(log.rows[at]), _earlier(log.rows[at])) in log.delivered_at
    ]
    at = choice(rng, places)
    if at is None:
        return None
    incarnations = log.table["sender_incarnation"].to_pylist()
    incarnations[at] -= 1
    return with_column(log.table, "sender_incarnation", incarnations)


def _earlier(row: dict[str, Any]) -> tuple[str, str, int, int]:
    return row["group"], row["sender"], row["sender_incarnation"] - 1, row["number"]


def send_as_before(log: Log, rng: random.Random) -> pa.Table | None:
    """A recovered process sends in the name of its earlier life: a fault of the writer of the trace."""
    at = choice(rng, (at for at, row in enumerate(log.rows) if row["kind"] == "send" and row["incarnation"] > 0))
    if at is None:
        return None
    incarnations = log.table["sender_incarnation"].to_pylist()
    incarnations[at] -= 1
    return with_column(log.table, "sender_incarnation", incarnations)


# ------------------------------------------------------------------------------------ the end


def stay_apart(log: Log, _rng: random.Random) -> pa.Table | None:
    """Sides that look for each other, and are said to be connected, never find each other."""
    told = details(log)
    at = next(at for at, row in enumerate(log.rows) if row["kind"] == "faults_end")
    last = {stay.process: stay for stay in stays(log) if not _leaves(log, stay.process, stay.at)}
    sides = [side for side in told[at]["components"] if any(name(process) in side for process in last)]
    merging = any('"merge_every": "1us"' in (text or "") for text in log.table["detail"].to_pylist())
    if len(sides) < 2 or not merging:
        return None
    known = {frozenset(each) for each in _acquainted(log, last, sides)}
    if len(known) == len(sides):
        return None
    return with_detail(log, {at: {"components": [[member for side in told[at]["components"] for member in side]]}})


def _acquainted(log: Log, last: dict[Any, Stay], sides: list[list[str]]) -> list[set[str]]:
    """The sides; two sides with members that were once in one view are merged."""
    present = {member for side in sides for member in side if any(name(process) == member for process in last)}
    circles = [{*side} & present for side in sides]
    for stay in stays(log):
        if stay.me in present:
            circle = (stay.members & present) | {stay.me}
            touched = [each for each in circles if each & circle]
            circles = [each for each in circles if not each & circle] + [set[str]().union(circle, *touched)]
    return circles


Mutate = Callable[[Log, random.Random], pa.Table | None]

_OF_A_LOSS: Final = ids("D8", "D9", "O2", "O4", "S2", "S4", "F3", "L2", "L4")
_OF_A_SURPLUS: Final = ids("D4", "D5", "D5w", "D6", "D8", "D9", "D10", "O1", "O2", "O3", "O4", "O5", "O6", "O8", "S2")
_OF_A_VIEW: Final = ids(
    *"M2 M4 M5 M6 M6e M7 M8 M11 D4 D5 D5w D6 D8 D9 D12 F3 L1 L2 L4 L5 L6 L8 O2 O4 O5 S1 S2 S4".split()
)

CHANGING_MUTATIONS: Final = (
    Mutation("one of a class hands over another state", another_snapshot, (ids("D12"),)),
    Mutation("another state is taken over than was handed over", another_state, (ids("D12"),)),
    Mutation("a joiner has another state than it took over", another_merge, (ids("D12"),)),
    Mutation("a state is not taken over", forget_a_state, (ids("D12"),)),
    Mutation("a delivery before the state", deliver_before_the_state, (ids("D12"),)),
    Mutation("wait for a state for ever", wait_for_ever, (ids("D12"),)),
    Mutation("deliver what the state has", deliver_a_message_of_the_state, (ids("D12"),), _OF_A_SURPLUS),
    Mutation(
        "deliver in the predecessor and in the successor", deliver_in_both, (ids("D2"),), ids("D12", "O1", "O6", "O8")
    ),
    Mutation("lose what was moved to the successor", lose_a_moved_message, (ids("L3"),), _OF_A_LOSS),
    Mutation("admit a process that had not asked", join_unasked, (ids("M3"), ids("M10"))),
    Mutation("other classes at one member", other_classes, (ids("M4"),), ids("M8", "D12", "M11")),
    Mutation("classes that differ are told to be alike", wrongly_alike, (ids("D12"),)),
    Mutation("a wrong transitional set", other_company, (ids("M8"),), ids("O2", "O4")),
    Mutation("a formed group of an old epoch", old_epoch, (ids("M9"),), ids("M2")),
    Mutation("wrongly primary", other_primary, (ids("M11"),)),
    Mutation("deliver of the removed", deliver_of_the_removed, (ids("D10"), ids("D4")), _OF_A_SURPLUS),
    Mutation("deliver after leaving", deliver_after_leaving, (ids("D3"),), _OF_A_SURPLUS | ids("D1", "D12")),
    Mutation(
        "a recovered process reuses a view", reuse_a_view, (ids("R2"),), _OF_A_VIEW | ids("M1", "M3", "M9", "M10")
    ),
    Mutation(
        "a recovered process reuses its numbers",
        reuse_numbers,
        (ids("D1"), ids("D2")),
        _OF_A_LOSS | _OF_A_SURPLUS | ids("D12", "L3"),
    ),
    Mutation("a recovered process sends as before", send_as_before, (ids("harness error"),)),
    Mutation("connected sides stay apart", stay_apart, (ids("L1"),), ids("M5", "M6e", "D8")),
)
"""The faults of groups that change."""
