"""The processes to which a process addresses its messages: its receivers, view after view, while they stay.

In a shared view these are the members; in a private view they are named (docs/spec/stability.md 1: R_s). A receiver
that leaves owes nothing more. A new receiver owes nothing that was sent before.
"""

from functools import cached_property

from antiphon.properties.tables.history import History


class Audience:
    """The receivers of each process over its views of a group."""

    def __init__(self, history: History) -> None:
        self._stays = history.stays
        self._known: dict[tuple[int, int], frozenset[int]] = {}

    def lasting(self, first: int, last: int) -> frozenset[int]:
        """The receivers in every view from one stay of a process to a later one in the same group."""
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
        """For each stay: the processes that are receivers from then on until the last view."""
        following = self._stays.following.tolist()
        lasting = [frozenset(receivers) for receivers in self._stays.receivers]
        for stay in reversed(range(len(lasting))):  # a stay comes before the one that follows it
            if following[stay] >= 0:
                lasting[stay] &= lasting[following[stay]]
        return lasting
