"""Messages that a member of an asymmetric group has received and not yet announced as complete."""

from antiphon.core.vectors import BEYOND
from antiphon.protocols.newtop.settings import NewtopSettings


class Claims:
    """Invariant: `_untold` messages of `_untold_bytes` bytes arrived since our last announcement."""

    __slots__ = ("_pressing", "_pressing_bytes", "_untold", "_untold_bytes", "counts", "stable_told")

    def __init__(self, settings: NewtopSettings) -> None:
        self.counts = bool(settings.flow_control)
        """True if there are windows: then a message is complete only when our application has consumed it."""
        self.stable_told = 0
        """The number that an origin or a sequencer knew to be stable."""
        self._pressing = max(1, settings.window // 2) if self.counts else BEYOND
        self._pressing_bytes = settings.window_bytes // 2 if self.counts else BEYOND
        self._untold = self._untold_bytes = 0

    @property
    def presses(self) -> bool:
        """True if an announcement must not wait: a sender may be blocked."""
        return self._untold >= self._pressing or self._untold_bytes >= self._pressing_bytes

    def came(self, size_bytes: int) -> None:
        """One more message to complete."""
        self._untold += 1
        self._untold_bytes += size_bytes

    def heard_stable(self, number: int) -> None:
        """Another member knows this number to be stable."""
        self.stable_told = max(self.stable_told, number)

    def told(self) -> None:
        """We have announced what we have completed."""
        self._untold = self._untold_bytes = 0
