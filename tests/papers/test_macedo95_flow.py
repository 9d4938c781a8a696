"""Worked examples, invariants and lemmas of Macedo95 (flow control) and Macedo94 ch. 8.

The papers count blocks from 0 with base -1; here the first block is 1, so their numbers appear one larger.
"""

import random
from collections import Counter
from collections.abc import Iterator
from typing import TypeGuard

import pytest

from antiphon.core.effects import Blocked, Discard, Effect, Unblocked
from antiphon.protocols.newtop.flow.windows import FlowControl
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.types import ProcessId
from tests.support.cluster import GROUP, SLOW_NS, Cluster

LEAST = {1: 3, 2: 2, 3: 2}
"""The least window of each algorithm."""


def group_of(cluster: Cluster, name: str) -> NewtopGroup:
    return cluster.core(name)._groups[GROUP]


def flow_of(cluster: Cluster, name: str) -> FlowControl:
    flow = group_of(cluster, name).flow
    assert flow is not None
    return flow


def state(cluster: Cluster, name: str) -> tuple[int, int, int]:
    """(Σ, S, D) as in the figure."""
    flow = flow_of(cluster, name)
    return flow.super_stable, flow.stable, flow.complete


def as_printed(algorithm: int, window: int) -> Cluster:
    """Three processes as in the paper: block numbering, one message a frame, nothing but data and nulls."""
    return Cluster(
        "i", "j", "k",
        flow_control=algorithm, window=window, block_numbered=frozenset({GROUP}), packing=False,
        silence_timeout_ns=SLOW_NS, literal=("E-19b",),
    )  # fmt: skip


def everyone_answers(cluster: Cluster) -> None:
    """All frames in transit arrive; then silent members send their nulls, and these arrive."""
    cluster.move_all()
    cluster.wait(SLOW_NS)
    cluster.move_all()


def state_a(cluster: Cluster) -> None:
    """Figure 1 (a): block 3 super-stable, 4 stable, 5 complete; one message at a time leads there."""
    for _ in range(5):
        cluster.send("i", b"x")
        everyone_answers(cluster)
    assert {state(cluster, name)[1:] for name in cluster.cores} == {(4, 5)}


def test_figure_1_algorithm_1_step_by_step() -> None:
    """Macedo95 Fig. 1, Macedo94 Fig. 8.1, N = 8: steps a to d."""
    cluster = as_printed(1, 8)
    state_a(cluster)
    assert {state(cluster, name) for name in cluster.cores} == {(3, 4, 5)}
    cluster.send("i", *[b"x"] * 7)
    b = cluster.transmitted["i"][5:]
    assert [frame.block for frame in b] == [6, 7, 8, 9, 10, 11]  # and not 12
    assert {frame.flow[1:] for frame in b if frame.flow} == {(5, 4, 3)}
    assert Blocked(GROUP, ProcessId("j")) in cluster.effects["i"]
    everyone_answers(cluster)
    nulls = [cluster.transmitted[name][-1] for name in "jk"]
    assert {(frame.block, *(frame.flow or ())[1:]) for frame in nulls} == {(11, 5, 4, 3)}
    assert {state(cluster, name) for name in cluster.cores} == {(4, 5, 11)}
    c = cluster.transmitted["i"][11:]
    assert [(frame.block, *(frame.flow or ())[1:]) for frame in c] == [(12, 11, 5, 4)]
    assert not flow_of(cluster, "i").permits(13, 0)  # it needs 5 super-stable
    everyone_answers(cluster)
    assert {state(cluster, name) for name in cluster.cores} == {(5, 11, 12)}
    cluster.send("i", b"x")
    assert [(frame.block, *(frame.flow or ())[1:]) for frame in cluster.transmitted["i"][12:]] == [(13, 12, 11, 5)]
    everyone_answers(cluster)
    assert {state(cluster, name) for name in cluster.cores} == {(11, 12, 13)}
    cluster.send("i", *[b"x"] * 7)
    d = cluster.transmitted["i"][13:]
    assert [frame.block for frame in d] == [14, 15, 16, 17, 18, 19]  # and not 20
    assert {frame.flow[1:] for frame in d if frame.flow} == {(13, 12, 11)}


def test_figure_1_requirements_of_the_next_message() -> None:
    """To send 12 from state a the requirement is exactly: 4 super-stable, 5 stable, 6 complete."""
    cluster = as_printed(1, 8)
    state_a(cluster)
    flow = flow_of(cluster, "i")
    needed = (4, 5, 6)
    for lacking in range(3):
        have = [number - (position == lacking) for position, number in enumerate(needed)]
        flow.super_stable, flow.stable, flow.complete = have
        assert not flow.permits(12, 0)
    flow.super_stable, flow.stable, flow.complete = needed
    assert flow.permits(12, 0)
    assert not flow.permits(13, 0)


