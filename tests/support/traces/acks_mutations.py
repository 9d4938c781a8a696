"""Faults seeded into good runs of the acknowledgment protocols, as in `mutations.py`; views are private there."""

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from tests.support.traces.mutations import (
    Log,
    Mutation,
    Row,
    choice,
    deliver_forged,
    deliver_twice,
    drop,
    flip_digest,
    ids,
    mid,
    swap_one_sender,
)
from tests.support.traces.stability_mutations import (
    additions,
    discard_before_stable,
    lower_a_mark,
    name_of,
    rows_of,
    stable_before_the_slowest,
    story_of,
    with_detail,
    without,
)

BOTH: Final = ("own", "all")


@dataclass(frozen=True)
class Fault:
    """A mutation, and the kinds of stability whose runs it is for."""

    mutation: Mutation
    stability: tuple[str, ...] = BOTH


class Company:
    """The views of each process over time, and the processes present at the end; computed row by row."""

    def __init__(self, log: Log) -> None:
        self.rows = story_of(log)
        self.crashed = {row["process"] for row in self.rows if row["kind"] == "crash"}
        moves = {row["process"]: row["kind"] for row in self.rows if row["kind"] in ("join", "leave")}
        self.gone = self.crashed | {process for process, kind in moves.items() if kind == "leave"}
        self.ever_moved = self.crashed | {*moves}

    def views(self, process: str, begin: int, end: int) -> Iterator[dict[str, Any]]:
        """The current view at one place of the process's log, and the views up to another place."""
        last: dict[str, Any] = {}
        for at, row in enumerate(self.rows[:end]):
            if row["process"] != process or row["kind"] != "view":
                continue
            if at > begin and last:
                yield last
            last = json.loads(row["detail"])
        yield last

    def always(self, which: str, process: str, other: str, begin: int, end: int) -> bool:
        """True if other is among its receivers, or senders, from one place to another."""
        return all(other in view.get(which, ()) for view in self.views(process, begin, end))

    def end_of(self, process: str) -> int:
        return max(at for at, row in enumerate(self.rows) if row["process"] == process)


def _counted(company: Company) -> list[tuple[int, Row]]:
    """Where an acknowledgment left that its receiver counts, with the row of the receipt."""
    left = {
        json.loads(row["detail"])["frame"]: at
        for at, row in rows_of(company.rows, "transmit")
        if json.loads(row["detail"])["type"] == "acknowledgment"
    }
    found = []
    for at, row in rows_of(company.rows, "receive"):
        name = json.loads(row["detail"])["frame"]
        if name in left and company.always("receivers", row["process"], row["peer"], at, at):
            found.append((left[name], row))
    return found


def _forget_the_sender(log: Log, rng: random.Random) -> pa.Table | None:
    place = choice(rng, _counted(Company(log)))
    if place is None:
        return None
    return with_detail(log, place[0], lambda detail: detail["senders"].remove(place[1]["process"]))


def _forget_another_sender(log: Log, rng: random.Random) -> pa.Table | None:
    """A process that is neither of the two."""
    place = choice(rng, _counted(Company(log)))
    if place is None:
        return None
    others = [
        name for name in json.loads(log.table["detail"][place[0]].as_py())["senders"] if name != place[1]["process"]
    ]
    other = choice(rng, others)
    return None if other is None else with_detail(log, place[0], lambda detail: detail["senders"].remove(other))


def _drop_a_receipt(log: Log, rng: random.Random) -> pa.Table | None:
    """Drop a receipt of a message that its sender calls stable; the receiver was counted from the send until then."""
    company = Company(log)
    called: dict[Any, int] = {}
    for at, sender, before, number in additions(company.rows, "stable"):
        if sender == name_of(company.rows[at]):
            called |= dict.fromkeys(((sender, each) for each in range(before + 1, number + 1)), at)
    places = []
    for at, row in rows_of(company.rows, "receive"):
        message = row["sender"], row["number"]
        if message in called and row["process"] not in company.crashed:
            sent = log.send_at[mid(row)]
            if company.always("receivers", row["sender"], row["process"], sent, called[message]):
                places.append(at)
    place = choice(rng, places)
    return None if place is None else without(log, place)


