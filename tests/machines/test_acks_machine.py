"""The acknowledgment protocols under random schedules, and under the worst that Hypothesis finds.

Acknowledgments are lost, reordered and duplicated; clocks have a skew; streams stall; processes join, leave, return and
crash. Then follows a calm time, after which everything must be stable. `tests/support/acks_judge.py` judges.
"""

import random
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from antiphon.protocols.acks.connections.connections import Connections
from antiphon.protocols.acks.settings import Role
from tests.support.acks_judge import Judge
from tools.lab.acks_cluster import UNIT, AcksCluster

KINDS = ("timestamp", "vector", "explicit", "transitive")
FAULTS_END = 30 * UNIT
ROLES: tuple[Role, ...] = ("both", "sender", "receiver")


def drawn_cluster(chance: random.Random, kind: str, *, static: bool, literal: tuple[str, ...]) -> AcksCluster:
    """A group of two to five, of any shape; if all senders are watched, all are present with role `both`."""
    names = [f"p{number}" for number in range(chance.randint(2, 5))]
    roles: dict[str, Role] = dict.fromkeys(names, "both")
    sources: dict[str, list[str]] = {}
    if not static and chance.random() < 0.5:
        roles.update({name: chance.choice(ROLES) for name in names[1:]})
    if not static and chance.random() < 0.3:
        senders = [name for name in names if roles[name] != "receiver"]
        sources = {
            name: chance.sample(senders, chance.randint(1, len(senders))) for name in names if chance.random() < 0.5
        }
    pairs = [(a, b) for a in names for b in names]
    return AcksCluster(
        roles=roles,
        sources=sources,
        absent=() if static else [name for name in names if chance.random() < 0.2],
        messages={pair: chance.choice([1, UNIT // 3, UNIT, 6 * UNIT, 15 * UNIT]) for pair in pairs},
        acks={pair: chance.choice([1, UNIT // 2, 3 * UNIT]) for pair in pairs},
        first_sends={name: chance.randrange(UNIT) for name in names},
        first_acks={name: chance.randrange(UNIT) for name in names},
        skews={name: chance.choice([0, 0, 1, UNIT, 40 * UNIT]) for name in names},
        kind=kind,
        clock=chance.choice(["physical", "physical", "logical"]),
        send_every_ns=chance.choice([UNIT // 2, UNIT, 3 * UNIT]),
        ack_every_ns=chance.choice([UNIT // 2, UNIT, 3 * UNIT]),
        stability="all" if static else "own",
        literal=literal,
    )


class Schedule:
    """The events and faults of a cluster, drawn from one seed."""

    def __init__(self, seed: int, kind: str, *, static: bool = False, literal: tuple[str, ...] = ()) -> None:
        self.chance = random.Random(f"{kind}/{seed}")
        self.cluster = drawn_cluster(self.chance, kind, static=static, literal=literal)
        self.judge = Judge(self.cluster, everybody=static)
        loss, twice = self.chance.choice([0.0, 0.2, 0.6]), self.chance.choice([0.0, 0.3])
        self.cluster.datagram = self._datagrams(loss, twice)
        for _ in range(self.chance.randint(5, 40)):
            self.cluster.at(self.chance.randrange(FAULTS_END), self._send)
        if not static:
            for _ in range(self.chance.choice([0, 3, 10])):
                self.cluster.at(self.chance.randrange(FAULTS_END), self._upset)

    def run(self) -> None:
        cluster = self.cluster
        cluster.run(FAULTS_END)
        for pair in [*cluster.held]:
            cluster.release(*pair)
        cluster.datagram = self._datagrams(0.2, 0.0, longer=1)
        for calm in range(20, 600, 20):
            cluster.run(FAULTS_END + calm * UNIT)
            if self.judge.settled:
                break
        assert self.judge.settled, "(b)"

    def _datagrams(self, loss: float, twice: float, longer: int = 9) -> Any:
        cluster, chance = self.cluster, self.chance

        def copies(sender: str, receiver: str) -> Iterator[int]:
            for _ in range(1 + (chance.random() < twice)):
                if chance.random() >= loss:
                    yield int(cluster.ack_latency[sender, receiver] * chance.choice([1, 1, 1, longer]))

        return copies

    def _send(self) -> None:
        cluster = self.cluster
        able = [n for n in cluster.names if n not in cluster.crashed and cluster.group(n).links.itself.sends]
        if able:
            cluster.send(self.chance.choice(able), self.chance.choice([1, 1, 3]))

    def _upset(self) -> None:
        cluster, chance = self.cluster, self.chance
        alive = [name for name in cluster.names if name not in cluster.crashed]
        name = chance.choice(alive)
        match chance.choice(["move", "move", "move", "hold", "crash"]):
            case "move":
                move(cluster, name)
                if chance.random() < 0.7:  # and back again, while frames of the old connection are in transit
                    cluster.at(cluster.now + chance.randrange(6 * UNIT), move, cluster, name)
            case "hold":
                pair = name, chance.choice(cluster.names)
                cluster.held.add(pair)
                cluster.at(cluster.now + chance.randrange(10 * UNIT), cluster.release, *pair)
            case "crash" if len(alive) > 1:
                cluster.crash(name, {other: cluster.now + chance.randrange(4 * UNIT) for other in cluster.names})
                cluster.at(cluster.now + chance.randrange(8 * UNIT), cluster.lose, name)


def move(cluster: AcksCluster, name: str) -> None:
    """Join if it is outside, leave if it is inside."""
    if name in cluster.crashed:
        return
    if cluster.group(name).links.joined:
        cluster.leave(name)
    else:
        cluster.join(name)


def run_seeds(kind: str, seeds: Iterable[int], *, static: bool = False) -> int:
    claims = 0
    for seed in seeds:
        schedule = Schedule(seed, kind, static=static)
        try:
            schedule.run()
        except Exception as error:
            error.add_note(f"Schedule({seed}, {kind!r}, static={static})")
            raise
        claims += schedule.judge.claims
    return claims


@pytest.mark.parametrize("kind", KINDS)
def test_theorem_1_on_random_schedules(kind: str) -> None:
    """Berket98 theorem 1, (a) to (c), and section 6; seeds 10,000 to 16,000 have passed once too."""
    assert run_seeds(kind, range(150)) > 1_500


@pytest.mark.parametrize("kind", ["timestamp", "vector", "transitive"])
def test_theorem_2_on_random_schedules(kind: str) -> None:
    """Berket98 theorem 2, (d): if all send to all, every process knows which messages all others have."""
    assert run_seeds(kind, range(15), static=True) > 500


def first_violation(kind: str, seeds: Iterable[int], literal: tuple[str, ...] = ()) -> str:
    for seed in seeds:
        try:
            Schedule(seed, kind, literal=literal).run()
        except AssertionError as error:
            return str(error)
    return "none"


def test_the_judge_finds_what_the_printed_rules_break(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that catches nothing proves nothing: figure 4, T12, and late acknowledgments that count (T13)."""
    assert first_violation("timestamp", range(20), ("FIG-4",)) != "none"
    assert first_violation("transitive", range(180, 210), ("T12",)).startswith("(a)")
    monkeypatch.setattr(Connections, "is_current", lambda _, peer, __: peer.acks_from is not None)
    assert first_violation("explicit", range(50, 80)).startswith("(6)")


class Machine(RuleBasedStateMachine):
    """Processes send, join, leave and crash at any time; streams stall, acknowledgments are lost and reordered."""

    @initialize(
        kind=st.sampled_from(KINDS),
        clock=st.sampled_from(["physical", "logical"]),
        roles=st.lists(st.sampled_from(ROLES), min_size=2, max_size=4),
        absent=st.sets(st.integers(0, 3)),
        skew=st.sampled_from([0, 7 * UNIT]),
    )
    def begin(self, kind: str, clock: str, roles: list[Role], absent: set[int], skew: int) -> None:
        names = [f"p{number}" for number in range(len(roles))]
        self.cluster = AcksCluster(
            roles=dict(zip(names, roles, strict=True)),
            absent=[names[number] for number in absent if number < len(names)],
            kind=kind,
            clock=clock,
            skews={names[0]: skew},
            first_sends={name: number * UNIT // 7 for number, name in enumerate(names)},
            first_acks={name: number * UNIT // 5 for number, name in enumerate(names)},
        )
        self.judge = Judge(self.cluster)
        self.delays = [UNIT]
        self.cluster.datagram = lambda *_: self.delays

    def alive(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from([name for name in self.cluster.names if name not in self.cluster.crashed]))

    @rule(data=st.data(), count=st.integers(1, 3))
    def send(self, data: st.DataObject, count: int) -> None:
        name = self.alive(data)
        if self.cluster.group(name).links.itself.sends:
            self.cluster.send(name, count)

    @rule(duration=st.integers(1, 3 * UNIT))
    def wait(self, duration: int) -> None:
        self.cluster.run(self.cluster.now + duration)

    @rule(data=st.data())
    def join_or_leave(self, data: st.DataObject) -> None:
        move(self.cluster, self.alive(data))

    @rule(delays=st.lists(st.integers(1, 8 * UNIT), max_size=2))
    def acknowledgments_travel(self, delays: list[int]) -> None:
        self.delays = delays

    @rule(data=st.data())
    def stall_or_release(self, data: st.DataObject) -> None:
        pair = self.alive(data), self.alive(data)
        if pair in self.cluster.held:
            self.cluster.release(*pair)
        else:
            self.cluster.held.add(pair)

    @precondition(lambda self: len(self.cluster.crashed) + 1 < len(self.cluster.names))
    @rule(data=st.data(), after=st.integers(0, 2 * UNIT), notice=st.integers(0, 4 * UNIT))
    def crash(self, data: st.DataObject, after: int, notice: int) -> None:
        name, now = self.alive(data), self.cluster.now
        self.cluster.crash(name, {other: now + after * rank for rank, other in enumerate(self.cluster.names)})
        self.cluster.at(now + notice, self.cluster.lose, name)

    def teardown(self) -> None:
        """After the faults, liveness."""
        if not hasattr(self, "cluster"):
            return
        for pair in [*self.cluster.held]:
            self.cluster.release(*pair)
        self.delays = [UNIT]
        self.cluster.run(self.cluster.now + 60 * UNIT)
        assert self.judge.settled


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
