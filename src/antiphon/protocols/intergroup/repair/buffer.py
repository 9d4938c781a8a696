"""Messages that some process may still lack: every process that has one keeps it until it is stable (T4)."""

from collections import deque

from antiphon.protocols.intergroup.frames import DataFrame
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId


class Buffer:
    """The message buffer of one process in one group."""

    def __init__(self, me: ProcessId) -> None:
        self._me = me
        self._held: dict[Ticket, DataFrame] = {}
        self._named: dict[Ticket, Ticket] = {}
        """From the ticket in a container to the ticket on the stream."""
        self._delivered: dict[ProcessId, deque[DataFrame]] = {}
        """By sender, in order: what is freed when it is stable."""
        self._retired: deque[tuple[int, list[DataFrame], list[DataFrame]]] = deque()
        """Messages of earlier epochs, with the time until which they are kept for those that still recover.

        Last the delivered ones: of a lost sender, messages beyond the agreed end are here too.
        """
        self._retired_count = 0

    def __len__(self) -> int:
        """Number of messages of the current epoch."""
        return len(self._held) - self._retired_count

    def get(self, ticket: Ticket) -> DataFrame | None:
        return self._held.get(self._named.get(ticket, ticket))

    def keep(self, message: DataFrame) -> None:
        on_stream = Ticket(message.sender, message.seq)
        self._held[on_stream] = message
        if message.change is None:
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
                self._drop(message)
                freed.append(message)
        return freed

    def retire(self, until: int) -> list[DataFrame]:
        """An epoch ends: keep what is here until then, whether it is stable or not. Returns what was delivered."""
        delivered = [message for waiting in self._delivered.values() for message in waiting]
        old = {id(message) for _, messages, _ in self._retired for message in messages}
        messages = [message for message in self._held.values() if id(message) not in old]
        self._delivered.clear()
        if messages:
            self._retired.append((until, messages, delivered))
            self._retired_count += len(messages)
        return delivered

    def expire(self, now: int) -> tuple[list[DataFrame], list[DataFrame]]:
        """Drop and return the messages of earlier epochs that were kept long enough; and those of them delivered."""
        dropped: list[DataFrame] = []
        freed: list[DataFrame] = []
        while self._retired and self._retired[0][0] <= now:
            _, messages, delivered = self._retired.popleft()
            dropped += messages
            freed += delivered
        for message in dropped:
            self._drop(message)
        self._retired_count -= len(dropped)
        return dropped, freed

    @property
    def deadline(self) -> int | None:
        """The time at which `expire` is next needed."""
        return self._retired[0][0] if self._retired else None

    def _drop(self, message: DataFrame) -> None:
        del self._held[Ticket(message.sender, message.seq)]
        self._named.pop(message.ticket, None)
