"""An address that a process on UDP calls, and what is known of the process there."""

import math
from dataclasses import dataclass

from antiphon.sockets.transports.contract import Address
from antiphon.sockets.transports.datagrams import Sockaddr
from antiphon.types import ProcessId, split_process_id


@dataclass(slots=True, eq=False)
class Contact:
    """An address at which a process is, or may be."""

    address: Address
    named: bool
    """Given by the user, not by a peer: it is called for ever."""
    to: Sockaddr | None
    """The resolved address for the socket, once it is known."""
    process: ProcessId | None = None
    """The process that was heard from there last."""
    listens: bool = False
    """Whether it listens at the multicast address that we send to."""
    heard_at: float = -math.inf
    told: int = 0
    """Number of addresses that we have sent to it, with repetitions."""
    told_by: str = ""
    """The host that told us of it; empty if the user named it."""
    token: int = 0
    """The last token of the process there."""

    @property
    def host(self) -> str:
        """Where it receives, as it has proved; the name of its host is only what it says."""
        return str(self.to[0]) if self.to is not None else self.address[0]

    @property
    def name(self) -> str | None:
        """The name of the process there, without its incarnation."""
        return None if self.process is None else split_process_id(self.process)[0]
