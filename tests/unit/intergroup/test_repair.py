"""Requests and repairs (Berket00 ch. 3, docs/spec/intergroup.md 4.3, 4.4), by worked numbers and in a star."""

import statistics

import pytest

from antiphon.protocols.intergroup.as_printed import printed
from antiphon.protocols.intergroup.repair.adaptation import SECOND, Profile, RepairBounds, RequestBounds
from antiphon.protocols.intergroup.repair.repairs import Repairs
from antiphon.protocols.intergroup.repair.requests import DELAY_MAX, Requests
from antiphon.protocols.intergroup.rules import ADOPTED, Rules
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId
from tests.support.intergroup_star import ACROSS, DISTANCE, Repaired, Star

D = 20_000_000
TICKET = Ticket(ProcessId("s"), 7)


def half() -> float:
    return 0.5


def deadline(of: Requests | Repairs) -> int | None:
    return of.deadline  # a new property access, so that mypy does not narrow it


def set_deadline(of: Requests | Repairs) -> int:
    found = of.deadline
    assert found is not None
    return found


def test_a_first_request_waits_between_low_and_low_plus_high_distances() -> None:
    for share, distances in (
        (0.0, 2.0),
        (0.5, 2.95),
        (0.999999, 3.9),
    ):  # high: 2 - 0.1, because nothing was slow or duplicate
        requests = Requests(lambda share=share: share)  # type: ignore[misc]
        requests.missing(TICKET, D, now=0)
        assert deadline(requests) == pytest.approx(distances * D, rel=1e-4)


def test_a_known_ticket_is_not_begun_again() -> None:
    requests = Requests(half)
    requests.missing(TICKET, D, now=0)
    first = set_deadline(requests)
    requests.missing(TICKET, D, now=10)
    assert deadline(requests) == first


def test_a_process_that_hears_a_request_backs_off_threefold_and_once_a_round() -> None:
    """R1: of requests that arrive together, only the first lengthens the delay."""
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
        assert requests.due(now) == [TICKET]  # R2: a request is repeated


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


def test_a_freed_message_is_not_repaired() -> None:
    repairs = Repairs(half)
    repairs.asked(TICKET, D, now=0)
    repairs.freed(TICKET)
    assert repairs.due(SECOND) == []


STARS = {4: 3, 16: 3, 64: 1}
"""The number of runs that is enough for stable means."""


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("distances", {4: 3.9, 16: 14, 64: 53}),
        ("round-trips", {4: 2.4, 16: 4.8, 64: 14}),
        ("default", {4: 1.8, 16: 1.8, 64: 2.7}),
        ("srm", {4: 1.7, 16: 1.9, 64: 2.7}),
    ],
)
@pytest.mark.parametrize("receivers", [4, 16, 64])
def test_requests_for_a_loss_that_all_share(receivers: int, profile: Profile, expected: dict[int, float]) -> None:
    """R3, all twelve numbers, within a quarter: the source is the hub; the first half of 200 losses is for adaptation.

    The errata leave two things open, which are fixed here. Receivers are two distances apart. Delays counted in
    distances or round trips are those of §3.2.2; with delays of own requests alone, round trips give 2.3, 2.5 and 3.9.
    One distance apart, distances give 3.0, 8.4 and 28, and round trips give 2.1, 2.3 and 3.1.
    """
    stars = [Star(receivers, seed, profile=profile, between=ACROSS) for seed in range(1, 1 + STARS[receivers])]
    mean = statistics.mean(each.requests for star in stars for each in [*star.losses(200)][100:])
    assert mean == pytest.approx(expected[receivers], rel=0.25)


def recoveries(receivers: int, losses: int, rules: Rules = ADOPTED) -> list[list[Repaired]]:
    """The run of R1, ten times: frames are lost, receivers are one distance apart, delays are in distances."""
    return [
        [*Star(receivers, seed, loss=0.1, profile="distances", rules=rules).losses(losses)] for seed in range(1, 11)
    ]


@pytest.mark.parametrize(("receivers", "losses", "expected"), [(16, 200, 7.4), (64, 60, 5.9)])
def test_lost_requests_and_repairs_are_made_up_for(receivers: int, losses: int, expected: float) -> None:
    """R1, adopted: the mean recovery in distances, within a quarter.

    With delays in seconds, which R3 settles on, ranges grow wider and recovery takes 9 distances at 16 and at 64.
    """
    mean = statistics.mean(each.recovery for star in recoveries(receivers, losses) for each in star)
    assert mean == pytest.approx(expected, rel=0.25)


def test_as_printed_recovery_takes_hundreds_of_distances() -> None:
    """R1: 711 on average and 150,000 at worst. Means vary widely, because one wait in thousands decides them.

    So the median of ten runs is tested within a factor of three, and the worst case of each within thirty.
    """
    runs = recoveries(16, 200, printed(["R1"]))
    means = [statistics.mean(each.recovery for each in run) for run in runs]
    assert 711 / 3 < statistics.median(means) < 711 * 3
    assert all(1.5e5 / 30 < max(each.longest for each in run) < 1.5e5 * 30 for run in runs)


def test_as_printed_sixty_four_never_recover() -> None:
    """R1: at 30 ms per distance, half of the losses take more than a year."""
    year = 365 * 86_400 * SECOND / DISTANCE
    waits = [each.recovery for each in Star(64, 1, loss=0.1, profile="distances", rules=printed(["R1"])).losses(20)]
    assert statistics.median(waits) > year


@pytest.mark.parametrize(
    ("profile", "duration", "average"),
    [("default", SECOND, 0.25), ("distances", D, 0.25), ("round-trips", 2 * D, 0.25), ("srm", 2 * D, 0.25)],
)
def test_a_delay_is_counted_in_the_unit_of_the_profile(profile: Profile, duration: int, average: float) -> None:
    """R3: one delay of one unit, averaged with none."""
    bounds = RequestBounds(profile)
    bounds.asked(duration, D)
    assert bounds._delay == average


@pytest.mark.parametrize(("profile", "timed"), [("default", False), ("srm", False), ("distances", True)])
def test_some_profiles_time_a_loss_until_any_process_asks(profile: Profile, timed: bool) -> None:
    """§3.2.2 against Fig. 3.1: a loss is timed once."""
    requests = Requests(half, profile)
    requests.missing(TICKET, D, now=0)
    requests.heard(TICKET, now=D)
    first = requests.bounds._delay
    assert (first > 0) == timed
    assert requests.due(set_deadline(requests)) == [TICKET]
    assert (requests.bounds._delay > first) != timed
