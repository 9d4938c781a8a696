"""M12, M13 and L11: primary views that were voted on (docs/spec/newtop.md 15)."""

import json
from collections.abc import Sequence

from tests.support.traces.handmade import Trace, sentence, trio, verdict, violated

VOTES = {"primary": "dynamic"}


def prevail(trace: Trace, process: str, number: int, *after: str, rule: str = "majority", holds: bool = True) -> None:
    detail = json.dumps({"after": after, "holds": holds, "rule": rule})
    view = trace.views[process, "orders"]
    trace.row(process, "primary", group="orders", view=view, number=number, detail=detail)


def parted(*sides: tuple[str, Sequence[str]]) -> Trace:
    """Five members in a primary view are separated."""
    trace = Trace({"orders": [f"p{number}" for number in range(1, 6)]}, options=VOTES)
    trace.begin()
    for process in trace.members:
        prevail(trace, process, 1, rule="founded")
    trace.fault("partition")
    for view, members in sides:
        for process in members:
            trace.exclude(process, view, members)
    return trace


SIDES = (("v1", ["p1", "p2", "p3"]), ("v2", ["p4", "p5"]))


def test_one_side_goes_on() -> None:
    trace = parted(*SIDES)
    for process in SIDES[0][1]:
        prevail(trace, process, 2, "v0")
    events = trace.end(quiet=False)
    assert violated(events) == set()
    assert verdict(events, "M12", "orders").opportunities == 1


def test_m12_two_sides_go_on() -> None:
    trace = parted(*SIDES)
    for number, (_, members) in enumerate(SIDES, start=2):
        for process in members:
            prevail(trace, process, number, "v0")
    events = trace.end(quiet=False)
    assert violated(events) == {"M12"}
    assert "but the second does not follow the first" in sentence(events, "M12", "orders")


def test_m12_a_fork_by_the_rule_everybody_is_excused() -> None:
    trace = parted(*SIDES)
    for number, (_, members) in enumerate(SIDES, start=2):
        for process in members:
            prevail(trace, process, number, "v0", rule="everybody" if number == 3 else "majority")
    assert violated(trace.end(quiet=False)) == set()


def test_m12_a_chain_goes_through_views_that_were_formed_and_never_primary() -> None:
    trace = parted(SIDES[0])
    for process in SIDES[0][1]:
        prevail(trace, process, 2, "v0", holds=False)
    for process in ("p1", "p2"):
        trace.exclude(process, "v3", ["p1", "p2"])
        prevail(trace, process, 3, "v1")
    events = trace.end(quiet=False)
    assert violated(events) == set()
    assert verdict(events, "M12", "orders").opportunities == 1


def test_m12_numbers_rise_and_all_tell_the_same() -> None:
    trace = parted(SIDES[0])
    prevail(trace, "p1", 1, "v0")
    assert violated(trace.end(quiet=False)) == {"M12"}
    trace = parted(SIDES[0])
    prevail(trace, "p1", 2, "v0")
    prevail(trace, "p2", 3, "v0")
    events = trace.end(quiet=False)
    assert violated(events) == {"M12"}
    assert "is contradicted by another member" in sentence(events, "M12", "orders")


def lasting(*, lost: bool, rule: str = "majority") -> Trace:
    """p1 delivers a message in a primary view; the next one follows it."""
    trace = trio(service="total-safe", options=VOTES)
    for process in trace.members:
        prevail(trace, process, 1, rule="founded")
    message = trace.send("p1")
    for process in ("p1",) if lost else ("p1", "p2"):
        trace.deliver(process, message)
    trace.crash("p3")
    for process in ("p1", "p2"):
        trace.exclude(process, "v1", ["p1", "p2"])
        prevail(trace, process, 2, "v0", rule=rule)
    return trace


def test_m13_a_delivery_in_a_primary_view_is_kept_in_the_next_one() -> None:
    events = lasting(lost=False).end(quiet=False)
    assert verdict(events, "M13", "orders").outcome == "pass"
    assert verdict(events, "M13", "orders").opportunities == 1


def test_m13_a_delivery_is_missing_in_the_next_primary_view() -> None:
    events = lasting(lost=True).end(quiet=False)
    assert verdict(events, "M13", "orders").violations == 1
    assert "but p2 does not have it when the later view v1 is primary" in sentence(events, "M13", "orders")


def test_m13_a_delivery_may_be_missing_where_no_voter_had_kept_the_state() -> None:
    assert verdict(lasting(lost=True, rule="lost").end(quiet=False), "M13", "orders").opportunities == 0
    assert verdict(lasting(lost=True, rule="everybody").end(quiet=False), "M13", "orders").violations == 1


def test_m13_is_promised_by_safe_delivery_alone() -> None:
    assert verdict(parted(*SIDES).end(quiet=False), "M13", "orders").outcome == "not promised"


def test_l11_a_last_view_that_could_be_primary_is() -> None:
    for back in (True, False):
        trace = parted(SIDES[0])
        trace.crash("p4")
        trace.crash("p5")
        for process in SIDES[0][1] if back else ():
            prevail(trace, process, 2, "v0")
        events = trace.end()
        assert verdict(events, "L11", "orders").opportunities == 3
        assert violated(events) == (set() if back else {"L11"})


def test_l11_members_that_did_not_see_a_view_become_primary_may_wait() -> None:
    """They have only attempted the first primary view: one of them that has crashed formed it."""
    for seen in (True, False):
        trace = Trace({"orders": ["p1", "p2", "p3"]}, options=VOTES)
        trace.begin()
        for process in ("p1", "p3") if seen else ("p3",):
            prevail(trace, process, 1, rule="founded")
        trace.crash("p3")
        for process in ("p1", "p2"):
            trace.exclude(process, "v1", ["p1", "p2"])
        events = trace.end()
        assert verdict(events, "L11", "orders").violations == (2 if seen else 0)


def test_nothing_of_it_is_promised_without_votes() -> None:
    events = trio().end()
    assert {verdict(events, each, "orders").outcome for each in ("M12", "M13", "L11")} == {"not promised"}
