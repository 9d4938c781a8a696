"""Where the processes that a TCP mesh knows of listen, and how many connections each has had.

The tables are bounded. Addresses of processes that are connected stay; of the others the oldest are forgotten.
"""

from collections.abc import Collection, Iterable
from typing import Final

from antiphon.sockets.transports.contract import Address
from antiphon.types import ProcessId, split_process_id

ADDRESSES_MAX: Final = 1024
"""Processes that others may tell us of: all of them are called."""
TOLD_MAX: Final = 64
"""Addresses that one process in no view with us may tell."""
_NUMBERS_MAX: Final = 4096
"""Processes whose connections are counted."""


class Addresses:
    """Invariant: for each name only the last incarnation is known."""

    def __init__(self) -> None:
        self.known: dict[ProcessId, Address] = {}
        self._at: dict[Address, dict[ProcessId, None]] = {}  # the same, by address
        self._latest: dict[str, ProcessId] = {}  # the same, by name
        self._told_by: dict[ProcessId, int] = {}  # number of addresses that a process outside our views has sent
        self._numbers: dict[ProcessId, int] = {}
        self._next_number = 0  # for an uncounted process: it may be a forgotten one, so no number repeats
        self._tokens: dict[ProcessId, int] = {}  # the last token that a process gave us

    def __contains__(self, address: Address) -> bool:
        """Whether a process is known to listen there."""
        return address in self._at

    def at(self, address: Address) -> Collection[ProcessId]:
        """The processes that listen there, as far as we know."""
        return self._at.get(address, {}).keys()

    def latest(self, peer: ProcessId) -> ProcessId | None:
        """The known incarnation of that process."""
        return self._latest.get(split_process_id(peer)[0])

    def note(self, peer: ProcessId, address: Address) -> bool:
        """A process listens there; False if a later incarnation of it is known."""
        name, incarnation = split_process_id(peer)
        known = self._latest.get(name)
        if known is not None:
            if known != peer and split_process_id(known)[1] > incarnation:
                return False
            self._drop(known)
            if known != peer:
                self._stop_counting(known)
        self._latest[name] = peer
        self.known[peer] = address
        self._at.setdefault(address, {})[peer] = None
        return True

    def forget(self, peers: Iterable[ProcessId]) -> None:
        """Stop calling these peers. If one comes back, the numbers of its connections still increase."""
        for peer in [*peers]:
            if peer in self.known:
                del self._latest[split_process_id(peer)[0]]
                self._drop(peer)
            self._stop_counting(peer)

    def forget_oldest(self, kept: Collection[ProcessId]) -> None:
        """Make room for a process that has called us; these stay."""
        if len(self.known) >= ADDRESSES_MAX:
            oldest = next((peer for peer in self.known if peer not in kept), None)
            if oldest is not None:
                self.forget([oldest])

    def has_room_for(self, peer: ProcessId, informant: ProcessId, *, trusted: bool) -> bool:
        """Whether this informant may tell us of it. A later incarnation takes no more room, but it counts too."""
        told = self._told_by.get(informant, 0)
        is_full = len(self.known) >= ADDRESSES_MAX and self.latest(peer) is None
        if is_full or (told >= TOLD_MAX and not trusted):
            return False
        if not trusted:
            self._told_by[informant] = told + 1
        return True

    def left(self, informant: ProcessId) -> None:
        """Its connection has ended; the next one may tell us again."""
        self._told_by.pop(informant, None)

    # Connections

    def count(self, peer: ProcessId) -> int:
        """The number of a new session with that process."""
        number = self._numbers.pop(peer, self._next_number - 1) + 1
        self._numbers[peer] = number
        if len(self._numbers) > _NUMBERS_MAX:
            self._stop_counting(next(iter(self._numbers)))
        return number

    def met(self, peer: ProcessId, token: int) -> None:
        """That process gave us this token."""
        self._tokens.pop(peer, None)
        self._tokens[peer] = token
        if len(self._tokens) > _NUMBERS_MAX:
            del self._tokens[next(iter(self._tokens))]

    def token(self, peer: ProcessId) -> int:
        """The last token that this process gave us; 0 if none."""
        return self._tokens.get(peer, 0)

    def token_at(self, address: Address) -> int:
        """The last token that the process at this address gave us; 0 if none."""
        return next((self._tokens[peer] for peer in self.at(address) if peer in self._tokens), 0)

    def _stop_counting(self, peer: ProcessId) -> None:
        self._tokens.pop(peer, None)
        self._next_number = max(self._next_number, self._numbers.pop(peer, -1) + 1)

    def _drop(self, peer: ProcessId) -> None:
        address = self.known.pop(peer)
        del self._at[address][peer]
        if not self._at[address]:
            del self._at[address]
