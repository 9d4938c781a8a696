"""Groups that change, on traces by hand: each property with epochs, joins, leaves and recoveries."""

import json
from collections.abc import Sequence

import pyarrow as pa
import pytest

from antiphon.properties.promises import COMING
from tests.support.traces.changing_traces import OPTIONS
from tests.support.traces.handmade import Mid, Trace, sentence, trio, verdict, verdicts, violated

ZEROTH, FIRST, SECOND = "0000.000000.00", "0001.000000.aa", "0002.000000.bb"


def enter(trace: Trace, view: str, *classes: Sequence[str], only: Sequence[str] | None = None) -> None:
    """All processes, or some, go over to a formed group; a process with a view comes from it."""
    members = sorted(member for together in classes for member in together)
    for together in classes:
        for process in together:
            if only is None or process in only:
                along = together if (process, "orders") in trace.views else ()
                trace.view(
                    process,
                    "orders",
                    view,
                    members,
                    transitional=along,
                    primary=True,
                    epoch=int(view[:4]),
                    classes=classes,
                )


def take_over(trace: Trace, donors: Sequence[str], joiner: str, *, of: int = 0, state: int = 7) -> None:
    for donor in donors:
        trace.state(donor, "snapshot", state, of)
    trace.state(joiner, "installed", state, of)
    trace.state(joiner, "merged", state)


def pair(**settings: object) -> Trace:
    """p1 and p2 are in the group, p3 is up."""
    options = OPTIONS | {"merge_every": "0s"} | settings
    trace = Trace({"orders": ["p1", "p2"]}, options=options).begin(ZEROTH)
    trace.start("p3")
    return trace


def three() -> Trace:
    """p1, p2 and p3 are in the group."""
    return Trace({"orders": ["p1", "p2", "p3"]}, options=OPTIONS).begin(ZEROTH)


def joined(**settings: object) -> Trace:
    """p3 joins them."""
    trace = pair(**settings)
    trace.join("p3")
    enter(trace, FIRST, ["p1", "p2"], ["p3"])
    take_over(trace, ["p1", "p2"], "p3")
    return trace


def everywhere(trace: Trace, *mids: Mid) -> None:
    for mid in mids:
        for process, group in [*trace.memberships]:
            if process != mid.sender and process not in trace.closed and group == mid.group:
                trace.receive(process, mid)
            if process not in trace.closed:
                trace.deliver(process, mid)


def finish(trace: Trace, components: list[list[str]] | None = None) -> pa.Table:
    """Stable, freed, then quiet long enough for everything to settle."""
    trace.settle()
    wait(trace, 50)
    return trace.end(settled=False, components=components)


