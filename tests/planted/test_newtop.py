"""A protocol with one rule left out, run by the simulator: the judge must notice, under the right name."""

from itertools import islice
from typing import Any

import pytest

from antiphon.campaign.families import FAMILIES, fixed_group
from antiphon.protocols.newtop.flow.buffers import Buffers
from antiphon.protocols.newtop.flow.windows import FlowControl
from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.protocols.newtop.news import News
from antiphon.protocols.newtop.ordering import blocks
from antiphon.protocols.newtop.ordering.blocks import TotalOrder
from antiphon.protocols.newtop.ordering.relative import RelativeOrder
from antiphon.protocols.newtop.ordering.vectors import FastOrder, Key, Known
from antiphon.protocols.newtop.outbox import Outbox
from antiphon.protocols.newtop.silence import Silence
from antiphon.protocols.newtop.symmetric import Symmetric
from tests.planted.found import Plant, assert_found

SEEDS = 200


def equal_blocks_in_arrival_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(blocks, "_SENDER", lambda _frame: 0)  # a stable sort by nothing keeps the order of arrival


def groups_one_by_one(patch: pytest.MonkeyPatch) -> None:
    """safe1 in place of safe1': the other groups' incomplete blocks are ignored."""
    patch.setattr(TotalOrder, "_complete_everywhere", lambda self: max(column.minimum for column in self._columns))


def no_nulls_under_silence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Silence, "owe", lambda _self, _block, _now: None)


def lose_the_last_packed_message(patch: pytest.MonkeyPatch) -> None:
    take = Outbox.take

    def lossy(self: Outbox, room: int) -> Any:
        label, payloads, more = take(self, room)
        return label, payloads[: max(1, len(payloads) - 1)], more

    patch.setattr(Outbox, "take", lossy)


def lose_late_messages(patch: pytest.MonkeyPatch) -> None:
    put = Outbox.put
    patch.setattr(Outbox, "put", lambda self, payload, label: put(self, payload, label) if label < 3 else None)


def alter_a_payload(patch: pytest.MonkeyPatch) -> None:
    take = Outbox.take

    def altering(self: Outbox, room: int) -> Any:
        label, payloads, more = take(self, room)
        return label, tuple(payload[:-1] + b"!" for payload in payloads), more

    patch.setattr(Outbox, "take", altering)


def compare_only_the_senders_own_entry(patch: pytest.MonkeyPatch) -> None:
    def lacking(self: FastOrder, frame: BlockFrame, past: Known) -> Key | None:
        own = frame.group, frame.sender
        return own if past.get(own, 0) > self._known.get(own, 0) else None

    patch.setattr(FastOrder, "_lacking", lacking)


def forget_the_other_groups_entry(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RelativeOrder, "_passed", lambda _self, _name, _block: True)


def a_live_member_left_out_of_stability(patch: pytest.MonkeyPatch) -> None:
    settle = FlowControl.settle

    def hasty(self: FlowControl) -> None:
        settle(self)
        self.stable = max([self.stable, *sorted(self.completed.values)[1:2]])

    patch.setattr(FlowControl, "settle", hasty)


def acknowledge_the_largest_number(patch: pytest.MonkeyPatch) -> None:
    """The largest number received from any member, instead of the smallest over all members."""
    settle = FlowControl.settle

    def boasting(self: FlowControl) -> None:
        settle(self)
        self.complete = max([self.complete, *self.received.values])
        self.completed.raise_to(self._my_rank, self.complete)

    patch.setattr(FlowControl, "settle", boasting)


def discard_on_receipt(patch: pytest.MonkeyPatch) -> None:
    """All held messages are freed at the next check; only stable ones are reported as stable."""
    free = Buffers.free

    def careless(self: Buffers, stable: int, effects: list[Any]) -> list[BlockFrame]:
        told: list[Any] = []
        freed = free(self, 1 << 60, told)
        effects += told[1:]  # without the report that they are stable
        return freed

    patch.setattr(Buffers, "free", careless)


def a_window_one_too_large(patch: pytest.MonkeyPatch) -> None:
    permits = FlowControl.permits

    def generous(self: FlowControl, number: int, size_bytes: int) -> bool:
        self._window += 1
        try:
            return permits(self, number, size_bytes)
        finally:
            self._window -= 1

    patch.setattr(FlowControl, "permits", generous)


def no_announcements(patch: pytest.MonkeyPatch) -> None:
    def silent(self: News, *_: object) -> bool:
        self.at = None
        return False

    patch.setattr(News, "due", silent)


def never_free(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Buffers, "free", lambda _self, _stable, _effects: [])


def forget_blocked_senders(patch: pytest.MonkeyPatch) -> None:
    """A sender that flow control stopped is never checked again."""
    send = Symmetric.send_waiting
    patch.setattr(Symmetric, "send_waiting", lambda self, *each: 0 if self._gate.blocked else send(self, *each))
    patch.setattr(Symmetric, "released", property(lambda _self: False))


@pytest.mark.parametrize(
    ("plant", "property_"),
    [
        (equal_blocks_in_arrival_order, "O6"),
        (equal_blocks_in_arrival_order, "O5"),
        (no_nulls_under_silence, "L2"),
        (lose_the_last_packed_message, "L3"),
        (lose_late_messages, "L3"),
        (alter_a_payload, "D1"),
    ],
)
def test_a_planted_bug_in_one_group_is_found(plant: Plant, property_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert_found(property_, map(fixed_group, range(60)))


@pytest.mark.parametrize(
    ("plant", "property_", "service"),
    [
        (groups_one_by_one, "O5x", "total"),
        (groups_one_by_one, "O6", "total"),
        (compare_only_the_senders_own_entry, "O3", "causal-fast"),
        (forget_the_other_groups_entry, "O3", "causal-relative"),
        (a_live_member_left_out_of_stability, "S1", "total"),
        (acknowledge_the_largest_number, "S1", "total"),
        (discard_on_receipt, "S4", "total"),
        (a_window_one_too_large, "F2", "total"),
        (a_window_one_too_large, "F1", "total"),
        (no_announcements, "L6", "total"),
        (no_announcements, "L8", "causal-slow"),
        (never_free, "L8", "total"),
        (forget_blocked_senders, "L7", "total"),
        (forget_blocked_senders, "F3", "total"),
    ],
)
def test_a_planted_bug_over_groups_is_found(
    plant: Plant, property_: str, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenarios = map(FAMILIES["newtop"].draw, range(10_000))
    fitting = (
        scenario
        for scenario in scenarios
        if scenario.group[0].service == service
        and scenario.network.transport == "stream"
        and (not property_.startswith(("S", "F")) or scenario.options.flow_control)
    )
    plant(monkeypatch)
    assert_found(property_, islice(fitting, SEEDS))
