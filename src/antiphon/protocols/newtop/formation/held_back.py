"""Holds effects that an application must not get before a state (docs/spec/newtop.md 11.2 rule 7)."""

from collections import deque
from collections.abc import Callable

from antiphon.core.effects import Deliver, Effect, InstallState, InstallView, Left, Primary, Reach, Transitional
from antiphon.protocols.newtop.formation.transfer import Transfer
from antiphon.types import GroupId

Shown = Deliver | InstallView | InstallState | Transitional | Primary | Left
"""The effects for an application, in one order."""


class HeldBack:
    """Invariant: one order over all groups; after a held effect, all later ones are held too (E-84)."""

    __slots__ = ("_effects", "_transfer_of")

    def __init__(self, transfer_of: Callable[[GroupId], Transfer | None]) -> None:
        self._effects: deque[Shown] = deque()
        self._transfer_of = transfer_of

    def put(self, effect: Shown, effects: list[Effect]) -> None:
        """Add an effect for the application; the network learns of a view at once."""
        if not self._effects and not self._waits(effect):
            effects.append(effect)
            return
        if isinstance(effect, InstallView):
            effects.append(Reach(effect.view))
        self._effects.append(effect)

    def place(self, state: InstallState) -> None:
        """A state has arrived: it is placed after the first view of its group and before its deliveries."""
        of_group = [place for place, effect in enumerate(self._effects) if group_of(effect) == state.group]
        self._effects.insert(of_group[0] + _is_first(self._effects[of_group[0]]) if of_group else 0, state)

    def drop(self, group: GroupId) -> None:
        """The group is left before its state arrived: the application was never in it."""
        self._effects = deque(effect for effect in self._effects if group_of(effect) != group)

    def release(self, effects: list[Effect]) -> None:
        """Hand over all effects that no longer wait."""
        while self._effects and not self._waits(self._effects[0]):
            effects.append(self._effects.popleft())

    def _waits(self, effect: Shown) -> bool:
        if isinstance(effect, InstallState) or _is_first(effect):
            return False
        transfer = self._transfer_of(group_of(effect))
        return transfer is not None and transfer.waits


def _is_first(effect: Shown) -> bool:
    return isinstance(effect, InstallView) and bool(effect.view.classes)


def group_of(effect: Shown) -> GroupId:
    """The group of an effect, as the application names it."""
    if isinstance(effect, InstallView):
        return effect.view.group
    return effect.frame.group if isinstance(effect, Deliver) else effect.group
