"""Passes deliverable frames of all groups of one process to the application, or to the parts that they concern."""

from itertools import repeat
from typing import Final

from antiphon.core.effects import Deliver, Effect
from antiphon.protocols.newtop.formation.held_back import HeldBack
from antiphon.protocols.newtop.formation.histories import Histories
from antiphon.protocols.newtop.formation.states import States
from antiphon.protocols.newtop.frames import WORD, BlockFrame
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.groups import Groups
from antiphon.protocols.newtop.membership.installer import ViewInstaller

_new: Final = tuple.__new__


class Delivery:
    """Invariant: without `_special` and `Groups.formed`, a frame carries only whole messages."""

    __slots__ = ("_groups", "_held_back", "_histories", "_installer", "_plain", "_special", "_states")

    def __init__(
        self,
        groups: Groups,
        installer: ViewInstaller,
        held_back: HeldBack,
        states: States,
        histories: Histories,
        *,
        plain: bool,
    ) -> None:
        self._groups = groups
        self._installer = installer
        self._held_back = held_back
        self._states = states
        self._histories = histories if histories.on else None  # None: no call for each delivery
        self._plain = plain  # consumption is not counted
        self._special = groups.turns is not None

    def look_closely(self) -> None:
        """From now on, frames may be fragments of larger messages, notices, requests or answers."""
        self._special = True

    def deliver(self, ready: list[BlockFrame], now: int, effects: list[Effect]) -> bool:
        """Deliver all deliverable frames, of any group. True if we have something to send about it."""
        groups, formed = self._groups, self._groups.formed
        if self._plain and not self._special and not formed:
            effects += map(_new, repeat(Deliver), zip(ready))  # builds `Deliver(frame)` for each, without a Python loop
            return False
        for frame in ready:
            group = groups.by_id[frame.group]
            if self._plain and not formed and not (frame.more or frame.notice or frame.ask or group.fragments.open):
                effects.append(Deliver(frame))
            else:
                groups.stirred[frame.group] = group
                self._hand_over(group, frame, now, effects)
        return self._installer.primaries.spoke()

    def _hand_over(self, group: NewtopGroup, frame: BlockFrame, now: int, effects: list[Effect]) -> None:
        """Deliver a frame that may cause more than a delivery: a view, a whole message, a state."""
        holds = self._held_back.holds
        whole = group.deliver(frame, held=holds)
        if frame.notice is not None:
            self._installer.install(group, group.change.delivered(frame, group.view), now, effects)
        elif whole is None:
            return
        elif whole.state == WORD:
            self._installer.primaries.told(group, whole.author, whole.payloads[0], effects)
        elif whole.state is not None:
            self._states.told(group, whole.state, whole.payloads[0], effects)
            self._installer.primaries.look(group)
        else:
            if self._histories is not None and self._groups.formed:
                self._histories.delivered(whole)
            effect = _new(Deliver, (whole,))
            if group.transfer is None and not holds:
                effects.append(effect)  # the usual case
            elif not self._held_back.put(effect, effects):
                return
            if whole.ask is not None:
                self._installer.asking.shown(effect, effects)
