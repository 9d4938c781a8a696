"""Holds effects that an application must not get before a state (docs/spec/newtop.md 11.2 rule 7)."""

from collections import deque
from collections.abc import Callable

from antiphon.core.effects import Deliver, Effect, InstallState, InstallView, Left, Primary, Query, Reach, Transitional
from antiphon.core.query_room import QueryRoom
from antiphon.protocols.newtop.formation.transfer import Transfer
from antiphon.types import GroupId

Shown = Deliver | InstallView | InstallState | Transitional | Primary | Left
"""The effects for an application, in one order."""


class HeldBack:
    """Invariant: one order over all groups; after a held effect, all later ones are held too (E-84).

    Requests outside the order wait apart: no other effect waits because of them.
    """

    __slots__ = ("_effects", "_queries", "_released", "_room", "_transfer_of")

    def __init__(self, transfer_of: Callable[[GroupId], Transfer | None]) -> None:
        self._effects: deque[Shown] = deque()
        self._queries: list[Query] = []
        self._room = QueryRoom()
        self._transfer_of = transfer_of
        self._released: Callable[[Effect, list[Effect]], None] | None = None

    def tell(self, released: Callable[[Effect, list[Effect]], None]) -> None:
        """Call this for each effect that was held, after the application gets it."""
        self._released = released

    @property
    def holds(self) -> bool:
        """True if the application gets nothing now."""
        return bool(self._effects)

    def put(self, effect: Shown, effects: list[Effect]) -> bool:
        """Add an effect for the application; False if it is held. The network learns of a view at once."""
        if not self._effects and not self._waits(effect):
            effects.append(effect)
            return True
        if isinstance(effect, InstallView):
            effects.append(Reach(effect.view))
        self._effects.append(effect)
        return False

    def delays_queries(self, group: GroupId) -> bool:
        """True if our application must not answer for this group yet."""
        return bool(self._effects) or self._lacks_state(group)

    def put_query(self, query: Query, effects: list[Effect]) -> None:
        """Add a request outside the order; it is dropped if too many are held."""
        if not self.delays_queries(query.frame.group):
            effects.append(query)
        elif self._room.take(query.frame):
            self._queries.append(query)

    def place(self, state: InstallState) -> None:
        """A state has arrived: it is placed after the first view of its group and before its deliveries."""
        of_group = [place for place, effect in enumerate(self._effects) if group_of(effect) == state.group]
        self._effects.insert(of_group[0] + _is_first(self._effects[of_group[0]]) if of_group else 0, state)

    def drop(self, group: GroupId) -> None:
        """The group is left before its state arrived: the application was never in it."""
        self._effects = deque(effect for effect in self._effects if group_of(effect) != group)
        self._take_queries(lambda query: query.frame.group == group)

    def release(self, effects: list[Effect]) -> None:
        """Hand over all effects that no longer wait."""
        while self._effects and not self._waits(self._effects[0]):
            effect = self._effects.popleft()
            effects.append(effect)
            if self._released is not None:
                self._released(effect, effects)
        effects += self._take_queries(lambda query: not self.delays_queries(query.frame.group))

    def _take_queries(self, chosen: Callable[[Query], bool]) -> list[Query]:
        taken = [query for query in self._queries if chosen(query)]
        if taken:
            self._queries = [query for query in self._queries if not chosen(query)]
            for query in taken:
                self._room.free(query.frame)
        return taken

    def _waits(self, effect: Shown) -> bool:
        if isinstance(effect, InstallState) or _is_first(effect):
            return False
        return self._lacks_state(group_of(effect))

    def _lacks_state(self, group: GroupId) -> bool:
        transfer = self._transfer_of(group)
        return transfer is not None and transfer.waits


def _is_first(effect: Shown) -> bool:
    return isinstance(effect, InstallView) and bool(effect.view.classes)


def group_of(effect: Shown) -> GroupId:
    """The group of an effect, as the application names it."""
    if isinstance(effect, InstallView):
        return effect.view.group
    return effect.frame.group if isinstance(effect, Deliver) else effect.group
