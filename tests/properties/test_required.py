"""A required property is judged as if every service promised it; promises of a process that only sends."""

import pyarrow as pa
import pytest

from antiphon.errors import ConfigurationError
from antiphon.properties.families import PROMISES, SENDING
from antiphon.properties.judge import judge, judge_all
from antiphon.properties.promises import COMING, JUDGED, VOTED, known
from tests.support.traces.acks_traces import good_acks_trace
from tests.support.traces.classic_traces import SERVICES, good_classic_trace
from tests.support.traces.handmade import Trace, good_trace, sentence, trio, verdict, verdicts, violated


def without_causal_order() -> pa.Table:
    """FIFO order holds; p3 has the answer of p2 before the question of p1."""
    trace = trio(protocol="classic", service="fifo")
    question = trace.send("p1")
    trace.deliver("p1", question)
    trace.deliver("p2", question)
    answer = trace.send("p2")
    trace.deliver("p2", answer)
    trace.deliver("p1", answer)
    trace.deliver("p3", answer, question)
    return trace.end(settled=False)


def test_fifo_order_is_not_causal_order() -> None:
    events = without_causal_order()
    assert violated(events) == set()
    assert verdict(events, "O3").outcome == "not promised"
    assert violated(events, "O3") == {"O3"}
    assert sentence(events, "O3", None, "O3") == (
        "p3 delivered orders/p2:0 (index 2) before orders/p1:0 (index 3), but orders/p1:0 happened before orders/p2:0: "
        "p2 delivered orders/p1:0 (index 2) before it sent orders/p2:0 (index 3)"
    )


def test_requirements_go_through_all_runs_of_a_table() -> None:
    events = without_causal_order()
    assert judge_all(events, frozenset({"O3"})) == judge(events, frozenset({"O3"}))
    assert judge(events, frozenset({"O1"})) == judge(events)


def test_promised_properties_may_be_required_without_any_change_of_the_verdicts() -> None:
    offered = (
        frozenset(PROMISES["newtop", "total"] & set(JUDGED)) - COMING - VOTED - {"L9", "D14"}
    )  # these only in some runs
    for seed in range(10):
        assert judge(good_trace(seed), offered) == judge(good_trace(seed))


@pytest.mark.parametrize("names", [{"O9"}, {"O3", "o6"}, {""}])
def test_a_property_without_a_checker_cannot_be_required(names: set[str]) -> None:
    with pytest.raises(ConfigurationError, match="there is no checker for a property"):
        judge(trio().end(), frozenset(names))
    assert known(JUDGED) == set(JUDGED)


@pytest.mark.parametrize("service", SERVICES)
def test_a_sender_outside_is_asked_for_nothing_it_cannot_do(service: str) -> None:
    """For any requirement no violation names it: nothing is delivered to it, and good runs lose nothing."""
    # L6 and L8 would need `stable` and `discard` rows, which are not written; D6 names the sender for where it sent.
    everything = frozenset(JUDGED) - {"L6", "L8", "D6"}
    seen = 0
    for seed in range(40):
        found = judge(good_classic_trace(seed, service), everything)
        examples = [each.example for each in found if each.example]
        assert all("x" not in example.processes for example in examples), seed
        seen += bool(examples)
    assert seen > 5


def test_total_order_required_of_acknowledgments_says_nothing_about_stability() -> None:
    for seed in range(20):
        assert "S2" not in violated(good_acks_trace(seed, "all"), "O6")


def test_a_sender_promises_what_it_can() -> None:
    trace = Trace({"orders": ["p1"]}, protocol="classic", service="fifo", outside={"orders": ["x"], "audit": ["x"]})
    trace.groups = {**trace.groups, "audit": []}
    trace.start("p1")
    trace.start("x")
    trace.view("p1", "orders", "v0", ["p1"])
    trace.view("x", "orders", "v0", ["p1"])
    trace.view("x", "audit", "v0", ["p1"])
    trace.send("x", "audit")
    found = verdicts(trace.end(settled=False))
    promised = {name for (name, group), told in found.items() if group == "audit" and told.outcome != "not promised"}
    assert promised == {"D1", "D14", "L2", "L8"} == (PROMISES["classic", SENDING] & set(JUDGED)) - {"W"}


def test_gaps_of_a_sender_outside_or_gone_are_told() -> None:
    trace = Trace({"orders": ["p1", "p2"]}, protocol="classic", service="fifo", outside={"orders": ["x"]}).begin()
    outside = [trace.send("x") for _ in range(2)]
    inside = [trace.send("p2") for _ in range(2)]
    trace.crash("p2")
    trace.view("p1", "orders", "v1", ["p1"])
    trace.deliver("p1", outside[1], inside[1])
    assert verdict(trace.end(quiet=False), "O2", "orders").violations == 2


def test_answers_are_part_of_a_trace() -> None:
    trace = trio(protocol="classic", service="reliable")
    detail = '{"by": ["p2"], "mode": "first", "request": 0}'
    trace.row("p1", "answer", group="orders", requested=1, detail=detail)
    assert violated(trace.end(settled=False)) == set()
