"""D13 agreement: if one staying member delivered a message, all staying members delivered it."""

from typing import Any

import pyarrow as pa
import pytest

from tests.support.traces.handmade import Trace, sentence, trio, verdict, violated


def reliable(**settings: Any) -> Trace:
    return trio(protocol="classic", service="reliable", **settings)


def outcome(events: pa.Table) -> tuple[str, int, int]:
    found = verdict(events, "D13", "orders")
    return found.outcome, found.opportunities, found.violations


def test_all_have_it() -> None:
    trace = reliable()
    trace.deliver_everywhere(trace.send("p1"))
    assert outcome(trace.end(settled=False)) == ("pass", 3, 0)


def test_no_process_has_it() -> None:
    trace = reliable()
    trace.send("p1")
    trace.crash("p1")
    events = trace.end(settled=False)
    assert outcome(events) == ("vacuous", 0, 0)
    assert violated(events) == set()


def test_a_member_that_lacks_a_message_of_a_crashed_sender_is_noticed() -> None:
    trace = reliable()
    mid = trace.send("p1")
    trace.crash("p1")
    trace.deliver("p2", mid)
    for process in ("p2", "p3"):
        trace.view(process, "orders", "v1", ["p2", "p3"])
    events = trace.end(settled=False)
    assert outcome(events) == ("violated", 2, 1)
    assert violated(events) == {"D13"}
    assert sentence(events, "D13", "orders") == (
        "p2 delivered orders/p1:0 (index 2) of p1, which crashed, but p3 had not delivered it when the run ended quiet"
    )


def test_views_do_not_matter() -> None:
    """One delivers before it hears of the crash, one after it."""
    trace = reliable()
    mid = trace.send("p1")
    trace.crash("p1")
    trace.deliver("p2", mid)
    for process in ("p2", "p3"):
        trace.view(process, "orders", "v1", ["p2", "p3"])
    trace.deliver("p3", mid)
    assert outcome(trace.end(settled=False)) == ("pass", 2, 0)


def test_a_message_that_only_a_crashed_process_had_is_not_missed() -> None:
    trace = reliable()
    mid = trace.send("p1")
    trace.deliver("p1", mid)
    trace.crash("p1")
    assert violated(trace.end(settled=False)) == set()


def test_a_message_beyond_the_end_of_a_crashed_log_counts() -> None:
    trace = reliable()
    mid = trace.send("p1")
    trace.rows.pop()
    trace.lengths["p1"] -= 1
    trace.crash("p1")
    trace.deliver("p2", mid)
    assert violated(trace.end(settled=False)) == {"D13"}


def test_a_process_that_was_not_with_it_owes_nothing() -> None:
    trace = reliable()
    trace.view("p1", "orders", "v1", ["p1", "p2"])
    trace.view("p2", "orders", "v1", ["p1", "p2"])
    mid = trace.send("p1")
    trace.deliver("p1", mid)
    trace.deliver("p2", mid)
    assert outcome(trace.end(settled=False)) == ("pass", 2, 0)


@pytest.mark.parametrize("components", [[["p1", "p2"], ["p3"]], [["p1", "p2"]]])
def test_components_are_judged_apart(components: list[list[str]]) -> None:
    trace = reliable()
    mid = trace.send("p1")
    trace.deliver("p1", mid)
    trace.deliver("p2", mid)
    assert outcome(trace.end(settled=False, components=components)) == ("pass", 2, 0)


def test_a_process_that_left_owes_nothing_and_one_that_came_back_does() -> None:
    for moves, lost in ((["leave"], 0), (["leave", "join"], 1)):
        trace = reliable()
        mid = trace.send("p1")
        trace.deliver("p1", mid)
        trace.deliver("p2", mid)
        for kind in moves:
            trace.row("p3", kind, group="orders")
        assert outcome(trace.end(settled=False))[2] == lost


def test_a_sender_outside_is_not_delivered_to() -> None:
    trace = reliable(outside={"orders": ["x"]})
    trace.deliver_everywhere(trace.send("x"))
    events = trace.end(settled=False)
    assert outcome(events) == ("pass", 3, 0)
    assert violated(events, "D13", "L3", "D8") == set()


def test_a_run_without_a_quiet_end_is_not_judged() -> None:
    trace = reliable()
    trace.deliver("p1", trace.send("p1"))
    events = trace.end(quiet=False)
    assert outcome(events) == ("vacuous", 0, 0)
    assert verdict(events, "D13", "orders").note == "not judged: the run did not end quiet: duration"
