"""The senders that a receiver of an unreliable or framed service hears: its private views name them.

From docs/spec/intergroup.md 6.1 and 6.4. Nothing is agreed: a sender is in the view from its first frame on, until it
has been silent for twice the suspicion timeout.
"""

from collections.abc import Iterable

from antiphon.protocols.intergroup.context import MemberContext
from antiphon.protocols.intergroup.outlet import Views
from antiphon.protocols.intergroup.settings import SOURCES_MAX
from antiphon.types import ProcessId


class HeardSenders:
    """The senders, each with the time at which it was last heard."""

    def __init__(self, context: MemberContext, views: Views) -> None:
        self._context, self._views = context, views
        self._heard: dict[ProcessId, int] = {}

    def begin(self, now: int) -> None:
        """The configured senders count as heard."""
        self._heard = dict.fromkeys(self._context.plan.view.members, now)
        self._views.install_private(self._heard)

    def __contains__(self, sender: ProcessId) -> bool:
        return sender in self._heard

    def heard(self, sender: ProcessId, now: int) -> None:
        if sender in self._heard:
            self._heard[sender] = now
        elif len(self._heard) < SOURCES_MAX:
            self._heard[sender] = now
            self._views.install_private(self._heard)

    def forget_silent(self, now: int) -> list[ProcessId]:
        """Remove the senders that have been silent for too long, and return them."""
        silent = [sender for sender, at in self._heard.items() if now - at >= self._patience_ns]
        for sender in silent:
            del self._heard[sender]
        if silent:
            self._views.install_private(self._heard)
        return silent

    def deadlines(self) -> Iterable[int]:
        return (min(self._heard.values()) + self._patience_ns,) if self._heard else ()

    @property
    def _patience_ns(self) -> int:
        return 2 * self._context.settings.suspect_after_ns
