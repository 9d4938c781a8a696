"""Faults seeded into simulated runs of InterGroup (docs/spec/properties.md 9), as in `mutations.py`.

Some processes are in the sender group, whose views name the senders. Others, the onlookers, only receive, and their own
views name the senders that they hear. Each process chose its service, so a fault fits one side and some services.
"""

import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from antiphon.scenario.units import Duration
from tests.support.traces.membership_mutations import Stay, stays, with_members, with_view
from tests.support.traces.mutations import (
    Log,
    Mutate,
    Mutation,
    Place,
    Row,
    choice,
    drop,
    ids,
    insert,
    mid,
    of_two_senders,
    renumbered,
    swap,
    with_column,
)
from tests.support.traces.stability_mutations import (
    additions,
    discard_before_stable,
    lower_a_mark,
    rows_of,
    stable_before_the_slowest,
    story_of,
    with_detail,
    without,
)

Side = Literal["sender", "onlooker", "any"]


_FIFO: Final = ("fifo",)
_TOTAL: Final = ("total",)
_RELIABLE: Final = ("fifo", "total")
_ORDERED: Final = ("total", "unreliable-total")
_UNRELIABLE: Final = ("unreliable", "unreliable-fifo", "unreliable-total")
_ONCE: Final = ("fifo", "total", "unreliable-fifo", "unreliable-total")
_ALL: Final = (*_RELIABLE, *_UNRELIABLE)


class Scene:
    """The roles of the processes of a run, those present at the end, and the views of each."""

    def __init__(self, log: Log) -> None:
        self.log, self.rows = log, story_of(log)
        self.side: dict[str, Side] = {}
        self.service: dict[str, str] = {}
        self.sources: dict[str, list[str]] = {}
        for _, row in rows_of(self.rows, "start"):
            told = json.loads(row["detail"])["groups"]["g"]
            self.side[row["process"]] = "onlooker" if told.get("role") == "receiver" else "sender"
            self.service[row["process"]] = told["service"]
            self.sources[row["process"]] = told.get("sources") or []
        self.options: dict[str, Any] = json.loads(next(rows_of(self.rows, "start"))[1]["detail"])["options"]
        self.components: list[list[str]] = []
        if any(json.loads(row["detail"])["quiet"] for _, row in rows_of(self.rows, "end")):
            self.components = json.loads(next(rows_of(self.rows, "faults_end"))[1]["detail"])["components"]

    @cached_property
    def stays(self) -> list[Stay]:
        return stays(self.log)

    @cached_property
    def lasting(self) -> set[str]:
        """The processes that owe something at the end: present, and in a view."""
        moves = {row["process"]: row["kind"] for _, row in rows_of(self.rows, "join", "leave", "view", "crash")}
        component = max(self.components, key=len, default=[])
        return {process for process in component if moves.get(process) == "view"}

    def chosen(self, side: Side, services: Iterable[str]) -> set[str]:
        return {
            process
            for process, its in self.side.items()
            if side in (its, "any") and self.service[process] in {*services}
        }

    @cached_property
    def last_stay(self) -> dict[str, Stay]:
        return {stay.me: stay for stay in self.stays}

    def deliveries(self, chosen: set[str]) -> Iterator[int]:
        return (at for at in self.log.deliveries() if self.rows[at]["process"] in chosen)

    def runs(self, chosen: set[str]) -> list[list[int]]:
        """The deliveries of each process of each sender in each view, in order."""
        runs: dict[Any, list[int]] = {}
        for at in self.deliveries(chosen):
            row = self.rows[at]
            runs.setdefault((row["process"], row["sender"], row["view"]), []).append(at)
        return [*runs.values()]

    def sent_at(self, row: Row) -> int:
        """When the message of a row was sent."""
        return int(self.rows[self.log.send_at[mid(row)]]["time"])

    def is_owed(self, row: Row) -> bool:
        """A delivery that its process owes at the end: of a sender that is there, and if it only receives, sent late.

        Late: after it got to its last view.
        """
        process, last = row["process"], self.last_stay[row["process"]]
        there = {process, row["sender"]} <= self.lasting and row["view"] == last.view
        return there and (self.side[process] == "sender" or self.sent_at(row) > self.rows[last.at]["time"])

    def was_handed_last(self, process: str, message: tuple[str, str, int, int]) -> bool:
        """It delivered that message in its last view."""
        at = self.log.delivered_at.get(((process, 0), message))
        return at is not None and self.rows[at]["view"] == self.last_stay[process].view


