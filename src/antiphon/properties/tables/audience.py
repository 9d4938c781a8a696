"""To whom the messages of a process are addressed: its receivers, view after view, for as long as they stay.

In a view that all share these are the members; in a private one those whom it names (stability.md 1: R_s). Who goes
owes nothing more, and who comes owes nothing of what was sent before.
"""

from functools import cached_property

from antiphon.properties.tables.history import History


class Audience:
    """The receivers of each process over its views of a group."""

    def __init__(self, history: History) -> None:
        self._stays = history.stays
        self._known: dict[tuple[int, int], frozenset[int]] = {}

    def lasting(self, first: int, last: int) -> frozenset[int]:
        """Who is a receiver in every view from one stay of a process to a later one of it in the same group."""
        known = self._known.get((first, last))
        if known is not None:
            return known
        at, lasting = first, frozenset(self._stays.receivers[first])
        self._known[first, at] = lasting
        while at != last:
            at = int(self._stays.following[at])
            lasting = self._known.setdefault((first, at), lasting.intersection(self._stays.receivers[at]))
        return lasting

    @cached_property
    def to_the_end(self) -> list[frozenset[int]]:
        """By stay: who is a receiver from then on, in the last view too."""
        following = self._stays.following.tolist()
        lasting = [frozenset(receivers) for receivers in self._stays.receivers]
        for stay in reversed(range(len(lasting))):  # what follows a stay stands behind it
            if following[stay] >= 0:
                lasting[stay] &= lasting[following[stay]]
        return lasting
