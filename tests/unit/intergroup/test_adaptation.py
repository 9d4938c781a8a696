"""Figs 3.1 and 3.2 branch by branch, with the numbers of docs/spec/intergroup.md 4.2 to 4.4 (errata R3, R4, R5, R7)."""

import pytest

from antiphon.protocols.intergroup.repair.adaptation import SECOND, Bounds, Profile, RepairBounds, RequestBounds
from antiphon.protocols.intergroup.repair.repairs import Repairs
from antiphon.protocols.intergroup.repair.requests import BACKOFFS_MAX, BASE, DELAY_MAX, Requests
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId

D = 1_000_000
"""Near enough that five back-offs stay below two seconds."""
TICKET = Ticket(ProcessId("s"), 7)


def none() -> float:
    return 0.0


def changes(bounds: Bounds, low: float, high: float) -> tuple[float, float]:
    return round(bounds.low - low, 9), round(bounds.high - high, 9)


def renewed(profile: Profile, duplicates: float, delay: float) -> RequestBounds:
    """The bounds after a period with these averages of duplicates and delay."""
    requests = RequestBounds(profile)
    requests.bounds.low, requests.bounds.high = 1.0, 5.0
    requests._duplicates, requests._delay = duplicates, delay
    requests.renew(duplicates)  # type: ignore[arg-type]  # integers would not reach all branches
    return requests


@pytest.mark.parametrize(
    ("duplicates", "delay", "change"),
    [
        (0.0, 1.0, (-0.05, -0.1)),
        (0.95, 1.0, (-0.05, 0.0)),
        (1.0, 1.0, (-0.05, 0.0)),
        (1.0, 0.95, (0.0, 0.5)),
        (1.0, 0.85, (0.05, 0.5)),
        (0.85, 0.85, (0.0, -0.1)),
        (0.85, 0.95, (0.0, 0.0)),
        (0.95, 0.85, (0.0, 0.0)),
    ],
)
@pytest.mark.parametrize("profile", ["default", "intergroup", "distances", "round-trips"])
def test_figure_3_1_before_a_new_timer(
    profile: Profile, duplicates: float, delay: float, change: tuple[float, float]
) -> None:
    """The thresholds are 1, or 0.9 for being below: between them nothing changes."""
    assert changes(renewed(profile, duplicates, delay).bounds, 1.0, 5.0) == change


@pytest.mark.parametrize(
    ("duplicates", "delay", "change"),
    [
        (1.0, 0.0, (0.1, 0.5)),
        (1.0, 9.0, (0.1, 0.5)),
        (0.95, 9.0, (0.05, 0.0)),
        (0.85, 1.1, (0.0, -0.1)),
        (0.85, 1.0, (0.0, 0.0)),
        (0.2, 1.1, (-0.05, -0.1)),
        (0.2, 1.0, (-0.05, 0.0)),
    ],
)
def test_the_order_of_srm_before_a_new_timer(duplicates: float, delay: float, change: tuple[float, float]) -> None:
    assert changes(renewed("srm", duplicates, delay).bounds, 1.0, 5.0) == change


def test_figure_3_1_after_a_request() -> None:
    """An average takes a quarter of the new value and three quarters of the old one; and timers begin sooner."""
    requests = RequestBounds()
    requests.asked(2 * SECOND, D)
    assert (requests._delay, requests.bounds.low, requests.bounds.high) == (0.5, 1.95, 2.0)
    requests.asked(SECOND, D)
    assert (requests._delay, requests.bounds.low) == pytest.approx((0.625, 1.9))


def test_duplicates_are_those_of_a_period() -> None:
    """R5: duplicates are counted between two new tickets, and only after the first request of a round."""
    requests = Requests(none)
    requests.missing(TICKET, D, now=0)
    for at in (0, 1, 2, 3, 4):
        requests.heard(TICKET, now=at)
    requests.missing(Ticket(ProcessId("s"), 8), D, now=5)
    assert requests.bounds._duplicates == 1.0  # a quarter of four
    requests.missing(Ticket(ProcessId("s"), 9), D, now=5)
    assert requests.bounds._duplicates == 0.75


