"""M5 to M8: views of several processes held against one another."""

from typing import Any

import pytest

from tests.support.traces.handmade import Trace, sentence, trio, verdict, violated

SIDES = [["p1", "p2"], ["p3", "p4"]]


def four(**settings: Any) -> Trace:
    return Trace({"orders": ["p1", "p2", "p3", "p4"]}, **settings).begin()


def split(**settings: Any) -> Trace:
    """Two sides that exclude each other."""
    trace = four(**settings)
    trace.fault("partition")
    for view, members in zip(("v1", "v2"), SIDES, strict=True):
        for process in members:
            trace.exclude(process, view, members)
    return trace


def test_a_split_is_no_violation() -> None:
    events = split().end(components=SIDES)
    assert violated(events) == set()
    opportunities = {name: verdict(events, name, "orders").opportunities for name in ("M5", "M6e", "M7", "M8")}
    assert opportunities == {"M5": 2, "M6e": 6, "M7": 4, "M8": 4}


def test_m5_apart_without_suspicion() -> None:
    trace = four()
    trace.crash("p4")
    trace.exclude("p1", "v1", ["p1", "p2", "p3"])
    trace.exclude("p2", "v2", ["p1", "p2", "p3"])
    events = trace.end(quiet=False)
    assert violated(events) == {"M5"}
    assert sentence(events, "M5", "orders") == (
        "p1 installed view v1 (index 4) and p2 installed view v2 (index 4), where their views begin to differ, "
        "although neither ever suspected the other"
    )


def test_m5_one_behind_the_other() -> None:
    trace = trio()
    trace.crash("p3")
    trace.exclude("p1", "v1", ["p1", "p2"])
    assert violated(trace.end(quiet=False)) == set()
    trace = trio()
    trace.crash("p3")
    trace.exclude("p1", "v1", ["p1", "p2"])
    events = trace.end()
    assert "M5" in violated(events)
    assert verdict(events, "M5", "orders").violations == 1
    assert "when the run ended quiet one was behind the other" in sentence(events, "M5", "orders")


def test_m5_a_process_that_is_in_no_component_may_be_behind() -> None:
    trace = trio()
    trace.crash("p3")
    trace.exclude("p1", "v1", ["p1", "p2"])
    assert violated(trace.end(components=[["p1"]])) == set()


def test_m5_a_suspicion_either_way_explains() -> None:
    trace = four()
    trace.crash("p4")
    trace.suspect("p2", "p1")
    trace.exclude("p1", "v1", ["p1", "p2", "p3"])
    trace.exclude("p2", "v2", ["p1", "p2", "p3"])
    assert violated(trace.end(quiet=False)) == set()


def overlapping(view_change: str) -> Trace:
    """p1 and p2 have different successors of one view, and p3 is in both."""
    trace = trio(options={"view_change": view_change})
    trace.fault("partition")
    trace.exclude("p1", "v1", ["p1", "p3"])
    trace.exclude("p2", "v2", ["p2", "p3"])
    return trace


def test_m6_two_overlapping_successors() -> None:
    events = overlapping("closed").end(quiet=False)
    assert violated(events) == {"M6"}
    assert sentence(events, "M6", "orders") == (
        "p1 installed view v1 (index 4) and p2 installed view v2 (index 4), both after view v0, but p3 is in both views"
    )


@pytest.mark.parametrize("view_change", ["cut", "remove"])
def test_m6_is_promised_of_closed_views_only(view_change: str) -> None:
    events = overlapping(view_change).end(quiet=False)
    assert violated(events) == set()
    assert verdict(events, "M6", "orders").outcome == "not promised"


def test_m6_disjoint_successors() -> None:
    events = split(options={"view_change": "closed"}).end(components=SIDES)
    assert violated(events) == set()
    assert verdict(events, "M6", "orders").opportunities == 1


