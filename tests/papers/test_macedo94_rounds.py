"""Macedo94 §2.1: multicast in rounds of Δ, when delays and clocks are bounded (docs/spec/multicast.md 3.1)."""

from typing import Final

import pytest

from antiphon.core.effects import Deliver, Frame, Transmit
from antiphon.protocols.classic.process import ClassicProcess
from antiphon.protocols.classic.settings import ClassicGroupPlan, ClassicSettings
from antiphon.types import GroupId, ProcessId, first_view

G: Final = GroupId("g")
NAMES: Final = ("p", "q", "r")
ROUND: Final = 100


def processes(*names: str) -> list[ClassicProcess]:
    """Members of one group with rounds of 100 ns."""
    view = first_view(G, frozenset(map(ProcessId, NAMES)))
    settings = ClassicSettings(datagrams=True, round_ns=ROUND)
    cores = [ClassicProcess(ProcessId(name), {G: ClassicGroupPlan(view, "synchronous")}, settings) for name in names]
    for core in cores:
        core.drain(0)
    return cores


def sent(core: ClassicProcess, now: int) -> list[Frame]:
    core.tick(now)
    return [effect.frame for effect in core.drain(now) if isinstance(effect, Transmit)]


def delivered(core: ClassicProcess, now: int) -> list[bytes]:
    core.tick(now)
    return [effect.frame.payloads[0] for effect in core.drain(now) if isinstance(effect, Deliver)]


def test_a_message_leaves_at_the_beginning_of_a_round_and_is_delivered_at_its_end() -> None:
    """ "Messages can only be consumed when the end of the round is reached", also if all came at its beginning."""
    p, q = processes("p", "q")
    p.send(G, b"m", 130)
    assert sent(p, 130) == []
    assert p.deadline == 200
    (frame,) = sent(p, 200)
    assert (frame.clock, p.deadline) == (2, 300)
    q.receive(frame, 201)
    assert delivered(q, 299) == delivered(p, 299) == []
    assert q.deadline == 300
    assert delivered(q, 300) == delivered(p, 300) == [b"m"]
    assert p.deadline is q.deadline is None


def test_messages_of_a_round_are_ordered_in_a_deterministic_way() -> None:
    """ "Messages timestamped with T will be ordered before being delivered": by sender and number, not by arrival."""
    p, q, r = processes(*NAMES)
    for core, payload in ((q, b"q1"), (p, b"p1"), (p, b"p2")):
        core.send(G, payload, 200)
    first, second, third = *sent(p, 200), *sent(q, 200)
    for core, arrivals in ((p, [third]), (q, [second, first]), (r, [third, second, first])):
        for frame in arrivals:
            core.receive(frame, 250)
    assert [delivered(core, 300) for core in (p, q, r)] == [[b"p1", b"p2", b"q1"]] * 3


@pytest.mark.parametrize(("arrives", "payloads"), [(299, [b"m"]), (300, []), (900, [])])
def test_a_message_is_delivered_at_the_end_of_its_round_or_never(arrives: int, payloads: list[bytes]) -> None:
    """By the clock of the receiver: sent at T, it must arrive before T + Δ. A late one is not relayed either."""
    p, q = processes("p", "q")
    p.send(G, b"m", 200)
    (frame,) = sent(p, 200)
    q.receive(frame, arrives)
    assert bool(sent(q, arrives)) is bool(payloads)
    assert delivered(q, 300) == payloads
    assert delivered(q, 1_000) == []


def test_a_relay_completes_the_multicast_of_a_process_that_crashed_half_way() -> None:
    """Atomic delivery: p's message reaches q alone. No process is told of the crash before the round ends."""
    p, q, r = processes(*NAMES)
    p.send(G, b"m", 200)
    (frame,) = sent(p, 200)
    q.receive(frame, 240)
    (relay,) = sent(q, 240)
    r.receive(relay, 290)
    assert delivered(q, 300) == delivered(r, 300) == [b"m"]


def test_what_follows_a_lost_message_is_delivered_nowhere() -> None:
    """p sends two messages and crashes; the first reaches no member. All members find the same gap."""
    p, q, r = processes(*NAMES)
    p.send(G, b"1", 200)
    p.send(G, b"2", 200)
    _, second = sent(p, 200)
    q.receive(second, 210)
    (relay,) = sent(q, 210)
    r.receive(relay, 220)
    assert delivered(q, 300) == delivered(r, 300) == []
    assert q.unstable(G) == r.unstable(G) == 0


def test_an_answer_belongs_to_a_later_round_than_its_question() -> None:
    """So the order of rounds is causal, without any bound on delays."""
    p, q = processes("p", "q")
    p.send(G, b"question", 200)
    (question,) = sent(p, 200)
    q.receive(question, 299)
    assert delivered(q, 300) == [b"question"]
    q.send(G, b"answer", 300)
    (answer,) = sent(q, 300)
    assert (question.clock, answer.clock) == (2, 3)


def test_a_process_that_wakes_late_sends_in_the_round_that_it_finds() -> None:
    p, _ = processes("p", "q")
    p.send(G, b"m", 110)
    assert sent(p, 110) == []
    (frame,) = sent(p, 420)
    assert (frame.clock, p.deadline) == (4, 500)
