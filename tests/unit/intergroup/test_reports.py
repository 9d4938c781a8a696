"""How often receivers report: the interval of RTCP keeps the total rate for any group size (intergroup.md 4.5)."""

from collections import Counter

import pytest

from antiphon.protocols.intergroup.frames import ReportFrame
from antiphon.protocols.intergroup.settings import InterGroupSettings, Service
from antiphon.protocols.intergroup.stability.schedule import EARLY_REPORTS, ReportSchedule
from antiphon.types import GroupId, ProcessId, ViewId
from tests.support.intergroup_cluster import MS, Cluster

EVERY = 20 * MS
SECOND = 1000 * MS


def report(sender: str, sources: tuple[ProcessId, ...] | None = None) -> ReportFrame:
    return ReportFrame(GroupId("g"), ProcessId(sender), ViewId("v"), 1, sources)


@pytest.mark.parametrize("receivers", [1, 10, 40])
def test_the_total_rate_of_reports_does_not_depend_on_the_number_of_receivers(receivers: int) -> None:
    kinds: tuple[Service, ...] = ("total", "fifo")
    cluster = Cluster(
        2,
        {f"r{number}": kinds[number % 2] for number in range(receivers)},
        settings=InterGroupSettings(report_every_ns=EVERY),
    )
    cluster.run(8_000)
    begun = cluster.now
    cluster.run(10_000)
    reports = Counter(frame.sender for at, frame in cluster.transmitted if frame.kind == "report" and at > begun)
    assert len(reports) == receivers
    assert 0.6 * 500 <= reports.total() <= 1.4 * 500


def test_the_first_reports_come_soon_and_later_ones_wait_for_their_turn() -> None:
    schedule = ReportSchedule(ProcessId("me"), EVERY, lambda: 0.5)
    for number in range(99):
        schedule.note(report(f"r{number}"), 0)
    schedule.begin(0)
    times: list[int] = []
    while len(times) < EARLY_REPORTS + 2:
        at = schedule.next_at
        for number in range(99):
            schedule.note(report(f"r{number}"), at)
        if schedule.is_due(at):
            schedule.sent(at)
            times.append(at)
    assert times[:EARLY_REPORTS] == [0, SECOND // 2, SECOND]
    assert times[-1] - times[-2] == 100 * EVERY


def test_a_report_waits_longer_if_others_have_begun_to_report() -> None:
    """Timer reconsideration: many receivers that join together do not all report at the rate of one."""
    schedule = ReportSchedule(ProcessId("me"), EVERY, lambda: 0.5)
    schedule.begin(0)
    for _ in range(EARLY_REPORTS):
        schedule.is_due(schedule.next_at)
        schedule.sent(schedule.next_at)
    due = schedule.next_at
    for number in range(9):
        schedule.note(report(f"r{number}"), due)
    assert not schedule.is_due(due)
    assert schedule.next_at == due + 9 * EVERY
    for number in range(9):
        schedule.note(report(f"r{number}", ()), due)
    assert schedule.is_due(schedule.next_at)


def test_receivers_that_fall_silent_are_forgotten() -> None:
    schedule = ReportSchedule(ProcessId("me"), EVERY, lambda: 0.5)
    schedule.begin(0)
    for number in range(9):
        schedule.note(report(f"r{number}"), 0)
    for _ in range(EARLY_REPORTS):
        schedule.sent(schedule.next_at)
    assert schedule.is_due(10 * SECOND)
    schedule.sent(10 * SECOND)
    assert schedule.next_at == 10 * SECOND + EVERY
