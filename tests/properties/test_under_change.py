"""Other checkers on traces in which members crash, are excluded, or are separated."""

import pytest

from tests.support.traces.handmade import Trace, sentence, trio, verdict, violated


def test_s1_a_member_confirmed_as_failed_is_not_asked() -> None:
    trace = trio()
    mid = trace.send("p1")
    trace.receive("p2", mid)
    trace.fault("pause", process="p3")
    trace.suspect("p1", "p3")
    trace.confirm("p1", "p3")
    trace.stable("p1", {"p1": 0})  # before the view without p3
    assert violated(trace.end(quiet=False)) == set()


def test_s1_a_member_not_confirmed_as_failed_is_asked() -> None:
    trace = trio()
    mid = trace.send("p1")
    trace.receive("p2", mid)
    trace.fault("pause", process="p3")
    trace.suspect("p1", "p3")
    trace.stable("p1", {"p1": 0})
    trace.confirm("p1", "p3")
    events = trace.end(quiet=False)
    assert violated(events) == {"S1"}
    assert sentence(events, "S1", "orders") == (
        "p1 learned that orders/p1:0 is stable (index 4), but p3, a member of view v0, never received it"
    )


def test_s1_a_confirmation_elsewhere_does_not_count() -> None:
    trace = Trace({"orders": ["p1", "p2", "p3"], "other": ["p1", "p2", "p3"]}).begin()
    mid = trace.send("p1")
    trace.receive("p2", mid)
    trace.suspect("p1", "p3", group="other")
    trace.confirm("p1", "p3", group="other")
    trace.confirm("p2", "p3")
    trace.stable("p1", {"p1": 0})
    assert "S1" in violated(trace.end(quiet=False))


def test_s1_one_confirmed_in_an_earlier_view_and_still_in_view() -> None:
    trace = Trace({"orders": ["p1", "p2", "p3", "p4"]}).begin()
    trace.fault("partition")
    mid = trace.send("p1")
    trace.receive("p2", mid)
    trace.suspect("p1", "p3", "p4")
    trace.confirm("p1", "p3", "p4")
    trace.view("p1", "orders", "v1", ["p1", "p2", "p3"])  # a cut for each, one after the other
    trace.stable("p1", {"p1": 0})
    assert violated(trace.end(quiet=False)) == set()


@pytest.mark.parametrize(("view_change", "excused"), [("cut", False), ("remove", True), ("closed", True)])
def test_o4_a_remove_may_come_after_the_effect_in_another_group(view_change: str, excused: bool) -> None:
    trace = Trace({"a": ["p1", "p2", "p3"], "b": ["p2", "p3"]}, options={"view_change": view_change}).begin()
    lost = trace.send("p1", "a")
    trace.deliver("p2", lost)
    effect = trace.send("p2", "b")
    trace.crash("p1")
    for process in ("p2", "p3"):
        trace.suspect(process, "p1", group="a")
        trace.confirm(process, "p1", group="a")
        trace.deliver(process, effect)
    trace.suspect("p3", "p2", group="a")  # p2 goes elsewhere in that group
    assert ("O4" in violated(trace.end(quiet=False))) != excused


@pytest.mark.parametrize("first", ["p#10", "p#2"])
def test_stamps_order_processes_as_texts(first: str) -> None:
    second = "p#2" if first == "p#10" else "p#10"
    trace = Trace({"orders": ["p#2", "p#10"]}).begin()
    mids = {process: trace.send(process, clock=1) for process in trace.members}
    for process in trace.members:
        trace.deliver(process, mids[first], mids[second])
    told = verdict(trace.end(), "O6")
    assert told.outcome == "pass"
    assert (told.note is None) == (first == "p#10")


def test_d8_sides_of_a_split_in_one_last_view_are_not_held_together() -> None:
    trace = trio()
    trace.fault("cut")
    mid = trace.send("p1")
    trace.deliver("p1", mid)
    trace.deliver("p2", mid)
    events = trace.end(components=[["p1", "p2"], ["p3"]])
    assert violated(events) == set()
    assert verdict(events, "D8", "orders").opportunities == 1


def test_l3_a_process_that_was_excluded_and_lives_delivers_its_own() -> None:
    trace = trio()
    trace.fault("partition")
    trace.send("p3")
    for process in ("p1", "p2"):
        trace.exclude(process, "v1", ["p1", "p2"])
    trace.exclude("p3", "v2", ["p3"])
    events = trace.end(components=[["p1", "p2"], ["p3"]])
    assert violated(events) == {"L3"}


def test_l2_l6_l8_in_the_last_views_of_both_sides() -> None:
    sides = [["p1", "p2"], ["p3", "p4"]]
    trace = Trace({"orders": ["p1", "p2", "p3", "p4"]}).begin()
    trace.fault("partition")
    for view, members in zip(("v1", "v2"), sides, strict=True):
        for process in members:
            trace.exclude(process, view, members)
    for members in sides:
        mid = trace.send(members[0])
        for process in members:
            if process != members[0]:
                trace.receive(process, mid)
            trace.deliver(process, mid)
        for kind in (trace.stable, trace.discard):
            for process in members:
                kind(process, {members[0]: 0})
    events = trace.end(components=sides, settled=False)
    assert violated(events) == set()
    assert [verdict(events, name, "orders").opportunities for name in ("L2", "L6", "L8")] == [4, 4, 4]


def test_l8_undelivered_messages_of_excluded_members_are_excused() -> None:
    trace = trio()
    trace.fault("partition")
    mids = [trace.send("p3"), trace.send("p3")]
    trace.receive("p1", *mids)
    trace.receive("p2", mids[0])
    for process in ("p1", "p2"):
        trace.deliver(process, mids[0])
        trace.exclude(process, "v1", ["p1", "p2"])
    for kind in (trace.stable, trace.discard):
        for process in ("p1", "p2"):
            kind(process, {"p3": 0})
    trace.receive("p2", mids[1])  # too late: it is recorded as received, and refused
    assert violated(trace.end(components=[["p1", "p2"]], settled=False)) == set()


@pytest.mark.parametrize(("kind", "broken"), [("remove", {"F2"}), ("flush", set())])
def test_f2_a_remove_holds_a_place_in_the_window_a_flush_does_not(kind: str, broken: set[str]) -> None:
    trace = trio(options={"flow_control": 3, "window": 2, "window_bytes": 1000})
    trace.transmit("p1", "1", [1, 0, 0])
    trace.transmit("p1", "2", [2, 1, 0], kind)
    assert violated(trace.end(settled=False)) == set()
    trace = trio(options={"flow_control": 3, "window": 2, "window_bytes": 1000})
    for number in range(1, 4):
        trace.transmit("p1", str(number), [number, number - 1, 0], kind)
    assert violated(trace.end(settled=False)) == broken


def test_f1_buffers_of_removed_members_still_count() -> None:
    trace = trio(options={"flow_control": 3, "window": 2, "window_bytes": 1000})
    trace.crash("p3")
    for process in ("p1", "p2"):
        trace.exclude(process, "v1", ["p1", "p2"])
    trace.gauge("p1", "buffers", 6)
    assert violated(trace.end()) == set()
