"""L9 no false exclusion, L10 no long silence."""

from typing import Any

import pytest

from tests.support.traces.handmade import Trace, sentence, trio, verdict, violated

TIMED = {"suspect_after": "100ns", "idle_probe": "200ns", "time_silence": "0s"}
BOUND = 2 * 200 + 100

# L9


def test_l9_one_view_where_nothing_breaks() -> None:
    events = trio().end()
    assert (verdict(events, "L9", "orders").outcome, verdict(events, "L9", "orders").opportunities) == ("pass", 3)


def test_l9_a_needless_view() -> None:
    trace = trio()
    for process in ("p1", "p2"):
        trace.exclude(process, "v1", ["p1", "p2"])
    trace.exclude("p3", "v2", ["p3"])
    events = trace.end()
    assert violated(events) == {"L9"}
    assert sentence(events, "L9", "orders") == (
        "p1 installed view v1 (index 4) after view v0, although nothing failed in the run"
    )


@pytest.mark.parametrize("fault", ["pause", "partition", "suspect"])
def test_l9_is_not_asked_where_something_broke(fault: str) -> None:
    trace = trio()
    trace.fault(fault)
    for process in ("p1", "p2"):
        trace.exclude(process, "v1", ["p1", "p2"])
    trace.exclude("p3", "v2", ["p3"])
    events = trace.end()
    assert violated(events) == set()
    assert verdict(events, "L9", "orders").outcome == "not promised"


@pytest.mark.parametrize(("delay", "raised"), [(10, True), (60, False)])
def test_l9_is_not_asked_where_messages_are_slow(delay: int, raised: bool) -> None:
    trace = trio(options={**TIMED, "idle_probe": "0s"})
    mid = trace.send("p1")
    trace.time += delay
    trace.receive("p2", mid)
    trace.receive("p3", mid)
    for process in trace.members:
        trace.deliver(process, mid)
    for process in ("p1", "p2"):
        trace.exclude(process, "v1", ["p1", "p2"])
    trace.exclude("p3", "v2", ["p3"])
    trace.time += 1000
    assert violated(trace.end()) == ({"L9"} if raised else set())


# L10


def spoken(trace: Trace, times: int, every: int, *processes: str) -> None:
    for _ in range(times):
        trace.time += every
        for process in processes:
            trace.transmit(process, f"null {trace.time}", None, "null")


def test_l10_all_members_are_heard_of() -> None:
    trace = trio(options=TIMED)
    spoken(trace, 5, 200, *trace.members)
    events = trace.end()
    assert violated(events) == set()
    assert verdict(events, "L10", "orders").opportunities == 3 * (5 + 1)


def test_l10_one_keeps_silent() -> None:
    trace = trio(options=TIMED)
    spoken(trace, 5, 200, "p1", "p2")
    events = trace.end()
    assert violated(events) == {"L10"}
    assert sentence(events, "L10", "orders") == (
        "p3 transmitted nothing in orders for 0.000 s (from index 1 to index 2); at most 0.000 s are allowed"
    )


@pytest.mark.parametrize("options", [{"idle_probe": "0s"}, {"suspect_after": "0s"}])
def test_l10_is_not_promised_without_a_probe(options: dict[str, Any]) -> None:
    trace = trio(options={**TIMED, **options})
    spoken(trace, 5, 200, "p1", "p2")
    events = trace.end()
    assert violated(events) == set()
    assert verdict(events, "L10", "orders").outcome == "not promised"


def test_l10_alone_in_a_view_there_is_no_peer() -> None:
    trace = trio(options=TIMED)
    trace.crash("p2")
    trace.crash("p3")
    trace.exclude("p1", "v1", ["p1"])
    trace.time += 10 * BOUND
    assert violated(trace.end()) == set()


def test_l10_without_peers_from_the_confirmation_on_although_the_view_comes_later() -> None:
    trace = trio(options=TIMED)
    trace.crash("p2")
    trace.crash("p3")
    trace.suspect("p1", "p2", "p3")
    trace.confirm("p1", "p2", "p3")
    spoken(trace, 1, 10 * BOUND, "p1")
    trace.view("p1", "orders", "v1", ["p1"])
    judged = verdict(trace.end(), "L10", "orders")
    assert (judged.outcome, judged.opportunities) == ("pass", 3)


def test_l10_as_long_as_one_peer_remains() -> None:
    trace = trio(options=TIMED)
    trace.crash("p3")
    for process in ("p1", "p2"):
        trace.suspect(process, "p3")
        trace.confirm(process, "p3")
    spoken(trace, 5, 200, "p2")
    for process in ("p1", "p2"):
        trace.view(process, "orders", "v1", ["p1", "p2"])
    assert violated(trace.end()) == {"L10"}


@pytest.mark.parametrize(("silent_before", "violations"), [(200, 0), (BOUND + 1, 1)])
def test_l10_a_leaver_until_its_last_frame_although_its_application_learns_later(
    silent_before: int, violations: int
) -> None:
    trace = trio(options=TIMED)
    spoken(trace, 1, silent_before - 200, "p1", "p2")
    spoken(trace, 1, 200, "p1", "p2")
    trace.transmit("p3", "leaving", None, "leaving")
    spoken(trace, 5, 200, "p1", "p2")
    trace.leave("p3")
    trace.join("p3")
    trace.view("p3", "orders", "v2", ["p1", "p2", "p3"], classes=[["p1", "p2"], ["p3"]])
    assert verdict(trace.end(settled=False), "L10", "orders").violations == violations


def test_l10_a_process_that_was_paused_is_not_asked() -> None:
    trace = trio(options=TIMED)
    trace.fault("pause", process="p3")
    spoken(trace, 5, 200, "p1", "p2")
    assert "L10" not in violated(trace.end())


def test_l10_by_the_periods_of_acknowledgments() -> None:
    trace = trio(protocol="acks", service="fifo", options={"send_every": "50ns", "ack_every": "20ns"})
    spoken(trace, 5, 90, "p1", "p2")
    judged = verdict(trace.end(settled=False), "L10", "orders")
    assert (judged.outcome, judged.violations) == ("violated", 1)


def test_l10_a_process_that_left_and_came_back() -> None:
    trace = trio(protocol="acks", service="fifo", options={"send_every": "50ns", "ack_every": "20ns"})
    spoken(trace, 2, 80, *trace.members)
    trace.row("p3", "leave", group="orders")
    spoken(trace, 5, 80, "p1", "p2")
    trace.row("p3", "join", group="orders")
    spoken(trace, 2, 80, *trace.members)
    assert verdict(trace.end(settled=False), "L10", "orders").outcome == "pass"
