"""S6: sender and receiver count each other while both are present."""

from typing import Any

import pyarrow as pa
import pytest

from antiphon.errors import TraceError
from antiphon.properties.judge import judge
from tests.support.traces.handmade import sentence, trio, verdict, violated
from tests.support.traces.private import Nodes

ROLES = {"s": "sender", "r1": "receiver", "r2": "receiver"}


def one_way(roles: dict[str, str] = ROLES, **settings: Any) -> Nodes:
    """s sends to r1 and r2."""
    trace = Nodes(
        {"orders": ["r1", "r2"]}, protocol="acks", service="fifo", outside={"orders": ["s"]}, roles=roles, **settings
    )
    for process in ("s", "r1", "r2"):
        trace.start(process)
    return trace


def connected(**settings: Any) -> Nodes:
    trace = one_way(**settings)
    trace.connect("s", ["r1", "r2"], [])
    for process in ("r1", "r2"):
        trace.connect(process, [], ["s"])
    return trace


def outcome(events: pa.Table) -> tuple[str, int, int]:
    found = verdict(events, "S6", "orders")
    return found.outcome, found.opportunities, found.violations


def leave(trace: Nodes, process: str) -> None:
    trace.row(process, "leave", group="orders")


def test_all_that_are_there_count_each_other() -> None:
    assert outcome(connected().end(settled=False)) == ("pass", 4, 0)


def test_a_receiver_that_lags_is_dropped() -> None:
    """Messages become stable without it, and S1, L2 and L6 no longer require it."""
    trace = connected()
    mid = trace.send("s")
    trace.receive("r1", mid)
    trace.deliver("r1", mid)
    trace.connect("s", ["r1"], [])
    trace.stable("s", {"s": 0})
    trace.discard("s", {"s": 0})
    events = trace.end(quiet=False)
    assert outcome(events) == ("violated", 1, 1)
    assert violated(events) == {"S6"}
    assert sentence(events, "S6", "orders") == (
        "s stopped counting r2 among its receivers with view 2.s (index 3), but neither of them had left or crashed "
        "by then"
    )


def test_a_newcomer_is_never_counted() -> None:
    trace = one_way()
    trace.connect("s", ["r1"], [])
    trace.connect("r1", [], ["s"])
    trace.row("r2", "join", group="orders")
    trace.connect("r2", [], ["s"])
    events = trace.end(settled=False)
    assert outcome(events) == ("violated", 4, 1)
    assert violated(events) == {"S6"}
    assert sentence(events, "S6", "orders") == (
        "s, which sends to r2, and r2 were both in orders when the run ended quiet, but s did not count r2 among its "
        "receivers in its last view 1.s (index 1)"
    )


def test_a_sender_is_never_counted() -> None:
    trace = one_way()
    trace.connect("s", ["r1", "r2"], [])
    trace.connect("r1", [], ["s"])
    events = trace.end(settled=False)
    assert sentence(events, "S6", "orders") == (
        "s, which sends to r2, and r2 were both in orders when the run ended quiet, but r2 never installed a view there"
    )


@pytest.mark.parametrize("leaver", ["s", "r2"])
def test_one_departure_founds_one_loss(leaver: str) -> None:
    trace = connected()
    leave(trace, leaver)
    trace.connect("s", ["r1"], [])
    trace.row(leaver, "join", group="orders")
    trace.connect("s", ["r1", "r2"], [])
    assert outcome(trace.end(settled=False)) == ("pass", 5, 0)
    again = connected()
    leave(again, leaver)
    for receivers in (["r1"], ["r1", "r2"], ["r1"]):
        again.connect("s", receivers, [])
    assert sentence(again.end(quiet=False), "S6", "orders").endswith(
        "stopped counting r2 among its receivers 2 times, last with view 4.s "
        f"(index {5 if leaver == 's' else 4}), but by then the two had left or crashed only once"
    )


def test_a_departure_must_come_first() -> None:
    trace = connected()
    trace.connect("r2", [], [])
    leave(trace, "s")
    assert outcome(trace.end(quiet=False)) == ("violated", 1, 1)


def test_a_crash_founds_a_loss() -> None:
    trace = connected()
    trace.crash("r2")
    trace.connect("s", ["r1"], [])
    assert outcome(trace.end(settled=False)) == ("pass", 3, 0)


def test_only_those_that_are_there_are_asked() -> None:
    trace = connected()
    leave(trace, "r2")
    trace.connect("s", ["r1"], [])
    trace.connect("r2", [], [])
    assert outcome(trace.end(settled=False)) == ("pass", 4, 0)
    apart = connected().end(settled=False, components=[["s", "r1"], ["r2"]])
    assert outcome(apart) == ("pass", 2, 0)


def test_a_process_that_takes_from_others_only_is_not_asked() -> None:
    trace = one_way(sources={"r2": ["other"]})
    trace.connect("s", ["r1"], [])
    trace.connect("r1", [], ["s"])
    trace.connect("r2", [], [])
    assert outcome(trace.end(settled=False)) == ("pass", 2, 0)


def test_without_roles_the_end_is_not_judged() -> None:
    trace = one_way(roles={})
    trace.connect("s", [], [])
    assert outcome(trace.end(settled=False)) == ("vacuous", 0, 0)


def test_of_views_that_are_shared_nothing_is_said() -> None:
    trace = trio()
    trace.view("p1", "orders", "v1", ["p1", "p2"])
    assert verdict(trace.end(quiet=False), "S6", "orders", "S6").outcome == "vacuous"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"roles": {**ROLES, "s": "speaker"}}, "the start row of s has an unknown role"),
        ({"sources": {"r1": [1]}}, "the start row of r1: `sources` is not a list of processes"),
    ],
)
def test_a_role_that_cannot_be_read_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(TraceError, match=words):
        judge(connected(**settings).end(settled=False))