@pytest.mark.parametrize(("algorithm", "allowed"), [(2, [12]), (3, [12, 13, 14, 15, 16, 17])])
def test_section_3_4_algorithm_2_against_3(algorithm: int, allowed: list[int]) -> None:
    """§3.4, N = 7: P_i sent 6 to 11, the others one null at 11; P_j has six messages: 2 lets one go, 3 all of them."""
    cluster = as_printed(algorithm, 7)
    state_a(cluster)
    cluster.send("i", *[b"x"] * 6)
    everyone_answers(cluster)
    assert {state(cluster, name)[1:] for name in cluster.cores} == {(5, 11)}
    already = len(cluster.transmitted["j"])
    cluster.send("j", *[b"y"] * 6)
    assert [frame.block for frame in cluster.transmitted["j"][already:]] == allowed
    if algorithm == 3:
        cluster.send("j", b"y")
        assert cluster.transmitted["j"][-1].block == 17  # 18 is refused


@pytest.mark.parametrize(("algorithm", "window"), [(1, 1), (1, 2), (2, 1), (3, 1)])
def test_i7_with_less_than_the_least_window_nothing_is_ever_sent(algorithm: int, window: int) -> None:
    """Macedo94 §8.1: N >= 3 for algorithm 1, N >= 2 for the others."""
    cluster = Cluster("i", "j", "k", flow_control=algorithm, window=window)
    cluster.send("i", b"x")
    cluster.finish()
    assert cluster.delivered["i"] == []
    assert not cluster.transmitted["i"]


def is_eviction(effect: Effect) -> TypeGuard[Discard]:
    return isinstance(effect, Discard) and effect.evicted


def flow_number(cluster: Cluster, sender: str, label: int) -> int:
    sent = [frame for frame in cluster.transmitted[sender] if frame.payloads and frame.label == label]
    assert sent[0].flow is not None
    return sent[0].flow.number


class Schedule:
    """A random schedule of members that send, receive, fall silent and are slow."""

    def __init__(self, seed: int, algorithm: int, *, block: bool, slow: bool, load: int = 0) -> None:
        self.chance = random.Random(f"{seed}/{algorithm}/{block}/{slow}")
        self.names = [f"p{number}" for number in range(self.chance.randint(2, 4))]
        self.window = LEAST[algorithm] + self.chance.choice([0, 0, 1, 3])
        self.cluster = Cluster(
            *self.names,
            flow_control=algorithm,
            window=self.window,
            block_numbered=frozenset({GROUP} if block else ()),
            packing=not load and self.chance.random() < 0.5,
            silence_timeout_ns=self.chance.choice([0, 30]),
        )
        self.slow = slow
        self.sent = load * len(self.names)
        for name in self.names:
            self.cluster.send(name, *[b"x"] * load)

    def steps(self) -> Iterator[str]:
        """Run random events; after each, yields the name of the process concerned."""
        for _ in range(150):
            yield self._step()
        self.cluster.stalled.clear()
        for name in self.names:
            self.cluster.take(name)
            self.cluster.settle(name)

    def _step(self) -> str:
        cluster, chance = self.cluster, self.chance
        name = chance.choice(self.names)
        waiting = sorted(pair for pair, frames in cluster.channels.items() if frames)
        what = chance.random()
        if what < 0.25:
            count = chance.choice([1, 1, 4])
            self.sent += count
            cluster.send(name, *[b"x"] * count)
        elif what < 0.85 and waiting:
            sender, name = chance.choice(waiting)
            cluster.feed(sender, name)
            for other in self.names if chance.random() < 0.3 else ():  # a batch, drained once
                while cluster.channels[other, name]:
                    cluster.feed(other, name)
            cluster.settle(name)
        elif what < 0.92 and self.slow:
            cluster.stalled ^= {name}
            cluster.take(name)
            cluster.settle(name)
        else:
            cluster.wait(20)
        return name


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("algorithm", [1, 2, 3])
def test_i1_stability_is_never_claimed_too_early(algorithm: int, block: bool, slow: bool) -> None:
    """I1, at every instant: S_i <= min C_j and Σ_i <= min S_j; I8 and I6: in the end everything is delivered."""
    for seed in range(25):
        schedule = Schedule(seed, algorithm, block=block, slow=slow)
        cluster = schedule.cluster
        for _ in schedule.steps():
            flows = [flow_of(cluster, name) for name in schedule.names]
            complete, stable = min(flow.complete for flow in flows), min(flow.stable for flow in flows)
            assert all(flow.stable <= complete for flow in flows), seed
            assert all(flow.super_stable <= stable for flow in flows), seed
        cluster.finish(rounds=60)
        assert all(len(delivered) == schedule.sent for delivered in cluster.delivered.values()), seed
        assert not any(group_of(cluster, name).gate.blocked for name in schedule.names), seed


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("algorithm", [1, 2, 3])
def test_i2_i3_i5_i9_buffers_stay_bounded(algorithm: int, block: bool, slow: bool) -> None:
    """Per sender at most N - 1 (algorithm 1) or N unstable messages after processing; never more than M in all.

    That algorithm 1 always has a free buffer (I3) is asserted in the core; with block numbering, slot b mod N of a
    table as in Macedo94 §7.2.2 is never taken by another unstable block (I9).
    """
    for seed in range(25):
        schedule = Schedule(seed, algorithm, block=block, slow=slow)
        for name in schedule.steps():
            group, flow = group_of(schedule.cluster, name), flow_of(schedule.cluster, name)
            rows = {number: row for number, row in group.holdings.buffers.bounded._rows.items() if number > flow.stable}
            senders = Counter(frame.sender for row in rows.values() for frame in row)
            bound = schedule.window - 1 if algorithm == 1 else schedule.window
            assert max(senders.values(), default=0) <= bound, seed
            assert group.holdings.buffers.bounded.frames <= schedule.window * len(schedule.names), seed
            if algorithm == 1:
                assert len({number % schedule.window for number in rows}) == len(rows), seed


