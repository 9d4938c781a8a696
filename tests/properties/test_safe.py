"""S3, and D11 and S1 in the scope of a notice (docs/spec/newtop.md 14, rule 5)."""

import random
from functools import cache

import pytest

from tests.support.traces.handmade import Mid, Trace, sentence, trio, verdict, violated
from tests.support.traces.mutations import Log, Mutation
from tests.support.traces.safe_traces import SAFE_MUTATIONS, safe_trace

TRACES = 8
"""`python -m tests.properties.mutants` tries a hundred for each fault."""


@cache
def good_log(seed: int) -> Log:
    return Log(safe_trace(seed))


def safe_trio() -> Trace:
    return trio(service="total-safe")


def notice(trace: Trace, process: str, *left: str, group: str = "orders") -> None:
    """The notice to the application when the failure of all others is agreed."""
    trace.row(process, "transitional", group=group, view=trace.views[process, group], members=sorted(left))


def test_good_traces_of_safe_delivery_break_nothing() -> None:
    asked = 0
    for seed in range(TRACES):
        events = safe_trace(seed)
        assert violated(events) == set(), f"seed {seed}"
        assert verdict(events, "S3", "orders").opportunities > 0, f"seed {seed}"
        asked += verdict(events, "D11", "orders").opportunities > 0
    assert asked > TRACES // 2


@pytest.mark.parametrize("mutation", SAFE_MUTATIONS, ids=lambda mutation: mutation.name)
def test_each_seeded_fault_is_caught(mutation: Mutation) -> None:
    tried = 0
    for seed in range(1_000):
        mutant = mutation.apply(good_log(seed), random.Random(seed))
        if mutant is not None:
            raised = violated(mutant)
            assert mutation.is_caught(raised), f"seed {seed} raised {sorted(raised)}"
            tried += 1
        if tried == TRACES:
            return
    pytest.fail(f"only {tried} traces offered a place for it")


def received_by_all(trace: Trace) -> Mid:
    message = trace.send("p1")
    trace.receive("p2", message)
    trace.receive("p3", message)
    return message


def test_s3_a_process_that_delivers_had_called_it_stable() -> None:
    trace = safe_trio()
    message = received_by_all(trace)
    for name in ("p1", "p2", "p3"):
        trace.stable(name, {"p1": 0})
        trace.deliver(name, message)
    assert violated(trace.end()) == set()


def test_s3_stable_only_later() -> None:
    trace = safe_trio()
    message = received_by_all(trace)
    trace.deliver("p2", message)
    trace.stable("p2", {"p1": 0})
    events = trace.end(quiet=False)
    assert violated(events) == {"S3"}
    assert sentence(events, "S3", "orders") == (
        "p2 delivered orders/p1:0 (index 3), but it called it stable only at index 4"
    )


def test_s3_never_stable_and_not_asked_of_total_order() -> None:
    for service, broken in (("total-safe", {"S3"}), ("total", set())):
        trace = trio(service=service)
        trace.deliver("p2", received_by_all(trace))
        events = trace.end(quiet=False)
        assert violated(events) == broken
        if broken:
            assert "it never called it stable" in sentence(events, "S3", "orders")
        else:
            assert violated(events, "S3") == {"S3"}


def parted(*, told_first: bool, has_it: bool) -> Trace:
    """p1 and p2 deliver a message and go on without p3, which goes on alone without having delivered it."""
    trace = safe_trio()
    trace.fault("partition")
    message = trace.send("p1")
    trace.receive("p2", message)
    if has_it:
        trace.receive("p3", message)
    for name in ("p1", "p2"):
        trace.suspect(name, "p3")
        if told_first or not has_it:
            trace.confirm(name, "p3")
        if told_first:
            notice(trace, name, "p1", "p2")
        trace.stable(name, {"p1": 0})
        trace.deliver(name, message)
        if not told_first and has_it:
            trace.confirm(name, "p3")
        if not told_first:
            notice(trace, name, "p1", "p2")
        trace.view(name, "orders", "v1a", ["p1", "p2"])
    trace.exclude("p3", "v1b", ["p3"])
    return trace


def test_d11_speaks_of_the_whole_view_before_the_notice() -> None:
    events = parted(told_first=False, has_it=True).end(quiet=False)
    assert violated(events) == {"D11"}
    assert "p3 went from there to view v1b" in sentence(events, "D11", "orders")


def test_d11_speaks_of_those_that_are_left_after_it() -> None:
    events = parted(told_first=True, has_it=False).end(quiet=False)
    assert violated(events) == set()
    assert violated(events, "D11") == {"D11"}  # required, it is meant as it is worded (E-72)


def test_d11_after_the_notice_it_is_asked_of_those_that_are_left() -> None:
    trace = Trace({"orders": ["p1", "p2", "p3", "p4"]}, service="total-safe").begin()
    message = trace.send("p1")
    trace.receive("p2", message)
    for name in ("p1", "p2"):
        trace.suspect(name, "p3", "p4")
        trace.confirm(name, "p3", "p4")
        notice(trace, name, "p1", "p2")
    trace.stable("p1", {"p1": 0})
    trace.deliver("p1", message)
    trace.crash("p1")
    trace.view("p2", "orders", "v1", ["p1", "p2"])
    events = trace.end(quiet=False)
    assert "D11" in violated(events)
    assert "p2 went from there" in sentence(events, "D11", "orders")


def test_d11_a_notice_of_a_second_failure_holds_in_the_view_between() -> None:
    """p3 and p4 fail one after the other; in the view without p4 nothing is claimed of p3 any more."""
    trace = Trace({"orders": ["p1", "p2", "p3", "p4"]}, service="total-safe").begin()
    trace.fault("partition")
    for name in ("p1", "p2"):
        trace.suspect(name, "p4")
        trace.confirm(name, "p4")
        notice(trace, name, "p1", "p2", "p3")
        trace.suspect(name, "p3")
        trace.confirm(name, "p3")
        notice(trace, name, "p1", "p2")
        trace.view(name, "orders", "v1", ["p1", "p2", "p3"])
    trace.exclude("p3", "v1", ["p1", "p2", "p3"])
    trace.exclude("p3", "v2b", ["p3"])
    message = trace.send("p1")
    trace.receive("p2", message)
    for name in ("p1", "p2"):
        trace.stable(name, {"p1": 0})
        trace.deliver(name, message)
        trace.view(name, "orders", "v2a", ["p1", "p2"])
    assert violated(trace.end(quiet=False)) == set()


def test_s1_is_asked_of_those_that_have_not_failed() -> None:
    trace = safe_trio()
    message = trace.send("p1")
    trace.receive("p2", message)
    trace.suspect("p1", "p3")
    trace.stable("p1", {"p1": 0})
    assert violated(trace.end(quiet=False)) == {"S1"}
