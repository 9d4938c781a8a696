"""Requests and repairs (Berket00 ch. 3, intergroup.md 4.3, 4.4), by worked numbers and in a star."""

import statistics

import pytest

from antiphon.core.intergroup.adaptation import SECOND, RepairBounds, RequestBounds
from antiphon.core.intergroup.literal import printed
from antiphon.core.intergroup.repairs import Repairs
from antiphon.core.intergroup.requests import DELAY_MAX, Requests, Ticket
from antiphon.types import ProcessId
from tests.intergroup.star import Star

D = 20_000_000
TICKET = Ticket(ProcessId("s"), 7)


def half() -> float:
    return 0.5


def deadline(of: Requests | Repairs) -> int | None:
    return of.deadline  # asked anew each time


def set_deadline(of: Requests | Repairs) -> int:
    found = of.deadline
    assert found is not None
    return found


def test_a_first_request_waits_between_low_and_low_plus_high_distances() -> None:
    for share, distances in (
        (0.0, 2.0),
        (0.5, 2.95),
        (0.999999, 3.9),
    ):  # high: 2 - 0.1, for nothing was slow or doubled
        requests = Requests(lambda share=share: share)  # type: ignore[misc]
        requests.missing(TICKET, D, now=0)
        assert deadline(requests) == pytest.approx(distances * D, rel=1e-4)


def test_a_known_ticket_is_not_begun_again() -> None:
    requests = Requests(half)
    requests.missing(TICKET, D, now=0)
    first = set_deadline(requests)
    requests.missing(TICKET, D, now=10)
    assert deadline(requests) == first


def test_who_hears_a_request_backs_off_threefold_and_once_a_round() -> None:
    """R1: of requests that arrive together the first alone makes it wait longer."""
    requests = Requests(half)
    requests.missing(TICKET, D, now=0)
    requests.heard(TICKET, now=0)
    backed_off = set_deadline(requests)
    assert backed_off == pytest.approx(3 * 2.95 * D)
    for _ in range(20):
        requests.heard(TICKET, now=backed_off // 2 - 1)
    assert deadline(requests) == backed_off
    requests.heard(TICKET, now=backed_off // 2)
    assert deadline(requests) == pytest.approx(backed_off // 2 + 9 * 2.95 * D)


def test_back_offs_end_at_two_seconds() -> None:
    requests = Requests(half)
    requests.missing(TICKET, D, now=0)
    now = 0
    for _ in range(10):
        assert set_deadline(requests) - now <= DELAY_MAX
        now = set_deadline(requests)
        assert requests.due(now) == [TICKET]  # R2: who has asked asks again


def test_a_ticket_ends_with_the_message_or_with_the_wish_for_it() -> None:
    requests = Requests(half)
    for seq in range(4):
        requests.missing(Ticket(ProcessId("s"), seq), D, now=0)
    requests.done(Ticket(ProcessId("s"), 0))
    requests.forget(ProcessId("s"), below=3)
    assert requests.due(10 * SECOND) == [Ticket(ProcessId("s"), 3)]
    requests.done(Ticket(ProcessId("s"), 3))
    assert deadline(requests) is None


def test_duplicates_widen_the_range_and_delays_move_it_down() -> None:
    """Fig. 3.1, with units of a second (R3)."""
    bounds = RequestBounds()
    bounds.renew(duplicates=4)  # average 1
    assert (bounds.bounds.low, bounds.bounds.high) == (2.0, 2.5)
    for _ in range(3):
        bounds.asked(4 * SECOND, D)
    assert bounds.bounds.low == pytest.approx(1.85)
    bounds.renew(duplicates=0)  # average delay above 1, few duplicates
    assert (bounds.bounds.low, bounds.bounds.high) == pytest.approx((1.8, 2.4))


def test_in_the_order_of_srm_duplicates_come_first() -> None:
    bounds = RequestBounds("srm")
    for _ in range(20):
        bounds.asked(100 * D, D)
    low = bounds.bounds.low
    bounds.renew(duplicates=8)
    assert (bounds.bounds.low, bounds.bounds.high) == pytest.approx((low + 0.1, 2.5))


def test_bounds_stay_in_their_ranges() -> None:
    bounds = RequestBounds()
    for _ in range(1000):
        bounds.renew(duplicates=9)
    assert (bounds.bounds.low, bounds.bounds.high) == (2.0, 100.0)
    for _ in range(2000):
        bounds.renew(duplicates=0)
        bounds.asked(0, D)
    assert (bounds.bounds.low, bounds.bounds.high) == (0.5, 1.0)


def test_the_printed_profile_begins_repairs_ten_times_later() -> None:
    """R7."""
    assert (RepairBounds().bounds.low, RepairBounds().bounds.high) == (1.0, 1.0)
    assert (RepairBounds("intergroup").bounds.low, RepairBounds("intergroup").bounds.high) == (10.0, 10.0)


def test_a_repair_is_cancelled_by_another_and_late_requests_are_ignored() -> None:
    """R6."""
    repairs = Repairs(half)
    repairs.asked(TICKET, D, now=0)
    assert deadline(repairs) == pytest.approx((1.05 + 0.5) * D)
    repairs.heard(TICKET, D, now=D)
    assert deadline(repairs) is None
    repairs.asked(TICKET, D, now=4 * D - 1)
    assert deadline(repairs) is None
    repairs.asked(TICKET, D, now=4 * D)
    due = set_deadline(repairs)
    assert repairs.due(due) == [TICKET]
    repairs.asked(TICKET, D, now=due + 3 * D - 1)
    assert deadline(repairs) is None


def test_what_was_freed_is_not_repaired() -> None:
    repairs = Repairs(half)
    repairs.asked(TICKET, D, now=0)
    repairs.freed(TICKET)
    assert repairs.due(SECOND) == []


@pytest.mark.parametrize(("receivers", "expected"), [(4, 1.8), (16, 1.8), (64, 2.7)])
def test_one_request_for_a_loss_that_all_share(receivers: int, expected: float) -> None:
    """R3: requests per loss in a star, within a quarter."""
    losses = [*Star(receivers, seed=1, loss=0.0).losses(200)][20:]
    assert statistics.mean(each.requests for each in losses) == pytest.approx(expected, rel=0.25)


@pytest.mark.parametrize(("receivers", "expected"), [(4, 1.7), (16, 1.9), (64, 2.7)])
def test_in_the_order_of_srm_there_are_as_few(receivers: int, expected: float) -> None:
    """R3, the second profile: its unit is the round trip."""
    losses = [*Star(receivers, seed=1, loss=0.0, profile="srm").losses(200)][20:]
    assert statistics.mean(each.requests for each in losses) == pytest.approx(expected, rel=0.25)


def test_as_printed_recovery_takes_hundreds_of_distances() -> None:
    """R1: 711 distances on average at 16 receivers, and 150,000 in the worst case, in the errata's own simulation."""
    printed_ones = [each.recovery for each in Star(16, seed=1, loss=0.1, rules=printed(["R1"])).losses(60)]
    adopted = [each.recovery for each in Star(16, seed=1, loss=0.1).losses(60)]
    assert statistics.mean(printed_ones) > 100
    assert statistics.mean(adopted) < 10


def test_lost_requests_and_repairs_are_made_up_for() -> None:
    """R1, R2: below ten distances at 64 receivers."""
    assert statistics.mean(each.recovery for each in Star(64, seed=1, loss=0.1).losses(60)) < 10
