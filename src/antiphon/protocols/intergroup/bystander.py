"""A receiver of an unreliable service: it takes what comes, and owes nothing to anybody (Berket00 §4.6)."""

from collections.abc import Iterable

from antiphon.protocols.intergroup.frames import DataFrame
from antiphon.protocols.intergroup.party import Party


class Bystander(Party):
    """Nobody knows that it is there."""

    def _begin(self, now: int) -> None:  # noqa: ARG002
        self._follow_these(self._plan.view.members)

    def _deliver(self, messages: Iterable[DataFrame]) -> None:
        """What an application that takes nothing has no room for is lost: nobody waits for it."""
        super()._deliver(message for message in messages if len(self._untaken) < self._settings.window)
