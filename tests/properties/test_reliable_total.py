"""O7 reliable total order: no process leaves out a message that comes earlier in the order."""

import pyarrow as pa

from tests.support.traces.handmade import Trace, sentence, trio, verdict, violated


def total() -> Trace:
    return trio(protocol="classic", service="total")


def outcome(events: pa.Table, *required: str) -> tuple[str, int, int]:
    found = verdict(events, "O7", "orders", *required)
    return found.outcome, found.opportunities, found.violations


def test_beginnings_of_one_sequence() -> None:
    trace = total()
    mids = [trace.send("p1") for _ in range(3)]
    trace.deliver("p1", *mids)
    trace.deliver("p2", *mids[:2])
    events = trace.end(quiet=False)
    assert outcome(events) == ("pass", 3, 0)


def test_one_is_left_out() -> None:
    trace = total()
    mids = [trace.send("p1") for _ in range(3)]
    trace.deliver("p1", *mids)
    trace.deliver("p2", mids[0], mids[2])
    events = trace.end(quiet=False)
    assert outcome(events) == ("violated", 3, 1)
    assert sentence(events, "O7", "orders") == (
        "p2 delivered orders/p1:2 (index 3) in view v0 but left out orders/p1:1: p1 delivered orders/p1:1 (index 6) "
        "before orders/p1:2 (index 7) there, and p2 did not deliver it"
    )
    assert violated(events) == {"O7"}


def test_two_leave_out_one_another() -> None:
    """In either order one of them left out a message; the stamp tells which one."""
    trace = total()
    first, second = trace.send("p1"), trace.send("p2")
    trace.deliver("p1", first)
    trace.deliver("p2", second)
    events = trace.end(quiet=False)
    assert outcome(events) == ("violated", 0, 1)
    assert sentence(events, "O7", "orders") == (
        "p2 delivered orders/p2:0 (index 3) in view v0 but left out orders/p1:0: p1 delivered orders/p1:0 (index 3) "
        "there, which comes earlier in the order, and p2 did not deliver it"
    )


def test_a_broken_stamp_does_not_hide_it() -> None:
    trace = total()
    mids = [trace.send("p1") for _ in range(3)]
    trace.deliver("p1", mids[0], mids[1])
    trace.deliver("p1", mids[2], clock=0)
    trace.deliver("p2", mids[0])
    trace.deliver("p2", mids[2], clock=0)
    assert outcome(trace.end(quiet=False)) == ("violated", 3, 1)


def test_without_an_order_it_is_violated_as_o6_is() -> None:
    trace = total()
    first, second = trace.send("p1"), trace.send("p2")
    trace.deliver("p1", first, second)
    trace.deliver("p2", second, first)
    events = trace.end(quiet=False)
    assert outcome(events) == ("violated", 2, 1)
    assert sentence(events, "O7", "orders") == sentence(events, "O6")
    assert violated(events) == {"O6", "O7"}


def test_without_an_order_over_views_it_is_violated_too() -> None:
    """Each view holds prefixes of one sequence, but p1 delivers first before second, and p2 the reverse."""
    trace = trio(protocol="classic", service="reliable")
    first, second = trace.send("p1"), trace.send("p2")
    trace.deliver("p1", first)
    for process in ("p1", "p2"):
        trace.view(process, "orders", "v1", ["p1", "p2"])
    trace.deliver("p1", second)
    trace.deliver("p2", second, first)
    events = trace.end(quiet=False)
    assert violated(events) == set()
    assert outcome(events, "O7") == ("violated", 1, 1)


def test_a_group_or_view_without_an_order_does_not_hide_others() -> None:
    trace = Trace({"audit": ["p1", "p2"], "orders": ["p1", "p2"]}, protocol="classic", service="total").begin()
    crossed = trace.send("p1", "audit"), trace.send("p2", "audit")
    trace.deliver("p1", *crossed)
    trace.deliver("p2", *reversed(crossed))
    mids = [trace.send("p1") for _ in range(3)]
    trace.deliver("p1", *mids)
    trace.deliver("p2", mids[0], mids[2])
    events = trace.end(quiet=False)
    for required in ((), ("O7",)):
        assert outcome(events, *required) == ("violated", 3, 1)
        assert "left out orders/p1:1" in sentence(events, "O7", "orders", *required)
        assert verdict(events, "O7", "audit", *required).violations == 1


def test_private_views_can_only_lack_an_order() -> None:
    for crossed, expected in ((False, ("vacuous", 0, 0)), (True, ("violated", 0, 1))):
        trace = Trace({"orders": ["p1", "p2"]}, protocol="acks", service="fifo")
        for process, other in (("p1", "p2"), ("p2", "p1")):
            trace.start(process)
            trace.view(process, "orders", f"1.{process}", ["p1", "p2"], receivers=[other], senders=[other])
        mids = trace.send("p1"), trace.send("p2")
        trace.deliver("p1", *mids)
        trace.deliver("p2", *(reversed(mids) if crossed else mids))
        assert outcome(trace.end(quiet=False), "O7") == expected


def moved() -> pa.Table:
    """p3 delivers in the next view a message that the others deliver in the first."""
    trace = total()
    first, second = trace.send("p1"), trace.send("p2")
    trace.deliver("p1", first, second)
    trace.deliver("p3", first)
    trace.view("p3", "orders", "v1", ["p3"])
    trace.deliver("p3", second)
    return trace.end(quiet=False)


def test_a_change_of_membership_ends_the_promise() -> None:
    trace = total()
    mids = [trace.send("p1") for _ in range(3)]
    trace.deliver("p1", *mids)
    trace.deliver("p2", mids[0], mids[2])
    trace.crash("p3")
    events = trace.end(quiet=False)
    assert outcome(events)[0] == "not promised"
    assert verdict(events, "O6").outcome == "pass"
    assert outcome(events, "O7") == ("violated", 3, 1)
    assert outcome(moved())[0] == "not promised"


def test_views_are_judged_one_by_one() -> None:
    assert outcome(moved(), "O7") == ("pass", 1, 0)


def test_a_process_that_delivers_elsewhere_is_told() -> None:
    trace = total()
    mids = [trace.send("p1") for _ in range(3)]
    trace.deliver("p1", *mids)
    trace.deliver("p2", mids[0])
    trace.view("p2", "orders", "v1", ["p2"])
    trace.deliver("p2", mids[1])
    trace.view("p2", "orders", "v2", ["p2"])
    trace.deliver("p3", mids[1], mids[2])
    events = trace.end(quiet=False)
    told = sentence(events, "O7", "orders", "O7")
    assert "p3 delivered orders/p1:1 (index 2) in view v0 but left out orders/p1:0" in told
    assert outcome(events, "O7")[2] == 1


def test_a_crash_outside_changes_nothing() -> None:
    trace = Trace({"orders": ["p1", "p2"]}, protocol="classic", service="total", outside={"orders": ["x"]}).begin()
    mids = [trace.send("x") for _ in range(2)]
    trace.crash("x")
    trace.deliver("p1", *mids)
    trace.deliver("p2", mids[1])
    assert outcome(trace.end(quiet=False)) == ("violated", 1, 1)
