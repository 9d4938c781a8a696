"""Delivery orders (docs/spec/intergroup.md 6), with the counterexamples of errata D1 to D6, T6."""

from antiphon.core.clocks import TimestampClock
from antiphon.protocols.intergroup.delivery.containers import CollectedMessages
from antiphon.protocols.intergroup.delivery.orders import (
    GroupTimestamp,
    SourceOrder,
    UnreliableSourceOrder,
    UnreliableTimestampOrder,
)
from antiphon.protocols.intergroup.delivery.stream import GAP_MAX, Stream
from antiphon.types import ProcessId
from tests.support.intergroup_said import Said

A, B, C = map(ProcessId, "abc")


def test_stamps_of_one_sender_increase_whatever_the_wall_shows() -> None:
    """T6, P2: two sends in one tick, and a clock that is set back; clocks merge like Lamport clocks (Berket00 §4.3)."""
    clock = TimestampClock(physical=True)
    assert [clock.stamp(100), clock.stamp(100), clock.stamp(40)] == [100, 101, 102]
    clock.merge(500)
    assert clock.stamp(200) == 501
    clock.merge(7)
    assert clock.stamp(900) == 900


def test_the_first_message_that_is_wanted_is_delivered() -> None:
    """D1."""
    stream: Stream[Said] = Stream(first=5, horizon=0)
    assert stream.data(Said(5, 50)) == [Said(5, 50)]
    assert stream.data(Said(4, 40)) == []


def test_missing_numbers_are_reported_once() -> None:
    """D2, D3: earlier messages are not missing, and no keep-alive makes the tail missing again."""
    stream: Stream[Said] = Stream(first=5, horizon=0)
    assert [*stream.missing(7)] == [5, 6, 7]  # a keep-alive tells this
    assert [*stream.missing(7)] == []
    stream.data(Said(9, 90))
    assert [*stream.missing(9)] == [8]  # the message itself tells this
    assert [*stream.missing(6)] == []


def test_no_number_makes_one_look_for_more_than_a_window_could_hold() -> None:
    stream: Stream[Said] = Stream(1, 0)
    stream.keep_alive(2**62, 100)
    assert sum(1 for _ in stream.missing(2**62)) == GAP_MAX
    assert CollectedMessages().newly_missing(A, b"bids", 2**62) == tuple(range(1, GAP_MAX + 1))


def test_gaps_fill_in_any_order() -> None:
    stream: Stream[Said] = Stream(first=0, horizon=0)
    assert stream.data(Said(2, 30)) == []
    assert stream.data(Said(2, 30)) == []
    assert stream.data(Said(1, 20)) == []
    assert stream.data(Said(0, 10)) == [Said(0, 10), Said(1, 20), Said(2, 30)]
    assert stream.data(Said(1, 20)) == []
    assert (stream.last, stream.horizon) == (2, 30)


def test_a_keep_alive_ahead_of_a_gap_waits_for_it() -> None:
    """D5: A's 10 is lost, A's keep-alive says 20, B sends 15: 10 is delivered before 15."""
    order: GroupTimestamp[Said] = GroupTimestamp(None, {A: 1, B: 1}, start=0)
    order.streams[A].keep_alive(1, 20)
    order.data(B, Said(1, 15))
    assert [*order.deliverable(0)] == []
    order.data(A, Said(1, 10))
    assert [*order.deliverable(0)] == [Said(1, 10), Said(1, 15)]
    assert order.gate == 15


def test_a_keep_alive_from_before_a_message_says_nothing() -> None:
    stream: Stream[Said] = Stream(first=1, horizon=0)
    stream.data(Said(1, 30))
    stream.keep_alive(0, 99)
    assert stream.horizon == 30


def test_equal_stamps_are_ordered_by_sender_without_waiting_for_level_senders() -> None:
    """D6: the tie does not wait behind a keep-alive of that stamp."""
    order: GroupTimestamp[Said] = GroupTimestamp(None, {A: 1, B: 1}, start=0)
    order.data(B, Said(1, 20))
    order.streams[A].keep_alive(0, 20)
    assert [*order.deliverable(0)] == [Said(1, 20)]
    tied: GroupTimestamp[Said] = GroupTimestamp(None, {A: 1, B: 7}, start=0)
    tied.data(B, Said(7, 20))
    tied.data(A, Said(1, 20))
    assert [*tied.deliverable(0)] == [Said(1, 20), Said(7, 20)]


def test_an_idle_member_delays_all_others_until_its_next_keep_alive() -> None:
    order: GroupTimestamp[Said] = GroupTimestamp(C, {A: 1, B: 1, C: 1}, start=0)
    order.own(Said(1, 12))
    order.data(A, Said(1, 15))
    assert [*order.deliverable(30)] == []
    order.streams[B].keep_alive(0, 14)
    assert [*order.deliverable(30)] == [Said(1, 12)]
    order.streams[B].keep_alive(0, 40)
    assert [*order.deliverable(30)] == [Said(1, 15)]
    assert order.gate == 15  # a's next may be stamped 16


def test_sources_are_independent_of_one_another() -> None:
    order: SourceOrder[Said] = SourceOrder()
    order.activate(A, first=4, horizon=0)
    assert order.data(B, Said(1, 1)) == []
    assert order.data(A, Said(4, 9)) == [Said(4, 9)]
    order.activate(B, first=2, horizon=0)
    assert order.data(B, Said(3, 8)) == []
    order.drop(A)
    assert order.data(A, Said(5, 10)) == []


def test_unreliable_source_order_leaves_out_late_messages() -> None:
    order: UnreliableSourceOrder[Said] = UnreliableSourceOrder()
    came = [Said(0, 1), Said(3, 4), Said(2, 3), Said(3, 4), Said(5, 6)]
    assert [message.seq for each in came for message in order.data(A, each)] == [0, 3, 5]


def test_unreliable_timestamp_order_waits_for_all_senders_but_not_for_long() -> None:
    order: UnreliableTimestampOrder[Said] = UnreliableTimestampOrder([A, B], wait_us=100)
    order.data(A, Said(1, 50))
    order.seen(A, 50)
    assert order.deliverable(60) == []
    order.seen(B, 55)
    assert order.deliverable(60) == [Said(1, 50)]
    order.data(B, Said(9, 70))
    order.seen(B, 70)
    assert order.deadline() == 170
    assert order.deliverable(169) == []
    assert order.deliverable(170) == [Said(9, 70)]
    order.data(A, Said(2, 60))  # below the last key
    order.seen(A, 200)
    order.seen(B, 200)
    assert order.deliverable(500) == []
