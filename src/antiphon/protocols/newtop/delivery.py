"""Frames whose turn has come, of all groups of one process: to the application, or to the parts that they concern."""

from itertools import repeat
from typing import Final

from antiphon.core.effects import Deliver, Effect
from antiphon.protocols.newtop.formation.held_back import HeldBack
from antiphon.protocols.newtop.formation.states import States
from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.groups import Groups
from antiphon.protocols.newtop.membership.installer import ViewInstaller

_new: Final = tuple.__new__


class Delivery:
    """Invariant: while neither `_special` nor `Groups.formed`, a frame carries whole messages and nothing else."""

    __slots__ = ("_groups", "_held_back", "_installer", "_plain", "_special", "_states")

    def __init__(
        self, groups: Groups, installer: ViewInstaller, held_back: HeldBack, states: States, *, plain: bool
    ) -> None:
        self._groups = groups
        self._installer = installer
        self._held_back = held_back
        self._states = states
        self._plain = plain  # nobody counts what applications take
        self._special = groups.turns is not None

    def look_closely(self) -> None:
        """From now on, frames may be pieces of larger messages, or notices."""
        self._special = True

    def deliver(self, ready: list[BlockFrame], now: int, effects: list[Effect]) -> None:
        """Hand over whatever has its turn, of any group."""
        groups, formed = self._groups, self._groups.formed
        if self._plain and not self._special and not formed:
            effects += map(_new, repeat(Deliver), zip(ready))  # `Deliver(frame)` of each, without a step of Python
            return
        for frame in ready:
            group = groups.by_id[frame.group]
            if self._plain and not formed and not (frame.more or frame.notice or group.fragments.open):
                effects.append(Deliver(frame))
            else:
                groups.stirred[frame.group] = group
                self._hand_over(group, frame, now, effects)

    def _hand_over(self, group: NewtopGroup, frame: BlockFrame, now: int, effects: list[Effect]) -> None:
        """Its turn may mean more than its delivery: a view, a whole message, a state."""
        whole = group.deliver(frame)
        if frame.notice is not None:
            self._installer.install(group, group.change.delivered(frame, group.view), now, effects)
        elif whole is None:
            return
        elif whole.state is not None:
            self._states.told(group, whole.state, whole.payloads[0], effects)
        elif self._groups.formed:
            self._held_back.put(Deliver(whole), effects)
        else:
            effects.append(Deliver(whole))
