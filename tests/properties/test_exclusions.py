"""L1, L4 and L5: at a quiet end, departed processes are out of the views, and connected members agree on their view."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.traces.handmade import Trace, sentence, verdict, violated

TIMED = {"suspect_after": "10ns", "idle_probe": "1us", "time_silence": "0s", "view_change": "cut"}
SETTLING = 1000 + 60
UNPROBED = {**TIMED, "idle_probe": "0s"}


def four(**options: Any) -> Trace:
    return Trace({"orders": ["p1", "p2", "p3", "p4"]}, options={**TIMED, **options}).begin()


def settle(trace: Trace, components: list[list[str]]) -> Any:
    trace.time += SETTLING
    return trace.end(components=components)


def exclude(trace: Trace, view: str, members: Sequence[str]) -> None:
    for process in members:
        trace.exclude(process, view, members)


def test_a_process_that_crashed_is_excluded() -> None:
    trace = four()
    trace.crash("p4")
    exclude(trace, "v1", ["p1", "p2", "p3"])
    trace.deliver("p1", mid := trace.send("p1"))
    trace.deliver("p2", mid)
    trace.deliver("p3", mid)
    events = settle(trace, [["p1", "p2", "p3"]])
    assert violated(events) == set()
    assert [verdict(events, name, "orders").opportunities for name in ("L1", "L4", "L5")] == [3, 3, 3]


def test_a_process_that_crashed_stays_in_view() -> None:
    trace = four()
    trace.crash("p4")
    events = settle(trace, [["p1", "p2", "p3"]])
    assert violated(events) == {"L1", "L5"}
    assert sentence(events, "L5", "orders") == (
        "p1 installed view v0 (index 1) as its last view, and when the run ended quiet p4 was still in it, "
        "crashed or cut off for good"
    )
    assert verdict(events, "L5", "orders").violations == 3


def test_an_exclusion_is_not_required_before_the_time_is_over() -> None:
    trace = four()
    trace.crash("p4")
    trace.time += SETTLING // 2
    assert violated(trace.end(components=[["p1", "p2", "p3"]])) == set()


def test_both_sides_of_a_partition() -> None:
    sides = [["p1", "p2"], ["p3", "p4"]]
    trace = four()
    trace.fault("partition", sides=sides)
    exclude(trace, "v1", sides[0])
    exclude(trace, "v2", sides[1])
    events = settle(trace, sides)
    assert violated(events) == set()
    assert verdict(events, "L5", "orders").opportunities == 8


def test_one_side_never_notices() -> None:
    sides = [["p1", "p2"], ["p3", "p4"]]
    trace = four()
    trace.fault("partition", sides=sides)
    exclude(trace, "v1", sides[0])
    assert violated(settle(trace, sides)) == {"L1", "L5", "M6e"}


def test_members_of_a_component_may_be_in_classes() -> None:
    trace = four()
    trace.fault("suspect", process="p3", by="p1")
    exclude(trace, "v1", ["p1", "p2"])
    exclude(trace, "v2", ["p3", "p4"])
    events = settle(trace, [["p1", "p2", "p3", "p4"]])
    assert violated(events) == set()
    assert verdict(events, "L5", "orders").opportunities == 0


def test_l1_one_sided_classes() -> None:
    trace = four()
    trace.fault("suspect", process="p4", by="p1")
    exclude(trace, "v1", ["p1", "p2", "p3"])
    events = settle(trace, [["p1", "p2", "p3", "p4"]])
    assert violated(events) == {"L1", "M6e"}
    assert sentence(events, "L1", "orders") == (
        "p4 installed view v0 (index 1) with p1 as its last view, but p1 installed view v1 (index 4) as its last, "
        "although both were connected until the quiet end"
    )


@pytest.mark.parametrize(("sent", "raised"), [(False, False), (True, True)])
def test_without_a_probe_the_group_must_speak(sent: bool, raised: bool) -> None:
    trace = four(idle_probe="0s")
    trace.crash("p4")
    if sent:
        mid = trace.send("p1")
        for process in ("p1", "p2", "p3"):
            trace.receive(process, *([mid] if process != "p1" else []))
            trace.deliver(process, mid)
    trace.time += SETTLING
    found = violated(trace.end(components=[["p1", "p2", "p3"]], settled=False))
    assert ({"L1", "L4", "L5"} <= found) == raised
    assert bool({"L1", "L4", "L5"} & found) == raised


def test_no_member_is_judged_where_members_never_suspect() -> None:
    trace = four(suspect_after="0s")
    trace.crash("p4")
    events = settle(trace, [["p1", "p2", "p3"]])
    assert violated(events) == set()
    assert verdict(events, "L5", "orders").outcome == "not promised"


def test_l5_a_process_that_waits_for_one_that_takes_nothing_is_not_gone() -> None:
    trace = four()
    trace.fault("stall", process="p4")
    assert not {"L1", "L5"} & violated(settle(trace, [["p1", "p2"]]))
    trace = four()
    trace.fault("stall", process="p4")
    trace.world("fault", {"kind": "stall", "process": "p4", "begins": False})
    assert {"L1", "L5"} <= violated(settle(trace, [["p1", "p2"]]))


@pytest.mark.parametrize(("late", "raised"), [(SETTLING, False), (3 * SETTLING, True)])
def test_l5_late(late: int, raised: bool) -> None:
    trace = four(idle_probe="1us")
    trace.crash("p4")
    for _ in range(2):  # they are heard of meanwhile
        trace.time += late // 2
        for process in ("p1", "p2", "p3"):
            trace.transmit(process, f"alive {trace.time}", None, "alive")
    exclude(trace, "v1", ["p1", "p2", "p3"])
    events = settle(trace, [["p1", "p2", "p3"]])
    assert violated(events) == ({"L5"} if raised else set())
    if raised:
        assert "without p4, which is gone, 0.000 s after the last fault before it" in sentence(events, "L5", "orders")


def test_l4_a_member_of_another_component_never_delivers() -> None:
    sides = [["p1", "p2", "p3"], ["p4"]]
    trace = four()
    trace.fault("partition", sides=sides)
    mid = trace.send("p1")
    for process in sides[0]:
        trace.deliver(process, mid)
    trace.exclude("p4", "v1", ["p4"])
    events = settle(trace, sides)
    assert violated(events) == {"L1", "L4", "L5", "M6e"}
    assert sentence(events, "L4", "orders") == (
        "p1 sent orders/p1:0 (index 2) in view v0, which it never left, but p4, a member of it, "
        "had not delivered it when the run ended quiet"
    )


def test_l4_the_log_of_a_crashed_member_is_a_beginning() -> None:
    trace = four()
    mid = trace.send("p1")
    for process in ("p1", "p2", "p3"):
        trace.deliver(process, mid)
    trace.crash("p4")  # perhaps it had delivered it
    assert "L4" not in violated(settle(trace, [["p1", "p2", "p3"]]))
