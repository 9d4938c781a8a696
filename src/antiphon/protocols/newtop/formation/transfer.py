"""State for those who come new: what the classes of a formed group had before, told in order (newtop.md 11.2 rule 7).

All of a class stood at the same place when the group was formed, so any one of them can tell what its application's
state was; the lowest does. A member that waits for a state holds back what is delivered meanwhile (`held_back.py`);
numbers, stability and views go on. So nothing is missed, and nothing comes twice: what was delivered before the
formation is in the state, what is delivered after it is a delivery.
"""

from antiphon.core.contract import StateSource
from antiphon.core.effects import InstallState
from antiphon.protocols.newtop.fragments import Fragments
from antiphon.types import Company, ProcessId, View


class Transfer:
    """The states under way in one formed group, as one member sees them; all see the same, in the same order."""

    __slots__ = ("_me", "_members", "_own", "_snapshot", "_states", "_told", "_view", "_with_state", "wanted")

    def __init__(self, me: ProcessId, view: View, companies: tuple[Company, ...]) -> None:
        self._me = me
        self._view = view
        """The first one."""
        self._members = view.members
        self._with_state = [place for place, company in enumerate(companies) if company.view is not None]
        self._own = next(place for place, company in enumerate(companies) if me in company.members)
        self._states: dict[int, bytes | None] = {}  # by class, as far as it is told; None if that is our own
        self._snapshot: bytes | StateSource | None = None
        self._told = False  # we have told our state
        self.wanted = self._own in self._with_state and len(companies) > 1
        """Whether our application must say what its state is."""

    @property
    def own(self) -> int:
        """Our class."""
        return self._own

    @property
    def waits(self) -> bool:
        """Whether the state of a class other than our own is still to come."""
        return any(place != self._own and place not in self._states and self._left(place) for place in self._with_state)

    @property
    def over(self) -> bool:
        """Whether nothing is under way any more."""
        return not self.waits and (not self.wanted or self._own in self._states)

    @property
    def owes(self) -> bool:
        """Whether we are to tell our state, before anything else, and have not done so yet."""
        asked = self.wanted and not self._told and self._own not in self._states
        return asked and self._teller(self._own) == self._me

    def awaits(self, process: ProcessId) -> bool:
        """Whether that is who is to tell a state that we wait for."""
        return any(
            place != self._own and place not in self._states and process == self._teller(place)
            for place in self._with_state
        )

    def incoming(self, fragments: Fragments) -> list[tuple[int, int]]:
        """Of each state, while we wait for one of them, how many bytes have come, and of how many; 0: not known."""
        found = []
        for place in self._with_state if self.waits else ():
            state, teller = self._states.get(place), self._teller(place)
            if state is not None:
                found.append((len(state), len(state)))
            elif place != self._own and teller is not None:
                found.append(fragments.come.get((teller, place), (0, 0)))
        return found

    def snapshot(self, state: bytes | StateSource) -> None:
        """What our application's state was at the first view."""
        if self.wanted and self._own not in self._states:
            self._snapshot = state
        else:
            release(state)

    def donate(self) -> tuple[int, bytes | StateSource] | None:
        """What to tell now, if it is on us: our class, and its state."""
        if not self.owes or self._snapshot is None:
            return None
        self._told = True
        return self._own, self._snapshot

    def told(self, place: int, state: bytes) -> None:
        """A state has its turn in the order; only the first of a class counts."""
        if place not in self._states and place in self._with_state:
            self._states[place] = state if place != self._own else None
            if place == self._own and self._snapshot is not None:
                release(self._snapshot)
                self._snapshot = None

    def installed(self, view: View) -> None:
        """Members are gone: the lowest that is left of a class tells what is not told yet."""
        self._members = view.members

    def complete(self) -> InstallState:
        """All states are here, or nobody is left to tell them."""
        states = tuple((place, state) for place, state in sorted(self._states.items()) if state is not None)
        return InstallState(self._view.group, states, self._own if self._own in self._with_state else None)

    def _left(self, place: int) -> bool:
        return self._teller(place) is not None

    def _teller(self, place: int) -> ProcessId | None:
        """The lowest of a class who is left."""
        return next((member for member in self._view.classes[place] if member in self._members), None)


def release(state: bytes | StateSource) -> None:
    """Nobody wants to hear it any more."""
    if not isinstance(state, bytes):
        state.close()
