"""What frames that carry nothing for the application have in common."""

from antiphon.core.effects import Frame
from antiphon.types import GroupId, ProcessId


class Control:
    """What the frames that nobody orders answer alike: nothing in them is for the application."""

    __slots__ = ()

    group: GroupId
    sender: ProcessId

    @property
    def author(self) -> ProcessId:
        """Its sender."""
        return self.sender

    @property
    def payloads(self) -> tuple[bytes, ...]:
        """Nothing."""
        return ()

    @property
    def label(self) -> int:
        """None."""
        return 0

    @property
    def clock(self) -> int:
        """None."""
        return 0

    @property
    def orderer(self) -> None:
        """None."""

    @property
    def serial(self) -> int | None:
        """None, unless the trace must tell one from the other."""
        return None

    @property
    def copies(self) -> tuple[Frame, ...]:
        """None."""
        return ()

    @property
    def kind(self) -> str:
        """As traces show it: `alive`, `status` and so on, after the class."""
        return type(self).__name__.removesuffix("Frame").lower()