Fault = Callable[[Scene, random.Random, set[str]], pa.Table | None]


# -------------------------------------------------------------------------------- order


def _swappable(scene: Scene, chosen: set[str], places: Iterable[Place]) -> Iterator[Place]:
    """The rows of these processes. A process held to one order is judged alone unless another one saw both messages."""
    ordered = scene.chosen("any", _ORDERED)
    for place in places:
        process = scene.rows[place[0]]["process"]
        both = set.intersection(*({other for other, _ in scene.log.deliverers[mid(scene.rows[at])]} for at in place))
        if process in chosen and (process not in ordered or both & ordered - {process}):
            yield place


def _swap_one_sender(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    return swap(scene.log, rng, _swappable(scene, chosen, scene.log.neighbours(of_one_sender=True)))


def _swap_two_senders(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    return swap(scene.log, rng, _swappable(scene, chosen, of_two_senders(scene.log)))


def _swap_cause_and_effect(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    return swap(scene.log, rng, filter(scene.log.directly_causes, _swappable(scene, chosen, of_two_senders(scene.log))))


def _drop_in_the_middle(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    """The second of three messages of one sender in one view."""
    return drop(scene.log, rng, (at for run in scene.runs(chosen) for at in run[1:-1]))


def _drop_a_middle_owed(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    """A message that another process with the same service delivers too, both until the end."""
    log = scene.log
    shared = (
        at
        for run in scene.runs(chosen & scene.lasting)
        for at in run[1:-1]
        if scene.is_owed(scene.rows[at])
        and any(
            other[0] in chosen - {scene.rows[at]["process"]} & scene.lasting
            for other in log.deliverers[mid(scene.rows[at])]
        )
    )
    return drop(log, rng, shared)


def _drop_the_first(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    """The first message that a sender sent after an onlooker had got to a view with it for the first time."""
    known: dict[str, set[str]] = {}
    places = []
    for stay in scene.stays:
        new = stay.members - (known.get(stay.me, set()) if stay.before else set())
        known[stay.me] = {*stay.members}
        since = scene.rows[stay.at]["time"]
        if stay.me not in chosen:
            continue
        for sender in new:
            of_it = [at for at in stay.rows("deliver") if scene.rows[at]["sender"] == sender]
            late = [at for at in of_it if scene.sent_at(scene.rows[at]) > since]
            places += late[:1] if len(late) > 1 and late == of_it else []
    return drop(scene.log, rng, places)


def _drop_the_last(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    """The last deliveries of a sender, up to three, that are owed at the end."""
    runs = [run for run in scene.runs(chosen) if scene.is_owed(scene.rows[run[-1]])]
    run = choice(rng, (run for run in runs if not scene.log.followed_by_its_sender(run[-1])))
    if run is None:
        return None
    tail = [at for at in run[-rng.randint(1, 3) :] if scene.is_owed(scene.rows[at])]
    return without(scene.log, *tail)


def _drop_the_last_own(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    own = {scene.rows[at]["process"]: at for at in scene.deliveries(chosen) if _is_own(scene.rows[at])}
    return drop(scene.log, rng, (at for process, at in own.items() if process in scene.lasting))


def _is_own(row: Row) -> bool:
    return bool(row["sender"] == row["process"])


def _drop_any(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    return drop(scene.log, rng, scene.deliveries(chosen))


# -------------------------------------------------------------------------------- delivery


def _deliver_twice(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    at = choice(rng, scene.deliveries(chosen))
    return None if at is None else insert(scene.log.table, at, scene.log.table.slice(at, 1))


def _deliver_forged(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    """A crashed sender may have sent more than its log tells."""
    at = choice(rng, (at for at in scene.deliveries(chosen) if not scene.log.crashed(mid(scene.rows[at])[1:3])))
    if at is None:
        return None
    numbers = [row["number"] for _, row in rows_of(scene.rows, "send")]
    return insert(scene.log.table, at, with_column(scene.log.table.slice(at, 1), "number", [max(numbers) + 1]))


def _flip_digest(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    at = choice(rng, scene.deliveries(chosen))
    if at is None:
        return None
    digests = scene.log.table["digest"].to_pylist()
    digests[at] ^= 1 << rng.randrange(63)
    return with_column(scene.log.table, "digest", digests)


def _deliver_with_another_service(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    at = choice(rng, scene.deliveries(chosen))
    if at is None:
        return None
    services = scene.log.table["service"].to_pylist()
    services[at] = "fifo" if services[at] != "fifo" else "total"
    return with_column(scene.log.table, "service", services)


def _deliver_before_the_view(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    """The first delivery of all, moved to before the first view."""
    places = []
    for stay in scene.stays:
        delivered = stay.rows("deliver")
        if stay.me in chosen and not stay.before and delivered:
            places.append((delivered[0], stay.at - 1))
    place = choice(rng, places)
    return None if place is None else _moved(scene.log, *place)


def _deliver_after_the_leave(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    """The last delivery before a leave, moved to after it."""
    places = []
    for at, row in rows_of(scene.rows, "leave"):
        before = [each for each in scene.deliveries({row["process"]} & chosen) if each < at]
        places += [(before[-1], at)] if before and scene.rows[before[-1]]["view"] == row["view"] else []
    place = choice(rng, places)
    return None if place is None else _moved(scene.log, *place)


def _moved(log: Log, at: int, behind: int) -> pa.Table:
    """The row at one place moved after another one of its process, at its time."""
    order = [each for each in range(len(log.rows)) if each != at]
    order.insert(order.index(behind) + 1, at)
    times = log.table["time"].to_pylist()
    times[at] = times[behind]
    return renumbered(with_column(log.table, "time", times).take(pa.array(order)))


# -------------------------------------------------------------------------------- views


def _without_self(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    stay = choice(rng, (stay for stay in scene.stays if stay.me in chosen))
    return None if stay is None else with_members(scene.log, stay, stay.members - {stay.me})


def _another_membership(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    """Of the processes that share a view, with total order, one says that a member was not in it."""
    views: dict[str, set[str]] = {}
    for stay in scene.stays:
        if stay.me in scene.chosen("sender", ["total"]) | scene.chosen("onlooker", ["total"]):
            views.setdefault(stay.view, set()).add(stay.me)
    shared = (stay for stay in scene.stays if stay.me in chosen and len(views[stay.view]) > 1)
    place = choice(rng, ((stay, other) for stay in shared for other in sorted(stay.members - {stay.me})))
    return None if place is None else with_members(scene.log, place[0], place[0].members - {place[1]})


def _repeat_an_id(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    stay = choice(rng, (stay for stay in scene.stays if stay.me in chosen and stay.before))
    return None if stay is None or stay.before is None else with_view(scene.log, stay, stay.before.view)


def _without_a_sender(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    """The view lacks a process whose messages are delivered in it."""
    heard = (
        (stay, sorted({scene.rows[at]["sender"] for at in stay.rows("deliver")} - {stay.me}))
        for stay in scene.stays
        if stay.me in chosen
    )
    place = choice(rng, ((stay, senders) for stay, senders in heard if senders))
    return None if place is None else with_members(scene.log, place[0], place[0].members - {rng.choice(place[1])})


def _never_a_view(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    """A receive-only process that is present until the end, as is its chosen sender: remove all that it did."""
    senders = scene.lasting & {process for process, side in scene.side.items() if side == "sender"}
    wanting = {each for each in chosen & scene.lasting if senders & {*(scene.sources[each] or senders)}}
    process = choice(rng, sorted(wanting))
    if process is None:
        return None
    kinds = ("view", "deliver", "stable", "discard", "receive", "transmit", "join", "leave")
    return without(scene.log, *(at for at, row in rows_of(scene.rows, *kinds) if row["process"] == process))


def _gone_at_once(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    """In place of a message an onlooker is told that it is gone: it ends there, with a view of its own."""
    places = [at for each in sorted(chosen & _unhindered(scene)) for at in _first_in_doubt(scene, each)]
    at = choice(rng, places)
    if at is None:
        return None
    table, last = scene.log.table, scene.last_stay[scene.rows[at]["process"]]
    told = json.dumps({"frame": None, "type": "gone"})
    gone = with_column(with_column(table.slice(at, 1), "number", [None]), "detail", [told])
    view = with_column(table.slice(last.at, 1), "time", [scene.rows[at]["time"]])
    for name, value in {"members": [last.me], "view": f"{last.view}~", "previous": last.view}.items():
        view = with_column(view, name, [value])
    over = [each for each in range(at, len(scene.rows)) if scene.rows[each]["process"] == last.me][:-1]  # but its stop
    kept = np.setdiff1d(np.arange(at, len(scene.rows)), over)
    return renumbered(pa.concat_tables([table.slice(0, at), gone, view, table.take(pa.array(kept))]))


def _unhindered(scene: Scene) -> set[str]:
    """Onlookers without any fault, in runs where no sender and no link had a fault either."""
    senders = {each for each, side in scene.side.items() if side == "sender"}
    faults = [json.loads(row["detail"]) for _, row in rows_of(scene.rows, "fault")]
    struck = [fault.get("process") for fault in faults if fault["kind"] not in ("join", "leave")]
    if not senders.isdisjoint(struck) or None in struck:
        return set()
    return {each for each in scene.lasting - {*struck} if scene.last_stay[each].members - {each}}


def _first_in_doubt(scene: Scene, process: str) -> list[int]:
    """Receipts soon after it began, and after a report of it: no sender may have stopped waiting for it by then."""
    suspicion = Duration.parse(scene.options["suspect_after"])
    stay = scene.last_stay[process]
    begun = scene.rows[stay.at]["time"]
    joined = [row["time"] for _, row in rows_of(scene.rows, "join") if row["process"] == process]
    if begun - max(joined, default=0) > suspicion:
        return []  # earlier messages may have been missing for a long time
    soon = [at for at in stay.rows("receive") if scene.rows[at]["time"] <= begun + suspicion // 2]
    return [at for at in soon if scene.rows[at]["number"] is not None and scene.rows[at]["sender"] in stay.members]


# -------------------------------------------------------------------------------- stability


def _stable_early(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    return stable_before_the_slowest(scene.log, rng, chosen)


def _lower_a_mark(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    return lower_a_mark(scene.log, rng, chosen)


def _discard_early(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    return discard_before_stable(scene.log, rng, chosen)


def _drop_a_receipt(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    """All receipts of a message, at one of the senders, that one of these calls stable while in a view with it."""
    crashed = {row["process"] for _, row in rows_of(scene.rows, "crash")}
    places = []
    for at, sender, before, number in additions(scene.rows, "stable"):
        if scene.rows[at]["process"] in chosen and scene.side[scene.rows[at]["process"]] == "sender":
            members = {each for each, side in scene.side.items() if side == "sender"} - crashed - {sender}
            places += [(member, sender, each) for member in members for each in range(before + 1, number + 1)]
    place = choice(rng, sorted(places))
    if place is None:
        return None
    receipts = rows_of(scene.rows, "receive")
    return without(scene.log, *(at for at, row in receipts if (row["process"], row["sender"], row["number"]) == place))


def _acknowledge_without(scene: Scene, rng: random.Random, chosen: set[str], *, the_reader: bool) -> pa.Table | None:
    """An acknowledgment that one of these reads lacks it, or another member that is not its author either."""
    left = {
        json.loads(row["detail"])["frame"]: at
        for at, row in rows_of(scene.rows, "transmit")
        if "senders" in row["detail"]
    }
    places = []
    for _, row in rows_of(scene.rows, "receive"):
        at = left.get(json.loads(row["detail"])["frame"])
        if at is not None and row["process"] in chosen and row["peer"] == row["sender"] == scene.rows[at]["process"]:
            others = {*json.loads(scene.rows[at]["detail"])["senders"]} - {row["process"], row["sender"]}
            places += [(at, other) for other in ([row["process"]] if the_reader else sorted(others))]
    place = choice(rng, places)
    return None if place is None else with_detail(scene.log, place[0], lambda told: told["senders"].remove(place[1]))


def _acknowledge_without_the_reader(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    return _acknowledge_without(scene, rng, chosen, the_reader=True)


def _acknowledge_without_another(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    return _acknowledge_without(scene, rng, chosen, the_reader=False)


def _beyond_the_window(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    """A report of own messages is missing, without which a later send has too many unstable ones before it."""
    window, places = scene.options["window"], []
    own = [added for added in additions(scene.rows, "stable") if added[1] == scene.rows[added[0]]["process"]]
    for at, sender, before, _ in own:
        following = [later for later, other, _, _ in own if other == sender and later > at]
        end = following[0] if following else len(scene.rows)
        sent = [
            row["number"] for place, row in rows_of(scene.rows, "send") if row["process"] == sender and at < place < end
        ]
        if sender in chosen and any(number - before > window for number in sent):
            places.append(at)
    at_last = choice(rng, places)
    return None if at_last is None else without(scene.log, at_last)


# -------------------------------------------------------------------------------- the end


def _last_marks(scene: Scene, kind: str, chosen: set[str]) -> list[int]:
    """The rows that raise the marks of senders to their final values, at processes that are present at the end.

    Only for messages that are owed there. An onlooker must free every message delivered in its last view.
    """
    last = {(scene.rows[at]["process"], sender): (at, number) for at, sender, _, number in additions(scene.rows, kind)}
    found = []
    for (process, sender), (at, number) in last.items():
        told = {"process": process, "sender": sender, "view": scene.rows[at]["view"]}
        message = {**told, "group": "g", "sender_incarnation": 0, "number": number}
        freed = kind == "discard" and process in scene.lasting and scene.was_handed_last(process, mid(message))
        if process in chosen and (freed or scene.is_owed(message)):
            found.append(at)
    return found


def _drop_the_last_stable(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    at = choice(rng, _last_marks(scene, "stable", chosen))
    return None if at is None else without(scene.log, at)


def _drop_the_last_discard(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    at = choice(rng, _last_marks(scene, "discard", chosen))
    return None if at is None else without(scene.log, at)


def _hold_at_the_end(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    stops = (at for at, row in rows_of(scene.rows, "stop") if row["process"] in chosen & scene.lasting)
    at = choice(rng, stops)
    return None if at is None else with_detail(scene.log, at, lambda told: told.update(held={"g": 1}))


def _silent_for_long(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    """All that an unhindered process transmits in a while."""
    hindered = {json.loads(row["detail"]).get("process") for _, row in rows_of(scene.rows, "fault")}
    period = scene.options["keep_alive"].get("high", scene.options["keep_alive"].get("value"))
    lives = {(row["process"], row["incarnation"]) for row in scene.rows}
    turn = Duration.parse(scene.options["report_every"]) * len(lives)
    question = Duration.parse(scene.options["suspect_after"]) // 2  # a process that joins asks once in this time
    bound = 2 * (max(Duration.parse(period), turn) + question)
    said: dict[str, list[int]] = {}
    for at, row in rows_of(scene.rows, "transmit"):
        said.setdefault(row["process"], []).append(at)
    places = []
    for process in sorted(chosen & scene.lasting - hindered):
        times = [scene.rows[at]["time"] for at in said.get(process, [])]
        since = scene.rows[scene.last_stay[process].at]["time"]
        for first, time in enumerate(times):
            last = int(np.searchsorted(times, time + bound, side="right"))
            if time >= since and last < len(times) and (len(scene.last_stay[process].members - {process}) > 0):
                places.append(said[process][first + 1 : last])
    place = choice(rng, places)
    return None if place is None else without(scene.log, *place)


def _drop_the_last_unblock(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    last = {row["process"]: at for at, row in rows_of(scene.rows, "unblock")}
    at = choice(rng, (at for process, at in last.items() if process in chosen & scene.lasting))
    return None if at is None else without(scene.log, at)


def _forget_a_request(scene: Scene, rng: random.Random, chosen: set[str]) -> pa.Table | None:
    """One that was once blocked stops with a request that never left."""
    blocked = {row["process"] for _, row in rows_of(scene.rows, "block")} & chosen & scene.lasting
    at = choice(rng, (at for at, row in rows_of(scene.rows, "stop") if row["process"] in blocked))
    return None if at is None else with_detail(scene.log, at, lambda told: told.update(waiting={"g": 1}))


# -------------------------------------------------------------------------------- all of them


@dataclass(frozen=True)
class _Row:
    """A fault at one side, with some services, and the properties that it must and may raise."""

    name: str
    fault: Fault
    side: Side
    services: tuple[str, ...]
    one_of: tuple[frozenset[str], ...]
    also: frozenset[str] = frozenset()

    @property
    def mutation(self) -> Mutation:
        services = "whatever it chose" if self.services == _ALL else " or ".join(self.services)
        return Mutation(f"{self.name} ({self.side}, {services})", _placed(self), self.one_of, self.also)


@lru_cache(maxsize=128)
def _scene_of(log: Log) -> Scene:
    """Read once for all faults that are seeded into it."""
    return Scene(log)


def _placed(row: _Row) -> Mutate:
    def apply(log: Log, rng: random.Random) -> pa.Table | None:
        scene = _scene_of(log)
        return row.fault(scene, rng, scene.chosen(row.side, row.services))

    return apply


_SIDES: Final[tuple[Side, ...]] = ("sender", "onlooker")
_OF_A_LOSS: Final = ids("D8", "O4", "F3", "L2", "L3", "L4")
"""Properties that a missing delivery may break too."""
_OF_A_VIEW: Final = ids(
    *("M3", "M4", "M6e", "M7", "M8", "M10", "D4", "D5w", "D8", "D9", "O2", "O4", "O5", "S1"),
    *("L1", "L2", "L4", "L5", "L6", "L8", "L10"),
)
"""Properties that a view with other members may break too."""


def _rows() -> Iterator[_Row]:
    yield from _of_order()
    yield from _of_delivery()
    yield from _of_views()
    yield from _of_stability()
    yield from _of_the_end()


def _of_order() -> Iterator[_Row]:
    swaps, late = (ids("O1"), ids("O6"), ids("O8")), ids("O2", "O3", "O5")
    yield _Row("swap two deliveries of one sender", _swap_one_sender, "sender", _FIFO, (ids("O1"), ids("O2")))
    yield _Row("swap two deliveries of one sender", _swap_one_sender, "onlooker", _FIFO, (ids("O1"),), ids("O2"))
    for side in _SIDES:
        yield _Row("swap two deliveries of one sender", _swap_one_sender, side, _TOTAL, swaps, late)
        yield _Row("swap two deliveries of two senders", _swap_two_senders, side, _ORDERED, swaps[1:], ids("O3", "O5"))
        yield _Row("swap cause and effect", _swap_cause_and_effect, side, _ORDERED, (ids("O3"), *swaps[1:]), ids("O5"))
        yield _Row("drop a delivery in the middle", _drop_in_the_middle, side, _RELIABLE, (ids("O2"),), _OF_A_LOSS)
    yield _Row("swap two deliveries of one sender", _swap_one_sender, "any", ("unreliable-fifo",), (ids("O1"),))
    yield _Row("swap two deliveries of one sender", _swap_one_sender, "any", ("unreliable",), ())
    yield _Row("swap two deliveries of two senders", _swap_two_senders, "any", ("fifo", "unreliable-fifo"), ())
    yield _Row("drop a delivery", _drop_any, "any", _UNRELIABLE, ())
    yield _Row("drop what others deliver", _drop_a_middle_owed, "sender", _TOTAL, (ids("O2"), ids("D8")), _OF_A_LOSS)
    yield _Row("drop the first of a new view", _drop_the_first, "onlooker", _RELIABLE, (ids("O2"),), _OF_A_LOSS)


def _of_delivery() -> Iterator[_Row]:
    for side in _SIDES:
        yield _Row("deliver twice", _deliver_twice, side, _ONCE, (ids("D2"),))
        yield _Row("deliver an unsent message", _deliver_forged, side, _ALL, (ids("D1"),), ids("D8"))
        yield _Row("flip a bit of a digest", _flip_digest, side, _ALL, (ids("D1"),))
        yield _Row("deliver with another service", _deliver_with_another_service, side, _ALL, (ids("D3"),))
        yield _Row("deliver before the first view", _deliver_before_the_view, side, _ALL, (ids("harness error"),))
    yield _Row("deliver twice", _deliver_twice, "any", ("unreliable",), ())
    yield _Row("deliver after the leave", _deliver_after_the_leave, "onlooker", _ALL, (ids("D3"),), ids("O2", "O4"))


def _of_views() -> Iterator[_Row]:
    for side in _SIDES:
        yield _Row("one id with two memberships", _another_membership, side, _TOTAL, (ids("M4"),), _OF_A_VIEW)
        yield _Row("view without a sender", _without_a_sender, side, _RELIABLE, (ids("D4"),), _OF_A_VIEW)
    yield _Row("view without self", _without_self, "sender", _RELIABLE, (ids("M1"),), _OF_A_VIEW)
    yield _Row("repeat a view id", _repeat_an_id, "onlooker", _RELIABLE, (ids("M2"),), _OF_A_VIEW)
    yield _Row("gone at once", _gone_at_once, "onlooker", _RELIABLE, (ids("L9"),), _OF_A_VIEW | ids("F3"))
    yield _Row("never a view", _never_a_view, "onlooker", _RELIABLE, (ids("L2"),))


def _of_stability() -> Iterator[_Row]:
    for side in _SIDES:
        yield _Row("stable before the slowest receive", _stable_early, side, _RELIABLE, (ids("S1"),))
        yield _Row("lower a stable mark", _lower_a_mark, side, _RELIABLE, (ids("S2"),))
        yield _Row("discard before stable", _discard_early, side, _RELIABLE, (ids("S4"),))
    yield _Row("drop a receipt", _drop_a_receipt, "sender", _RELIABLE, (ids("S1"),), ids("L8"))
    yield _Row("acknowledge without the reader", _acknowledge_without_the_reader, "sender", _TOTAL, (ids("S5"),))
    yield _Row("acknowledge without another", _acknowledge_without_another, "sender", _TOTAL, (ids("S5"),))
    yield _Row("beyond the window", _beyond_the_window, "sender", _RELIABLE, (ids("F1"),), ids("S2", "S4", "L6"))


def _of_the_end() -> Iterator[_Row]:
    unmarked = ids("S2", "S4", "F1")
    for side in _SIDES:
        yield _Row("drop the last deliveries", _drop_the_last, side, _RELIABLE, (ids("L2"),), _OF_A_LOSS)
        yield _Row("drop the last stable row", _drop_the_last_stable, side, _RELIABLE, (ids("L6"),), unmarked)
        yield _Row("drop the last discard row", _drop_the_last_discard, side, _RELIABLE, (ids("L8"),))
        yield _Row("silent for long", _silent_for_long, side, _RELIABLE, (ids("L10"),))
    yield _Row("drop the last own delivery", _drop_the_last_own, "sender", _RELIABLE, (ids("L3"),), _OF_A_LOSS)
    yield _Row("hold at the end", _hold_at_the_end, "onlooker", _FIFO, (ids("L8"),))
    yield _Row("drop the last unblock", _drop_the_last_unblock, "sender", _RELIABLE, (ids("L7"),))
    yield _Row("forget a request that waited", _forget_a_request, "sender", _RELIABLE, (ids("F3"),), ids("L3"))


INTERGROUP_MUTATIONS: Final = tuple(row.mutation for row in _rows())
"""Each with the side and the services at which it is seeded."""
