"""Bugs to plant in causal, FIFO and reliable groups that change: one rule of docs/spec/newtop.md 11.6 is left out.

As in `tests/planted/newtop.py`. `tests/planted/plant.py` searches for runs of the family `causal-changes`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

from antiphon.core.vectors import BEYOND
from antiphon.protocols.newtop.formation.held_back import HeldBack
from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.membership.installer import ViewInstaller
from antiphon.protocols.newtop.ordering.blocks import SlowOrder
from antiphon.protocols.newtop.ordering.namesakes import Namesakes
from antiphon.protocols.newtop.ordering.relative import RelativeOrder
from antiphon.protocols.newtop.ordering.streams import FifoOrder
from antiphon.protocols.newtop.ordering.vectors import FastOrder
from antiphon.types import GroupId, ProcessId
from tests.planted.formation import leaves_at_once, nothing_waits_for_a_state, other_groups_go_on, sends_go_on
from tests.planted.newtop import Bug, Fits, Traits

_FLUSHING: Final = (FastOrder, RelativeOrder, FifoOrder)
_STREAMS: Final = ("fifo", "reliable")
_STAMPED: Final = ("causal-fast", "causal-relative", "causal-vector")


# -------------------------------------------------------------------------------- where a rule acts


def _of(*services: str, groups: int = 1) -> Fits:
    return lambda traits: traits.service in services and traits.groups >= groups


def _windowed(traits: Traits) -> bool:
    return traits.flow_control > 0 and traits.groups > 1


# -------------------------------------------------------------------------------- rules 1 to 3


def _stop_at(patch: pytest.MonkeyPatch, order: Any) -> None:
    take: Callable[[Any, int], list[BlockFrame]] = order.take
    patch.setattr(order, "take", lambda self, _upto: take(self, BEYOND))


def a_formation_stops_nothing(patch: pytest.MonkeyPatch) -> None:
    """Rule 1: members of a formation go on delivering."""
    for order in _FLUSHING:
        _stop_at(patch, order)


def ready_before_all_is_delivered(patch: pytest.MonkeyPatch) -> None:
    """Rule 2: a member is ready although messages up to the base are missing."""
    for order in _FLUSHING:
        patch.setattr(order, "drained", lambda *_: True)


def slow_is_ready_one_too_early(patch: pytest.MonkeyPatch) -> None:
    """Rule 2: as if the base were the last number before which Slow may deliver."""
    patch.setattr(SlowOrder, "drained", lambda self, _group, number: self.passed(number - 1))


def open_flushes_take_part(patch: pytest.MonkeyPatch) -> None:
    """Rule 2, E-88: a member with a detection that is not installed goes over."""
    patch.setattr(NewtopGroup, "parts", False)


def flushes_install_after_ready(patch: pytest.MonkeyPatch) -> None:
    """Rule 2: a view of the predecessor is installed by a flush after `ready`."""
    patch.setattr(ViewInstaller, "_reported", lambda *_: False)


def views_overtake_own_messages(patch: pytest.MonkeyPatch) -> None:
    """Rule 1 with 9.8: a view does not wait for own messages that a formation holds back."""
    settled = RelativeOrder.settled

    def hasty(self: RelativeOrder, group: NewtopGroup) -> bool:
        ready, self._ready = self._ready, []
        found = settled(self, group)
        self._ready = ready
        return found

    patch.setattr(RelativeOrder, "settled", hasty)


# -------------------------------------------------------------------------------- rules 4 to 6


def namesakes_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """Rules 4 and 5, E-97, E-98: what a stamp says about other groups of a name means nothing."""
    patch.setattr(Namesakes, "own", lambda *_: None)


def effects_wait_for_groups_that_are_left(patch: pytest.MonkeyPatch) -> None:
    """Rule 6: a message that waits for a message of a group that we leave is never tested again."""
    closed = FastOrder.closed

    def forgetful(self: FastOrder, group: NewtopGroup) -> list[BlockFrame]:
        dropped = closed(self, group)
        self._behind.clear()
        return dropped

    patch.setattr(FastOrder, "closed", forgetful)


# -------------------------------------------------------------------------------- rule 8, 11.2 rule 7


def joiners_hold_one_group_back(patch: pytest.MonkeyPatch) -> None:
    """E-84: only the group that waits for a state is held back."""
    other_groups_go_on(patch)


def held_deliveries_block_states(patch: pytest.MonkeyPatch) -> None:
    """E-100: deliveries that wait for the state of another group fill the window of a group with a state under way."""
    patch.setattr(HeldBack, "holds", False)


# -------------------------------------------------------------------------------- rules of 11.1 and 11.2 that stay


def members_send_while_the_group_changes(patch: pytest.MonkeyPatch) -> None:
    """E-58: messages that applications send during a formation leave in the old group."""
    sends_go_on(patch)


def members_leave_at_once(patch: pytest.MonkeyPatch) -> None:
    """Rule 7, E-55: a member does not wait until others have what it sent."""
    leaves_at_once(patch)


def joiners_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    """Rule 8: a joiner delivers before it has a state."""
    nothing_waits_for_a_state(patch)


# -------------------------------------------------------------------------------- 6.5


def messages_overtake_flushes(patch: pytest.MonkeyPatch) -> None:
    """Messages of the next view are delivered in this one."""

    def received(self: FifoOrder, _group: NewtopGroup, frame: BlockFrame, _now: int) -> Sequence[GroupId]:
        self._ready.append(frame)
        return ()

    patch.setattr(FifoOrder, "received", received)


def counters_fall_behind_deliveries(patch: pytest.MonkeyPatch) -> None:
    """CA2 left out: a member votes below what it has delivered."""

    def take(self: FifoOrder, upto: int) -> list[BlockFrame]:
        ready, self._ready = self._ready, []
        self._ready = [frame for frame in ready if frame.block > upto]
        return [frame for frame in ready if frame.block <= upto]

    patch.setattr(FifoOrder, "take", take)


def late_messages_of_the_removed_count(patch: pytest.MonkeyPatch) -> None:
    """What a removed member sent after its flush is delivered."""
    installed = FifoOrder.installed

    def lenient(self: FifoOrder, group: NewtopGroup, _removed: Sequence[ProcessId]) -> list[BlockFrame]:
        return installed(self, group, ())

    patch.setattr(FifoOrder, "installed", lenient)


_RIG: Final = ("causal-changes",)

BUGS: Final[tuple[Bug, ...]] = (
    Bug("11.6 1", "a formation stops no delivery", a_formation_stops_nothing, _of(*_STAMPED, *_STREAMS), rigs=_RIG),
    Bug("11.6 1", "a view overtakes own messages", views_overtake_own_messages, _of("causal-relative"), rigs=_RIG),
    Bug("11.6 2", "a member is ready before all is delivered", ready_before_all_is_delivered,
        _of(*_STAMPED, *_STREAMS), rigs=_RIG),
    Bug("11.6 2", "Slow is ready one number too early", slow_is_ready_one_too_early, _of("causal-slow"), rigs=_RIG),
    Bug("11.6 2", "open detections take part", open_flushes_take_part, _of(*_STAMPED, *_STREAMS), rigs=_RIG),
    Bug("11.6 2", "flushes install views after `ready`", flushes_install_after_ready, _of(*_STAMPED, *_STREAMS),
        rigs=_RIG),
    Bug("E-97, E-98", "other groups of a name mean nothing", namesakes_do_not_count, _of(*_STAMPED, groups=2),
        rigs=_RIG),
    Bug("11.6 6", "messages wait for groups that are left", effects_wait_for_groups_that_are_left,
        _of("causal-fast", "causal-vector", groups=2), rigs=_RIG),
    Bug("E-58", "members send in the old group", members_send_while_the_group_changes, rigs=_RIG),
    Bug("11.6 7, E-55", "members leave at once", members_leave_at_once, lambda traits: "leave" in traits.changes,
        rigs=_RIG),
    Bug("11.6 8", "a joiner waits for no state", joiners_do_not_wait, rigs=_RIG),
    Bug("E-84", "only the group of a state waits for it", joiners_hold_one_group_back,
        _of("causal-slow", *_STAMPED, groups=2), wanted=("O3",), rigs=_RIG),
    Bug("E-100", "held deliveries block states", held_deliveries_block_states, _windowed, rigs=_RIG),
    Bug("6.5", "messages overtake flushes", messages_overtake_flushes, _of(*_STREAMS), rigs=_RIG),
    Bug("6.5", "deliveries do not raise the counter", counters_fall_behind_deliveries, _of(*_STREAMS), rigs=_RIG),
    Bug("6.5", "late messages of removed members count", late_messages_of_the_removed_count, _of(*_STREAMS), rigs=_RIG),
)  # fmt: skip
