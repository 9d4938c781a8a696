"""The rate of a sender (docs/spec/intergroup.md 5; errata R8)."""

import pytest

from antiphon.protocols.intergroup.sending.rate import Rate, RateSettings
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId

SECOND = 1_000_000_000
ROUND_TRIP = 60_000_000
ME = ProcessId("p1")
SETTINGS = RateSettings(first=100_000.0, increment=10_000.0, lowest=50_000.0, highest=115_000.0)


def test_without_a_rate_no_sender_waits() -> None:
    rate = Rate(RateSettings(), senders=4)
    rate.sent(10_000, 0.5, now=7)
    rate.lost(Ticket(ME, 1), ROUND_TRIP, now=8)
    assert rate.next_at == 0


@pytest.mark.parametrize(("share", "factor"), [(0.0, 0.5), (0.5, 1.0), (1.0, 1.5)])
def test_senders_share_the_rate_and_wait_for_as_long_as_their_messages_take(share: float, factor: float) -> None:
    """Interval(members, bandwidth, average): 4 members, 128 bytes on average at first, 100,000 bytes a second."""
    rate = Rate(SETTINGS, senders=4)
    rate.sent(128, share, now=SECOND)
    assert rate.next_at - SECOND == pytest.approx(factor * 4 * 128 / 100_000 * SECOND, rel=1e-6)


def test_the_average_size_follows_what_is_sent() -> None:
    rate = Rate(SETTINGS, senders=1)
    rate.sent(128 + 1600, 0.5, now=0)
    assert rate.next_at == pytest.approx((128 + 100) / 100_000 * SECOND, rel=1e-6)


def test_it_grows_with_each_quiet_second_up_to_a_limit() -> None:
    rate = Rate(SETTINGS, senders=1)
    rate.quiet(SECOND - 1)
    assert rate.bytes_per_second == 100_000
    rate.quiet(SECOND)
    assert rate.bytes_per_second == 110_000
    rate.quiet(9 * SECOND)
    assert rate.bytes_per_second == 115_000


def test_a_loss_takes_a_quarter_once_for_a_ticket_and_once_in_a_round_trip() -> None:
    """R8."""
    rate = Rate(SETTINGS, senders=1)
    rate.lost(Ticket(ME, 1), ROUND_TRIP, now=SECOND)
    assert rate.bytes_per_second == 75_000
    rate.lost(Ticket(ME, 1), ROUND_TRIP, now=9 * SECOND)
    rate.lost(Ticket(ME, 2), ROUND_TRIP, now=SECOND + ROUND_TRIP - 1)
    assert rate.bytes_per_second == 75_000
    rate.lost(Ticket(ME, 3), ROUND_TRIP, now=SECOND + ROUND_TRIP)
    assert rate.bytes_per_second == 56_250
    rate.lost(Ticket(ME, 4), ROUND_TRIP, now=2 * SECOND)
    assert rate.bytes_per_second == 50_000


def test_after_a_loss_a_whole_second_must_be_quiet() -> None:
    rate = Rate(SETTINGS, senders=1)
    rate.lost(Ticket(ME, 1), ROUND_TRIP, now=SECOND // 2)
    rate.quiet(SECOND)
    assert rate.bytes_per_second == 75_000
    rate.quiet(SECOND + SECOND // 2)
    assert rate.bytes_per_second == 85_000
