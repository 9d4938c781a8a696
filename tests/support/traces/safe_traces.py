"""Good traces of safe delivery by a reference that knows all processes, and the faults seeded into them.

One list of messages for all. A message is stable for a process when all members of its current notice have the list up
to it; it is reported as stable, then delivered. In most runs a member fails: it crashes, or is cut off from the others
and goes on alone. After the notice only the remaining members count, and the cut is at the end of the list.
"""

import random
from functools import cache
from typing import Any, Final

import pyarrow as pa

from tests.support.traces.handmade import Mid, Trace
from tests.support.traces.mutations import Log, Mutation, choice, ids, mid, process_of, renumbered, with_column
from tests.support.traces.stability_mutations import additions, name_of, rows_of, story_of, without

GROUP: Final = "orders"


@cache
def safe_trace(seed: int) -> pa.Table:
    return _Reference(random.Random(seed)).run()


class _Reference:
    """Knowledge is written to the log at once; only receipts, notices and deliveries take time."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        members = [f"p{number}" for number in range(1, rng.randint(4, 6))]
        self._trace = Trace({GROUP: members}, service="total-safe").begin()
        self._members, self._live = members, list(members)
        everything: list[Mid] = []
        self._lists = dict.fromkeys(members, everything)
        self._scope = {name: set(members) for name in members}
        self._known = dict.fromkeys(members, 0)
        self._delivered = dict.fromkeys(members, 0)
        self._cut: dict[str, int] = {}
        """Where the view of a process changes, until it has."""
        self._untold: dict[str, list[str]] = {}
        """The remaining members, for processes without a notice yet."""
        self._apart: str | None = None

    def run(self) -> pa.Table:
        steps = self._rng.randint(90, 140)
        fails_at = self._rng.randint(30, 90) if self._rng.random() < 0.85 else None
        for step in range(steps):
            if step == fails_at:
                self._fail(self._rng.choice(self._members))
            acts = (self._send, self._receive, self._learn, self._deliver, self._notice, self._install)
            self._rng.choices(acts, (12, 40, 15, 25, 4, 4))[0](self._rng.choice(self._live))
        self._drain()
        for process in self._live:
            upto = self._trace.marks.get(("stable", process, GROUP))
            if upto:
                self._trace.discard(process, dict(upto), GROUP)
        sides = [[name for name in self._live if name != self._apart], *([[self._apart]] if self._apart else [])]
        return self._trace.end(settled=False, components=sides)

    def _drain(self) -> None:
        acts = (self._receive, self._learn, self._deliver, self._notice, self._install)
        busy = True
        while busy:
            busy = False
            for process in self._rng.sample(self._live, len(self._live)):
                for act in acts:
                    busy |= act(process)

    def _send(self, process: str) -> bool:
        if process != self._apart:
            self._lists[process].append(self._trace.send(process, GROUP))
        return True

    def _receive(self, process: str) -> bool:
        """The next message of some sender, in the order of its stream."""
        lacking = [each for each in self._lists[process] if not self._has(process, each)]
        if process == self._apart or not lacking:
            return False
        sender = self._rng.choice(lacking).sender
        self._trace.receive(process, next(each for each in lacking if each.sender == sender))
        return True

    def _learn(self, process: str) -> bool:
        stable = min(self._complete(other, self._lists[process]) for other in self._scope[process])
        known = self._known[process]
        if stable <= known or (process == self._apart and process in self._untold):
            return False
        self._known[process] = stable
        self._trace.stable(process, {each.sender: each.number for each in self._lists[process][known:stable]}, GROUP)
        return True

    def _deliver(self, process: str) -> bool:
        at = self._delivered[process]
        if at >= self._known[process] or at == self._cut.get(process):
            return False
        self._delivered[process] = at + 1
        self._trace.deliver(process, self._lists[process][at])
        return True

    def _fail(self, failed: str) -> None:
        """Messages that no other process has are not delivered; the others continue after the last common one."""
        others = [name for name in self._members if name != failed]
        everything = self._lists[failed]
        left = [each for each in everything if any(self._has(other, each) for other in others)]
        self._lists = dict.fromkeys(others, left)
        self._cut = dict.fromkeys(others, len(left))
        self._untold = dict.fromkeys(others, others)
        if self._rng.random() < 0.5:
            self._live.remove(failed)
            self._trace.crash(failed)
            return
        self._apart = failed
        self._trace.fault("partition")
        whole = self._complete(failed, everything)
        own = [each for each in everything[whole:] if each.sender == failed]
        self._lists[failed], self._cut[failed], self._untold[failed] = everything[:whole] + own, whole, [failed]

    def _notice(self, process: str) -> bool:
        if process not in self._untold:
            return False
        left = self._untold.pop(process)
        gone = sorted(self._scope[process] - {*left})
        self._scope[process] = {*left}
        self._trace.suspect(process, *gone, group=GROUP)
        self._trace.confirm(process, *gone, group=GROUP)
        view = self._trace.views[process, GROUP]
        self._trace.row(process, "transitional", group=GROUP, view=view, members=sorted(left))
        return True

    def _install(self, process: str) -> bool:
        if process in self._untold or self._delivered[process] != self._cut.get(process):
            return False
        del self._cut[process]
        members = sorted(self._scope[process])
        self._trace.view(process, GROUP, "v1" + "".join(members), members)
        return True

    def _has(self, process: str, message: Mid) -> bool:
        return (process, message) in self._trace.had

    def _complete(self, process: str, messages: list[Mid]) -> int:
        return next((at for at, each in enumerate(messages) if not self._has(process, each)), len(messages))


# -------------------------------------------------------------------------------- faults


def _behind(log: Log, at: int, later: int) -> pa.Table:
    """The row at one place moved after a later one of its process, at that time."""
    order = [each for each in range(len(log.rows)) if each != at]
    order.insert(later, at)
    times = log.table["time"].to_pylist()
    times[at] = times[later]
    return renumbered(with_column(log.table, "time", times).take(pa.array(order)))


def _until_view(log: Log, at: int) -> range:
    """The places after one in the same log, up to its next view."""
    end = at + 1
    while end < len(log.rows) and process_of(log.rows[end]) == process_of(log.rows[at]) and _stays(log.rows[end]):
        end += 1
    return range(at + 1, end)


def _stays(row: dict[str, Any]) -> bool:
    return row["kind"] not in ("view", "discard", "stop", "crash", "stable", "transitional")


def _deliver_before_stable(log: Log, rng: random.Random) -> pa.Table | None:
    """A `stable` row comes after the delivery of a message that it adds."""
    story = story_of(log)
    places = [
        (at, later)
        for at, sender, before, number in additions(story, "stable")
        for later in _until_view(log, at)
        if story[later]["kind"] == "deliver"
        and name_of(story[later], "sender", "sender_incarnation") == sender
        and before < story[later]["number"] <= number
    ]
    place = choice(rng, places)
    return None if place is None else _behind(log, *place)


def _deliver_without_stable(log: Log, rng: random.Random) -> pa.Table | None:
    """The `stable` row that adds the last message of a sender which the process calls stable is left out."""
    story = story_of(log)
    delivered = {(name_of(row), row["sender"], row["number"]) for _, row in rows_of(story, "deliver")}
    last = {(name_of(story[at]), sender): (at, number) for at, sender, _, number in additions(story, "stable")}
    at = choice(rng, [at for (process, sender), (at, number) in last.items() if (process, sender, number) in delivered])
    return None if at is None else without(log, at)


def _lose_a_delivery_of_the_crashed(log: Log, rng: random.Random) -> pa.Table | None:
    """All that go on leave out a message that the crashed process delivered, with all later ones of its sender."""
    onward = {process_of(row) for row in log.rows if row["kind"] == "view" and row["view"] != "v0"}
    at = choice(rng, [at for at in log.deliveries() if log.crashed(process_of(log.rows[at])) and onward])
    if at is None:
        return None
    *stream, number = mid(log.rows[at])
    deliveries = [other for other in log.deliveries() if process_of(log.rows[other]) in onward]
    return without(
        log,
        *(other for other in deliveries if [*mid(log.rows[other])[:3]] == stream and mid(log.rows[other])[3] >= number),
    )


def _lose_at_one_survivor(log: Log, rng: random.Random) -> pa.Table | None:
    """A process that goes on leaves out a message that others delivered before any notice."""
    told = {process_of(row): at for at, row in reversed([*enumerate(log.rows)]) if row["kind"] == "transitional"}
    early = {
        mid(log.rows[at])
        for at in log.deliveries()
        if at < told.get(process_of(log.rows[at]), len(log.rows)) and log.rows[at]["view"] == "v0"
    }
    moving = {process_of(row) for row in log.rows if row["kind"] == "view" and row["view"] != "v0"}
    places = [
        at
        for at in log.deliveries()
        if process_of(log.rows[at]) in moving
        and log.rows[at]["view"] == "v0"
        and mid(log.rows[at]) in early
        and any(
            mid(log.rows[other]) == mid(log.rows[at])
            and process_of(log.rows[other]) != process_of(log.rows[at])
            and other < told.get(process_of(log.rows[other]), len(log.rows))
            and log.rows[other]["view"] == "v0"
            for other in log.deliveries()
        )
    ]
    at = choice(rng, places)
    return None if at is None else without(log, at)


def _tell_too_late(log: Log, rng: random.Random) -> pa.Table | None:
    """The notice comes after a delivery of a message that a separated process, which went on, does not have."""
    views = [row for row in log.rows if row["kind"] == "view" and row["view"] != "v0"]
    in_old_view = {
        (process_of(log.rows[at]), mid(log.rows[at])) for at in log.deliveries() if log.rows[at]["view"] == "v0"
    }
    places = [
        (at, later)
        for at, row in enumerate(log.rows)
        if row["kind"] == "transitional"
        for later in range(at + 1, len(log.rows))
        if process_of(log.rows[later]) == process_of(row)
        and log.rows[later]["kind"] == "deliver"
        and log.rows[later]["view"] == "v0"
        and any(
            other["view"] != view["view"] and (process_of(other), mid(log.rows[later])) not in in_old_view
            for view in views
            if process_of(view) == process_of(row)
            for other in views
        )
    ]
    place = choice(rng, places)
    return None if place is None else _behind(log, *place)


SAFE_MUTATIONS: Final = (
    Mutation("deliver before it is stable", _deliver_before_stable, (ids("S3"),), ids("S2")),
    Mutation("deliver what is never called stable", _deliver_without_stable, (ids("S3"),), ids("S2", "S4", "L6")),
    Mutation(
        "lose what only the crashed one delivered",
        _lose_a_delivery_of_the_crashed,
        (ids("D11"),),
        ids("L2", "L3", "L4", "D9", "O2", "O4", "S4", "F3"),
    ),
    Mutation(
        "lose a message at one survivor",
        _lose_at_one_survivor,
        (ids("D11"),),
        ids("D8", "D9", "D5w", "O2", "O4", "L2", "L3", "L4", "S4", "F3"),
    ),
    Mutation("give notice too late", _tell_too_late, (ids("D11"),)),
)
"""Faults of safe delivery."""
