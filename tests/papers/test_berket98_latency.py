"""Berket98 §4, figure 2 and the bounds (1), (2); docs/spec/stability.md 5, 6; T11: time until stability."""

import random
from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest

from antiphon.protocols.acks.bounds import Latencies, tight_timestamp_bound, timestamp_bound, vector_bound
from antiphon.protocols.acks.settings import Role
from antiphon.types import ProcessId
from tools.lab.acks_cluster import UNIT, AcksCluster
from tools.lab.acks_latency import measure

S1, S2, R1, R2 = map(ProcessId, ("s1", "s2", "r1", "r2"))
SENDERS, RECEIVERS = (S1, S2), (R1, R2)
ROLES: dict[str, Role] = {S1: "sender", S2: "sender", R1: "receiver", R2: "receiver"}
FIGURE_2 = Latencies(
    {(S1, R1): 2 * UNIT, (S1, R2): 2 * UNIT, (S2, R1): 5 * UNIT, (S2, R2): 5 * UNIT},
    {(R1, S1): 4 * UNIT, (R2, S1): 4 * UNIT, (R1, S2): 8 * UNIT, (R2, S2): 8 * UNIT},
)
EPSILON = UNIT // 1000
SUPREMUM = {"vector": {S1: 7 * UNIT, S2: 14 * UNIT}, "timestamp": {S1: 11 * UNIT, S2: 14 * UNIT}}


def figure_2(
    kind: str, sends: Mapping[Any, int], acks: Mapping[Any, int], skews: dict[str, int] | None = None
) -> AcksCluster:
    """Every process transmits once per time unit; the third frame of s1 and s2 is a message."""
    cluster = AcksCluster(
        roles=ROLES,
        messages=FIGURE_2.messages,
        acks=FIGURE_2.acks,
        kind=kind,
        first_sends=sends,
        first_acks=acks,
        skews=skews,
    )
    for sender, first in sends.items():
        cluster.at(2 * UNIT + first, cluster.send, sender)
    cluster.run(18 * UNIT)
    return cluster


def vector(
    of: ProcessId, latencies: Latencies, receivers: tuple[ProcessId, ...] = RECEIVERS, ack_every: int = UNIT
) -> int:
    return vector_bound(of, receivers, latencies, ack_every=ack_every)


def test_figure_2_the_bounds() -> None:
    """7 and 14 for vectors; 11 and 15 for timestamps as printed, where 14 is tight; bound (2) gives 21 for s1."""
    periods: dict[str, Any] = {"send_every": UNIT, "ack_every": UNIT}
    assert [vector(s, FIGURE_2) for s in SENDERS] == [7 * UNIT, 14 * UNIT]
    assert [timestamp_bound(s, SENDERS, RECEIVERS, FIGURE_2, **periods) for s in SENDERS] == [11 * UNIT, 15 * UNIT]
    assert [tight_timestamp_bound(s, SENDERS, RECEIVERS, FIGURE_2, **periods) for s in SENDERS] == [
        11 * UNIT,
        14 * UNIT,
    ]
    assert max(vector(s, FIGURE_2) for s in SENDERS) + vector(S1, FIGURE_2) == 21 * UNIT


def test_figure_2_timestamps_at_their_worst() -> None:
    """s1 sends at integers, s2 just before them, acknowledgments leave just before that: 11 - 2ε, and 14 - ε for s2."""
    cluster = figure_2("timestamp", {S1: 0, S2: UNIT - EPSILON}, dict.fromkeys(RECEIVERS, UNIT - 2 * EPSILON))
    assert cluster.stable_after(S1) == 11 * UNIT - 2 * EPSILON
    assert cluster.stable_after(S2) == 14 * UNIT - EPSILON


def test_figure_2_steps_of_the_eleven() -> None:
    """m1 at 0; s2's next message by 1, at r1 by 6; the acknowledgment by 7, at s1 by 11."""
    cluster = figure_2("timestamp", {S1: 0, S2: UNIT - EPSILON}, dict.fromkeys(RECEIVERS, UNIT - 2 * EPSILON))
    m1 = cluster.sent_at[S1, 0]
    stamps = [frame.stamp for frame in cluster.spoken[S2]]
    answer = next(stamp for stamp in stamps if stamp >= m1)
    acknowledgment = next(frame for frame in cluster.acked[R1] if frame.clock >= m1)
    assert answer == m1 + UNIT - EPSILON
    assert acknowledgment.clock == answer  # s1 has transmitted more by then; s2's message has the smallest stamp
    assert cluster.stable_at[S1, S1, 0] == m1 + 11 * UNIT - 2 * EPSILON


def test_figure_2_vectors_at_their_worst() -> None:
    """Acknowledgments leave just before the messages arrive: 7 - ε and 14 - ε."""
    cluster = figure_2("vector", {S1: 0, S2: 0}, dict.fromkeys(RECEIVERS, UNIT - EPSILON))
    assert cluster.stable_after(S1) == 7 * UNIT - EPSILON
    assert cluster.stable_after(S2) == 14 * UNIT - EPSILON


