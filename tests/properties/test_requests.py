"""D14 where members agree on views: the view in which the client delivered its request decides."""

import json
from typing import Any

import pyarrow as pa
import pytest

from tests.support.traces.handmade import Mid, Trace, sentence, trio, verdict, violated


def asked(*, deaf: str = "", crash: str = "") -> tuple[Trace, Mid]:
    """p1 sends a request that all except `deaf` deliver; then one of them may crash, and the others exclude it."""
    trace = trio()
    mid = trace.send("p1")
    for process in ("p1", "p2", "p3"):
        if process != deaf:
            trace.deliver(process, mid)
    if crash:
        trace.crash(crash)
        left = [process for process in ("p1", "p2", "p3") if process != crash]
        for process in left:
            trace.exclude(process, "v1", left)
    return trace, mid


def ended(trace: Trace, mid: Mid, mode: str, *by: str, kind: str = "answer", view: str = "v0", **more: Any) -> pa.Table:
    detail = {"request": 0, "mode": mode, "by": by, "number": mid.number, "view": view, **more}
    trace.row("p1", kind, group="orders", requested=0, detail=json.dumps(detail))
    return stopped(trace)


def stopped(trace: Trace, **counts: dict[str, int]) -> pa.Table:
    """A quiet end, after which p1 tells that it has asked."""
    trace.settle()
    trace.stop("p1", asked={"orders": 1}, **counts)
    return trace.end(settled=False)


def outcome(events: pa.Table) -> tuple[str, int, int]:
    found = verdict(events, "D14", "orders")
    return found.outcome, found.opportunities, found.violations


@pytest.mark.parametrize(
    ("mode", "by"),
    [("first", "p3"), ("majority", "p1 p3"), ("all", "p3 p1 p2"), ("available", ""), ("available", "p2")],
)
def test_enough_members_answered(mode: str, by: str) -> None:
    events = ended(*asked(), mode, *by.split())
    assert outcome(events) == ("pass", 1, 0)
    assert violated(events) == set()


@pytest.mark.parametrize(
    ("mode", "by", "flaw"),
    [
        ("first", "", "has 0 of the 1 that were requested"),
        ("majority", "p2", "has 1 of the 2 that were requested"),
        ("all", "p1 p2", "does not have that of p3, which was a member until then"),
        ("majority", "p2 p2", "names a process twice"),
        ("available", "p9", "counts p9, which is not in the view in which the request was delivered"),
    ],
)
def test_the_answers_are_not_those_that_were_requested(mode: str, by: str, flaw: str) -> None:
    events = ended(*asked(), mode, *by.split())
    assert outcome(events) == ("violated", 1, 1)
    assert sentence(events, "D14", "orders").startswith(f"the answer to request 0 of p1 to orders ({mode}) {flaw}")


def test_a_process_that_never_delivered_the_request_cannot_have_answered_it() -> None:
    events = ended(*asked(deaf="p3"), "first", "p3")
    assert "counts p3, which has not delivered the request" in sentence(events, "D14", "orders")


def test_all_do_not_include_a_member_that_has_failed_since() -> None:
    assert outcome(ended(*asked(crash="p3"), "all", "p1", "p2", view="v1")) == ("pass", 1, 0)
    assert outcome(ended(*asked(crash="p3"), "all", "p1", "p2", view="v0")) == ("violated", 1, 1)


def test_the_answer_of_a_member_that_has_failed_since_counts() -> None:
    assert outcome(ended(*asked(crash="p3"), "majority", "p1", "p3", view="v1")) == ("pass", 1, 0)


def test_a_majority_is_one_of_the_view_of_the_delivery() -> None:
    assert outcome(ended(*asked(crash="p3"), "majority", "p1", view="v1")) == ("violated", 1, 1)


def test_too_few_members_is_true_only_if_a_majority_is_gone() -> None:
    trace, mid = asked(crash="p3")
    events = ended(trace, mid, "majority", kind="unanswered", reason="few", view="v1")
    assert outcome(events) == ("violated", 1, 1)
    flaw = "the end of request 0 of p1 to orders (majority) came although 2 of 3 members were left"
    assert sentence(events, "D14", "orders").startswith(flaw)
    trace, mid = asked(crash="p3")
    trace.crash("p2")
    trace.exclude("p1", "v2", ["p1"])
    assert outcome(ended(trace, mid, "majority", kind="unanswered", reason="few", view="v2")) == ("pass", 1, 0)


@pytest.mark.parametrize("reason", ["left", "deadline", "cancelled"])
def test_other_ends_are_those_of_the_application(reason: str) -> None:
    assert outcome(ended(*asked(), "all", kind="unanswered", reason=reason)) == ("vacuous", 0, 0)


def test_what_the_client_has_not_reached_is_not_judged() -> None:
    assert outcome(ended(*asked(), "all", "p1", view="v7")) == ("vacuous", 0, 0)
    assert outcome(ended(*asked(deaf="p1"), "majority", "p2", view="v0"))[1] == 0


@pytest.mark.parametrize(("by", "violations"), [("p2", 0), ("", 1), ("p9", 1), ("p1 p2", 1)])
def test_any_has_one_answer_of_a_member(by: str, violations: int) -> None:
    trace = trio()
    detail = {"request": 0, "mode": "any", "by": by.split()}
    trace.row("p1", "answer", group="orders", requested=0, detail=json.dumps(detail))
    assert outcome(stopped(trace))[1:] == (1, violations)


def test_a_request_without_an_end_at_a_quiet_end_is_told() -> None:
    events = stopped(trio(), unanswered={"orders": 1})
    assert "p1 had no answer to 1 of its requests" in sentence(events, "D14", "orders")


def test_groups_without_requests_do_not_promise_answers() -> None:
    assert outcome(trio().end()) == ("not promised", 0, 0)