def test_i4_an_evicted_message_is_stable_somewhere_and_consumed_here() -> None:
    """Lemmas 2.1, 3.1: an evicted message is known stable to some member, received by all, delivered by the evictor."""
    evictions = 0
    for algorithm in (2, 3):
        for seed in range(40):
            schedule = Schedule(seed, algorithm, block=seed % 2 == 0, slow=False, load=30)
            cluster = schedule.cluster
            seen = dict.fromkeys(schedule.names, 0)
            for name in schedule.steps():
                effects = cluster.effects[name][seen[name] :]
                seen[name] = len(cluster.effects[name])
                for sender, label in [upto for effect in effects if is_eviction(effect) for upto in effect.upto]:
                    evictions += 1
                    number = flow_number(cluster, sender, label)
                    flows = [flow_of(cluster, other) for other in schedule.names]
                    assert any(flow.stable >= number for flow in flows)
                    assert all(flow.complete >= number for flow in flows)
                    assert all(flow.received.minimum >= number for flow in flows)
    assert evictions


def test_a_stalled_application_blocks_its_senders_and_names_the_slow_member() -> None:
    """§3.5: with Δ instead of D, a member whose application consumes nothing stops all members within a window."""
    cluster = Cluster("i", "j", "k", flow_control=3, window=4, packing=False)
    cluster.stalled.add("k")
    cluster.send("i", *[b"x"] * 3)
    cluster.finish()
    cluster.send("i", *[b"x"] * 7)
    cluster.finish()
    assert len(cluster.transmitted["i"]) == 4
    assert Blocked(GROUP, ProcessId("k")) in cluster.effects["i"]
    assert len(cluster.delivered["j"]) == 4
    cluster.stalled.clear()
    cluster.take("k")
    cluster.settle("k")
    cluster.finish()
    assert list(map(len, cluster.delivered.values())) == [10, 10, 10]
    waits = [type(effect) for effect in cluster.effects["i"] if isinstance(effect, Blocked | Unblocked)]
    assert waits[::2] == [Blocked] * (len(waits) // 2)
    assert waits[1::2] == [Unblocked] * (len(waits) // 2)


def test_a_message_longer_than_the_window_passes_through_it() -> None:
    """spec/README 14: pieces count as taken once they wait for the rest, even while the application stalls."""
    cluster = Cluster("i", "j", flow_control=3, window=2, window_bytes=20, frame_bytes_max=10)
    cluster.send("i", b"0123456789" * 9 + b"end", b"next")
    cluster.finish()
    assert cluster.delivered == {"i": [b"0123456789" * 9 + b"end", b"next"], "j": [b"0123456789" * 9 + b"end", b"next"]}
    assert [frame.kind for frame in cluster.transmitted["i"] if frame.payloads] == ["fragment"] * 9 + ["data"] * 2


def test_bytes_are_bounded_too() -> None:
    """The window counts frames and payload bytes, whichever is used up first."""
    cluster = Cluster("i", "j", flow_control=3, window=64, window_bytes=100, frame_bytes_max=100, packing=False)
    cluster.stalled.add("j")
    cluster.send("i", *[b"x" * 30] * 10)
    assert len(cluster.transmitted["i"]) == 3
    cluster.finish()
    assert len(cluster.transmitted["i"]) == 3


def test_delivery_order_does_not_depend_on_flow_control() -> None:
    """docs/spec/experiments-newtop.md 3, relation 5: the same sends give the same order under every algorithm."""
    orders = set()
    for algorithm in (0, 1, 2, 3):
        cluster = Cluster("i", "j", "k", flow_control=algorithm, window=8, silence_timeout_ns=SLOW_NS)
        for step in range(6):
            cluster.send("ijk"[step % 3], b"%d" % step)
            everyone_answers(cluster)
        cluster.finish()
        orders.add(tuple(cluster.delivered["k"]))
    assert len(orders) == 1
