"""Open requests of the application: groups to join, groups to leave."""

from typing import Final

from antiphon.types import GroupId, ProcessId

_DOUBLINGS_MAX: Final = 6
"""How often the pause between two proposals of the same group is doubled."""


class Wish:
    """To form a group of these processes, or to join the group that one of them is in."""

    __slots__ = ("at", "forms", "processes", "tries")

    def __init__(self, processes: tuple[ProcessId, ...], at: int, *, forms: bool) -> None:
        self.processes = processes
        self.forms = forms
        self.at = at
        """When to try again."""
        self.tries = 0

    @property
    def contact(self) -> ProcessId:
        """The contact to ask now; one after the other."""
        return self.processes[(self.tries - 1) % len(self.processes)]

    def tried(self, now: int, pause_ns: int, spread_ns: int) -> None:
        """Retry; the pauses grow, as for repeated formations."""
        doublings = min(self.tries, _DOUBLINGS_MAX) if self.forms else 0
        self.at = now + (pause_ns << doublings) + spread_ns
        self.tries += 1


class Intentions:
    """Invariant: a name is never in `wishes` and in `leaves` at once."""

    __slots__ = ("_invitations", "leaves", "left", "wishes")

    def __init__(self, invitations: bool) -> None:
        self._invitations = invitations
        self.wishes: dict[GroupId, Wish] = {}
        """By name."""
        self.leaves: dict[GroupId, int] = {}
        """By name, until when a leave may be graceful."""
        self.left: set[GroupId] = set()
        """Names of groups that our application does not want to be in."""

    def want(self, name: GroupId, wish: Wish) -> None:
        """Try to be in a group of that name."""
        self.left.discard(name)
        self.wishes[name] = wish

    def fulfilled(self, name: GroupId) -> None:
        """We are in a group of that name."""
        self.wishes.pop(name, None)

    def leave(self, name: GroupId, until: int) -> None:
        """Leave the group of that name."""
        self.wishes.pop(name, None)
        self.left.add(name)
        self.leaves.setdefault(name, until)

    def gone(self, name: GroupId) -> None:
        """We have left the group of that name."""
        self.leaves.pop(name, None)

    def welcomes(self, name: GroupId, members: dict[ProcessId, GroupId | None]) -> bool:
        """True if others may admit us to a group without our request: to a new group, unless we left it.

        Only where invitations are allowed: a proposal stops delivery in all our groups.
        """
        return self._invitations and name not in self.left and not any(members.values())
