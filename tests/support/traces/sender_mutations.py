"""Faults seeded into runs of InterGroup in which the sender group changes (docs/spec/properties.md 9).

Like `membership_mutations.py`. The runs are those of `tests/support/changing_senders.py`: all processes get the group
timestamp order, so every promise about views holds. A view row tells whether its process only receives in that view.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from typing import Any, Final

import pyarrow as pa

from antiphon.properties.judge import judge
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table
from tests.support.changing_senders import CHANGING_SENDERS
from tests.support.traces.changing_mutations import details, with_detail, without
from tests.support.traces.membership_mutations import (
    Stay,
    drop_the_last,
    move_across,
    name,
    stays,
    together,
    with_members,
    with_view,
)
from tests.support.traces.mutations import Log, Mutation, choice, drop, ids, mid, process_of, with_column


@lru_cache(maxsize=128)
def changing_senders_trace(seed: int) -> pa.Table:
    """A run in which the sender group changes; that it is good is for its campaign to tell."""
    run = simulate(CHANGING_SENDERS.draw(seed))
    return events_table(run.id, run.histories)


class Scene:
    """The views of a run, and the role of their process in each."""

    def __init__(self, log: Log) -> None:
        self.log, self.told = log, details(log)
        self.stays = stays(log)
        self._receives = {stay.at for stay in self.stays if self.told[stay.at].get("role") == "receiver"}
        world = [self.told[at] for at, row in enumerate(log.rows) if row["kind"] in ("faults_end", "end")]
        facts: dict[str, Any] = {key: value for each in world for key, value in each.items()}
        self.components: list[set[str]] = [{*each} for each in facts.get("components", ())] if facts["quiet"] else []

    def sends(self, stay: Stay | None) -> bool:
        return stay is not None and stay.at not in self._receives

    def installed(self, stay: Stay) -> list[Stay]:
        """The stays of all processes in the view of the stay."""
        return [other for other in self.stays if other.view == stay.view]

    def last_of(self, component: set[str]) -> list[Stay]:
        """The last stays of its processes, if they are in the group until the end."""
        return [stay for stay in self.stays if not stay.next and stay.me in component and not stay.rows("leave")]

    def rows(self, *kinds: str) -> list[int]:
        return [at for at, row in enumerate(self.log.rows) if row["kind"] in kinds]


Fault = Callable[[Scene, random.Random], pa.Table | None]


# -------------------------------------------------------------------------------- views


def _without_self(scene: Scene, rng: random.Random) -> pa.Table | None:
    """A process that was a sender from the start."""
    first = {stay.process for stay in scene.stays if not stay.before and scene.sends(stay)}
    stay = choice(rng, (stay for stay in scene.stays if stay.process in first and scene.sends(stay)))
    return None if stay is None else with_members(scene.log, stay, stay.members - {stay.me})


def _role_untold(scene: Scene, rng: random.Random) -> pa.Table | None:
    """The view of a process that was a sender before, and is a receiver, does not say so."""
    first = {stay.process for stay in scene.stays if not stay.before and scene.sends(stay)}
    shared = (stay for stay in scene.stays if stay.me not in stay.members)
    stay = choice(rng, (stay for stay in shared if stay.process in first and not scene.sends(stay)))
    if stay is None:
        return None
    told = {key: value for key, value in scene.told[stay.at].items() if key != "role"}
    return with_detail(scene.log, {stay.at: told})


def _repeated(scene: Scene, rng: random.Random) -> pa.Table | None:
    stay = choice(rng, (stay for stay in scene.stays if stay.before and scene.sends(stay)))
    return None if stay is None or stay.before is None else with_view(scene.log, stay, stay.before.view)


def _another_membership(scene: Scene, rng: random.Random, *, sends: bool) -> pa.Table | None:
    """Of the processes that share a view, one says that another member was not in it."""
    shared = [stay for stay in scene.stays if scene.sends(stay) == sends and len(scene.installed(stay)) > 1]
    place = choice(rng, ((stay, other) for stay in shared for other in sorted(stay.members - {stay.me})))
    return None if place is None else with_members(scene.log, place[0], place[0].members - {place[1]})


def _one_membership_for_a_sender(scene: Scene, rng: random.Random) -> pa.Table | None:
    return _another_membership(scene, rng, sends=True)


def _one_membership_for_a_receiver(scene: Scene, rng: random.Random) -> pa.Table | None:
    return _another_membership(scene, rng, sends=False)


def _another_division(scene: Scene, rng: random.Random) -> pa.Table | None:
    """One of the processes that merge says that all came from one epoch."""
    merged = (
        stay
        for stay in scene.stays
        if len(scene.told[stay.at].get("classes", ())) > 1 and len(scene.installed(stay)) > 1
    )
    stay = choice(rng, merged)
    if stay is None:
        return None
    return with_detail(scene.log, {stay.at: scene.told[stay.at] | {"classes": [sorted(stay.members)]}})


def _of_senders(scene: Scene) -> Iterator[Stay]:
    """The stays of senders that go on to the same next view as another sender."""
    for stay, others in together(scene.log):
        companions = [each for each in others if scene.sends(each) and scene.sends(each.next)]
        if stay.next is None or not scene.sends(stay) or not scene.sends(stay.next):
            continue
        if any(each.me in stay.next.members for each in companions):
            yield stay


def _from_another_view(scene: Scene, rng: random.Random) -> pa.Table | None:
    """One of the processes that go on together, when a sender was added or left, was in a view of its own before."""
    stay = choice(rng, (stay for stay in _of_senders(scene) if stay.next and not scene.told[stay.next.at]))
    return None if stay is None else with_view(scene.log, stay, f"{stay.view}x")


def _left_behind(scene: Scene, rng: random.Random) -> pa.Table | None:
    """The transitional set lacks a process that comes along."""
    return _with_transitional(scene, rng, [(stay.next, None) for stay in _of_senders(scene) if stay.next is not None])


def _brought_along(scene: Scene, rng: random.Random) -> pa.Table | None:
    """The transitional set has a member that comes from elsewhere."""
    places = list[tuple[Stay, str | None]]()
    for stay in scene.stays:
        if stay.before and scene.sends(stay) and scene.sends(stay.before):
            here = {*scene.log.table["transitional"][stay.at].as_py()}
            others = {each.me: each for each in scene.installed(stay) if scene.sends(each) and each.before}
            places += [(stay, other) for other in sorted(others.keys() & stay.members - here)]
    return _with_transitional(scene, rng, places)


def _with_transitional(scene: Scene, rng: random.Random, places: list[tuple[Stay, str | None]]) -> pa.Table | None:
    """Add this process to the set of the stay, or remove another one that installs the view too."""
    place = choice(rng, places)
    if place is None:
        return None
    stay, new = place
    sets = scene.log.table["transitional"].to_pylist()
    if new is not None:
        sets[stay.at] = sorted({*sets[stay.at], new})
    else:
        came = {
            each.me
            for each in scene.installed(stay)
            if each.before and stay.before and each.before.view == stay.before.view and scene.sends(each)
        }
        gone = choice(rng, sorted({*sets[stay.at]} & came - {stay.me}))
        if gone is None:
            return None
        sets[stay.at] = [each for each in sets[stay.at] if each != gone]
    return with_column(scene.log.table, "transitional", sets)


def _unsuspected(scene: Scene, rng: random.Random) -> pa.Table | None:
    """All suspicions of a process that was removed and had not left vanish: any process may have told the others."""
    log = scene.log
    peers = log.table["peer"].to_pylist()
    left = {name(process_of(log.rows[at])) for at in scene.rows("leave", "demote")}
    places = [
        gone
        for stay in scene.stays
        if stay.before and scene.sends(stay) and scene.sends(stay.before)
        for gone in sorted(stay.before.members - stay.members - left)
    ]
    gone = choice(rng, places)
    return None if gone is None else without(log, (at for at in scene.rows("suspect") if peers[at] == gone))


def _uninvited(scene: Scene, rng: random.Random) -> pa.Table | None:
    """A process that was added to a view, and not by a merge, had not asked to send."""
    log, places = scene.log, []
    for at in scene.rows("promote"):
        me = name(process_of(log.rows[at]))
        calls = [each for each in scene.rows("join", "promote") if name(process_of(log.rows[each])) == me]
        new = [stay for stay in scene.stays if stay.before and me in stay.members - stay.before.members]
        new = [stay for stay in new if stay.me != me and scene.sends(stay) and scene.sends(stay.before)]
        by_consensus = [stay for stay in new if "classes" in scene.told[stay.at]]
        if calls == [at] and new and not by_consensus:
            places.append(at)
    at_last = choice(rng, places)
    return None if at_last is None else without(log, [at_last])


def _of_a_former_life(scene: Scene, rng: random.Random) -> pa.Table | None:
    """A later incarnation installs a view that an earlier one had."""
    places = []
    for stay in scene.stays:
        earlier = [
            each for each in scene.stays if each.process[0] == stay.process[0] and each.process[1] < stay.process[1]
        ]
        places += [(stay, each.view) for each in earlier]
    place = choice(rng, places)
    return None if place is None else with_view(scene.log, *place)


# -------------------------------------------------------------------------------- the end of a view


def _lost_at_the_end(scene: Scene, rng: random.Random) -> pa.Table | None:
    """One of the senders that go on together lacks the last message of one that is removed."""
    log, places = scene.log, []
    for stay in _of_senders(scene):
        gone = stay.members - stay.next.members if stay.next else frozenset()
        others = [each for each in scene.installed(stay) if each is not stay and each.next and scene.sends(each)]
        common = {mid(log.rows[at]) for each in others for at in each.rows("deliver")}
        for member in gone:
            of_it = [at for at in stay.rows("deliver") if name(mid(log.rows[at])[1:3]) == member]
            places += [at for at in of_it[-1:] if mid(log.rows[at]) in common]
    return drop(log, rng, places)


# -------------------------------------------------------------------------------- the last views


def _with_last(scene: Scene, changed: Iterable[tuple[Stay, frozenset[str]]]) -> pa.Table:
    lists = scene.log.table["members"].to_pylist()
    for stay, members in changed:
        lists[stay.at] = sorted(members)
    return with_column(scene.log.table, "members", lists)


def _crashed_and_kept(scene: Scene, rng: random.Random) -> pa.Table | None:
    """A sender that crashed is in the last view of all others."""
    places = []
    for component in scene.components:
        last = scene.last_of(component)
        crashed = {name(process_of(scene.log.rows[at])) for at in scene.rows("crash")}
        for stay in last:
            if stay.before and scene.sends(stay) and scene.sends(stay.before):
                places += [(last, stay, gone) for gone in sorted(crashed & stay.before.members - stay.members)]
    place = choice(rng, places)
    if place is None:
        return None
    last, stay, gone = place
    return _with_last(scene, ((each, each.members | {gone}) for each in last if each.view == stay.view))


def _forgotten(scene: Scene, rng: random.Random) -> pa.Table | None:
    """A sender of the last view is missing from it at all others."""
    places = []
    for component in scene.components:
        last = scene.last_of(component)
        if len({each.view for each in last}) == 1:
            places += [(stay, last) for stay in last if scene.sends(stay) and len(stay.members) > 1]
    place = choice(rng, places)
    if place is None:
        return None
    stay, last = place
    return _with_last(scene, ((each, each.members - {stay.me}) for each in last if each is not stay))


def _wish_unheard(scene: Scene, rng: random.Random) -> pa.Table | None:
    """A process that is a receiver in the end never asked to become one."""
    log, places = scene.log, []
    for component in scene.components:
        last = scene.last_of(component)
        for stay in last if any(scene.sends(each) for each in last) else ():
            wishes = [at for at in scene.rows("promote", "demote") if process_of(log.rows[at]) == stay.process]
            demoted = [at for at in wishes if log.rows[at]["kind"] == "demote"]
            if not scene.sends(stay) and stay.members and demoted and wishes[-1] in demoted:
                places.append(demoted)
    place = choice(rng, places)
    return None if place is None else without(log, place)


def _in_another_view(scene: Scene, rng: random.Random) -> pa.Table | None:
    """One of the senders of a last view has it under another id."""
    places = []
    for component in scene.components:
        last = [stay for stay in scene.last_of(component) if scene.sends(stay)]
        places += [stay for stay in last if any(each is not stay and each.view == stay.view for each in last)]
    stay = choice(rng, places)
    return None if stay is None else with_view(scene.log, stay, f"{stay.view}x")


# -------------------------------------------------------------------------------- all of them


@lru_cache(maxsize=128)
def _scene_of(log: Log) -> Scene:
    return Scene(log)


def _mutation(title: str, fault: Fault, *wanted: str, also: frozenset[str] = frozenset()) -> Mutation:
    return Mutation(title, lambda log, rng: fault(_scene_of(log), rng), tuple(ids(each) for each in wanted), also)


_OF_A_VIEW: Final = ids(
    *("M1", "M2", "M4", "M6e", "M7", "M8", "M10", "D4", "D5w", "D8", "D9", "O2", "O4", "O5", "S1", "S2", "S4", "S5"),
    *("L1", "L2", "L3", "L4", "L5", "L6", "L8", "L9", "L10", "F3", "R2", "M3"),
)
"""Properties that another view, or other members, at one process alone may break too."""
_OF_A_LOSS: Final = ids("D8", "D9", "O2", "O4", "S4", "F3", "L2", "L3", "L4")
_OF_A_MOVE: Final = ids("D9", "O3", "O4", "O6", "O8", "S2", "S4")

SENDER_MUTATIONS: Final = (
    _mutation("a sender in a view without itself", _without_self, "M1", also=_OF_A_VIEW),
    _mutation("a receiver that does not say so", _role_untold, "M1", also=_OF_A_VIEW),
    _mutation("repeat a view id", _repeated, "M2", also=_OF_A_VIEW),
    _mutation("one id with two memberships, at a sender", _one_membership_for_a_sender, "M4", also=_OF_A_VIEW),
    _mutation("one id with two memberships, at a receiver", _one_membership_for_a_receiver, "M4", also=_OF_A_VIEW),
    _mutation("one id with two divisions", _another_division, "M4", also=ids("M8")),
    _mutation("come from another view", _from_another_view, "M7", also=_OF_A_VIEW),
    _mutation("leave one out of the transitional set", _left_behind, "M8"),
    _mutation("a stranger in the transitional set", _brought_along, "M8"),
    _mutation("exclude a sender that no process suspected", _unsuspected, "M10", also=ids("M5", "L10")),
    _mutation("add a process that had not asked", _uninvited, "M10", also=ids("L1", "L2", "L5")),
    _mutation("a view of an earlier incarnation", _of_a_former_life, "R2", also=_OF_A_VIEW),
    Mutation("drop the last delivery before a view", drop_the_last, (ids("D8"),), _OF_A_LOSS),
    _mutation("drop the last delivery of a removed sender", _lost_at_the_end, "D8", "D9", also=_OF_A_LOSS),
    Mutation("move a delivery across a view change", move_across, (ids("D5w"),), _OF_A_MOVE | ids("D8")),
    _mutation("a crashed sender in the last view", _crashed_and_kept, "L1", "L5", also=_OF_A_VIEW),
    _mutation("a sender missing from the last view", _forgotten, "L1", also=_OF_A_VIEW),
    _mutation("a receiver that wanted to send", _wish_unheard, "L1", also=ids("M10", "L2", "L5")),
    _mutation("two ids for one last view", _in_another_view, "M6e", also=_OF_A_VIEW),
)
"""The faults of docs/spec/properties.md 9 that concern sender groups that change."""

RESTLESS: Final = (0, 3, 29, 58)
"""Runs in which members change or exclude each other until shortly before the end: M6e is not judged there."""


@cache
def judged_in(seed: int) -> frozenset[str]:
    """The properties that have an opportunity in a good run: its end may be too early for some."""
    judged = {verdict.property for verdict in judge(changing_senders_trace(seed)) if verdict.opportunities}
    return frozenset(judged - {"M6e"} if seed in RESTLESS else judged)
