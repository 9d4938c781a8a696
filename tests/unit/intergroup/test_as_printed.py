"""The printed rules of InterGroup: each fails where the adopted one does not (docs/spec/errata-intergroup.md)."""

from typing import NamedTuple

import pytest

from antiphon.protocols.intergroup.as_printed import ERRATA, printed
from antiphon.protocols.intergroup.delivery.orders import GroupTimestamp
from antiphon.protocols.intergroup.membership.claims import Claim, Claims, Survivor
from antiphon.protocols.intergroup.membership.view_ids import Kind, view_id
from antiphon.protocols.intergroup.repair.requests import DELAY_MAX
from antiphon.protocols.intergroup.rules import ADOPTED, Rules
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId

A, B = ProcessId("a"), ProcessId("b")
D = 20_000_000
TICKET = Ticket(A, 7)


class Said(NamedTuple):
    seq: int
    clock: int
    is_leave: bool = False


def half() -> float:
    return 0.5


def rules(erratum: str, *, literal: bool) -> Rules:
    return printed([erratum]) if literal else ADOPTED


def test_there_is_a_class_for_each() -> None:
    delivery = ("R1", "R2", "T3", "T5", "T6", "D1", "D5", "D9", "T4")
    repairs = ("M4", "M8", "M11", "M14", "M15", "M16", "M19", "M27", "M29")
    assert (*delivery, *repairs, "J1", "J2", "J3", "J4", "J8", "J10", "J12", "J13", "J14", "J16") == ERRATA


@pytest.mark.parametrize("literal", [True, False])
def test_r1_requests_that_arrive_together_put_one_off_for_ever(literal: bool) -> None:
    requests = rules("R1", literal=literal).requests(half)
    requests.missing(TICKET, D, now=0)
    for _ in range(16):
        requests.heard(TICKET, now=0)
    assert requests.deadline is not None
    assert (requests.deadline > 1000 * DELAY_MAX) == literal


@pytest.mark.parametrize("literal", [True, False])
def test_r2_a_process_that_has_asked_once_never_asks_again(literal: bool) -> None:
    requests = rules("R2", literal=literal).requests(half)
    requests.missing(TICKET, D, now=0)
    assert requests.deadline is not None
    assert requests.due(requests.deadline) == [TICKET]
    assert (requests.deadline is None) == literal


@pytest.mark.parametrize("literal", [True, False])
def test_t5_messages_promised_to_a_joiner_are_acknowledged_before_it_has_begun(literal: bool) -> None:
    stability = rules("T5", literal=literal).stability(A, [A, B], 0, 10**9)
    stability.hold(ProcessId("late"), start=50, until=10**10, now=0)
    assert (stability.own_ack(90, now=0) == 90) == literal


@pytest.mark.parametrize("literal", [True, False])
def test_t6_two_messages_of_one_moment_have_one_stamp(literal: bool) -> None:
    clock = rules("T6", literal=literal).clock(physical=True)
    assert (clock.stamp(100) == clock.stamp(100)) == literal


@pytest.mark.parametrize("literal", [True, False])
def test_d1_the_first_message_is_never_delivered(literal: bool) -> None:
    stream = rules("D1", literal=literal).stream(first=5, horizon=0)
    assert (stream.data(Said(5, 50)) == []) == literal


@pytest.mark.parametrize("literal", [True, False])
def test_d5_a_keep_alive_ahead_of_a_gap_turns_the_order_round(literal: bool) -> None:
    order: GroupTimestamp[Said] = GroupTimestamp(None, {A: 1, B: 1}, 0, rules("D5", literal=literal).stream)
    order.streams[A].keep_alive(1, 20)
    order.data(B, Said(1, 15))
    first = [*order.deliverable(0)]
    order.data(A, Said(1, 10))
    assert (first == [Said(1, 15)]) == literal
    assert [*first, *order.deliverable(0)] == ([Said(1, 15), Said(1, 10)] if literal else [Said(1, 10), Said(1, 15)])


@pytest.mark.parametrize("literal", [True, False])
def test_j10_a_process_that_joins_where_a_view_begins_shows_the_id_of_its_members(literal: bool) -> None:
    """But it skips messages with that very stamp, which the members deliver in the view."""
    base = view_id(500, Kind.CHANGE, A, 7)
    assert (rules("J10", literal=literal).joined_id(500, base, B) == base) == literal
    assert rules("J10", literal=literal).joined_id(501, base, B) != base


def survivor(process: ProcessId, claims: Claims) -> Survivor:
    return Survivor(process, last=3, stint=1, gate=90, claims=claims, receiver_claims=(), receiver_gate=0)


@pytest.mark.parametrize("literal", [True, False])
def test_m15_a_message_counts_although_its_cause_is_lost(literal: bool) -> None:
    """Nobody knows what c sent after 100; d may have delivered it before it sent its message of 120."""
    c, d = ProcessId("c"), ProcessId("d")
    claims = ((c, Claim(1, 4, 100)), (d, Claim(1, 6, 120)))
    found = rules("M15", literal=literal).ends([survivor(A, claims), survivor(B, claims)])
    assert (found.last_stamp >= 120) == literal


@pytest.mark.parametrize("literal", [True, False])
def test_j16_a_receiver_without_progress_counts_for_ever(literal: bool) -> None:
    stability = rules("J16", literal=literal).stability(A, [A], 0, 1_000)
    stability.reported(ProcessId("r"), ack=10, now=0)
    stability.conclude(own_ack=90, now=5_000)
    assert (stability.stable == 10) == literal
