"""S5: an acknowledgment counts only for senders that its author knew."""

import json
from typing import Any

import pyarrow as pa
import pytest

from antiphon.errors import TraceError
from antiphon.properties.judge import judge
from tests.support.traces.handmade import Trace, sentence, verdict, violated

NODES = ["p1", "p2", "p3"]


def nodes(**options: Any) -> Trace:
    """Three nodes that all send to one another."""
    trace = Trace({"orders": NODES}, protocol="acks", service="fifo", options=options)
    for process in NODES:
        trace.start(process)
        others = [other for other in NODES if other != process]
        trace.view(process, "orders", f"0.{process}", NODES, receivers=others, senders=others)
    return trace


def outcome(events: pa.Table) -> tuple[str, int, int]:
    found = verdict(events, "S5", "orders")
    return found.outcome, found.opportunities, found.violations


def test_the_counting_sender_is_known() -> None:
    trace = nodes()
    name = trace.acknowledge("p3", ["p1", "p2"])
    for process in ("p1", "p2"):
        trace.acknowledged(process, name)
    assert outcome(trace.end(quiet=False)) == ("pass", 2, 0)


def figure_4(**options: Any) -> Trace:
    """Berket98, Fig. 4: node 3 believes that 2 and 3 are all there is, and its acknowledgment reaches node 1."""
    trace = nodes(**options)
    name = trace.acknowledge("p3", ["p2"])
    for process in ("p1", "p2"):
        trace.acknowledged(process, name)
    return trace


def test_the_counting_sender_is_not_known() -> None:
    events = figure_4().end(quiet=False)
    assert outcome(events) == ("violated", 2, 1)
    assert sentence(events, "S5", "orders") == (
        "p1 received an acknowledgment from p3 (index 2), its receiver in view 0.p1, but p3 did not have it among its "
        "senders when it transmitted it (index 2)"
    )
    assert violated(events) == {"S5"}


def test_where_all_find_out_about_all_every_sender_is_asked_for() -> None:
    events = figure_4(stability="all").end(quiet=False)
    assert outcome(events) == ("violated", 2, 2)
    trace = nodes(stability="all")
    trace.acknowledged("p2", trace.acknowledge("p3", ["p2"]))
    assert sentence(trace.end(quiet=False), "S5", "orders") == (
        "p2 received an acknowledgment from p3 (index 2), its receiver in view 0.p2, but p3 did not have p1, a sender "
        "of view 0.p2, among its senders when it transmitted it (index 2)"
    )


def test_the_acknowledger_need_not_name_itself() -> None:
    trace = nodes(stability="all")
    trace.view("p1", "orders", "1.p1", NODES, receivers=["p2", "p3"], senders=NODES)
    trace.acknowledged("p1", trace.acknowledge("p3", ["p1", "p2"]))
    assert outcome(trace.end(quiet=False)) == ("pass", 1, 0)


def test_an_acknowledgment_of_a_process_that_is_no_receiver_does_not_count() -> None:
    trace = nodes()
    trace.view("p1", "orders", "1.p1", ["p1", "p2"], receivers=["p2"], senders=["p2"])
    trace.acknowledged("p1", trace.acknowledge("p3", ["p2"]))
    assert outcome(trace.end(quiet=False)) == ("vacuous", 0, 0)


def test_every_copy_that_arrives_counts() -> None:
    trace = nodes()
    name = trace.acknowledge("p3", ["p2"])
    trace.acknowledged("p1", name)
    trace.acknowledged("p1", name)
    assert outcome(trace.end(quiet=False)) == ("violated", 2, 2)


def test_an_acknowledgment_beyond_the_end_of_a_crashed_log_is_excused() -> None:
    trace = nodes()
    name = trace.acknowledge("p3", ["p2"])
    trace.rows.pop()
    trace.lengths["p3"] -= 1
    trace.acknowledged("p1", name)
    trace.crash("p3")
    assert outcome(trace.end(quiet=False)) == ("vacuous", 0, 0)


def test_a_view_that_names_no_receivers_or_senders_means_its_members() -> None:
    trace = Trace({"orders": NODES}, protocol="acks", service="fifo").begin()
    trace.acknowledged("p1", trace.acknowledge("p3", ["p2"]))
    assert outcome(trace.end(quiet=False)) == ("violated", 1, 1)


@pytest.mark.parametrize("kind", ["data", "null"])
def test_a_piggybacked_acknowledgment_counts_if_it_names_senders(kind: str) -> None:
    for senders, expected in ((["p2"], ("violated", 2, 1)), (["p1", "p2"], ("pass", 2, 0)), (None, ("vacuous", 0, 0))):
        trace = nodes(acks="transitive")
        trace.transmit("p3", "7", None, kind, senders=senders)
        detail = json.dumps({"frame": "orders/p3/7", "type": kind})
        for process in ("p1", "p2"):
            trace.row(process, "receive", group="orders", sender="p3", sender_incarnation=0, peer="p3", detail=detail)
        assert outcome(trace.end(quiet=False)) == expected


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        ('{"type": "acknowledgment", "frame": "orders/p3/acknowledgment/1"}', "does not say for which senders"),
        ('{"type": "acknowledgment", "frame": null, "senders": ["p1"]}', "gives it no name"),
    ],
)
def test_an_acknowledgment_that_does_not_say_is_refused(detail: str, words: str) -> None:
    trace = nodes()
    trace.row("p3", "transmit", group="orders", detail=detail)
    trace.acknowledged("p1", "orders/p3/acknowledgment/1")
    with pytest.raises(TraceError, match=f"p3 at index 2 transmits an acknowledgment and {words}"):
        judge(trace.end(quiet=False))


@pytest.mark.parametrize("senders", ["p1", {"p1": 1}, [1]])
def test_sets_that_are_no_lists_of_names_are_refused(senders: Any) -> None:
    trace = nodes()
    trace.view("p1", "orders", "1.p1", NODES)
    trace.rows[-1]["detail"] = json.dumps({"senders": senders})
    with pytest.raises(TraceError, match="a view row of p1 has `receivers` or `senders` that are not a list"):
        judge(trace.end(quiet=False))
