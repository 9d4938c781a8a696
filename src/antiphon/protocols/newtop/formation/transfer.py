"""State transfer: the states of the classes of a formed group, sent in order (docs/spec/newtop.md 11.2 rule 7).

All members of a class were at the same place when the group was formed, so each of them could send the state of its
application; the lowest does. Classes that have delivered the same (`View.alike`) count as one here. A member that waits
for a state holds deliveries back meanwhile (`held_back.py`); numbers, stability and views continue. So no message is
lost and none comes twice: messages delivered before the formation are in the state, later ones are deliveries.
"""

from antiphon.core.contract import StateSource
from antiphon.core.effects import InstallState
from antiphon.protocols.newtop.fragments import Fragments
from antiphon.types import Company, ProcessId, View


class Transfer:
    """The state transfers of one formed group at one member; all members see the same, in the same order."""

    __slots__ = (
        "_classes",
        "_lasts",
        "_me",
        "_members",
        "_own",
        "_snapshot",
        "_states",
        "_told",
        "_view",
        "_with_state",
        "wanted",
    )

    def __init__(self, me: ProcessId, view: View, companies: tuple[Company, ...]) -> None:
        self._me = me
        self._view = view
        """The first view."""
        self._members = view.members
        first = {place: same[0] for same in view.alike for place in same}
        self._classes: dict[int, tuple[ProcessId, ...]] = {}  # those with one state under their first place
        self._lasts: dict[int, int] = {}  # primary views that they know of
        for number, company in enumerate(companies):
            place = first.get(number, number)
            self._classes[place] = tuple(sorted((*self._classes.get(place, ()), *company.members)))
            self._lasts[place] = max(self._lasts.get(place, 0), company.last)
        self._with_state = [place for place in self._classes if companies[place].view is not None]
        self._own = next(place for place, members in self._classes.items() if me in members)
        self._states: dict[int, bytes | None] = {}  # by class, if received; None for our own
        self._snapshot: bytes | StateSource | None = None
        self._told = False  # we have sent our state
        self.wanted = self._own in self._with_state and len(self._classes) > 1
        """True if our application must give its state."""

    @property
    def own(self) -> int:
        """Our class."""
        return self._own

    @property
    def waits(self) -> bool:
        """True if the state of another class has not arrived."""
        return any(place != self._own and place not in self._states and self._left(place) for place in self._with_state)

    @property
    def over(self) -> bool:
        """True if all transfers have ended."""
        return not self.waits and (not self.wanted or self._own in self._states)

    @property
    def owes(self) -> bool:
        """True if we must send our state before anything else, and have not done it yet."""
        asked = self.wanted and not self._told and self._own not in self._states
        return asked and self._teller(self._own) == self._me

    def awaits(self, process: ProcessId) -> bool:
        """True if that member must send a state that we wait for."""
        return any(
            place != self._own and place not in self._states and process == self._teller(place)
            for place in self._with_state
        )

    def incoming(self, fragments: Fragments) -> list[tuple[int, int]]:
        """While we wait: for each state, the bytes received and the total; 0: unknown."""
        found = []
        for place in self._with_state if self.waits else ():
            state, teller = self._states.get(place), self._teller(place)
            if state is not None:
                found.append((len(state), len(state)))
            elif place != self._own and teller is not None:
                found.append(fragments.come.get((teller, place), (0, 0)))
        return found

    def snapshot(self, state: bytes | StateSource) -> None:
        """The state of our application at the first view."""
        if self.wanted and self._own not in self._states:
            self._snapshot = state
        else:
            release(state)

    def donate(self) -> tuple[int, bytes | StateSource] | None:
        """What we must send now, if it is our duty: our class, and its state."""
        if not self.owes or self._snapshot is None:
            return None
        self._told = True
        return self._own, self._snapshot

    def told(self, place: int, state: bytes) -> None:
        """A state is delivered; only the first of a class counts."""
        if place not in self._states and place in self._with_state:
            self._states[place] = state if place != self._own else None
            if place == self._own and self._snapshot is not None:
                release(self._snapshot)
                self._snapshot = None

    def installed(self, view: View) -> None:
        """Members are gone: the lowest remaining member of a class sends a missing state."""
        self._members = view.members

    def complete(self) -> InstallState:
        """All states have arrived, or no member is left to send them."""
        states = tuple((place, state) for place, state in sorted(self._states.items()) if state is not None)
        own = self._own if self._own in self._with_state else None
        primary = max(self._arrived, key=lambda place: (self._lasts[place], -place), default=None)
        if primary is not None and not self._lasts[primary]:
            primary = None
        return InstallState(self._view.group, states, own, primary)

    @property
    def held(self) -> int:
        """The number of the last primary view that one of the states comes from that we have by now; 0: none."""
        return max((self._lasts[place] for place in self._arrived), default=0)

    @property
    def _arrived(self) -> list[int]:
        """The classes whose states we have, with our own."""
        return sorted(place for place in self._with_state if place == self._own or place in self._states)

    def _left(self, place: int) -> bool:
        return self._teller(place) is not None

    def _teller(self, place: int) -> ProcessId | None:
        """The lowest remaining member of a class."""
        return next((member for member in self._classes[place] if member in self._members), None)


def release(state: bytes | StateSource) -> None:
    """Release a state that no member needs any more."""
    if not isinstance(state, bytes):
        state.close()
