"""L2 multicast liveness and L3 self delivery."""

from typing import Any

import pyarrow as pa
import pytest

from tests.support.traces.handmade import Trace, sentence, trio, verdict, violated


def test_all_delivered_in_the_last_view() -> None:
    trace = trio()
    trace.deliver_everywhere(trace.send("p1"), trace.send("p2"))
    events = trace.end()
    assert [verdict(events, name, "orders").outcome for name in ("L2", "L3")] == ["pass", "pass"]
    assert [verdict(events, name, "orders").opportunities for name in ("L2", "L3")] == [6, 2]


def test_l2_a_member_never_delivers() -> None:
    trace = trio()
    mid = trace.send("p1")
    trace.deliver("p1", mid)
    trace.deliver("p2", mid)
    judged = verdict(trace.end(), "L2", "orders")
    assert (judged.outcome, judged.violations, judged.opportunities) == ("violated", 1, 3)
    assert sentence(trace.end(), "L2", "orders") == (
        "p1 sent orders/p1:0 (index 2) in its last view v0, but p3, a member of that view, "
        "had not delivered it there when the run ended quiet"
    )


def test_l2_counts_every_message_and_member() -> None:
    trace = trio()
    trace.send("p1")
    trace.send("p2")
    assert verdict(trace.end(), "L2", "orders").violations == 6


def test_l2_asks_only_for_the_last_view() -> None:
    trace = trio()
    trace.send("p1")
    for process in ("p1", "p2"):
        trace.view(process, "orders", "v1", ["p1", "p2"])
    trace.crash("p3")
    assert verdict(trace.end(), "L2", "orders").outcome == "vacuous"


def test_l2_asks_for_the_view_of_the_sender() -> None:
    trace = trio()
    for process in ("p1", "p2"):
        trace.view(process, "orders", "v1", ["p1", "p2"])
    trace.crash("p3")
    mid = trace.send("p1")
    trace.deliver("p1", mid)
    trace.deliver("p2", mid)
    judged = verdict(trace.end(), "L2", "orders")
    assert (judged.outcome, judged.opportunities) == ("pass", 2)


@pytest.mark.parametrize("property_id", ["L2", "L3"])
def test_crashed_processes_owe_nothing(property_id: str) -> None:
    trace = trio()
    trace.send("p3")
    trace.crash("p3")
    mid = trace.send("p1")
    trace.deliver("p1", mid)
    trace.deliver("p2", mid)
    assert verdict(trace.end(), property_id, "orders").outcome == "pass"


def test_components_are_judged_apart() -> None:
    trace = trio()
    mid = trace.send("p1")
    trace.deliver("p1", mid)
    trace.deliver("p2", mid)
    trace.send("p3")
    events = trace.end(components=[["p1", "p2"]])
    assert violated(events) == set()
    assert verdict(events, "L2", "orders").opportunities == 2


def test_a_component_names_incarnations() -> None:
    trace = Trace({"orders": ["p1", "p2#1"]}).begin()
    trace.send("p1")
    events = trace.end(components=[["p1", "p2#1"]])
    assert verdict(events, "L2", "orders").violations == 2


def test_l3_a_sender_never_delivers_its_own() -> None:
    trace = trio()
    mid = trace.send("p1")
    trace.deliver("p2", mid)
    trace.deliver("p3", mid)
    judged = verdict(trace.end(), "L3", "orders")
    assert (judged.violations, judged.opportunities) == (1, 1)
    assert sentence(trace.end(), "L3", "orders") == (
        "p1 sent orders/p1:0 (index 2) but had not delivered it itself when the run ended quiet"
    )


@pytest.mark.parametrize("property_id", ["L2", "L3"])
def test_a_run_without_a_quiet_end_is_not_judged(property_id: str) -> None:
    trace = trio()
    trace.send("p1")
    judged = verdict(trace.end(quiet=False), property_id, "orders")
    assert (judged.outcome, judged.opportunities) == ("vacuous", 0)
    assert judged.note == "not judged: the run did not end quiet: duration"


@pytest.mark.parametrize("property_id", ["L2", "L3"])
def test_a_run_that_was_cut_off_is_not_judged(property_id: str) -> None:
    trace = trio()
    trace.send("p1")
    for process in trace.members:
        trace.stop(process)
    judged = verdict(trace.table(), property_id, "orders")
    assert (judged.outcome, judged.note) == ("vacuous", "not judged: the trace has no end row: the run was cut off")


@pytest.mark.parametrize("detail", [None, {}])
def test_an_end_without_detail_is_quiet(detail: dict[str, Any] | None) -> None:
    trace = trio()
    trace.send("p1")
    for process in trace.members:
        trace.stop(process)
    trace.world("end", detail)
    assert {"L2", "L3"} <= violated(trace.table())


def test_l3_a_request_that_never_left_is_missed() -> None:
    trace = trio()
    trace.deliver_everywhere(trace.send("p1"))
    events = trace.end()
    stop = next(
        at
        for at, row in enumerate(events.select(["process", "kind"]).to_pylist())
        if row == {"process": "p2", "kind": "stop"}
    )
    details = events["detail"].to_pylist()
    details[stop] = '{"waiting": {"orders": 2, "elsewhere": 5}}'
    at = events.schema.get_field_index("detail")
    told = verdict(events.set_column(at, events.schema.field(at), pa.array(details)), "L3", "orders")
    assert (told.outcome, told.opportunities, told.violations) == ("violated", 3, 1)
    assert told.example is not None
    assert "p2 stopped" in told.example.sentence
    assert "2 messages" in told.example.sentence