def _drop_a_needless_receipt(log: Log, rng: random.Random) -> pa.Table | None:
    """Drop a receipt of a message that its sender calls stable after the receiver had left for the first time."""
    company = Company(log)
    called = {
        (sender, each): at
        for at, sender, before, number in additions(company.rows, "stable")
        for each in range(before + 1, number + 1)
        if sender == name_of(company.rows[at])
    }
    places = [
        at
        for at, row in rows_of(company.rows, "receive")
        if (row["sender"], row["number"]) in called
        and not company.always(
            "receivers", row["sender"], row["process"], log.send_at[mid(row)], called[row["sender"], row["number"]]
        )
    ]
    at = choice(rng, places)
    return None if at is None else without(log, at)


def _last_own(log: Log, kind: str) -> dict[str, int]:
    """For the processes present at the end: where each last called its own messages stable, or freed them."""
    company = Company(log)
    return {
        sender: at
        for at, sender, _, _ in additions(company.rows, kind)
        if sender == company.rows[at]["process"] and sender not in company.gone
    }


def _drop_the_last_stable(log: Log, rng: random.Random) -> pa.Table | None:
    at = choice(rng, _last_own(log, "stable").values())
    return None if at is None else without(log, at)


def _drop_the_last_discard(log: Log, rng: random.Random) -> pa.Table | None:
    at = choice(rng, _last_own(log, "discard").values())
    return None if at is None else without(log, at)


def _hold_at_the_end(log: Log, rng: random.Random) -> pa.Table | None:
    company = Company(log)
    at = choice(rng, [at for at, row in rows_of(company.rows, "stop") if row["process"] not in company.gone])
    return None if at is None else with_detail(log, at, lambda detail: detail.update(held={"orders": 1}))


def _drop_in_the_middle(log: Log, rng: random.Random) -> pa.Table | None:
    """The second of three messages of a sender that a process delivers in one view."""
    runs: dict[Any, list[int]] = {}
    for at in log.deliveries():
        row = log.rows[at]
        runs.setdefault((row["process"], row["sender"], row["view"]), []).append(at)
    return drop(log, rng, (at for run in runs.values() for at in run[1:-1]))


def _last_deliveries(log: Log) -> Iterable[tuple[int, Row]]:
    """The last of each sender that a process delivers."""
    last = {(log.rows[at]["process"], log.rows[at]["sender"]): at for at in log.deliveries()}
    return ((at, log.rows[at]) for at in last.values())


def _drop_the_last_of_a_staying_sender(log: Log, rng: random.Random) -> pa.Table | None:
    company = Company(log)
    places = (
        at
        for at, row in _last_deliveries(log)
        if not company.gone & {row["process"], row["sender"]}
        and row["process"] != row["sender"]
        and company.always(
            "receivers", row["sender"], row["process"], log.send_at[mid(row)], company.end_of(row["sender"])
        )
    )
    return drop(log, rng, places)


def _drop_the_last_own(log: Log, rng: random.Random) -> pa.Table | None:
    company = Company(log)
    own = (at for at, row in _last_deliveries(log) if row["process"] == row["sender"])
    return drop(log, rng, (at for at in own if log.rows[at]["process"] not in company.gone))


def _drop_the_last_of_a_departed_sender(log: Log, rng: random.Random) -> pa.Table | None:
    company = Company(log)
    return drop(log, rng, (at for at, row in _last_deliveries(log) if row["sender"] in company.gone))


