"""What a transport offers a driver, and what it tells it."""

from collections.abc import Iterable
from typing import Protocol

from antiphon.types import ProcessId


class Receiver(Protocol):
    """A driver, as its transport sees it. Nothing here may raise, and nothing waits."""

    def arrived(self, peer: ProcessId, connection: int, sealed: list[bytes]) -> None:
        """Frames came in, in their order; on streams by the peer's connection so and so, counted from 0."""

    def connected(self, peer: ProcessId) -> None:
        """Frames pass between us from now on."""

    def broke(self, peer: ProcessId, connection: int) -> None:
        """A connection has ended, and may have lost what was on it, in both directions."""

    def writable(self, ready: bool) -> None:
        """Whether the transport takes more."""


class Transport(Protocol):
    """Carries sealed frames to processes by their identities."""

    async def open(self, receiver: Receiver) -> None:
        """Be reachable, and look for the peers that were named."""

    @property
    def address(self) -> tuple[str, int]:
        """Where others find us, once we are open."""

    @property
    def peers(self) -> tuple[ProcessId, ...]:
        """Whom frames pass to now, sorted."""

    def connection(self, peer: ProcessId) -> int | None:
        """The number of the connection with it; None: there is none, and what is sent to it is lost."""

    def send(self, sealed: bytes, peers: Iterable[ProcessId]) -> None:
        """Keep a frame for each of these until `flush`."""

    def flush(self) -> None:
        """Let leave all that was sent since."""

    async def close(self) -> None:
        """Let what was sent leave, if that takes no time, and be gone."""
