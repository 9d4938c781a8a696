"""S1 safe indication, S2 safe prefix, S4 no early discard."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from antiphon.errors import TraceError
from antiphon.properties.judge import judge
from tests.support.traces.handmade import Mid, Trace, sentence, trio, verdict, violated


def outcome(events: pa.Table, property_id: str) -> tuple[str, int, int]:
    found = verdict(events, property_id, "orders")
    return found.outcome, found.opportunities, found.violations


def had_by(trace: Trace, mid: Mid, *processes: str) -> None:
    for process in processes:
        trace.receive(process, mid)


def at_one_time(events: pa.Table) -> pa.Table:
    at = events.schema.get_field_index("time")
    return events.set_column(at, events.schema.field(at), pa.array([7] * len(events), pa.int64()))


# S1


def test_s1_stable_after_all_members_received() -> None:
    trace = trio()
    mid = trace.send("p1")
    had_by(trace, mid, "p2", "p3")
    trace.stable("p1", {"p1": 0})
    assert outcome(trace.end(settled=False), "S1") == ("pass", 1, 0)


def test_s1_stable_before_one_received() -> None:
    trace = trio()
    mid = trace.send("p1")
    trace.receive("p2", mid)
    trace.stable("p2", {"p1": 0})
    trace.receive("p3", mid)
    events = trace.end(settled=False)
    assert outcome(events, "S1") == ("violated", 1, 1)
    assert sentence(events, "S1", "orders") == (
        "p2 learned that orders/p1:0 is stable (index 3), but p3, a member of view v0, received it only later (index 2)"
    )


def test_s1_a_process_never_received() -> None:
    trace = trio()
    mid = trace.send("p1")
    trace.receive("p2", mid)
    trace.stable("p2", {"p1": 0})
    assert "p3, a member of view v0, never received it" in sentence(trace.end(settled=False), "S1", "orders")


def test_s1_the_learner_itself_must_have_it() -> None:
    trace = trio()
    mid = trace.send("p1")
    had_by(trace, mid, "p3")
    trace.stable("p2", {"p1": 0})
    trace.receive("p2", mid)
    assert "but itself received it only later (index 3)" in sentence(trace.end(settled=False), "S1", "orders")


def test_s1_an_equal_time_is_before_but_not_in_ones_own_history() -> None:
    trace = trio()
    mid = trace.send("p1")
    trace.receive("p2", mid)
    trace.stable("p2", {"p1": 0})
    trace.receive("p3", mid)
    assert outcome(at_one_time(trace.end(settled=False)), "S1") == ("pass", 1, 0)
    late = trio()
    mid = late.send("p1")
    late.stable("p2", {"p1": 0})
    had_by(late, mid, "p2", "p3")
    assert outcome(at_one_time(late.end(settled=False)), "S1") == ("violated", 1, 1)


def test_s1_a_prefix_means_every_number_in_it() -> None:
    trace = trio()
    first, second = trace.send("p1"), trace.send("p1")
    had_by(trace, second, "p2", "p3")
    had_by(trace, first, "p2")
    trace.stable("p2", {"p1": 1})
    had_by(trace, first, "p3")
    events = trace.end(settled=False)
    assert outcome(events, "S1") == ("violated", 2, 1)
    assert "orders/p1:0" in sentence(events, "S1", "orders")


def test_s1_only_the_increase_is_new() -> None:
    trace = trio()
    for _ in range(3):
        mid = trace.send("p1")
        had_by(trace, mid, "p2", "p3")
        trace.stable("p2", {"p1": mid.number})
    assert outcome(trace.end(settled=False), "S1") == ("pass", 3, 0)


def test_s1_asks_for_the_members_of_the_view_in_force() -> None:
    trace = trio()
    mid = trace.send("p1")
    trace.receive("p2", mid)
    trace.crash("p3")
    for process in ("p1", "p2"):
        trace.view(process, "orders", "v1", ["p1", "p2"])
        trace.stable(process, {"p1": 0})
    assert outcome(trace.end(settled=False), "S1") == ("pass", 2, 0)


def test_s1_a_message_that_no_process_sent_is_not_stable() -> None:
    trace = trio()
    mid = trace.send("p1")
    had_by(trace, mid, "p2", "p3")
    trace.stable("p2", {"p1": 3})
    events = trace.end(settled=False)
    assert outcome(events, "S1") == ("violated", 2, 1)
    assert sentence(events, "S1", "orders") == (
        "p2 calls orders/p1:1 stable (index 3), but no log has sent or received such a message"
    )


def crashing(*, sent_after: bool, alive_after: bool) -> Trace:
    """p3 crashes, and its log lacks the receipt of a message that p2 calls stable."""
    trace = trio()
    if sent_after:
        trace.crash("p3")
    mid = trace.send("p1")
    trace.receive("p2", mid)
    if not alive_after and not sent_after:
        trace.crash("p3")
    trace.stable("p2", {"p1": 0})
    if alive_after:
        trace.gauge("p3", "buffers", 1)
        trace.crash("p3")
    return trace


def test_s1_the_lost_end_of_a_crashed_log_is_excused() -> None:
    assert outcome(crashing(sent_after=False, alive_after=False).end(settled=False), "S1") == ("pass", 1, 0)


@pytest.mark.parametrize("sent_after", [True, False])
def test_s1_the_rest_of_a_crashed_log_is_not_excused(sent_after: bool) -> None:
    trace = crashing(sent_after=sent_after, alive_after=not sent_after)
    assert outcome(trace.end(settled=False), "S1") == ("violated", 1, 1)


def test_s1_a_report_names_incarnations() -> None:
    trace = Trace({"orders": ["p1", "p2#1"]}).begin()
    mid = trace.send("p2#1")
    trace.stable("p1", {"p2#1": 0})
    trace.receive("p1", mid)
    assert "p1 learned that orders/p2#1:0 is stable" in sentence(trace.end(settled=False), "S1", "orders")


def test_s1_groups_are_apart() -> None:
    trace = Trace({"orders": ["p1", "p2", "p3"], "audit": ["p1", "p2"]}).begin()
    mid = trace.send("p1", "audit")
    trace.receive("p2", mid)
    trace.stable("p2", {"p1": 0}, "audit")
    events = trace.end(settled=False)
    assert verdict(events, "S1", "audit").outcome == "pass"
    assert verdict(events, "S1", "orders").outcome == "vacuous"


def test_a_sender_that_is_no_process_is_refused() -> None:
    trace = trio()
    trace.stable("p1", {"#": 0})
    with pytest.raises(TraceError, match="'#' is not a process"):
        judge(trace.end(settled=False))


def test_reports_without_entries_say_nothing() -> None:
    trace = trio()
    trace.stable("p1", {})
    trace.row("p1", "stable", group="orders", view="v0")
    trace.row("p1", "discard", group="orders", view="v0")
    events = trace.end()
    assert [outcome(events, name) for name in ("S1", "S2", "S4")] == [("vacuous", 0, 0)] * 3


# S2


def test_s2_marks_rise_or_stay() -> None:
    trace = trio()
    for _ in range(2):
        mid = trace.send("p1")
        had_by(trace, mid, "p2", "p3")
    trace.stable("p2", {"p1": 0})
    trace.stable("p2", {"p1": 0})
    trace.stable("p2", {"p1": 1})
    assert outcome(trace.end(settled=False), "S2") == ("pass", 3, 0)


def test_s2_a_mark_goes_back() -> None:
    trace = trio()
    for _ in range(3):
        mid = trace.send("p1")
        had_by(trace, mid, "p2", "p3")
    trace.stable("p2", {"p1": 2})
    trace.stable("p2", {"p1": 0})
    trace.stable("p2", {"p1": 1})
    events = trace.end(settled=False)
    assert outcome(events, "S2") == ("violated", 3, 2)
    assert sentence(events, "S2", "orders") == (
        "p2 calls the messages of p1 in orders stable up to number 0 (index 6), "
        "after it had called them stable up to number 2"
    )


def two_blocks(second_clock: int = 2, **settings: Any) -> tuple[Trace, Mid, Mid]:
    """p1 and p2 send one message each, received everywhere and delivered in this order."""
    trace = trio(**settings)
    first, second = trace.send("p1", clock=1), trace.send("p2", clock=second_clock)
    had_by(trace, first, "p2", "p3")
    had_by(trace, second, "p1", "p3")
    return trace, first, second


@pytest.mark.parametrize("clock", [1, 2])
def test_s2_a_block_is_skipped(clock: int) -> None:
    trace, first, second = two_blocks(clock)
    trace.deliver("p3", first, second)
    trace.stable("p3", {"p2": 0})
    trace.stable("p3", {"p1": 0})
    events = trace.end(settled=False)
    assert outcome(events, "S2") == ("violated", 2, 1)
    assert sentence(events, "S2", "orders") == (
        f"p3 knows orders/p2:0 (clock {clock}) to be stable at index 6, but not orders/p1:0 (clock 1), "
        "which it delivered at index 4 and which does not come later in the order"
    )


def test_s2_blocks_become_stable_in_order() -> None:
    trace, first, second = two_blocks()
    trace.deliver("p3", first, second)
    trace.stable("p3", {"p1": 0})
    trace.stable("p3", {"p2": 0})
    assert outcome(trace.end(settled=False), "S2") == ("pass", 2, 0)


def test_s2_is_judged_when_a_row_reports() -> None:
    trace, first, second = two_blocks()
    trace.deliver("p3", second)
    trace.stable("p3", {"p2": 0})
    trace.deliver("p3", first)
    trace.stable("p3", {"p1": 0})
    assert outcome(trace.end(settled=False), "S2") == ("pass", 2, 0)


def test_s2_a_late_delivery_counts_at_the_next_row() -> None:
    trace, first, second = two_blocks()
    third = trace.send("p2", clock=3)
    had_by(trace, third, "p1", "p3")
    trace.stable("p3", {"p2": 0})
    trace.deliver("p3", first, second)
    trace.stable("p3", {"p2": 1})
    assert outcome(trace.end(settled=False), "S2") == ("violated", 2, 1)


FLOW = {"flow_control": 3, "window": 4, "window_bytes": 64}


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"options": FLOW, "numbering": "separate"}, "pass"),
        ({"options": FLOW, "numbering": "block"}, "violated"),
        ({"service": "causal-slow"}, "pass"),
    ],
)
def test_s2_only_blocks_of_a_total_order_are_closed(settings: dict[str, Any], found: str) -> None:
    trace, first, second = two_blocks(**settings)
    trace.deliver("p3", first, second)
    trace.stable("p3", {"p2": 0})
    assert outcome(trace.end(settled=False), "S2")[0] == found


# S4


def known(trace: Trace, process: str = "p2") -> Mid:
    """A message that all members have, and that the process knows to be stable."""
    mid = trace.send("p1")
    had_by(trace, mid, "p2", "p3")
    trace.stable(process, {"p1": mid.number})
    return mid


def test_s4_stable_then_freed() -> None:
    trace = trio()
    known(trace)
    trace.discard("p2", {"p1": 0})
    assert outcome(trace.end(settled=False), "S4") == ("pass", 1, 0)


def test_s4_freed_before_it_is_stable() -> None:
    trace = trio()
    known(trace)
    trace.discard("p2", {"p1": 1})
    events = trace.end(settled=False)
    assert outcome(events, "S4") == ("violated", 1, 1)
    assert sentence(events, "S4", "orders") == (
        "p2 freed orders/p1:1 (index 4) before it knew it to be stable: "
        "of p1 in orders, only those up to number 0 were by then"
    )


def test_s4_knowledge_of_others_does_not_count() -> None:
    trace = trio()
    known(trace)
    trace.discard("p3", {"p1": 0})
    assert "none of its messages was by then" in sentence(trace.end(settled=False), "S4", "orders")


def test_s4_a_second_discard_of_the_same_message_does_not_count() -> None:
    trace = trio()
    known(trace)
    trace.discard("p2", {"p1": 0})
    trace.discard("p2", {"p1": 0})
    assert outcome(trace.end(settled=False), "S4") == ("pass", 1, 0)


def evicting(trace: Trace) -> Mid:
    """p2 knows that a message is stable; p3 has it and does not know."""
    mid = known(trace)
    trace.deliver("p3", mid)
    return mid


def test_s4_a_safe_eviction_and_the_discard_after_it() -> None:
    trace = trio()
    evicting(trace)
    trace.discard("p3", {"p1": 0}, evicted=True)
    trace.stable("p3", {"p1": 0})
    trace.discard("p3", {"p1": 0})
    assert outcome(trace.end(settled=False), "S4") == ("pass", 1, 0)


def evict_undelivered(trace: Trace) -> None:
    known(trace)
    trace.discard("p3", {"p1": 0}, evicted=True)


def evict_unknown(trace: Trace) -> None:
    mid = trace.send("p1")
    had_by(trace, mid, "p2", "p3")
    trace.deliver("p3", mid)
    trace.discard("p3", {"p1": 0}, evicted=True)
    for process in ("p3", "p2"):
        trace.stable(process, {"p1": 0})


def evict_unreceived(trace: Trace) -> None:
    mid = trace.send("p1")
    had_by(trace, mid, "p3")
    trace.stable("p1", {"p1": 0})
    trace.deliver("p3", mid)
    trace.discard("p3", {"p1": 0}, evicted=True)
    trace.receive("p2", mid)


def evict_unheard(trace: Trace) -> None:
    evicting(trace)
    trace.discard("p3", {"p1": 5}, evicted=True)


@pytest.mark.parametrize(
    ("scene", "words"),
    [
        (evict_undelivered, "p3 evicted orders/p1:0 (index 3) although it had not delivered it itself by then"),
        (evict_unknown, "p3 evicted orders/p1:0 (index 4) although no member of its view had called it stable by then"),
        (evict_unreceived, "p2, a member of view v0, received it only later (index 2)"),
        (evict_unheard, "p3 calls orders/p1:1 freed (index 4), but no log has sent or received such a message"),
    ],
)
def test_s4_unsafe_evictions(scene: Callable[[Trace], None], words: str) -> None:
    trace = trio()
    scene(trace)
    events = trace.end(settled=False)
    assert outcome(events, "S4") == ("violated", 1, 1)
    assert words in sentence(events, "S4", "orders")


def test_s4_the_claim_of_an_equal_time_is_anothers_not_ones_own() -> None:
    trace = trio()
    evict_unknown(trace)
    assert outcome(at_one_time(trace.end(settled=False)), "S4") == ("pass", 1, 0)
    alone = trio()
    mid = alone.send("p1")
    had_by(alone, mid, "p2", "p3")
    alone.deliver("p3", mid)
    alone.discard("p3", {"p1": 0}, evicted=True)
    alone.stable("p3", {"p1": 0})
    assert outcome(at_one_time(alone.end(settled=False)), "S4") == ("violated", 1, 1)


def test_a_settled_trace_breaks_nothing() -> None:
    trace = trio()
    trace.deliver_everywhere(trace.send("p1"), trace.send("p2"))
    events = trace.end()
    assert violated(events) == set()
    assert [outcome(events, name)[1] for name in ("S1", "S2", "S4")] == [6, 6, 6]
