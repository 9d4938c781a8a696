"""Flow control alone: the vectors, the test before a send, and invariants under any schedule."""

from collections import defaultdict, deque
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.protocols.newtop.flow.windows import FlowControl
from antiphon.protocols.newtop.frames import Flow
from antiphon.protocols.newtop.settings import NewtopSettings

LEAST = {1: 3, 2: 2, 3: 2}
"""The least window with which each algorithm can send (docs/spec/flow-control.md 3)."""


def control(algorithm: int = 3, *, window: int = 64, size: int = 2, rank: int = 0, **settings: Any) -> FlowControl:
    return FlowControl(size, rank, NewtopSettings(flow_control=algorithm, window=window, **settings))


def in_state(algorithm: int, window: int, *, super_stable: int = 0, stable: int, complete: int) -> FlowControl:
    """We have all numbers up to `complete`; one peer tells the stable number, the other the super-stable number."""
    flow = control(algorithm, window=window, size=3)
    flow.heard(1, Flow(complete, stable, stable, super_stable))
    flow.heard(2, Flow(complete, stable, super_stable, super_stable))
    flow.carried(complete)
    flow.settle()
    assert (flow.stable, flow.complete) == (stable, complete)
    assert algorithm != 1 or flow.super_stable == super_stable
    return flow


def send(flow: FlowControl, number: int, size_bytes: int = 0) -> Flow:
    header = flow.header(number)
    flow.unconsumed.add(number)
    flow.counted(number, size_bytes)
    flow.carried(number)
    return header


# Headers of others


def test_headers_raise_every_entry_and_the_consequences_follow() -> None:
    flow = control(1)
    flow.heard(1, Flow(9, 7, 5, 2))
    flow.carried(8)
    flow.settle()
    assert (flow.received.values, flow.completed.values, flow.stable_at.values) == ([8, 9], [8, 7], [7, 5])
    assert (flow.complete, flow.stable, flow.super_stable) == (8, 7, 5)
    assert (flow.largest, flow.sent, flow.counter) == (9, 8, 8)


def test_old_news_lowers_nothing() -> None:
    flow = control(1)
    flow.heard(1, Flow(9, 7, 5, 2))
    flow.settle()
    before = (flow.received.values[:], flow.completed.values[:], flow.stable_at.values[:], flow.largest)
    flow.heard(1, Flow(3, 2, 1, 0))
    flow.settle()
    assert (flow.received.values, flow.completed.values, flow.stable_at.values, flow.largest) == before
    assert (flow.stable, flow.super_stable) == (5, 2)


def test_any_member_may_tell_which_number_is_stable() -> None:
    """A maximum, for stability is a global fact (E-17)."""
    flow = control(3, size=3)
    flow.heard(1, Flow(9, 7, 5, 0))
    flow.settle()
    assert flow.completed.minimum == 0
    assert flow.stable == 5


def test_a_header_tells_the_state_before_its_own_number() -> None:
    flow = control(3, size=1)
    assert send(flow, 1) == Flow(1, 0, 0, 0)
    flow.unconsumed.remove(1)
    flow.settle()
    assert send(flow, 2) == Flow(2, 1, 1, 0)


def test_a_null_carries_the_largest_number_seen_and_counts_as_having_sent_it() -> None:
    flow = control(3)
    flow.unconsumed.add(6)
    flow.heard(1, Flow(6, 0, 0, 0))
    flow.carried(flow.header(flow.largest).number)
    assert (flow.sent, flow.counter, flow.received.minimum) == (6, 6, 6)


@pytest.mark.parametrize(
    ("header", "follows"),
    [
        (Flow(4, 4, 4, 0), False),
        (Flow(3, 1, 0, 0), False),
        (Flow(5, 4, 4, 0), True),
        (Flow(5, 5, 4, 0), True),
    ],
    ids=["nothing new", "old news", "an answer is owed", "more is complete"],
)
def test_it_is_known_whether_a_header_has_consequences(header: Flow, follows: bool) -> None:
    flow = control(3)
    flow.carried(4)
    flow.heard(1, Flow(4, 4, 4, 0))
    flow.settle()
    assert flow.heard(1, header) is follows


# Δ: numbers that the application has taken


def test_numbers_that_the_application_has_not_taken_are_not_complete() -> None:
    flow = control(3)
    flow.unconsumed.add(4)
    flow.unconsumed.add(6)
    flow.heard(1, Flow(9, 0, 0, 0))
    flow.carried(9)
    complete = []
    for taken in (None, 6, 4):
        if taken is not None:
            flow.unconsumed.remove(taken)
        flow.settle()
        complete.append(flow.complete)
    assert complete == [3, 3, 9]  # taken out of order, and numbers without data count as taken


