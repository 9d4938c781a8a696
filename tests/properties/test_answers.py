"""D14 answers: requests to a group have answers, of enough members."""

import json

import pyarrow as pa
import pytest

from tests.support.traces.handmade import Trace, sentence, trio, verdict, violated


def answered(mode: str, *by: str, crashed: tuple[str, ...] = (), view: list[str] | None = None) -> pa.Table:
    """p1 asked and got these answers; before that some members crashed, and p1 may have installed another view."""
    trace: Trace = trio(protocol="classic", service="reliable")
    for process in crashed:
        trace.crash(process)
    if view is not None:
        for process in view:
            trace.view(process, "orders", "v1", view)
    detail = json.dumps({"request": 0, "mode": mode, "by": list(by)})
    trace.row("p1", "answer", group="orders", requested=0, detail=detail)
    return trace.end(settled=False)


def outcome(events: pa.Table) -> tuple[str, int, int]:
    found = verdict(events, "D14", "orders")
    return found.outcome, found.opportunities, found.violations


@pytest.mark.parametrize(
    ("mode", "by"), [("any", "p2"), ("first", "p1"), ("majority", "p1 p3"), ("all", "p3 p1 p2"), ("first", "p1 p2")]
)
def test_enough_members_answered(mode: str, by: str) -> None:
    events = answered(mode, *by.split())
    assert outcome(events) == ("pass", 1, 0)
    assert violated(events) == set()


@pytest.mark.parametrize(
    ("mode", "by", "flaw"),
    [
        ("any", "", "has 0 of the 1 that were requested"),
        ("majority", "p2", "has 1 of the 2 that were requested"),
        ("all", "p1 p2", "has 2 of the 3 that were requested"),
        ("majority", "p2 p2", "names a process twice"),
        ("all", "p1 p2 p9", "counts p9, which is not in the client's view"),
    ],
)
def test_too_few_answered(mode: str, by: str, flaw: str) -> None:
    events = answered(mode, *by.split())
    assert outcome(events) == ("violated", 1, 1)
    assert sentence(events, "D14", "orders").startswith(f"the answer to request 0 of p1 to orders ({mode}) {flaw}")


def test_a_lost_process_neither_counts_nor_is_awaited() -> None:
    left = ["p1", "p2"]
    assert outcome(answered("all", "p1", "p2", crashed=("p3",), view=left)) == ("pass", 1, 0)
    assert outcome(answered("first", "p3", crashed=("p3",), view=left)) == ("violated", 1, 1)


def test_a_request_without_an_answer_at_a_quiet_end_is_told() -> None:
    trace: Trace = trio(protocol="classic", service="reliable")
    trace.stop("p1", unanswered={"orders": 2})
    events = trace.end(settled=False)
    assert outcome(events) == ("violated", 2, 1)
    assert "p1 had no answer to 2 of its requests to orders" in sentence(events, "D14", "orders")
