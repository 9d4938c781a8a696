"""The state of an application in one group: sent to joiners, merged from the sides of a partition.

A member whose application cannot provide its state leaves the group, so that another member is asked.
"""

import asyncio
from typing import TYPE_CHECKING

from antiphon.api.states import Progress, Snapshot, State, Supply, require_state, whole
from antiphon.core.effects import InstallState
from antiphon.types import View

if TYPE_CHECKING:
    from antiphon.api.group import Group
    from antiphon.api.process import LocalProcess


class Transfers:
    """The state transfers of one group."""

    def __init__(self, member: "LocalProcess", group: "Group", snapshot: Snapshot | None) -> None:
        """`snapshot`: returns the state; None: the application has none."""
        self._member = member
        self._group = group
        self._snapshot = snapshot
        self._supply: Supply | None = None

    @property
    def has_state(self) -> bool:
        return self._snapshot is not None

    @property
    def sending(self) -> Progress | None:
        """How much of the state was sent; None if no transfer is under way."""
        return None if self._supply is None else self._supply.progress

    def state_at(self, view: View) -> State:
        """The state at this view."""
        try:
            return self._state()
        except BaseException:  # SystemExit too: the others must not wait for this state
            self._member.passed_over(view)
            self._group.depart()
            raise

    def hand_over(self, view: View, state: State) -> None:
        """Offer the state to the joiners; it is read while it is sent."""
        self.close()
        self._supply = Supply(self._group.name, state, self._failed, self._member.digester(view, state))
        self._member.hand_over(view, self._supply)

    def merge(self, effect: InstallState) -> tuple[list[int], list[bytes]]:
        """The classes that have states, in their order, and these states."""
        try:
            states = dict(effect.states)
            if effect.own is not None:
                states[effect.own] = whole(self._group.name, self._state())
        except BaseException:
            self._group.depart()  # without the merged state it cannot go on
            raise
        ordered = sorted(states)
        return ordered, [states[place] for place in ordered]

    def close(self) -> None:
        """Stop reading a state that is being sent."""
        if self._supply is not None:
            self._supply.close()

    def _state(self) -> State:
        return b"" if self._snapshot is None else require_state(self._group.name, self._snapshot())

    def _failed(self, error: BaseException) -> None:
        asyncio.get_running_loop().call_soon(self._group.fail, error)  # the core is at work now