def test_m6e_last_views_overlap() -> None:
    trace = four()
    trace.exclude("p1", "v1", ["p1", "p2"])
    trace.exclude("p2", "v1", ["p1", "p2"])
    trace.exclude("p3", "v2", ["p2", "p3"])
    events = trace.end(components=[["p1", "p2", "p3"]])
    assert verdict(events, "M6e", "orders").violations == 1
    assert sentence(events, "M6e", "orders") == (
        "p1 installed view v1 (index 6) and p3 installed view v2 (index 6), each as its last view in a run that ended "
        "quiet, but p2 is in both views"
    )
    assert "M6e" not in violated(trace.end(quiet=False))


@pytest.mark.parametrize(("probe", "raised"), [("1us", True), ("0s", False)])
def test_m6e_another_component_must_have_noticed_if_it_probes(probe: str, raised: bool) -> None:
    trace = four(options={"suspect_after": "10ns", "idle_probe": probe})
    for process in ("p1", "p2"):
        trace.exclude(process, "v1", ["p1", "p2"])
    trace.time += 1100
    assert ("M6e" in violated(trace.end(components=SIDES))) == raised


def test_m6e_waits_until_the_views_are_final() -> None:
    trace = four(options={"suspect_after": "10ns", "idle_probe": "1us"})
    trace.fault("partition")
    for process in ("p1", "p2"):
        trace.exclude(process, "v1", ["p1", "p2"])
    assert not {"M6e", "L1", "L5"} & violated(trace.end(components=SIDES))


def test_m7_from_elsewhere() -> None:
    trace = four()
    trace.crash("p4")
    trace.exclude("p1", "v2", ["p1", "p2"], transitional=["p1"])
    trace.suspect("p2", "p4")
    trace.view("p2", "orders", "v1", ["p1", "p2", "p3"])
    trace.exclude("p2", "v2", ["p1", "p2"], transitional=["p2"])
    trace.suspect("p1", "p2")  # so that M5 has nothing to say
    events = trace.end(quiet=False)
    assert violated(events) == {"M7"}
    assert sentence(events, "M7", "orders") == (
        "p2 installed view v2 (index 6) after view v1, which includes p1, but "
        "p1 installed view v2 (index 6) after view v0"
    )


@pytest.mark.parametrize(
    ("transitional", "words"),
    [
        (["p1"], "calls p2 not transitional, which came from there too (index 4)"),
        (["p1", "p2", "p3"], "calls p3 transitional, which is not a member of both views"),
    ],
)
def test_m8_the_transitional_set(transitional: list[str], words: str) -> None:
    trace = trio()
    trace.crash("p3")
    trace.exclude("p1", "v1", ["p1", "p2"], transitional=transitional)
    trace.exclude("p2", "v1", ["p1", "p2"])
    events = trace.end()
    assert violated(events) == {"M8"}
    assert sentence(events, "M8", "orders") == f"p1 installed view v1 (index 4) after view v0 and {words}"


def test_m8_a_process_that_came_from_elsewhere_is_not_transitional() -> None:
    trace = four()
    trace.crash("p4")
    trace.exclude("p1", "v2", ["p1", "p2"])
    trace.suspect("p2", "p4", "p1")
    trace.view("p2", "orders", "v1", ["p1", "p2", "p3"])
    trace.exclude("p2", "v2", ["p1", "p2"], transitional=["p2"])
    events = trace.end(quiet=False)
    assert violated(events) == {"M7", "M8"}
    assert "calls p2 transitional, which came to it from view v1 (index 7)" in sentence(events, "M8", "orders")


def test_m8_a_row_that_tells_no_set_is_not_asked() -> None:
    trace = trio()
    trace.crash("p3")
    for process in ("p1", "p2"):
        trace.exclude(process, "v1", ["p1", "p2"])
    trace.rows[:] = [{**row, "transitional": None} for row in trace.rows]
    events = trace.end()
    assert violated(events) == set()
    assert verdict(events, "M8", "orders").outcome == "vacuous"
