"""Algorithms R, F and C over links that reorder and repeat, when senders crash."""

import pytest

from antiphon.protocols.classic.frames import InquiryFrame
from antiphon.protocols.classic.seen import Seen
from antiphon.protocols.classic.settings import Service
from tests.support.classic_cluster import GROUP, SERVICES, ClassicCluster, faults, only_to


def finish(cluster: ClassicCluster) -> None:
    cluster.tell()
    cluster.move_all()
    assert not faults(cluster)


def test_seen_is_a_mark_and_what_lies_beyond_gaps() -> None:
    seen = Seen()
    assert [seen.add(number) for number in (1, 3, 3, 4, 1)] == [True, True, False, True, False]
    assert seen.mark == 1
    assert [number in seen for number in range(6)] == [True, True, False, True, True, False]
    assert seen.add(2)
    assert seen.mark == 4


def test_numbers_beyond_a_permanent_gap_are_forgotten_and_refused() -> None:
    seen = Seen()
    seen.add(1)
    seen.add(3)
    seen.close()
    assert 3 not in seen
    assert not seen.add(3)
    assert not seen.add(2)
    assert seen.mark == 1


@pytest.mark.parametrize("service", SERVICES)
def test_copies_change_nothing(service: Service) -> None:
    cluster = ClassicCluster("p", "q", "r", service=service)
    cluster.send("p", b"1")
    cluster.send("p", b"2")
    for sender, receiver in [("p", "q"), ("p", "r"), ("q", "r"), ("r", "q")] * 3:
        for _ in range(len(cluster.links[sender, receiver])):
            cluster.move(sender, receiver, again=True)
            cluster.move(sender, receiver)
    finish(cluster)
    assert len(cluster.payloads("q")) == 2


@pytest.mark.parametrize("service", SERVICES)
def test_a_lone_member_still_sends(service: Service) -> None:
    """The message is transmitted although no member is left: it counts as sent."""
    cluster = ClassicCluster("p", service=service)
    cluster.send("p", b"m")
    assert cluster.payloads("p") == [b"m"]
    assert len(cluster.sent) == 1


@pytest.mark.parametrize("service", ["fifo", "causal"])
def test_a_gap_that_no_process_can_close_is_given_up_by_all(service: Service) -> None:
    """2 reached no process; 3 reached q, which relayed it. Neither q nor r delivers or keeps it."""
    cluster = ClassicCluster("p", "q", "r", service=service)
    for payload in (b"1", b"2", b"3"):
        cluster.send("p", payload)
    cluster.move("p", "q")
    cluster.move("p", "q", 1)
    cluster.crash("p", only_to())
    cluster.move_all()
    assert cluster.payloads("r") == [b"1"]
    finish(cluster)
    assert cluster.payloads("q") == cluster.payloads("r") == [b"1"]


def test_a_late_message_beyond_a_gap_that_was_given_up_is_dropped() -> None:
    """r holds nothing when p is lost. It receives 3 later, asks too, and drops it; q is not asked twice."""
    cluster = ClassicCluster("p", "q", "r", service="fifo")
    for payload in (b"1", b"2", b"3"):
        cluster.send("p", payload)
    cluster.move("p", "q", 2)
    cluster.crash("p", only_to())
    cluster.tell()
    cluster.move_kind("inquiry", "q", "r")
    cluster.move_kind("report", "r", "q")
    finish(cluster)
    inquiries = [frame for frame in cluster.travelled if isinstance(frame, InquiryFrame)]
    assert [frame.sender for frame in inquiries] == ["q", "r"]
    assert {message.sequence for frame in inquiries for message in frame.messages} == {1}


def test_a_gap_is_not_given_up_while_a_process_can_close_it() -> None:
    """r has 1 and has relayed it; q holds 2, learns this from r, and waits."""
    cluster = ClassicCluster("p", "q", "r", service="fifo")
    cluster.send("p", b"1")
    cluster.send("p", b"2")
    cluster.move("p", "q", 1)
    cluster.move("p", "r", 0)
    cluster.crash("p", only_to())
    cluster.tell()
    cluster.move_kind("inquiry", "q", "r")
    cluster.move_kind("report", "r", "q")
    assert cluster.payloads("q") == []
    finish(cluster)
    assert cluster.payloads("q") == cluster.payloads("r") == [b"1", b"2"]


def test_a_gap_is_given_up_when_the_only_holder_of_the_message_crashes_too() -> None:
    cluster = ClassicCluster("p", "q", "r", service="fifo")
    cluster.send("p", b"1")
    cluster.send("p", b"2")
    cluster.move("p", "q", 1)
    cluster.move("p", "r", 0)
    cluster.crash("p", only_to())
    cluster.tell()
    cluster.move_kind("inquiry", "q", "r")
    cluster.move_kind("report", "r", "q")
    cluster.crash("r", only_to())
    finish(cluster)
    assert cluster.payloads("q") == []


def test_streams_leave_no_gaps_to_ask_about() -> None:
    """Each stream loses only its end: a process that has 2 has 1."""
    cluster = ClassicCluster("p", "q", "r", service="fifo", streams=True)
    for payload in (b"1", b"2", b"3"):
        cluster.send("p", payload)
    cluster.move("p", "q")
    cluster.move("p", "q")
    cluster.crash("p", only_to())
    finish(cluster)
    assert cluster.payloads("q") == cluster.payloads("r") == [b"1", b"2"]
    assert "inquiry" not in cluster.kinds()


def test_a_context_lists_only_messages_that_a_member_may_lack() -> None:
    """q has heard r relay a, so its next message need not carry a; and it never carries its own messages."""
    cluster = ClassicCluster("p", "q", "r", service="causal")
    cluster.send("p", b"a")
    cluster.move("p", "q")
    assert cluster.cores["q"].unstable(GROUP) == 1
    cluster.move("p", "r")
    cluster.move_kind("relay", "r", "q")
    assert cluster.cores["q"].unstable(GROUP) == 0
    cluster.send("p", b"b")
    cluster.move_kind("data", "p", "q")
    cluster.send("q", b"c")
    cluster.send("q", b"d")
    packets = [frame for frame in cluster.links["q", "r"] if frame.kind == "data"]
    assert [[copy.payloads[0] for copy in packet.copies] for packet in packets] == [[b"b"], []]
    finish(cluster)


def test_a_context_does_not_nest() -> None:
    cluster = ClassicCluster("p", "q", "r", "t", service="causal")
    cluster.send("p", b"a")
    cluster.move("p", "q")
    cluster.send("q", b"b")
    cluster.move_kind("data", "q", "r")
    cluster.send("r", b"c")
    packet = cluster.links["r", "t"][cluster.under_way("r", "t", "data")]
    assert [copy.payloads[0] for copy in packet.copies] == [b"a", b"b"]
    assert not any(copy.copies for copy in packet.copies)
    cluster.move_kind("data", "r", "t")
    assert cluster.payloads("t") == [b"a", b"b", b"c"]
    finish(cluster)


def test_a_message_may_come_in_a_context_alone() -> None:
    """p and q crash; a reached r only inside q's packet. r and t deliver it, and need not keep it."""
    cluster = ClassicCluster("p", "q", "r", "t", service="causal")
    cluster.send("p", b"a")
    cluster.move("p", "q")
    cluster.crash("p", only_to())
    cluster.send("q", b"b")
    cluster.move_kind("data", "q", "r")
    cluster.crash("q", only_to())
    finish(cluster)
    assert cluster.payloads("t") == [b"a", b"b"]
