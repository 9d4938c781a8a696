"""M1 to M4 and M9 to M11: single views, and each with the one before it."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.traces.handmade import Trace, sentence, trio, verdict, violated

CLOSED = {"view_change": "closed"}


def changed(**settings: Any) -> Trace:
    """p3 crashes, and the others go on."""
    trace = trio(**settings)
    trace.crash("p3")
    for process in ("p1", "p2"):
        trace.exclude(process, "v1", ["p1", "p2"])
    return trace


def test_a_good_change_of_views() -> None:
    events = changed().end()
    assert violated(events) == set()
    opportunities = {
        name: verdict(events, name, "orders").opportunities for name in ("M1", "M2", "M3", "M4", "M9", "M10")
    }
    assert opportunities == {"M1": 5, "M2": 2, "M3": 3, "M4": 3, "M9": 2, "M10": 2}


def test_m1_a_process_that_installs_a_view_is_in_it() -> None:
    trace = trio()
    trace.exclude("p1", "v1", ["p2", "p3"])
    events = trace.end(quiet=False)
    assert sentence(events, "M1", "orders") == (
        "p1 installed view v1 (index 4) but is not a member of it: its members are p2, p3"
    )


@pytest.mark.parametrize("view", ["v0", "u9"])
def test_m2_ids_grow(view: str) -> None:
    trace = trio()
    trace.crash("p3")
    trace.exclude("p1", view, ["p1", "p2"])
    events = trace.end(quiet=False)
    assert verdict(events, "M2", "orders").violations == 1
    assert sentence(events, "M2", "orders") == (
        f"p1 installed view {view} (index 4) after view v0 (index 1), but the id of the later view is not larger"
    )


def test_m2_over_incarnations() -> None:
    trace = Trace({"orders": ["p1", "p2", "p2#1"]})
    for process, view in (("p1", "v0"), ("p2", "v0"), ("p2#1", "v0")):
        trace.start(process)
        trace.view(process, "orders", view, trace.groups["orders"])
    assert violated(trace.end(quiet=False)) == {"M2", "R2"}


def test_m3_the_first_view_is_the_configured_one() -> None:
    trace = Trace({"orders": ["p1", "p2", "p3"]})
    for process in trace.members:
        trace.start(process)
        trace.view(process, "orders", "v0", ["p1", "p2"] if process == "p2" else trace.groups["orders"])
    events = trace.end(quiet=False)
    assert violated(events) == {"M3", "M4"}
    assert sentence(events, "M3", "orders") == (
        "p2 installed view v0 (index 1) as its first in orders, with members p1, p2, "
        "but the group was configured with p1, p2, p3"
    )


def test_m4_one_id_one_membership() -> None:
    trace = trio()
    trace.exclude("p1", "v1", ["p1", "p2"])
    trace.exclude("p2", "v1", ["p2"])
    trace.crash("p3")
    events = trace.end(quiet=False)
    assert violated(events) == {"M4"}
    assert sentence(events, "M4", "orders") == (
        "p2 installed view v1 (index 6) with members p2, but p1 had installed a view with that id (index 4) with p1, p2"
    )


@pytest.mark.parametrize("members", [["p1", "p2", "p3"], ["p1", "p3", "p4"]])
def test_m9_views_shrink(members: Sequence[str]) -> None:
    trace = Trace({"orders": ["p1", "p2", "p3"], "other": ["p4"]}).begin()
    trace.row("p4", "join", group="orders")
    trace.suspect("p1", "p2")
    trace.view("p1", "orders", "v1", members)
    assert violated(trace.end(quiet=False)) == {"M9"}


def test_m9_a_new_epoch_may_have_new_members() -> None:
    trace = Trace({"orders": ["p1", "p2"], "other": ["p3"]})
    for process in trace.members:
        trace.start(process)
        for group in trace.groups_of(process):
            trace.view(process, group, "0000.000000.aa", trace.groups[group])
    trace.row("p3", "join", group="orders")
    for process in trace.members:
        trace.view(process, "orders", "0001.000000.bb", trace.members)
    assert "M9" not in violated(trace.end(quiet=False))


def test_m10_no_process_suspected_it() -> None:
    trace = trio()
    trace.crash("p3")
    trace.suspect("p1", "p3")
    for process in ("p1", "p2"):
        trace.view(process, "orders", "v1", ["p1", "p2"])
    assert violated(trace.end()) == set()  # that p1 did is enough
    trace = trio()
    trace.crash("p3")
    trace.view("p1", "orders", "v1", ["p1", "p2"])
    trace.suspect("p2", "p3")
    trace.view("p2", "orders", "v1", ["p1", "p2"])
    events = trace.end()
    assert violated(events) == {"M10"}
    assert verdict(events, "M10", "orders").violations == 1
    assert sentence(events, "M10", "orders") == (
        "p1 installed view v1 (index 2) without p3, although no member of it had suspected p3 and p3 had not left"
    )


def test_m10_a_suspicion_by_a_process_outside_does_not_count() -> None:
    trace = trio()
    trace.suspect("p3", "p2")
    trace.suspect("p1", "p3")
    trace.view("p1", "orders", "v1", ["p1"])
    assert verdict(trace.end(quiet=False), "M10", "orders").violations == 1


def test_m10_a_process_that_left_was_not_suspected() -> None:
    trace = trio()
    trace.row("p3", "leave", group="orders")
    for process in ("p1", "p2"):
        trace.view(process, "orders", "v1", ["p1", "p2"])
    assert violated(trace.end(quiet=False)) == set()


def test_m10_a_new_member_had_asked() -> None:
    trace = Trace({"orders": ["p1", "p2"], "other": ["p3"]}).begin()
    trace.view("p1", "orders", "v1", ["p1", "p2", "p3"], transitional=["p1"])
    events = trace.end(quiet=False)
    assert sentence(events, "M10", "orders") == (
        "p1 installed view v1 (index 2) with p3 as a new member, although p3 had not asked to join"
    )


@pytest.mark.parametrize("early", [(), ("p2",), ("p1", "p2")])
def test_m10_a_sender_that_was_added_after_the_others_had_agreed(early: Sequence[str]) -> None:
    trace = Trace({"orders": ["p1", "p2", "p3"]}, protocol="intergroup", roles={"p3": "receiver"})
    for process in trace.members:
        trace.start(process)
        trace.view(process, "orders", "v0" if process != "p3" else "v0/p3", ["p1", "p2"])
    trace.row("p3", "promote", group="orders")
    for process in ("p1", "p2"):
        if process not in early:
            trace.confirm(process, "p3")
        trace.view(process, "orders", "v1", ["p1", "p2", "p3"])
        if process in early:
            trace.confirm(process, "p3")
        trace.view(process, "orders", "v2", ["p1", "p2"], classes=[["p1", "p2"]])
    assert ("M10" in violated(trace.end(quiet=False))) is bool(early)


# M11


def primaries(*sides: tuple[str, Sequence[str], bool]) -> Trace:
    """Five members go apart: each side with its view, its members and whether it calls itself primary."""
    trace = Trace({"orders": [f"p{number}" for number in range(1, 6)]}, options=CLOSED)
    trace.fault("partition")
    for process in trace.members:
        trace.start(process)
        trace.view(process, "orders", "v0", trace.members, primary=True)
    for view, members, primary in sides:
        for process in members:
            trace.exclude(process, view, members, primary=primary)
    return trace


def test_m11_one_side_is_primary() -> None:
    events = primaries(("v1", ["p1", "p2", "p3"], True), ("v2", ["p4", "p5"], False)).end(
        components=[["p1", "p2", "p3"], ["p4", "p5"]]
    )
    assert violated(events) == set()
    assert verdict(events, "M11", "orders").opportunities == 1


def test_m11_two_primary_successors() -> None:
    events = primaries(("v1", ["p1", "p2", "p3"], True), ("v2", ["p4", "p5"], True)).end(
        components=[["p1", "p2", "p3"], ["p4", "p5"]]
    )
    assert violated(events) == {"M11"}
    assert verdict(events, "M11", "orders").violations == 2
    assert "both views call themselves primary" in sentence(events, "M11", "orders")


def test_m11_a_successor_of_a_view_that_is_not_primary_is_not_primary() -> None:
    trace = primaries(("v1", ["p1", "p2", "p3"], True), ("v2", ["p4", "p5"], False))
    trace.exclude("p4", "v3", ["p4"], primary=True)
    events = trace.end(components=[["p1", "p2", "p3"], ["p4"]])
    assert violated(events) == {"M11"}
    assert sentence(events, "M11", "orders") == (
        "p4 installed view v3 (index 11), which calls itself primary, after view v2, which does not"
    )


def test_m11_is_promised_of_closed_views_only() -> None:
    trace = primaries(("v1", ["p1", "p2", "p3"], True), ("v2", ["p4", "p5"], True))
    trace.rows[:] = [
        {**row, "detail": row.get("detail") and row["detail"].replace("closed", "cut")} for row in trace.rows
    ]
    events = trace.end(components=[["p1", "p2", "p3"], ["p4", "p5"]])
    assert verdict(events, "M11", "orders").outcome == "not promised"
    assert violated(events) == set()
