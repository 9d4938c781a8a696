"""D3 to D7, D9 to D11 and D15: each message is delivered in the right group, service and view."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.traces.handmade import Mid, Trace, sentence, trio, verdict, violated

CLOSED = {"view_change": "closed"}


def go_on(trace: Trace, *processes: str, view: str = "v1") -> None:
    """These processes exclude p3."""
    for process in processes:
        trace.exclude(process, view, ["p1", "p2"])


def crashed(**settings: Any) -> tuple[Trace, list[Mid]]:
    """p3 sends two messages that all deliver, and crashes."""
    trace = trio(**settings)
    mids = [trace.send("p3"), trace.send("p3")]
    trace.receive("p1", *mids)
    trace.receive("p2", *mids)
    trace.deliver("p3", *mids)
    trace.crash("p3")
    return trace, mids


# D3


def test_d3_another_service_than_chosen() -> None:
    trace = trio()
    mid = trace.send("p1")
    trace.deliver("p1", mid)
    trace.deliver("p2", mid, service="causal-fast")
    trace.deliver("p3", mid)
    events = trace.end()
    assert violated(events) == {"D3"}
    assert verdict(events, "D3", "orders").opportunities == 3
    assert sentence(events, "D3", "orders") == (
        "p2 delivered orders/p1:0 (index 2) as causal-fast, although it chose total in orders"
    )


def test_d3_a_group_that_it_is_not_in() -> None:
    trace = Trace({"orders": ["p1", "p2"], "other": ["p2"]}).begin()
    trace.deliver("p2", trace.send("p2", "other"))
    trace.views["p1", "other"] = "v0"
    trace.deliver("p1", trace.sent[0])
    assert violated(trace.end(quiet=False)) == {"harness error"}  # without a view in that group W4 fails first


def test_d3_a_group_entered_later() -> None:
    trace = trio()
    trace.groups = {**trace.groups, "late": ["p1", "p2"]}
    for process in ("p1", "p2"):
        trace.row(process, "join", group="late")
        trace.view(process, "late", "v0", ["p1", "p2"])
    mid = trace.send("p1", "late")
    trace.deliver("p1", mid)
    trace.deliver("p2", mid)
    assert "D3" not in violated(trace.end())


# D4 and D10


def test_d4_d10_a_message_of_a_process_that_was_removed() -> None:
    trace, mids = crashed()
    trace.deliver("p1", mids[0])
    trace.deliver("p2", mids[0])
    go_on(trace, "p1", "p2")
    trace.deliver("p1", mids[1])
    trace.deliver("p2", mids[1])
    events = trace.end()
    assert violated(events) == {"D4", "D10"}
    assert (verdict(events, "D10", "orders").violations, verdict(events, "D10", "orders").opportunities) == (2, 2)
    assert sentence(events, "D4", "orders") == (
        "p1 delivered orders/p3:1 (index 8) in view v1, but p3 is not a member of it: its members are p1, p2"
    )
    assert sentence(events, "D10", "orders") == (
        "p1 delivered orders/p3:1 (index 8) after it had installed view v1 (index 7) without p3"
    )


# D5, D5w, D6


def test_d5_d6_a_message_in_two_views() -> None:
    trace = trio(options=CLOSED)
    mid = trace.send("p1")
    trace.deliver("p1", mid)
    trace.crash("p3")
    go_on(trace, "p1", "p2")
    trace.deliver("p2", mid)
    events = trace.end()
    assert violated(events) == {"D5", "D5w", "D6", "D8"}
    assert sentence(events, "D5", "orders") == (
        "p1 delivered orders/p1:0 (index 3) in view v0, but p2 (index 5) in view v1"
    )
    assert sentence(events, "D5w", "orders") == (
        "p1 delivered orders/p1:0 (index 3) in view v0, but p2 (index 5) in view v1, "
        "although both went from view v0 to view v1"
    )
    assert sentence(events, "D6", "orders") == (
        "p1 sent orders/p1:0 (index 2) in view v0, but p2 delivered it (index 5) in view v1"
    )


def test_d5_d6_are_promised_of_closed_views_only() -> None:
    trace = trio(options={"view_change": "cut"})
    mid = trace.send("p1")
    trace.crash("p3")
    go_on(trace, "p1", "p2")
    trace.deliver("p1", mid)
    trace.deliver("p2", mid)
    events = trace.end()
    assert violated(events) == set()
    assert {verdict(events, name, "orders").outcome for name in ("D5", "D6", "D7")} == {"not promised"}


def test_d5w_does_not_ask_those_that_go_apart() -> None:
    trace = trio()
    trace.fault("partition")
    mid = trace.send("p1")
    trace.exclude("p1", "v1", ["p1"])
    trace.deliver("p1", mid)
    trace.deliver("p2", mid)
    trace.deliver("p3", mid)
    for process in ("p2", "p3"):
        trace.exclude(process, "v2", ["p2", "p3"])
    assert violated(trace.end(components=[["p1"], ["p2", "p3"]])) == set()


# D7


def take(trace: Trace, step: str) -> None:
    """A step of p1 towards a view without p3."""
    if step == "suspect":
        trace.suspect("p1", "p3")
    elif step == "refute":
        trace.row("p1", "refute", group="orders", view="v0", peer="p3")
    elif step == "confirm":
        trace.confirm("p1", "p3")
    else:
        trace.view("p1", "orders", "v1", ["p1", "p2"])


@pytest.mark.parametrize(("when", "raised"), [(0, False), (1, True), (2, False)])
def test_d7_sends_between_agreement_and_view(when: int, raised: bool) -> None:
    trace = trio(options=CLOSED)
    trace.crash("p3")
    for place, step in enumerate(("suspect", "confirm", "go on")):
        take(trace, step)
        if place == when:
            trace.send("p1")
    go_on(trace, "p2")
    events = trace.end(quiet=False)
    assert ("D7" in violated(events)) == raised
    if raised:
        assert sentence(events, "D7", "orders") == (
            "p1 sent orders/p1:0 (index 4) after the failure of p3 was agreed (index 3) and before it installed a view "
            "without p3"
        )


# D15


@pytest.mark.parametrize(
    ("when", "view_change", "raised"),
    [
        (0, "halted", True),
        (1, "halted", False),
        (2, "halted", True),
        (3, "halted", True),
        (4, "halted", False),
        (0, "closed", False),
    ],
)
def test_d15_sends_while_a_member_is_suspected(when: int, view_change: str, raised: bool) -> None:
    """p1 suspects p3 and takes it back; then suspects it again, agrees, and installs the view."""
    trace = trio(options={"view_change": view_change})
    for place, step in enumerate(("suspect", "refute", "suspect", "confirm", "go on")):
        take(trace, step)
        if place == when:
            trace.send("p1")
    trace.crash("p3")
    go_on(trace, "p2")
    events = trace.end(quiet=False)
    assert ("D15" in violated(events)) == raised
    if raised and not when:
        assert verdict(events, "D15", "orders").opportunities == 3
        assert sentence(events, "D15", "orders") == (
            "p1 sent orders/p1:0 (index 3) after it began to suspect p3 (index 2) and before it installed a view "
            "without p3"
        )


# D9


def test_d9_the_cut_is_the_same() -> None:
    trace, mids = crashed()
    trace.deliver("p1", *mids)
    trace.deliver("p2", *mids)
    go_on(trace, "p1", "p2")
    events = trace.end()
    assert violated(events) == set()
    assert verdict(events, "D9", "orders").opportunities == 1


@pytest.mark.parametrize("had", [0, 1])
def test_d9_one_has_more_of_the_removed(had: int) -> None:
    trace, mids = crashed()
    trace.deliver("p1", *mids)
    trace.deliver("p2", *mids[:had])
    go_on(trace, "p1", "p2")
    events = trace.end()
    assert violated(events) == {"D8", "D9"}
    last = "orders/p3:0" if had else "none"
    assert sentence(events, "D9", "orders") == (
        "p1 and p2 went from view v0 to view v1, which is without p3, but the last message of p3 that they delivered "
        f"before is orders/p3:1 at p1 and {last} at p2"
    )


# D11


def uniform(*by: Sequence[str]) -> Trace:
    """p3 delivers its own message, and crashes; these deliver it too, and all go on."""
    trace, mids = crashed()
    for process in by:
        trace.deliver(str(process), *mids)
    go_on(trace, "p1", "p2")
    return trace


def test_d11_is_promised_by_no_service_and_can_be_required() -> None:
    events = uniform().end()
    assert violated(events) == set()
    assert verdict(events, "D11", "orders").outcome == "not promised"
    assert violated(events, "D11") == {"D11"}
    judged = verdict(events, "D11", "orders", "D11")
    assert (judged.violations, judged.opportunities) == (4, 2)
    assert sentence(events, "D11", "orders", "D11") == (
        "p3 delivered orders/p3:0 (index 4) in view v0, but p1 went from there to view v1 (index 6) "
        "without having delivered it there"
    )


def test_d11_holds_if_all_have_it() -> None:
    events = uniform("p1", "p2").end()
    assert violated(events, "D11") == set()
    assert verdict(events, "D11", "orders", "D11").opportunities == 6