def wait(trace: Trace, duration_us: int) -> None:
    """Members only send signs of life."""
    for _ in range(duration_us // 2):
        trace.time += 2_000
        for process, _ in [*trace.memberships]:
            if process not in trace.closed:
                trace.transmit(process, f"alive {trace.time}", None, "alive")


def test_a_join_is_good() -> None:
    trace = joined()
    everywhere(trace, trace.send("p1"), trace.send("p3"))
    events = finish(trace)
    assert violated(events) == set()
    assert verdict(events, "D12", "orders").opportunities > 0


def test_d12_is_promised_only_where_a_process_comes() -> None:
    found = verdicts(pair().end())
    assert {found[name, "orders"].outcome for name in COMING} == {"not promised"}


# Joins and leaves


def test_a_joiner_that_never_delivers_is_noticed() -> None:
    trace = joined()
    mid = trace.send("p1")
    trace.receive("p2", mid)
    trace.receive("p3", mid)
    trace.deliver("p1", mid)
    trace.deliver("p2", mid)
    assert violated(finish(trace)) == {"D8", "L2", "L4"}


def test_l1_l5_a_joiner_that_dies_and_stays_listed() -> None:
    trace = pair()
    trace.join("p3")
    enter(trace, FIRST, ["p1", "p2"], ["p3"], only=["p1", "p2"])
    trace.crash("p3")
    events = finish(trace)
    assert violated(events) == {"L1", "L5"}
    assert sentence(events, "L5", "orders").endswith("p3 was still in it, crashed or cut off for good")


def test_l1_l5_a_process_that_left_and_stays_listed() -> None:
    trace = three()
    trace.leave("p3")
    events = finish(trace)
    assert violated(events) == {"L1", "L5"}
    assert "crashed, left or cut off" in sentence(events, "L1", "orders")


def test_l1_a_process_that_asked_to_join_is_in_the_group_at_last() -> None:
    trace = pair()
    trace.join("p3")
    events = finish(trace)
    assert violated(events) == {"L1"}
    assert sentence(events, "L1", "orders") == (
        "p3 asked to join orders (index 1) but was in no view of it when the run ended quiet, although p1, a member, "
        "was connected with it"
    )


def test_l1_no_process_can_join_those_that_it_is_not_connected_with() -> None:
    trace = pair()
    trace.join("p3")
    assert violated(finish(trace, [["p1", "p2"], ["p3"]])) == set()


def test_l1_a_process_that_asked_others_need_not_be_taken_in() -> None:
    trace = pair()
    trace.join("p3", contacts=["p9"])
    assert violated(finish(trace)) == set()


@pytest.mark.parametrize(("merge_every", "expected"), [("0s", set()), ("1us", {"L1"})])
def test_l1_connected_sides_are_united_where_groups_merge(merge_every: str, expected: set[str]) -> None:
    trace = Trace({"orders": ["p1", "p2"]}, options=OPTIONS | {"merge_every": merge_every}).begin(ZEROTH)
    trace.fault("partition")
    trace.exclude("p1", "0000.000001.a", ["p1"])
    trace.exclude("p2", "0000.000001.b", ["p2"])
    events = finish(trace)
    assert violated(events) == expected
    if expected:
        assert "p1 installed view 0000.000001.a" in sentence(events, "L1", "orders")
        assert "without p2, which was in the group too" in sentence(events, "L1", "orders")


def test_l1_an_end_too_early_for_merging_is_not_judged() -> None:
    trace = Trace({"orders": ["p1", "p2"]}, options=OPTIONS | {"merge_every": "1ms"}).begin(ZEROTH)
    trace.fault("partition")
    trace.exclude("p1", "0000.000001.a", ["p1"])
    trace.exclude("p2", "0000.000001.b", ["p2"])
    trace.fault("heal")
    assert "L1" not in violated(finish(trace))


@pytest.mark.parametrize(("late_ns", "expected"), [(400, {"L1"}), (600, set())])
def test_l1_where_frames_are_slow_members_may_be_apart_at_the_end(late_ns: int, expected: set[str]) -> None:
    """Half of the time of suspicion is 500 ns."""
    trace = Trace({"orders": ["p1", "p2"]}, options=OPTIONS | {"merge_every": "1us"}).begin(ZEROTH)
    trace.fault("partition")
    wait(trace, 40)
    trace.transmit("p1", "slow", None, "null")
    trace.time += late_ns
    frame = json.dumps({"frame": "orders/p1/slow", "type": "null"})
    trace.row("p2", "receive", group="orders", view=ZEROTH, sender="p1", sender_incarnation=0, peer="p1", detail=frame)
    trace.exclude("p1", "0000.000001.a", ["p1"])
    trace.exclude("p2", "0000.000001.b", ["p2"])
    trace.settle()
    wait(trace, 4)
    assert violated(trace.end(settled=False)) == expected


def test_a_process_that_left_comes_back_from_nowhere() -> None:
    trace = three()
    everywhere(trace, trace.send("p3"))
    trace.leave("p3")
    for process in ("p1", "p2"):
        trace.exclude(process, "0000.000001.a", ["p1", "p2"])
    away = trace.send("p1")
    for process in ("p1", "p2"):
        if process == "p2":
            trace.receive(process, away)
        trace.deliver(process, away)
    trace.join("p3")
    enter(trace, FIRST, ["p1", "p2"], ["p3"])
    take_over(trace, ["p1", "p2"], "p3")
    back = [trace.send("p3"), trace.send("p1")]
    everywhere(trace, *back)
    assert violated(finish(trace)) == set()


def test_w5_a_process_that_left_comes_from_no_view() -> None:
    trace = three()
    view = trace.views["p3", "orders"]
    trace.leave("p3")
    trace.join("p3")
    trace.views["p3", "orders"] = view
    enter(trace, FIRST, ["p1", "p2"], ["p3"])
    assert violated(trace.end()) == {"harness error"}
    assert sentence(trace.end(), "W").startswith("W5: p3 installs a view")


def test_w6_l7_a_process_that_leaves_is_blocked_no_more() -> None:
    trace = three()
    trace.block("p3")
    trace.leave("p3")
    for process in ("p1", "p2"):
        trace.exclude(process, "0000.000001.a", ["p1", "p2"])
    trace.join("p3")
    enter(trace, FIRST, ["p1", "p2"], ["p3"])
    take_over(trace, ["p1", "p2"], "p3")
    trace.block("p3")
    trace.unblock("p3")
    assert violated(finish(trace)) == set()


@pytest.mark.parametrize(("graceful", "expected"), [(True, True), (False, False)])
def test_l3_messages_sent_before_an_ungraceful_leave_may_be_lost(*, graceful: bool, expected: bool) -> None:
    trace = three()
    trace.send("p3")
    trace.leave("p3", graceful=graceful)
    for process in ("p1", "p2"):
        trace.exclude(process, "0000.000001.a", ["p1", "p2"])
    trace.join("p3")
    enter(trace, FIRST, ["p1", "p2"], ["p3"])
    take_over(trace, ["p1", "p2"], "p3")
    assert ("L3" in violated(finish(trace))) == expected


def test_d3_nothing_is_delivered_after_leaving() -> None:
    trace = trio()
    mid = trace.send("p1")
    trace.deliver_everywhere(mid)
    late = trace.send("p1")
    view = trace.views["p3", "orders"]
    trace.leave("p3")
    trace.deliver("p3", late, view=view)
    assert sentence(trace.end(quiet=False), "D3", "orders").endswith("although it had left orders")


@pytest.mark.parametrize("waits", [True, False])
def test_s4_messages_that_wait_for_a_state_need_not_be_in_a_buffer(*, waits: bool) -> None:
    trace = pair()
    trace.join("p3")
    enter(trace, FIRST, ["p1", "p2"], ["p3"])
    if not waits:
        take_over(trace, ["p1", "p2"], "p3")
    mid = trace.send("p1")
    for process in ("p2", "p3"):
        trace.receive(process, mid)
    trace.stable("p1", {"p1": 0})
    trace.discard("p3", {"p1": 0}, evicted=True)
    if waits:
        take_over(trace, ["p1", "p2"], "p3")
    for process in ("p1", "p2", "p3"):
        trace.deliver(process, mid)
    assert violated(finish(trace)) == (set() if waits else {"S4"})


# Views


def test_m2_a_process_that_comes_back_is_taken_in_by_those_that_formed_the_group_less_often() -> None:
    """E-92."""
    trace = three()
    trace.exclude("p1", "0000.000001.a", ["p1"])
    enter(trace, SECOND, ["p2"], ["p3"])
    trace.crash("p3")
    trace.start("p3#1")
    trace.join("p3#1")
    enter(trace, FIRST, ["p1"], ["p3#1"])
    assert {"M2", "R2"}.isdisjoint(violated(trace.end(quiet=False)))
    trace = three()
    enter(trace, SECOND, ["p1", "p2", "p3"])
    enter(trace, FIRST, ["p1", "p2", "p3"])
    assert "M2" in violated(trace.end(quiet=False))


def test_m3_a_new_group_needs_no_contact() -> None:
    trace = Trace({"orders": []})
    for process in ("p1", "p2"):
        trace.start(process)
    enter(trace, FIRST, ["p1"], ["p2"])
    everywhere(trace, trace.send("p1"), trace.send("p2"))
    assert violated(trace.end()) == set()


def test_m3_m10_a_process_from_no_view_that_had_not_asked() -> None:
    trace = pair()
    enter(trace, FIRST, ["p1", "p2"], ["p3"])
    take_over(trace, ["p1", "p2"], "p3")
    events = trace.end(quiet=False)
    assert violated(events) == {"M3", "M10", "L9"}
    assert sentence(events, "M3", "orders").endswith("as its first in orders, which it had not asked to join")


def test_m10_a_joiner_that_left_again_before_another_member_installed_the_view() -> None:
    for entered in (True, False):
        trace = pair()
        trace.join("p3")
        enter(trace, FIRST, ["p1", "p2"], ["p3"], only=["p1", "p3"] if entered else ["p1"])
        if entered:
            trace.leave("p3")
        else:
            trace.row("p3", "leave", group="orders")
        enter(trace, FIRST, ["p1", "p2"], ["p3"], only=["p2"])
        assert ("M10" in violated(trace.end(quiet=False))) is not entered


def test_m5_a_joiner_has_the_views_of_those_with_which_it_began() -> None:
    trace = joined()
    for process in ("p1", "p2"):
        trace.view(process, "orders", "0001.000001.cc", ["p1", "p2"])
    assert "M5" in violated(finish(trace))


def test_m7_of_one_predecessor_all_come_from_one_view() -> None:
    trace = three()
    trace.exclude("p1", "0000.000001.a", ["p1", "p2"])
    enter(trace, FIRST, ["p1"], ["p2"], ["p3"])
    assert "M7" in violated(trace.end(quiet=False))


def test_m7_a_process_that_was_in_another_formation_meanwhile_comes_from_there() -> None:
    trace = pair()
    trace.suspect("p2", "p1")
    trace.join("p3")
    enter(trace, FIRST, ["p2"], ["p3"])
    trace.state("p2", "snapshot", 7, 0)
    trace.state("p3", "installed", 7, 0)
    trace.state("p3", "merged", 7)
    enter(trace, SECOND, ["p1"], ["p2", "p3"])
    assert not {"M7", "M8", "M10"} & violated(trace.end(quiet=False))


def test_d10_a_process_that_was_removed_and_comes_back_is_a_member_again() -> None:
    trace = Trace({"orders": ["p1", "p2"]}, options=OPTIONS).begin(ZEROTH)
    trace.fault("partition")
    trace.exclude("p1", "0000.000001.a", ["p1"])
    trace.exclude("p2", "0000.000001.b", ["p2"])
    enter(trace, FIRST, ["p1"], ["p2"])
    for process, own in (("p1", 0), ("p2", 1)):
        trace.state(process, "snapshot", own, own)
    for process, other in (("p1", 1), ("p2", 0)):
        trace.state(process, "installed", other, other)
        trace.state(process, "merged", 5)
    everywhere(trace, trace.send("p1"), trace.send("p2"))
    assert violated(finish(trace)) == set()


# States


def test_d12_merged_states_are_the_same() -> None:
    trace = Trace({"orders": ["p1", "p2"]}, options=OPTIONS).begin(ZEROTH)
    trace.fault("partition")
    trace.exclude("p1", "0000.000001.a", ["p1"])
    trace.exclude("p2", "0000.000001.b", ["p2"])
    enter(trace, FIRST, ["p1"], ["p2"])
    for process, own in (("p1", 0), ("p2", 1)):
        trace.state(process, "snapshot", own, own)
    for process, other in (("p1", 1), ("p2", 0)):
        trace.state(process, "installed", other, other)
        trace.state(process, "merged", 5 + other)
    events = finish(trace)
    assert violated(events) == {"D12"}
    assert "differs from another process's, although both must be equal" in sentence(events, "D12", "orders")


def test_d12_a_state_that_no_process_can_tell_is_not_waited_for() -> None:
    trace = pair()
    trace.crash("p2")
    trace.exclude("p1", "0000.000001.a", ["p1"])
    trace.join("p3")
    enter(trace, FIRST, ["p1"], ["p3"])
    trace.crash("p1")
    trace.exclude("p3", "0001.000001.c", ["p3"])
    trace.state("p3", "merged", 0)
    mid = trace.send("p3")
    trace.deliver("p3", mid)
    # The `state` row names the view in which it is merged; that is a later one than the first.
    trace.rows[-3]["view"] = FIRST
    assert violated(finish(trace)) == set()


def test_d12_a_state_may_be_given_up_two_views_after_others_have_it() -> None:
    """p1 and p3 have both states. p2 waits for that of p1, and gives it up when its second view loses p1."""
    for stays in ("", "p1", "p3"):
        trace = Trace({"orders": ["p1", "p2", "p3", "p4"]}, options=OPTIONS).begin(ZEROTH)
        trace.fault("partition")
        for process, view, side in (("p1", "a", ["p1"]), ("p2", "b", ["p2", "p3", "p4"])):
            for member in side:
                trace.exclude(member, f"0000.000001.{view}{process}", side)
        enter(trace, FIRST, ["p1"], ["p2", "p3", "p4"])
        trace.state("p1", "snapshot", 1, 0)
        trace.state("p2", "snapshot", 2, 1)
        for process, other in (("p1", 1), ("p3", 0)):
            trace.state(process, "installed", other + 1, other)
            trace.state(process, "merged", 3)
        trace.state("p2", "merged", 2)
        for process in ("p1", "p2", "p3"):
            trace.exclude(process, "0001.000001.cc", ["p1", "p2", "p3"])
        last = ["p2", stays] if stays == "p3" else ["p2"]
        for process in last if stays != "p1" else ():
            trace.exclude(process, "0001.000002.dd", last)
        assert ("D12" in violated(trace.end(quiet=False))) is bool(stays)


def test_d12_a_message_belongs_to_one_formation() -> None:
    trace = pair()
    mid = trace.send("p1")
    trace.receive("p2", mid)
    trace.deliver("p1", mid)
    trace.deliver("p2", mid)
    trace.join("p3")
    enter(trace, FIRST, ["p1", "p2"], ["p3"])
    take_over(trace, ["p1", "p2"], "p3")
    trace.deliver("p3", mid)
    events = trace.end(quiet=False)
    assert violated(events) == {"D12"}
    assert sentence(events, "D12", "orders").startswith(
        f"p3 delivered orders/p1:0 (index 5) in view {FIRST}, and p1 (index 3) in view {ZEROTH} of another formation"
    )


def test_d12_damaged_rows_are_told_and_not_raised() -> None:
    trace = joined()
    for of in (-1, 5, 10**6):
        trace.state("p1", "snapshot", 1, of)
        trace.state("p3", "installed", 1, of)
    trace.row("p2", "state", group="orders", view=FIRST, digest=1)
    assert "D12" in violated(finish(trace))


# Stability and flow control


def test_s1_a_process_that_joined_needs_not_have_what_was_sent_before() -> None:
    trace = pair()
    old = trace.send("p1")
    trace.receive("p2", old)
    trace.deliver("p1", old)
    trace.deliver("p2", old)
    trace.join("p3")
    enter(trace, FIRST, ["p1", "p2"], ["p3"])
    take_over(trace, ["p1", "p2"], "p3")
    new = trace.send("p1")
    everywhere(trace, new)
    for process in ("p1", "p2", "p3"):
        trace.stable(process, {"p1": 1})
        trace.discard(process, {"p1": 1})
    assert not {"S1", "S4", "L6", "L8"} & violated(trace.end(settled=False))


def test_s1_a_process_that_joined_must_have_what_was_sent_since() -> None:
    trace = joined()
    mid = trace.send("p1")
    trace.deliver("p1", mid)
    trace.receive("p2", mid)
    trace.stable("p1", {"p1": 0})
    assert violated(trace.end(quiet=False)) == {"S1"}


def test_s1_a_process_that_was_lost_and_is_back_must_have_it_too() -> None:
    trace = Trace({"orders": ["p1", "p2"]}, options=OPTIONS).begin(ZEROTH)
    trace.fault("partition")
    trace.exclude("p1", "0000.000001.a", ["p1"])
    trace.exclude("p2", "0000.000001.b", ["p2"])
    enter(trace, FIRST, ["p1"], ["p2"])
    for process, own in (("p1", 0), ("p2", 1)):
        trace.state(process, "snapshot", own, own)
        trace.state(process, "installed", 1 - own, 1 - own)
        trace.state(process, "merged", 5)
    mid = trace.send("p1")
    trace.deliver("p1", mid)
    trace.stable("p1", {"p1": 0})
    assert violated(trace.end(quiet=False)) == {"S1"}


def test_l8_messages_held_of_a_predecessor_are_gone_with_it() -> None:
    trace = pair()
    old = trace.send("p2")
    trace.receive("p1", old)
    trace.deliver("p1", old)
    trace.deliver("p2", old)
    trace.join("p3")
    enter(trace, FIRST, ["p1", "p2"], ["p3"])
    take_over(trace, ["p1", "p2"], "p3")
    assert violated(trace.end(settled=False)) == set()


@pytest.mark.parametrize(("group", "expected"), [("orders@1099511627776", set()), ("orders", {"F1", "F2"})])
def test_f1_f2_each_formation_counts_its_frames_anew(group: str, expected: set[str]) -> None:
    trace = Trace({"orders": ["p1", "p2"]}, options={"flow_control": 3, "window": 2, "window_bytes": 99}).begin()
    for serials, gid in (((1, 2), "orders"), ((3, 4), group)):
        for number, serial in enumerate(serials, 1):
            detail = {"frame": f"{gid}/p1/{serial}", "type": "data"}
            trace.row(
                "p1", "transmit", group="orders", view="v0", detail=json.dumps(detail | {"flow": [number, 9, 0, 0]})
            )
            trace.row("p2", "receive", group="orders", sender="p1", sender_incarnation=0, detail=json.dumps(detail))
    assert violated(trace.end(quiet=False)) == expected


# Incarnations


def test_a_component_may_name_a_recovered_process_by_its_name() -> None:
    trace = Trace({"orders": ["p1", "p2"]}, options=OPTIONS).begin(ZEROTH)
    trace.crash("p2")
    trace.exclude("p1", "0000.000001.a", ["p1"])
    trace.start("p2#1")
    trace.join("p2#1")
    enter(trace, FIRST, ["p1"], ["p2#1"])
    take_over(trace, ["p1"], "p2#1")
    mid = trace.send("p1")
    trace.deliver("p1", mid)
    assert {"L2", "L4"} <= violated(finish(trace, [["p1", "p2"]]))


def test_l10_a_recovered_process_is_hindered_by_its_name() -> None:
    trace = Trace({"orders": ["p1", "p2#1"]}, options=OPTIONS).begin(ZEROTH)
    trace.fault("pause", process="p2")
    trace.time += 100_000
    trace.transmit("p1", "x", None, "alive")
    assert verdict(trace.end(quiet=False), "L10", "orders").violations == 1
