"""The members of the group, and the vector entry of each."""

from collections.abc import Iterable, Mapping

from antiphon.core.vectors import MinVector
from antiphon.types import ProcessId, View


class Roster:
    """Invariant: `ranks` has exactly the members of `view`; a member keeps its rank when others are removed."""

    __slots__ = ("columns", "excluded", "me", "my_rank", "place", "rank_of", "ranks", "view")

    def __init__(self, me: ProcessId, view: View) -> None:
        self.me = me
        self.view = view
        """The current view; a failed member stays in it until the next view is installed."""
        self.columns: Mapping[ProcessId, int] = view.ranks
        """Ranks in the first view, also of removed members: the entries of all vectors."""
        self.ranks = dict(view.ranks)
        """The same ranks, of the members of the current view."""
        self.rank_of = self.ranks.get
        self.my_rank = view.ranks[me]
        self.place = self.my_rank
        """Our rank in the current view."""
        self.excluded: tuple[ProcessId, ...] = ()
        """The members that we have excluded or confirmed failed: the mark on our messages (E-45)."""

    def install(self, view: View) -> list[ProcessId]:
        """The view changes to a smaller one; returns the members that are removed."""
        removed = [process for process in self.ranks if process not in view.ranks]
        for process in removed:
            del self.ranks[process]
        self.view = view
        self.place = view.ranks[self.me]
        return removed

    def slowest(self, vector: MinVector) -> ProcessId:
        """The member that our application waits for: the smallest entry of that vector; among equals ourselves last."""
        slowest = [process for process, rank in self.ranks.items() if vector.values[rank] == vector.minimum]
        return slowest[0] if slowest[0] != self.me else slowest[-1]

    def mark(self, failed: Iterable[ProcessId]) -> None:
        """From now on the mark of our messages excludes these members and all removed ones."""
        gone = [process for process in self.columns if process not in self.ranks]
        self.excluded = tuple(sorted([*gone, *failed]))