def test_waits_grow_threefold_five_times() -> None:
    """4.3: 3 to the power of i, with i at most 5 (R1), and never longer than two seconds."""
    assert (BASE, BACKOFFS_MAX, DELAY_MAX) == (3, 5, 2 * SECOND)
    requests, waits, now = Requests(none), list[float](), 0
    requests.missing(TICKET, D, now)
    for _ in range(8):
        assert requests.deadline is not None
        waits.append((requests.deadline - now) / D)
        now = requests.deadline
        requests.due(now)
    low = [2.0 - 0.05 * asked for asked in range(8)]
    factors = [1, 3, 9, 27, 81, 243, 243, 243]
    assert waits == pytest.approx([a * b for a, b in zip(low, factors, strict=True)], rel=1e-6)


@pytest.mark.parametrize(("delay", "low", "high"), [(0.85, 0.05, 0.1), (0.95, 0.0, 0.1), (1.0, -0.05, -0.05)])
def test_figure_3_2_before_a_new_timer_and_after_a_cancellation(delay: float, low: float, high: float) -> None:
    repairs = RepairBounds()
    repairs.bounds.low, repairs.bounds.high, repairs._delay = 5.0, 5.0, delay
    repairs.renew()
    assert changes(repairs.bounds, 5.0, 5.0) == (low, 0.0)
    repairs.bounds.low = 5.0
    repairs.cancelled(int(delay * SECOND))
    assert changes(repairs.bounds, 5.0, 5.0) == (0.0, high)


def test_figure_3_2_after_a_repair() -> None:
    repairs = RepairBounds("intergroup")
    repairs.sent(2 * SECOND)
    assert (repairs._delay, repairs.bounds.low, repairs.bounds.high) == (0.5, 9.95, 10.0)


def test_a_repair_takes_from_the_request_until_it_is_sent_or_cancelled() -> None:
    """R4."""
    repairs = Repairs(none)
    repairs.asked(TICKET, D, now=100)
    assert repairs.deadline is not None
    repairs.due(repairs.deadline)
    assert repairs.bounds._delay == pytest.approx(0.25 * 1.05 * D / SECOND)
    repairs = Repairs(none)
    repairs.asked(TICKET, D, now=100)
    repairs.heard(TICKET, D, now=100 + D // 2)
    assert repairs.bounds._delay == pytest.approx(0.25 * 0.5 * D / SECOND)


@pytest.mark.parametrize(("share", "distances"), [(0.0, 10), (0.5, 15), (1.0, 20)])
def test_as_printed_first_repairs_wait_for_ten_to_twenty_distances(share: float, distances: int) -> None:
    """R7."""
    repairs = Repairs(lambda: share, "intergroup")
    repairs.asked(TICKET, D, now=0)
    assert repairs.deadline == distances * D


def test_as_printed_a_hundred_repairs_pass_before_they_come_quickly() -> None:
    """R7: each repair subtracts 0.1, half of it after it was sent and half before the next, from 10 down to 0.5."""
    repairs, number = RepairBounds("intergroup"), 0
    while repairs.bounds.low > 0.5:
        repairs.renew()
        repairs.sent(5 * SECOND)
        number += 1
    assert 95 <= number <= 100


def test_bounds_of_repairs_stay_in_their_ranges() -> None:
    """Bounds are clamped after each change (R4): the excess is not remembered."""
    repairs = RepairBounds()
    for _ in range(2000):
        repairs.renew()
        repairs.cancelled(0)
    assert (repairs.bounds.low, repairs.bounds.high) == (10.0, 100.0)
    for _ in range(2500):
        repairs.sent(9 * SECOND)
        repairs.cancelled(9 * SECOND)
    assert (repairs.bounds.low, repairs.bounds.high) == (0.5, 1.0)
