"""The addresses that the user gave a process, and what became of each: the process that answers, or why none does."""

import errno
import socket
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Final

from antiphon.errors import ProtocolViolation
from antiphon.sockets.transports.contract import Address, Seed, Unreached
from antiphon.types import ProcessId

_COMPANIONS_MAX: Final = 256


class Seeds:
    """All of them, for one transport. Invariant: an address that was found to be our own stays so."""

    def __init__(self, addresses: Iterable[Address]) -> None:
        self._reasons: dict[Address, Unreached] = dict.fromkeys(addresses, Unreached.UNTRIED)
        self._processes: dict[Address, ProcessId] = {}
        """By address, the process that greeted us there last."""

    def __contains__(self, address: object) -> bool:
        return address in self._reasons

    def __iter__(self) -> Iterator[Address]:
        return iter([*self._reasons])

    def add(self, address: Address) -> None:
        """Add an address."""
        self._reasons.setdefault(address, Unreached.UNTRIED)

    def failed(self, address: Address, reason: Unreached) -> None:
        """An attempt to reach that address has failed."""
        if address in self._reasons and not self.is_own(address):
            self._reasons[address] = reason

    def unanswered(self, address: Address, *, resolved: bool) -> None:
        """Datagrams only: nothing has arrived from there yet."""
        if not resolved:
            self.failed(address, Unreached.UNRESOLVED)
        elif self._reasons.get(address) in (Unreached.UNTRIED, Unreached.UNRESOLVED):
            self.failed(address, Unreached.SILENT)

    def greeted(self, address: Address, process: ProcessId) -> None:
        """That process answers there."""
        if address in self._reasons:
            self._processes[address] = process
            self._reasons[address] = Unreached.CUT  # if the connection ends

    def is_own(self, address: Address) -> bool:
        """Whether this process itself listens there."""
        return self._reasons.get(address) is Unreached.OWN

    def states(self, connected: Container[ProcessId], listening: Mapping[Address, ProcessId]) -> tuple[Seed, ...]:
        """The state of each address. `listening`: connected processes by the address that they advertise."""
        return tuple(self._state(address, reason, connected, listening) for address, reason in self._reasons.items())

    def _state(
        self,
        address: Address,
        reason: Unreached,
        connected: Container[ProcessId],
        listening: Mapping[Address, ProcessId],
    ) -> Seed:
        peer = listening.get(address) or self._processes.get(address)
        if peer is not None and peer in connected and reason is not Unreached.OWN:
            return Seed(address, peer, None)
        return Seed(address, None, reason)


class Companions:
    """Processes that were in a view with us. Invariant: at most 256, those met last."""

    def __init__(self) -> None:
        self._met: dict[ProcessId, None] = {}

    def __contains__(self, process: object) -> bool:
        return process in self._met

    def meet(self, members: Iterable[ProcessId]) -> None:
        """These are in views with us now."""
        for member in members:
            self._met.pop(member, None)
            self._met[member] = None
        while len(self._met) > _COMPANIONS_MAX:
            del self._met[next(iter(self._met))]


def reason_of(error: BaseException) -> Unreached:
    """Why an attempt to connect has failed."""
    if isinstance(error, ProtocolViolation):
        return Unreached.VERSION if error.code == "version" else Unreached.STRANGE
    if isinstance(error, socket.gaierror | UnicodeError):
        return Unreached.UNRESOLVED
    if isinstance(error, ConnectionRefusedError):
        return Unreached.REFUSED
    if isinstance(error, TimeoutError):
        return Unreached.SILENT
    # asyncio joins the errors of several addresses of one name into one text
    return Unreached.REFUSED if f"Errno {errno.ECONNREFUSED}" in str(error) else Unreached.UNREACHABLE
