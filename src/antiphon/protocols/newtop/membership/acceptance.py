"""Closed views that applications accept before they are installed (docs/spec/newtop.md 9.6)."""

from typing import NamedTuple

from antiphon.protocols.newtop.frames import Notice
from antiphon.protocols.newtop.membership.views import ClosedChange
from antiphon.types import ProcessId, View


class _Withheld(NamedTuple):
    """A remove that waits for the application."""

    notice: Notice
    remaining: frozenset[ProcessId]
    """The members without those whose failure was agreed by then."""
    at: int


class AcceptedChange(ClosedChange):
    """A view begins at the last remove, so a member that does not send its own holds the view back at all members.

    Invariant: removes leave in the order of their detections.
    """

    def __init__(self) -> None:
        super().__init__()
        self._withheld: list[_Withheld] = []

    def withholds(self, notice: Notice, remaining: frozenset[ProcessId], now: int) -> bool:
        """Keep the remove until the application accepts the view."""
        self._withheld.append(_Withheld(notice, remaining, now))
        return True

    def accepted(self, members: frozenset[ProcessId]) -> list[Notice]:
        """The removes up to the view of these members: views before it have more members."""
        count = sum(each.remaining >= members for each in self._withheld)
        accepted, self._withheld = self._withheld[:count], self._withheld[count:]
        return [each.notice for each in accepted]

    def unaccepted_since(self) -> int | None:
        """Since when our own application has not accepted a view."""
        return self._withheld[0].at if self._withheld else None

    def awaited(self, view: View) -> dict[ProcessId, int]:
        """The members whose application has not accepted the next view, as far as we know, and since when."""
        return self.owing(view)
