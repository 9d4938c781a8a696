"""Which service promises which property (docs/spec/properties.md 8)."""

import pytest

from antiphon.properties.families import BUILT_IN, PROMISES
from antiphon.properties.promises import JUDGED, NOT_JUDGED
from tests.support.traces.handmade import Trace, verdicts

CLOSED = [codes for each in BUILT_IN.values() for table in (each.closed, each.halted) for codes in table.values()]
CAUSAL = ("causal-slow", "causal-fast", "causal-relative", "causal-vector")


@pytest.mark.parametrize("service", CAUSAL)
def test_causal_services_promise_all_but_a_common_order(service: str) -> None:
    assert PROMISES["newtop", "total"] - PROMISES["newtop", service] == {"O5", "O5x", "O6", "O8", "M12", "L11"}
    assert PROMISES["newtop", service] < PROMISES["newtop", "total"]


@pytest.mark.parametrize("property_id", ["M6", "D5", "D6", "D7", "D13", "D15", "O7", "S5", "S6"])
def test_newtop_does_not_promise_the_property(property_id: str) -> None:
    newtop = [promised for (protocol, _), promised in PROMISES.items() if protocol == "newtop"]
    assert all(property_id not in promised for promised in newtop)


def test_every_checker_has_a_service_that_promises() -> None:
    offered = set().union(*PROMISES.values(), *CLOSED)
    assert set(JUDGED) <= offered
    assert not set(JUDGED) & set(NOT_JUDGED)
    assert NOT_JUDGED == ()


def test_safe_delivery_promises_three_more_than_total_order() -> None:
    more = {"S3", "D11", "M13"}
    assert PROMISES["newtop", "total-safe"] - PROMISES["newtop", "total"] == more
    assert PROMISES["newtop", "total"] < PROMISES["newtop", "total-safe"]
    others = [promised for kind, promised in PROMISES.items() if kind != ("newtop", "total-safe")]
    assert all(more.isdisjoint(promised) for promised in [*others, *CLOSED])


@pytest.mark.parametrize("suspect_after", ["100ms", "0s"])
def test_uniform_agreement_is_promised_only_where_views_change(suspect_after: str) -> None:
    options = {"view_change": "cut", "suspect_after": suspect_after, "idle_probe": "0s", "time_silence": "0s"}
    found = verdicts(Trace({"a": ["p1", "p2"]}, service="total-safe", options=options).begin().end())
    assert (found["D11", "a"].outcome == "not promised") is (suspect_after == "0s")
    assert found["S3", "a"].outcome == "vacuous"


@pytest.mark.parametrize("view_change", ["cut", "remove", "closed", None])
def test_closed_views_promise_more(view_change: str | None) -> None:
    trace = Trace({"a": ["p1", "p2"]}, options={"view_change": view_change} if view_change else {}).begin()
    found = verdicts(trace.end())
    more = {name for (name, _), told in found.items() if told.outcome != "not promised"} - PROMISES["newtop", "total"]
    assert more == (BUILT_IN["newtop"].closed["total"] if view_change == "closed" else set())


@pytest.mark.parametrize("service", CAUSAL)
def test_closed_goes_with_total_order_only(service: str) -> None:
    trace = Trace({"a": ["p1", "p2"]}, service=service, options={"view_change": "closed"}).begin()
    assert {verdicts(trace.end())[name, "a"].outcome for name in BUILT_IN["newtop"].closed["total"]} == {"not promised"}


def test_services_in_one_run_are_judged_each_by_its_own() -> None:
    trace = Trace({"a": ["p1", "p2"]}).begin()
    other = Trace({"b": ["q1", "q2"]}, service="causal-fast").begin()
    for part, group, members in ((trace, "a", ("p1", "p2")), (other, "b", ("q1", "q2"))):
        first, second = (part.send(member, group) for member in members)
        part.deliver(members[0], first, second)
        part.deliver(members[1], second, first)
    trace.rows += other.rows
    trace.lengths |= other.lengths
    found = verdicts(trace.end(quiet=False))
    assert found["O6", None].violations == 1
    assert found["O6", None].opportunities == 4
    assert found["D1", "b"].opportunities == 4
    assert found["O5", "b"].outcome == "not promised"


def test_each_group_of_a_member_is_judged_by_the_service_that_it_joined_with() -> None:
    """A member that traces itself names the service of a group when it joins it."""
    trace = Trace({"cut": ["p1", "p2"], "closed": ["p1", "p2"], "sequenced": ["p1", "p2"]}).begin()
    for process in ("p1", "p2"):
        trace.join(process, "cut", view_change="cut")
        trace.join(process, "closed", view_change="closed")
        trace.join(process, "sequenced", mode="asymmetric")
    found = verdicts(trace.end(settled=False))
    judged = {(name, group): told.outcome != "not promised" for (name, group), told in found.items()}
    assert [judged["D6", group] for group in ("cut", "closed", "sequenced")] == [False, True, False]
    assert [judged["F2", group] for group in ("cut", "closed", "sequenced")] == [True, True, False]