def _pairs_that_stay(company: Company) -> Iterable[tuple[int, str, str, str]]:
    """The place of a view row, its process, a side of it, and a peer that it names there and in all later views.

    Neither of the two ever moves.
    """
    for at, row in rows_of(company.rows, "view"):
        end = company.end_of(row["process"])
        for side in ("receivers", "senders"):
            for peer in json.loads(row["detail"])[side]:
                moved = {row["process"], peer} & company.ever_moved
                if not moved and company.always(side, row["process"], peer, at, end):
                    yield at, row["process"], side, peer


def _without_the_peer(log: Log, company: Company, place: tuple[int, str, str, str]) -> pa.Table:
    """The process forgets the peer in that view and all later ones."""
    begin, process, side, peer = place
    table = log.table
    for at, row in rows_of(company.rows, "view"):
        if at >= begin and row["process"] == process:
            table = with_detail(Log(table), at, lambda detail: detail[side].remove(peer))
    return table


def _lose_a_peer(log: Log, rng: random.Random) -> pa.Table | None:
    """In a later view, a peer that the process had counted before."""
    company = Company(log)
    first = {row["process"]: at for at, row in reversed(list(rows_of(company.rows, "view")))}
    place = choice(rng, [place for place in _pairs_that_stay(company) if first[place[1]] < place[0]])
    return None if place is None else _without_the_peer(log, company, place)


def _never_count_a_peer(log: Log, rng: random.Random) -> pa.Table | None:
    """From the first view on, so that no peer is ever lost."""
    company = Company(log)
    first = {row["process"]: at for at, row in reversed(list(rows_of(company.rows, "view")))}
    stay = (place for place in _pairs_that_stay(company) if first[place[1]] == place[0])
    place = choice(rng, [place for place in stay if not company.gone & {place[1], place[3]}])
    return None if place is None else _without_the_peer(log, company, place)


ACKS_FAULTS: Final = (
    Fault(Mutation("lose a peer that stays", _lose_a_peer, (ids("S6"),), ids("O2")), ("own",)),
    Fault(Mutation("never count a peer that stays", _never_count_a_peer, (ids("S6"),), ids("O2"))),
    Fault(Mutation("acknowledge without the sender that counts it", _forget_the_sender, (ids("S5"),))),
    Fault(Mutation("acknowledge without another sender", _forget_another_sender, (ids("S5"),)), ("all",)),
    Fault(Mutation("drop a receipt", _drop_a_receipt, (ids("S1"),))),
    Fault(Mutation("drop a receipt that no sender waited for", _drop_a_needless_receipt, ()), ("own",)),
    Fault(Mutation("move stable before the slowest receive", stable_before_the_slowest, (ids("S1"),)), ("all",)),
    Fault(Mutation("move discard before stable", discard_before_stable, (ids("S4"),))),
    Fault(Mutation("lower a stable mark", lower_a_mark, (ids("S2"),))),
    Fault(Mutation("drop the last stable row", _drop_the_last_stable, (ids("L6"),), ids("S4"))),
    Fault(Mutation("drop the last discard row", _drop_the_last_discard, (ids("L8"),))),
    Fault(Mutation("hold a message at the end", _hold_at_the_end, (ids("L8"),))),
    Fault(Mutation("swap two deliveries of one sender", swap_one_sender, (ids("O1"),), ids("O2"))),
    Fault(Mutation("drop a delivery in the middle", _drop_in_the_middle, (ids("O2"),), ids("L2", "L3"))),
    Fault(Mutation("drop the last delivery of a staying sender", _drop_the_last_of_a_staying_sender, (ids("L2"),))),
    Fault(Mutation("drop the last own delivery", _drop_the_last_own, (ids("L3"),))),
    Fault(Mutation("drop the last delivery of a departed sender", _drop_the_last_of_a_departed_sender, ()), ("own",)),
    Fault(Mutation("deliver twice", deliver_twice, (ids("D2"),))),
    Fault(Mutation("deliver an unsent message", deliver_forged, (ids("D1"),))),
    Fault(Mutation("flip a bit of a digest", flip_digest, (ids("D1"),))),
)