def test_a_half_taken_number_is_not_complete() -> None:
    flow = control(3, size=3)
    for rank in (1, 2):
        flow.unconsumed.add(5)
        flow.heard(rank, Flow(5, 0, 0, 0))
    flow.carried(5)
    flow.unconsumed.remove(5)
    flow.settle()
    assert flow.complete == 4
    flow.unconsumed.remove(5)
    flow.settle()
    assert flow.complete == 5


def test_our_own_messages_must_be_taken_too() -> None:
    flow = control(3, size=1)
    send(flow, 1)
    flow.settle()
    assert (flow.complete, flow.stable, flow.ahead) == (0, 0, 1)
    flow.unconsumed.remove(1)
    flow.settle()
    assert (flow.complete, flow.stable, flow.ahead) == (1, 1, 0)


def test_a_number_taken_here_is_not_stable_while_others_lack_it() -> None:
    """The printed rule would (E-18)."""
    flow = control(3)
    flow.unconsumed.add(5)
    flow.heard(1, Flow(5, 0, 0, 0))
    flow.carried(5)
    flow.unconsumed.remove(5)
    flow.settle()
    assert (flow.complete, flow.stable) == (5, 0)


# Whether a message may leave


@pytest.mark.parametrize(
    ("algorithm", "window", "state", "number"),
    [
        (1, 8, {"super_stable": 3, "stable": 4, "complete": 5}, 11),  # Macedo95 Fig. 1
        (1, 3, {"super_stable": 0, "stable": 1, "complete": 2}, 3),
        (2, 7, {"stable": 4, "complete": 5}, 11),
        (2, 2, {"stable": 0, "complete": 1}, 2),
        (3, 7, {"stable": 0, "complete": 10}, 16),
        (3, 2, {"stable": 0, "complete": 3}, 4),
    ],
)
def test_the_borders_of_each_algorithm(algorithm: int, window: int, state: dict[str, int], number: int) -> None:
    flow = in_state(algorithm, window, **state)
    assert flow.permits(number, 0)
    assert not flow.permits(number + 1, 0)
    needed = {1: ["super_stable", "stable", "complete"], 2: ["stable", "complete"], 3: ["complete"]}[algorithm]
    for key in needed:
        if state[key]:
            assert not in_state(algorithm, window, **{**state, key: state[key] - 1}).permits(number, 0), key


def test_algorithm_2_against_3() -> None:
    """Macedo95 §3.4: in the state (S, D) = (4, 10), N = 7, the second sends one message and the third six."""
    granted = {}
    for algorithm in (2, 3):
        flow, number = in_state(algorithm, 7, stable=4, complete=10), 11
        while flow.permits(number, 0):
            send(flow, number)
            number += 1
        granted[algorithm] = number - 11
    assert granted == {2: 1, 3: 6}


def test_algorithm_3_counts_own_messages_above_the_stable_number() -> None:
    flow = in_state(3, 2, stable=0, complete=50)
    send(flow, 51)
    assert flow.permits(51, 0)
    send(flow, 52)
    assert not flow.permits(51, 0)
    flow.heard(1, Flow(52, 51, 51, 0))
    flow.settle()
    assert flow.ahead == 1
    assert flow.permits(51, 0)


@pytest.mark.parametrize("algorithm", [1, 2, 3])
def test_bytes_are_limited_like_messages(algorithm: int) -> None:
    flow = control(algorithm, window_bytes=100)
    assert flow.permits(1, 101), "the first leaves whatever its size, or it never would"
    send(flow, 1, 60)
    assert flow.permits(2, 40)
    assert not flow.permits(2, 41)
    send(flow, 2, 40)
    assert flow.ahead_bytes == 100
    assert flow.permits(3, 0)
    assert not flow.permits(3, 1)
    flow.heard(1, Flow(2, 1, 1, 0))
    flow.settle()
    assert flow.ahead_bytes == 40
    assert flow.permits(3, 60)
    assert not flow.permits(3, 61)


@pytest.mark.parametrize("algorithm", [1, 2, 3])
def test_below_the_least_window_the_first_message_never_leaves(algorithm: int) -> None:
    """Invariant I7."""
    assert control(algorithm, window=LEAST[algorithm]).permits(1, 0)
    for window in range(LEAST[algorithm]):
        assert not control(algorithm, window=window).permits(1, 0)


