"""The clocks of the acknowledgment protocols (T6, T8, T9)."""

from antiphon.core.clocks import TimestampClock
from antiphon.protocols.acks.as_printed import EagerLogicalClock, WallClock


def test_physical_stamps_are_the_time_and_strictly_increase() -> None:
    clock = TimestampClock(physical=True)
    assert [clock.stamp(now) for now in (10, 10, 5, 20)] == [10, 11, 12, 20]
    assert clock.read(15) == 20
    assert clock.read(25) == 25


def test_a_physical_clock_witnesses_nothing_but_merges() -> None:
    clock = TimestampClock(physical=True)
    clock.witness(100)
    assert clock.stamp(10) == 10
    clock.merge(100)
    assert clock.stamp(11) == 101


def test_a_logical_clock_counts_sends_and_takes_the_maximum() -> None:
    clock = TimestampClock(physical=False)
    assert [clock.stamp(1_000), clock.stamp(1_000)] == [1, 2]
    clock.witness(7)
    clock.witness(3)
    assert clock.read(1_000) == 7
    assert clock.stamp(0) == 8


def test_the_printed_clocks() -> None:
    wall, eager = WallClock(physical=True), EagerLogicalClock(physical=False)
    assert [wall.stamp(now) for now in (10, 10, 5)] == [10, 10, 5]
    eager.witness(7)
    eager.witness(3)
    assert eager.value == 9
    assert WallClock(physical=False).stamp(5) == 1
    untouched = EagerLogicalClock(physical=True)
    untouched.witness(7)
    assert untouched.stamp(1) == 1
