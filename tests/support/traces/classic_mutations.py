"""Faults seeded into good runs of the lecture notes' multicasts, as in `mutations.py`; each says for which services.

Orders hold within one group: a wrong order between two groups is no fault, and must not be reported.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from tests.support.traces.mutations import (
    Log,
    Mutation,
    choice,
    deliver_forged,
    deliver_twice,
    drop,
    drop_before_crash,
    flip_digest,
    ids,
    mid,
    of_two_senders,
    process_of,
    swap,
    swap_in_one_group,
    swap_in_two_groups,
    swap_one_sender,
)
from tests.support.traces.stability_mutations import rows_of, story_of, with_detail, without

ALL: Final = ("reliable", "fifo", "causal", "total")


@dataclass(frozen=True)
class Fault:
    """A mutation, and the services whose runs it is for."""

    mutation: Mutation
    services: tuple[str, ...] = ALL


def _shared(log: Log) -> Iterable[int]:
    """Deliveries of staying members, of messages that another staying member delivered too."""
    for at in log.deliveries():
        others = log.deliverers[mid(log.rows[at])] - {process_of(log.rows[at])}
        if not log.crashed(process_of(log.rows[at])) and any(not log.crashed(other) for other in others):
            yield at


def _unchanged(log: Log, at: int) -> bool:
    """No process of that group crashed, so nothing is taken back."""
    group = log.rows[at]["group"]
    members = {process_of(row) for row in log.rows if row["kind"] == "view" and row["group"] == group}
    return not any(log.crashed(member) for member in members)


def _drop_any(log: Log, rng: random.Random) -> pa.Table | None:
    return drop(log, rng, _shared(log))


def _drop_of_the_crashed(log: Log, rng: random.Random) -> pa.Table | None:
    return drop(log, rng, (at for at in _shared(log) if log.crashed(mid(log.rows[at])[1:3])))


def _drop_ordered(log: Log, rng: random.Random) -> pa.Table | None:
    """In the middle of a group whose membership stays: the process delivers more there."""
    last = {(process_of(log.rows[at]), log.rows[at]["group"]): at for at in log.deliveries()}
    middle = (at for at in _shared(log) if last[process_of(log.rows[at]), log.rows[at]["group"]] > at)
    return drop(log, rng, (at for at in middle if _unchanged(log, at)))


def _drop_cause(log: Log, rng: random.Random) -> pa.Table | None:
    causes = (at for at in log.deliveries() if log.followed_by_an_effect(at, in_one_group=True))
    return drop(log, rng, (at for at in causes if not log.followed_by_its_sender(at)))


def _swap_cause_and_effect(log: Log, rng: random.Random) -> pa.Table | None:
    return swap(log, rng, filter(log.directly_causes, of_two_senders(log, one_group=True)))


def _swap_without_crashes(log: Log, rng: random.Random) -> pa.Table | None:
    places = (place for place in of_two_senders(log, one_group=True) if _unchanged(log, place[0]))
    return swap(log, rng, filter(log.shared_with_the_living, places))


def _swap_across_views(log: Log, rng: random.Random) -> pa.Table | None:
    """The last of one view and the first of the next, at one survivor; another has both, in whatever views.

    The survivor sends nothing between them, so no message depends on their order.
    """
    places: list[tuple[int, int]] = []
    before: dict[Any, int] = {}
    for at in log.deliveries():
        row = log.rows[at]
        key = process_of(row), row["group"]
        last, before[key] = before.get(key), at
        if last is None or log.crashed(key[0]) or any(each["kind"] == "send" for each in log.rows[last:at]):
            continue
        if log.rows[last]["view"] != row["view"]:
            both = log.deliverers[mid(row)] & log.deliverers[mid(log.rows[last])] - {key[0]}
            places += [(last, at)] * any(not log.crashed(other) for other in both)
    return swap(log, rng, places)


def _hold_at_the_end(log: Log, rng: random.Random) -> pa.Table | None:
    at = choice(rng, [at for at, row in rows_of(story_of(log), "stop")])
    return None if at is None else with_detail(log, at, lambda detail: detail.update(held={"orders": 2}))


def _forget_a_request_outside(log: Log, rng: random.Random) -> pa.Table | None:
    at = choice(rng, [at for at, row in rows_of(story_of(log), "stop") if row["process"] == "x"])
    return None if at is None else with_detail(log, at, lambda detail: detail.update(waiting={"orders": 1}))


def _drop_the_last_of_the_outsider(log: Log, rng: random.Random) -> pa.Table | None:
    """The last message of the sender outside is delivered nowhere."""
    sent = [mid(row) for row in log.rows if row["kind"] == "send" and row["process"] == "x"]
    places = [at for at in log.deliveries() if sent and mid(log.rows[at]) == sent[-1]]
    return without(log, *places) if places else None


CLASSIC_FAULTS: Final = (
    Fault(Mutation("drop a delivery", _drop_any, (ids("D13"),), ids("O2", "O4", "O7", "L2", "L3"))),
    Fault(Mutation("drop one of a crashed sender", _drop_of_the_crashed, (ids("D13"),), ids("O2", "O4"))),
    Fault(Mutation("drop the last delivery before a crash", drop_before_crash, ())),
    Fault(Mutation("deliver twice", deliver_twice, (ids("D2"),))),
    Fault(Mutation("deliver an unsent message", deliver_forged, (ids("D1"),))),
    Fault(Mutation("flip a bit of a digest", flip_digest, (ids("D1"),))),
    Fault(Mutation("hold a message at the end", _hold_at_the_end, (ids("L8"),))),
    Fault(Mutation("forget a request of a sender outside", _forget_a_request_outside, (ids("L2"),))),
    Fault(Mutation("no member delivers a message of the sender outside", _drop_the_last_of_the_outsider, (ids("L2"),))),
    Fault(Mutation("swap two deliveries of one sender", swap_one_sender, (ids("O1"), ids("O2"))), ("fifo",)),
    Fault(
        Mutation("swap two deliveries of one sender, with causes", swap_one_sender, (ids("O1"), ids("O2"), ids("O3"))),
        ("causal",),
    ),
    Fault(Mutation("swap cause and effect", _swap_cause_and_effect, (ids("O3"),)), ("causal",)),
    Fault(Mutation("drop a cause", _drop_cause, (ids("O4"),), ids("D13", "L2", "L3")), ("causal",)),
    Fault(Mutation("swap across groups", swap_in_two_groups, ()), ("causal", "total")),
    Fault(
        Mutation("swap where no process crashed", _swap_without_crashes, (ids("O5"), ids("O6"), ids("O7"))), ("total",)
    ),
    Fault(Mutation("swap in a shared view", swap_in_one_group, (ids("O5"), ids("O6")), ids("O7")), ("total",)),
    Fault(Mutation("swap across a change of views", _swap_across_views, (ids("O6"),), ids("O5")), ("total",)),
    Fault(
        Mutation(
            "drop one that others have before later ones", _drop_ordered, (ids("D13"), ids("O7")), ids("L2", "L3")
        ),
        ("total",),
    ),
)