# Random schedules


class Member:
    """A flow control, and a naive model of it: data numbers not taken, and the last number of each member."""

    def __init__(self, algorithm: int, window: int, size: int, rank: int) -> None:
        self.rank = rank
        self.flow = control(algorithm, window=window, size=size, rank=rank)
        self.untaken: list[int] = []
        self.last = [0] * size
        self.sent: dict[int, list[int]] = defaultdict(list)
        """By sender, the data numbers that came or left."""

    @property
    def complete(self) -> int:
        return min(*self.last, *(number - 1 for number in self.untaken))


class World:
    """Members joined by FIFO channels."""

    def __init__(self, algorithm: int, window: int, size: int, wanted: int) -> None:
        self.algorithm, self.window = algorithm, window
        self.members = [Member(algorithm, window, size, rank) for rank in range(size)]
        self.wanted = [wanted] * size
        self.channels: dict[tuple[int, int], deque[tuple[Flow, bool]]] = defaultdict(deque)

    def send(self, rank: int) -> None:
        member = self.members[rank]
        number = member.flow.counter + 1
        if not self.wanted[rank] or not member.flow.permits(number, 1):
            return
        self.wanted[rank] -= 1
        member.untaken.append(number)
        member.sent[rank].append(number)
        self._multicast(member, send(member.flow, number, 1), data=True)

    def speak(self, rank: int) -> None:
        """A null or an announcement."""
        member = self.members[rank]
        header = member.flow.header(member.flow.largest)
        member.flow.carried(header.number)
        self._multicast(member, header, data=False)

    def receive(self, sender: int, receiver: int) -> None:
        if not self.channels[sender, receiver]:
            return
        header, data = self.channels[sender, receiver].popleft()
        member = self.members[receiver]
        flow = member.flow
        if data:
            flow.unconsumed.add(header.number)
            member.untaken.append(header.number)
            member.sent[sender].append(header.number)
        member.last[sender] = header.number
        follows = flow.heard(sender, header)
        before = (flow.complete, flow.stable, flow.super_stable, flow.ahead)
        self.settle(member)
        assert follows or before == (flow.complete, flow.stable, flow.super_stable, flow.ahead)

    def take(self, rank: int, which: int) -> None:
        member = self.members[rank]
        if member.untaken:
            number = member.untaken.pop(which % len(member.untaken))
            member.flow.counter = max(member.flow.counter, number)
            member.flow.unconsumed.remove(number)
            self.settle(member)

    def settle(self, member: Member) -> None:
        member.flow.settle()
        assert member.flow.complete == member.complete
        for one in self.members:  # I1
            assert member.flow.stable <= one.flow.complete
            assert member.flow.super_stable <= one.flow.stable
        bound = self.window - 1 if self.algorithm == 1 else self.window
        for numbers in member.sent.values():  # I2, I5
            assert sum(number > member.flow.stable for number in numbers) <= bound

    def finish(self) -> None:
        """Fair channels, hungry applications: every request is granted (I6)."""
        for _ in range(20 * (sum(self.wanted) + 2)):
            for rank in range(len(self.members)):
                self.send(rank)
                self.speak(rank)
            for sender, receiver in list(self.channels):
                while self.channels[sender, receiver]:
                    self.receive(sender, receiver)
            for rank, member in enumerate(self.members):
                while member.untaken:
                    self.take(rank, 0)
        assert not any(self.wanted)
        assert all(not member.flow.ahead for member in self.members)

    def _multicast(self, member: Member, header: Flow, *, data: bool) -> None:
        member.last[member.rank] = header.number
        for other in self.members:
            if other is not member:
                self.channels[member.rank, other.rank].append((header, data))
        self.settle(member)


@settings(deadline=None)  # a busy machine is no bug
@given(
    algorithm=st.sampled_from([1, 2, 3]),
    more=st.integers(0, 2),
    size=st.integers(2, 4),
    wanted=st.integers(0, 6),
    seed=st.integers(0, 2**32),
)
def test_stable_numbers_are_complete_everywhere_and_every_message_leaves(
    algorithm: int, more: int, size: int, wanted: int, seed: int
) -> None:
    world, random = World(algorithm, LEAST[algorithm] + more, size, wanted), Random(seed)
    for _ in range(60):
        one, other = random.sample(range(size), 2)
        match random.choice("sspprrrrtt"):
            case "s":
                world.send(one)
            case "p":
                world.speak(one)
            case "r":
                world.receive(one, other)
            case "t":
                world.take(one, random.randrange(10))
    world.finish()
