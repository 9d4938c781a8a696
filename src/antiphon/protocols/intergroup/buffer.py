"""Messages that some receiver may still lack: kept by everybody who has them, until they are stable (T4)."""

from collections import deque

from antiphon.protocols.intergroup.frames import DataFrame
from antiphon.protocols.intergroup.requests import Ticket
from antiphon.types import ProcessId


class Buffer:
    """Of one process in one group."""

    def __init__(self) -> None:
        self._held: dict[Ticket, DataFrame] = {}
        self._named: dict[Ticket, Ticket] = {}
        """By the ticket that counts in a container, that on the stream."""
        self._delivered: dict[ProcessId, deque[DataFrame]] = {}
        """By sender, in order: what may go once it is stable."""

    def __len__(self) -> int:
        return len(self._held)

    def get(self, ticket: Ticket) -> DataFrame | None:
        """The message, if it is here."""
        return self._held.get(self._named.get(ticket, ticket))

    def keep(self, message: DataFrame) -> None:
        """It has come, or leaves."""
        on_stream = Ticket(message.sender, message.seq)
        self._held[on_stream] = message
        self._named[message.ticket] = on_stream

    def delivered(self, message: DataFrame) -> None:
        """From now on it may go."""
        self._delivered.setdefault(message.sender, deque()).append(message)

    def free(self, stable: int) -> list[DataFrame]:
        """Let go what was delivered and is stamped up to here."""
        freed = []
        for waiting in self._delivered.values():
            while waiting and waiting[0].stamp <= stable:
                message = waiting.popleft()
                del self._held[Ticket(message.sender, message.seq)]
                del self._named[message.ticket]
                freed.append(message)
        return freed