@pytest.mark.parametrize("kind", ["timestamp", "vector"])
def test_figure_2_random_phases(kind: str) -> None:
    """Never above the supremum, and within 4,000 draws above 99 % of it (T11)."""
    chance, longest, near = random.Random(2), dict.fromkeys(SENDERS, 0), False
    for draw in range(4_000):
        if near and draw >= 1_000:
            break
        sends = {name: chance.randrange(UNIT) for name in SENDERS}
        acks = {name: chance.randrange(UNIT) for name in RECEIVERS}
        cluster = figure_2(kind, sends, acks)
        longest = {name: max(longest[name], cluster.stable_after(name)) for name in SENDERS}
        assert all(longest[name] <= SUPREMUM[kind][name] for name in SENDERS)
        near = all(longest[name] > 0.99 * SUPREMUM[kind][name] for name in SENDERS)
    assert near


@pytest.mark.parametrize("behind", [UNIT // 2, 3 * UNIT])
def test_a_clock_that_is_behind_adds_its_skew(behind: int) -> None:
    """docs/spec/stability.md 5: t_send + δ_s + l_sr; physical clocks are not dragged along."""
    bound = tight_timestamp_bound(
        S1, SENDERS, RECEIVERS, FIGURE_2, send_every=UNIT, ack_every=UNIT, behind={S2: behind}
    )
    assert bound == 11 * UNIT + behind
    sends = {S1: 0, S2: (UNIT - EPSILON + behind) % UNIT}
    acks = dict.fromkeys(RECEIVERS, (UNIT - 2 * EPSILON + behind) % UNIT)
    cluster = figure_2("timestamp", sends, acks, skews={S2: -behind})
    assert cluster.stable_after(S1) == bound - 2 * EPSILON


@pytest.mark.parametrize("periods", [1, 4])
def test_a_silent_sender_delays_the_stability_of_other_messages(periods: int) -> None:
    """s2 is silent for k more periods: messages of s1 wait longer by that time; with vectors they do not."""
    worst: dict[str, int] = {}
    for kind in ("timestamp", "vector"):
        cluster = AcksCluster(
            roles=ROLES,
            messages=FIGURE_2.messages,
            acks=FIGURE_2.acks,
            kind=kind,
            first_sends={S1: 0, S2: 3 * UNIT - EPSILON + periods * UNIT},
            first_acks=dict.fromkeys(RECEIVERS, UNIT - 2 * EPSILON),
        )
        cluster.at(2 * UNIT, cluster.send, S1)
        cluster.run(30 * UNIT)
        worst[kind] = cluster.stable_after(S1)
    assert worst == {"timestamp": 11 * UNIT - 2 * EPSILON + periods * UNIT, "vector": 7 * UNIT - 2 * EPSILON}


def test_relations_of_the_bounds_on_a_thousand_matrices() -> None:
    """(1) t1 <= t2; (2) t2 <= max t1 + t1 + t_send - t_ack; with l_sr = l_rs: t2 <= max t1 + t_send; t2' <= t2."""
    chance = random.Random(4)
    for _ in range(1_000):
        senders = tuple(ProcessId(f"s{number}") for number in range(chance.randint(1, 6)))
        receivers = tuple(ProcessId(f"r{number}") for number in range(chance.randint(1, 6)))
        if chance.random() < 0.5:  # some send and receive
            receivers += senders[: chance.randint(1, len(senders))]
        there = {(s, r): 0 if s == r else chance.randint(0, 100) for s, r in product(senders, receivers)}
        back = {(r, s): 0 if s == r else chance.randint(0, 100) for s, r in product(senders, receivers)}
        mirrored = {(r, s): latency for (s, r), latency in there.items()}
        send_every, ack_every = chance.randint(1, 20), chance.randint(1, 20)
        for latencies in (Latencies(there, back), Latencies(there, mirrored)):
            periods: dict[str, Any] = {"send_every": send_every, "ack_every": ack_every}
            t1 = {s: vector(s, latencies, receivers, ack_every) for s in senders}
            t2 = {s: timestamp_bound(s, senders, receivers, latencies, **periods) for s in senders}
            tight = {s: tight_timestamp_bound(s, senders, receivers, latencies, **periods) for s in senders}
            for s in senders:
                assert t1[s] <= tight[s] <= t2[s]
                assert t2[s] <= max(t1.values()) + t1[s] + send_every - ack_every
                if latencies.acks is mirrored:
                    assert t2[s] <= max(t1.values()) + send_every


def test_no_message_waits_longer_than_the_bounds_on_random_matrices() -> None:
    """§4 against the cores: `benchmarks/acks_latency.py` does the same for 10,000 matrices."""
    worst = measure(matrices=100, seed=7)
    assert {name: found.above for name, found in worst.items()} == {"t1": 0, "t2": 0, "t2'": 0}
    assert min(worst["t1"].ratio, worst["t2'"].ratio) > 0.95
