"""What a transport offers a driver, and what it tells it."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from antiphon.types import ProcessId
from antiphon.wire.frame import Sealed

Address = tuple[str, int]
"""Host and port."""


class Receiver(Protocol):
    """A driver, as its transport sees it. Nothing here blocks; only `arrived` may raise."""

    def arrived(self, peer: ProcessId, connection: int, sealed: Sequence[Sealed], *, overheard: bool = False) -> None:
        """Frames have arrived, in their order; on streams by the peer's connection of this number, counted from 0.

        `overheard`: they went to all listeners of one address, so some may be for others. On a stream
        `ProtocolViolation` says that a frame cannot be decoded. Its connection must end, because a gap follows.
        """

    def connected(self, peer: ProcessId) -> None:
        """Frames pass between us and that peer from now on."""

    def broke(self, peer: ProcessId, connection: int) -> None:
        """A connection has ended, and may have lost what was on it, in both directions."""

    def writable(self, ready: bool) -> None:
        """Whether the transport takes more."""


class Transport(Protocol):
    """Carries sealed frames to processes by their identities."""

    @property
    def streams(self) -> bool:
        """Whether frames arrive in order and without loss while a connection lasts; else there are no connections."""

    @property
    def alone(self) -> bool:
        """Whether no peers were named: there are none until one finds us."""

    @property
    def address(self) -> Address:
        """Where others find us."""

    async def open(self, receiver: Receiver) -> None:
        """Start to listen, and look for the peers that were named."""

    @property
    def peers(self) -> tuple[ProcessId, ...]:
        """The peers that frames pass to now, sorted."""

    def connection(self, peer: ProcessId) -> int | None:
        """The number of the connection with that peer; None: there is none, and frames to it are lost."""

    def send(self, sealed: bytes, peers: Iterable[ProcessId]) -> None:
        """Keep a frame for each of these until `flush`."""

    def flush(self) -> None:
        """Write all frames that were kept."""

    def heed(self, members: frozenset[ProcessId]) -> None:
        """Apply backpressure only for these peers, which are in views with us."""

    async def close(self) -> None:
        """Write what can be written at once, and close."""
