"""W1 to W7: a flawed trace is a harness error, and nothing else is said about it."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from antiphon.properties.judge import judge
from tests.support.traces.handmade import Mid, Trace, trio, verdict


def harness_error(events: pa.Table) -> str:
    found = judge(events)
    assert [(verdict.property, verdict.outcome) for verdict in found] == [("W", "harness error")]
    assert found[0].violations >= 1
    assert found[0].example is not None
    return found[0].example.sentence


def without(events: pa.Table, at: int) -> pa.Table:
    return pa.concat_tables([events.slice(0, at), events.slice(at + 1)])


def position(trace: Trace, process: str, kind: str) -> int:
    return next(at for at, row in enumerate(trace.rows) if row["process"] == process and row["kind"] == kind)


def test_a_good_trace_counts_its_rows() -> None:
    trace = trio()
    trace.deliver_everywhere(trace.send("p1"))
    events = trace.end()
    judged = verdict(events, "W")
    assert (judged.outcome, judged.opportunities, judged.violations) == ("pass", len(events), 0)


def test_rows_may_come_in_any_order() -> None:
    trace = trio()
    trace.deliver_everywhere(trace.send("p1"))
    events = trace.end()
    assert judge(events.take(pa.array(range(len(events) - 1, -1, -1)))) == judge(events)


def test_w1_a_gap_in_the_index() -> None:
    trace = trio()
    trace.deliver_everywhere(trace.send("p1"))
    at = position(trace, "p2", "deliver")
    assert harness_error(without(trace.end(), at)) == "W1: p2 has a row with index 3 where index 2 should follow"


def test_w1_a_gap_in_the_log_of_the_world() -> None:
    events = trio().end()
    at = events["kind"].to_pylist().index("faults_end")
    assert "world has a row with index 1 where index 0 should follow" in harness_error(without(events, at))


def test_w1_two_rows_at_one_place() -> None:
    events = trio().end()
    assert harness_error(pa.concat_tables([events, events.slice(0, 1)])) == "W1: p1 has two rows with index 0"


def test_w2_nothing_follows_a_crash() -> None:
    trace = trio()
    trace.crash("p2")
    trace.row("p2", "stop")
    assert "W2: p2 crashed at index 2, yet its log goes on" in harness_error(trace.end())


def test_w2_an_incarnation_starts_once() -> None:
    trace = trio()
    trace.start("p3")
    assert "W2: p3 starts a second time at index 2" in harness_error(trace.end())


def test_w3_numbers_without_gaps() -> None:
    trace = trio()
    trace.numbers["orders", "p1"] = 1
    trace.send("p1")
    assert "W3: p1 sends orders/p1:1 (index 2) as its message 0" in harness_error(trace.end())


def test_w3_a_mid_is_sent_once() -> None:
    trace = trio()
    trace.send("p1")
    trace.numbers["orders", "p1"] = 0
    trace.send("p1")
    assert "W3: p1 sends orders/p1:0 (index 3) as its message 1" in harness_error(trace.end())


def test_w3_no_process_sends_in_the_name_of_another() -> None:
    trace = trio()
    trace.row("p1", "send", group="orders", sender="p2", sender_incarnation=0, number=0, view="v0", clock=1)
    assert "W3: p1 sends orders/p2:0 (index 2) in the name of another" in harness_error(trace.end())


def test_w3_each_incarnation_counts_from_zero() -> None:
    trace = Trace({"orders": ["p1", "p2", "p2#1"]}).begin()
    trace.deliver_everywhere(trace.send("p2"), trace.send("p2#1"))
    assert verdict(trace.end(), "W").outcome == "pass"


@pytest.mark.parametrize(
    "act",
    [
        lambda trace, mid: trace.deliver("p2", mid, view="v9"),
        lambda trace, _: trace.row("p2", "stable", group="orders", view="v9", upto=[("p1", 0)]),
    ],
)
def test_w4_the_view_in_force(act: Callable[[Trace, Mid], None]) -> None:
    trace = trio()
    act(trace, trace.send("p1"))
    assert "W4: p2 names view v9 at index 2 while it is in view v0" in harness_error(trace.end())


def test_w4_no_send_before_the_first_view() -> None:
    trace = Trace({"orders": ["p1"]})
    trace.start("p1")
    trace.views["p1", "orders"] = "v0"
    trace.send("p1")
    assert "W4: p1 names view v0 at index 1 before it installed any view" in harness_error(trace.end())


def test_w5_the_previous_view() -> None:
    trace = trio()
    trace.views["p3", "orders"] = "v7"
    trace.view("p3", "orders", "v8", ["p1", "p3"])
    assert "W5: p3 installs a view at index 2 that replaces view v7, but it was in view v0" in harness_error(
        trace.end()
    )


def test_w5_the_first_view_replaces_none() -> None:
    trace = Trace({"orders": ["p1"]})
    trace.start("p1")
    trace.views["p1", "orders"] = "v7"
    trace.view("p1", "orders", "v8", ["p1"])
    assert "replaces view v7, but it was in no view" in harness_error(trace.end())


def test_w6_blocks_alternate_in_each_group() -> None:
    trace = Trace({"a": ["p1"], "b": ["p1"]}).begin()
    for kind, group in (("block", "a"), ("block", "b"), ("unblock", "a"), ("unblock", "b"), ("block", "a")):
        trace.row("p1", kind, group=group)
    assert verdict(trace.end(), "W").outcome == "pass"


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (["unblock"], "W6: p1 is unblocked without being blocked at index 2"),
        (["block", "block"], "W6: p1 is blocked while blocked at index 3"),
    ],
)
def test_w6_a_turn_is_missing(kinds: list[str], words: str) -> None:
    trace = trio()
    for kind in kinds:
        trace.row("p1", kind, group="orders")
    assert words in harness_error(trace.end())


def test_w7_every_log_is_closed() -> None:
    trace = trio()
    trace.closed.add("p2")
    sentence = harness_error(trace.end())
    assert sentence == "W7: the log of p2 ends at index 1 with neither stop nor crash"


def test_w7_a_member_without_a_log_is_noticed() -> None:
    trace = trio()
    trace.deliver_everywhere(trace.send("p1"))
    events = trace.end()
    kept = pa.array([name != "p2" for name in events["process"].to_pylist()])
    assert harness_error(events.filter(kept)) == (
        "W7: p1 installs a view with p2 at index 1, but the trace has no log of p2"
    )
