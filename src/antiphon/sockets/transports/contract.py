"""The interface between a transport and its driver, in both directions."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from antiphon.core.effects import Frame
from antiphon.sockets.offenders import Offence
from antiphon.types import ProcessId
from antiphon.wire.frame import Sealed

Address = tuple[str, int]
"""Host and port."""
HOST_BYTES_MAX: Final = 255
"""Length of a host in a greeting: no name in the DNS is longer."""


class Unreached(StrEnum):
    """Why an address leads to no process."""

    UNTRIED = "not tried yet"
    REFUSED = "connection refused"
    UNREACHABLE = "host unreachable"
    UNRESOLVED = "name not resolved"
    STRANGE = "no antiphon process: the greeting is something else"
    CLOSED = "closed before the greeting"
    SILENT = "no answer"
    VERSION = "another version of the wire format"
    CUT = "connection lost"
    OWN = "own address"


class Seed(NamedTuple):
    """One address that the user gave."""

    address: Address
    peer: ProcessId | None
    """The process that answers there, if frames pass between us."""
    reason: Unreached | None
    """Why there is none."""

    @property
    def own(self) -> bool:
        """Whether this process itself listens there."""
        return self.reason is Unreached.OWN


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

    def gone(self, peer: ProcessId) -> None:
        """There is evidence that a peer is dead. Its connection may not have been reported as broken yet."""

    def writable(self, ready: bool) -> None:
        """Whether the transport takes more."""


class Transport(Protocol):
    """Carries sealed frames to processes by their identities."""

    @property
    def streams(self) -> bool:
        """Whether frames arrive in order and without loss while a connection lasts; else there are no connections."""

    @property
    def seeds(self) -> tuple[Seed, ...]:
        """The addresses that the user gave, each with the process that answers there, or the reason why none does."""

    @property
    def address(self) -> Address:
        """Where others find us."""

    async def open(self, receiver: Receiver) -> None:
        """Start to listen, and look for the peers that were named."""

    @property
    def peers(self) -> tuple[ProcessId, ...]:
        """The peers that frames pass to now, sorted."""

    @property
    def offenders(self) -> tuple[Offence, ...]:
        """Which processes broke a rule of the transport, and how often; the latest first."""

    def connection(self, peer: ProcessId) -> int | None:
        """The number of the connection with that peer; None: there is none, and frames to it are lost."""

    def send(self, sealed: bytes, peers: Iterable[ProcessId], frame: Frame | None = None) -> None:
        """Keep a frame for each of these until `flush`.

        `frame`: the same, before it was encoded. A transport that may send it again can keep it instead of the bytes.
        """

    def flush(self) -> None:
        """Write all frames that were kept."""

    def set_members(self, members: frozenset[ProcessId]) -> None:
        """Apply backpressure only for these peers, which are in views with us."""

    async def close(self) -> None:
        """Write what can be written at once, and close."""
