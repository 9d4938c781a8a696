"""Messages that some process may still lack: every process that has one keeps it until it is stable (T4)."""

from collections import deque

from antiphon.protocols.intergroup.frames import DataFrame
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId


class Buffer:
    """The message buffer of one process in one group."""

    def __init__(self) -> None:
        self._held: dict[Ticket, DataFrame] = {}
        self._named: dict[Ticket, Ticket] = {}
        """From the ticket in a container to the ticket on the stream."""
        self._delivered: dict[ProcessId, deque[DataFrame]] = {}
        """By sender, in order: what is freed when it is stable."""

    def __len__(self) -> int:
        return len(self._held)

    def get(self, ticket: Ticket) -> DataFrame | None:
        return self._held.get(self._named.get(ticket, ticket))

    def keep(self, message: DataFrame) -> None:
        on_stream = Ticket(message.sender, message.seq)
        self._held[on_stream] = message
        self._named[message.ticket] = on_stream

    def delivered(self, message: DataFrame) -> None:
        """From now on, the message may be freed."""
        self._delivered.setdefault(message.sender, deque()).append(message)

    def free(self, stable: int) -> list[DataFrame]:
        """Free the delivered messages with stamps up to `stable`, and return them."""
        freed = []
        for waiting in self._delivered.values():
            while waiting and waiting[0].stamp <= stable:
                message = waiting.popleft()
                del self._held[Ticket(message.sender, message.seq)]
                del self._named[message.ticket]
                freed.append(message)
        return freed
