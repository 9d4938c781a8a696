"""The printed rules of InterGroup: each fails where the adopted one does not (docs/spec/errata-intergroup.md)."""

from typing import NamedTuple

import pytest

from antiphon.protocols.intergroup.as_printed import ERRATA, printed
from antiphon.protocols.intergroup.delivery.orders import GroupTimestamp
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
    assert ERRATA == ("R1", "R2", "T3", "T5", "T6", "D1", "D5")


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
