"""What a transport offers a driver, and what it tells it."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from antiphon.types import ProcessId
from antiphon.wire.frame import Sealed

Address = tuple[str, int]
"""Host and port."""


class Receiver(Protocol):
    """A driver, as its transport sees it. Nothing here waits, nor raises anything but what is said."""

    def arrived(self, peer: ProcessId, connection: int, sealed: Sequence[Sealed], *, overheard: bool = False) -> None:
        """Frames came in, in their order; on streams by the peer's connection so and so, counted from 0.

        `overheard`: they went to all who listen at one address, and some may be for others than us. On a stream
        `ProtocolViolation` says that one cannot be read: its connection is over, for what follows has a gap before it.
        """

    def connected(self, peer: ProcessId) -> None:
        """Frames pass between us from now on."""

    def broke(self, peer: ProcessId, connection: int) -> None:
        """A connection has ended, and may have lost what was on it, in both directions."""

    def writable(self, ready: bool) -> None:
        """Whether the transport takes more."""


class Transport(Protocol):
    """Carries sealed frames to processes by their identities."""

    @property
    def streams(self) -> bool:
        """Whether frames come in order and none is lost while a connection lasts; else there are no connections."""

    @property
    def alone(self) -> bool:
        """Whether no peers were named: nobody is there unless somebody finds us."""

    @property
    def address(self) -> Address:
        """Where others find us."""

    async def open(self, receiver: Receiver) -> None:
        """Be reachable, and look for the peers that were named."""

    @property
    def peers(self) -> tuple[ProcessId, ...]:
        """Whom frames pass to now, sorted."""

    def connection(self, peer: ProcessId) -> int | None:
        """The number of the connection with it; None: there is none, and what is sent to it is lost."""

    def send(self, sealed: bytes, peers: Iterable[ProcessId]) -> None:
        """Keep a frame for each of these until `flush`."""

    def flush(self) -> None:
        """Let leave all that was sent since."""

    def heed(self, members: frozenset[ProcessId]) -> None:
        """Be full for the sake of nobody but these, who are in views with us."""

    async def close(self) -> None:
        """Let what was sent leave, if that takes no time, and be gone."""
