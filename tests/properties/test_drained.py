"""L6 stability liveness, L7 no blocked sender, L8 drained buffers."""

import pyarrow as pa
import pytest

from tests.support.traces.handmade import Trace, sentence, trio, verdict, violated


def outcome(events: pa.Table, property_id: str) -> tuple[str, int, int]:
    found = verdict(events, property_id, "orders")
    return found.outcome, found.opportunities, found.violations


def received(trace: Trace) -> None:
    """One message of p1 to all members."""
    mid = trace.send("p1")
    for process in ("p2", "p3"):
        trace.receive(process, mid)
    trace.deliver_everywhere(mid)


def test_l6_all_know_it_stable() -> None:
    trace = trio()
    received(trace)
    assert outcome(trace.end(), "L6") == ("pass", 3, 0)


def test_l6_a_process_never_learns() -> None:
    trace = trio()
    received(trace)
    for process in ("p1", "p3"):
        trace.stable(process, {"p1": 0})
    events = trace.end(settled=False)
    assert outcome(events, "L6") == ("violated", 3, 1)
    assert sentence(events, "L6", "orders") == (
        "p1 sent orders/p1:0 (index 2) in its last view v0, but p2, a member of that view, "
        "did not know it to be stable when the run ended quiet"
    )


def test_l6_asks_only_for_the_last_view() -> None:
    trace = trio()
    received(trace)
    trace.crash("p3")
    for process in ("p1", "p2"):
        trace.view(process, "orders", "v1", ["p1", "p2"])
    assert outcome(trace.end(settled=False), "L6") == ("vacuous", 0, 0)


def test_l6_asks_only_within_a_component() -> None:
    trace = trio()
    received(trace)
    for process in ("p1", "p2"):
        trace.stable(process, {"p1": 0})
    assert outcome(trace.end(settled=False, components=[["p1", "p2"], ["p3"]]), "L6") == ("pass", 2, 0)


def test_l7_a_block_that_ends_and_one_that_does_not() -> None:
    trace = trio()
    trace.block("p1")
    trace.unblock("p1")
    assert outcome(trace.end(), "L7") == ("pass", 1, 0)
    stuck = trio()
    stuck.block("p1")
    stuck.unblock("p1")
    stuck.block("p1", "p3")
    stuck.block("p2")
    events = stuck.end()
    assert outcome(events, "L7") == ("violated", 3, 2)
    assert sentence(events, "L7", "orders") == (
        "p1 was blocked in orders (index 4), waiting for p3, and still blocked when the run ended quiet"
    )


def test_l7_asks_only_of_the_stable() -> None:
    trace = trio()
    for process in ("p1", "p2"):
        trace.block(process)
    trace.crash("p1")
    assert outcome(trace.end(components=[["p3"]]), "L7") == ("vacuous", 0, 0)


def test_l8_a_process_keeps_a_message() -> None:
    trace = trio()
    received(trace)
    trace.receive("p2", trace.sent[0])
    for process in ("p1", "p2", "p3"):
        trace.stable(process, {"p1": 0})
    trace.discard("p1", {"p1": 0})
    trace.discard("p3", {"p1": 0})
    events = trace.end(settled=False)
    assert outcome(events, "L8") == ("violated", 3, 1)
    assert sentence(events, "L8", "orders") == (
        "p2 received orders/p1:0 (index 2) but had not freed it when the run ended quiet"
    )


def test_l8_a_sender_keeps_its_own() -> None:
    trace = Trace({"orders": ["p1"]}).begin()
    trace.deliver("p1", trace.send("p1"))
    assert "p1 sent orders/p1:0 (index 2) but had not freed it" in sentence(trace.end(settled=False), "L8", "orders")


def removal(*, delivered: bool) -> pa.Table:
    """p1 and p2 have a message of p3, which they then remove."""
    trace = trio()
    mid = trace.send("p3")
    for process in ("p1", "p2"):
        trace.receive(process, mid)
        if delivered:
            trace.deliver(process, mid)
        trace.view(process, "orders", "v1", ["p1", "p2"])
    trace.crash("p3")
    return trace.end(settled=False)


def test_l8_messages_of_a_removed_member_are_freed_or_were_cut_away() -> None:
    assert outcome(removal(delivered=False), "L8") == ("pass", 2, 0)
    assert outcome(removal(delivered=True), "L8") == ("violated", 2, 2)


@pytest.mark.parametrize("property_id", ["L6", "L7", "L8"])
def test_a_run_without_a_quiet_end_is_not_judged(property_id: str) -> None:
    trace = trio()
    trace.send("p1")
    trace.block("p1")
    events = trace.end(quiet=False)
    assert outcome(events, property_id) == ("vacuous", 0, 0)
    assert verdict(events, property_id, "orders").note == "not judged: the run did not end quiet: duration"


def test_a_process_that_left_owes_nothing() -> None:
    trace = trio()
    trace.send("p1")
    trace.block("p1")
    for process in ("p1", "p2", "p3"):
        trace.row(process, "leave", group="orders")
    assert not {"L6", "L7", "L8", "F3"} & violated(trace.end(settled=False))
