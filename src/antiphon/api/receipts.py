"""Receipts: what became of the messages that an application has sent.

A message is known by its number among those of its sender in the group. Numbers are delivered in their order, so one
number says what is delivered, and one what is stable. The core is asked only while somebody waits.
"""

import asyncio
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from antiphon.errors import Unconfirmed
from antiphon.types import GroupId

if TYPE_CHECKING:
    from antiphon.api.process import LocalProcess

_Waiter = tuple[int, int, asyncio.Future[None]]
"""The number of a message, the place among all waiters, and what is set when it is confirmed."""


class Receipt:
    """What became of a message: returned by `Group.send` and `Group.try_send`.

    Messages that are sent one after another, while the event loop does not run, share a receipt: an object for each
    message would cost 3 % of the throughput of small messages. It waits for the last of them that was sent when it is
    asked.
    """

    __slots__ = ("_batch", "_confirmations", "_last")

    def __init__(self, confirmations: "Confirmations", batch: Sequence[bytes] = (), last: int = 0) -> None:
        """`batch`: messages that have no numbers yet; it may grow. `last`: the number of one message."""
        self._confirmations = confirmations
        self._batch = batch
        self._last = last

    def close(self, last: int) -> None:
        """The core has the batch, and this is the number of its last message."""
        self._last = last
        self._batch = ()

    async def delivered(self) -> None:
        """Wait until this process has delivered the message: it has its place in the stream of events here.

        Raises `Unconfirmed` if the process leaves the group before that.
        """
        await self._confirmations.delivered(self._number)

    async def stable(self) -> None:
        """Wait until this process has delivered the message, and knows that every member has it.

        Members count that are in the view and have not failed. Raises `Unconfirmed` if the process leaves before that.
        """
        number = self._number
        await self._confirmations.delivered(number)
        await self._confirmations.stable(number)

    @property
    def _number(self) -> int:
        """The messages of an open batch get the next numbers."""
        return self._confirmations.following + len(self._batch) - 1 if self._batch else self._last


class _Waiters:
    """Calls that wait for messages. Invariant: `heap` is a heap; of its futures, `_cancelled` are cancelled."""

    __slots__ = ("_cancelled", "_tickets", "heap")

    def __init__(self) -> None:
        self.heap: list[_Waiter] = []
        """Always the same list: a reader of it learns whether anybody waits."""
        self._tickets = 0
        self._cancelled = 0

    async def wait(self, number: int) -> None:
        """Wait until `release` is called with a larger number."""
        waiter = asyncio.get_running_loop().create_future()
        self._tickets += 1
        heappush(self.heap, (number, self._tickets, waiter))
        try:
            await waiter
        except asyncio.CancelledError:
            self._forget_cancelled()
            raise

    def release(self, end: int) -> None:
        """Everything with a smaller number is confirmed."""
        heap = self.heap
        while heap and heap[0][0] < end:
            waiter = heappop(heap)[2]
            if waiter.cancelled():
                self._cancelled -= 1
            else:
                waiter.set_result(None)

    def fail(self, error: Unconfirmed) -> None:
        """Nothing more is confirmed."""
        for _, _, waiter in self.heap:
            if not waiter.done():
                waiter.set_exception(error)
        self.heap.clear()
        self._cancelled = 0

    def _forget_cancelled(self) -> None:
        """Remove cancelled waiters once they are the half, because thousands may be cancelled at once."""
        self._cancelled += 1
        if 2 * self._cancelled > len(self.heap):
            self.heap[:] = [each for each in self.heap if not each[2].done()]
            heapify(self.heap)
            self._cancelled = 0


class Confirmations:
    """What is known about the own messages in one group. Invariant: only unconfirmed messages have waiters."""

    __slots__ = ("_awaiting_delivery", "_awaiting_stability", "_delivered", "_group", "_member", "_reason", "_stable")

    def __init__(self, member: "LocalProcess", group: GroupId) -> None:
        self._member = member
        self._group = group
        self._delivered = 0
        """One more than the number of the last own message that was delivered."""
        self._stable = 0
        """The same for messages that every member has; brought up to date only while somebody waits."""
        self._reason = ""
        """Why nothing more is confirmed; empty while the process is in the group."""
        self._awaiting_delivery = _Waiters()
        self._awaiting_stability = _Waiters()

    @property
    def waiters(self) -> list[_Waiter]:
        """Those that wait for stability; always the same list."""
        return self._awaiting_stability.heap

    @property
    def following(self) -> int:
        """The number of the next message that the core gets."""
        return self._member.driver.labels.following(self._group)

    def deliver(self, end: int) -> None:
        """All own messages with smaller numbers are delivered."""
        self._delivered = end
        if self._awaiting_delivery.heap:
            self._awaiting_delivery.release(end)

    def turned(self) -> None:
        """A turn is over, and somebody waits: more may be stable."""
        self.look()
        self._awaiting_stability.release(self._stable)

    def look(self) -> None:
        """Ask the core what is stable, as long as it is in the group."""
        first = self._member.core.first_unstable(self._group)
        self._stable = max(self._stable, self._delivered if first is None else min(first, self._delivered))

    def close(self, reason: str, *, graceful: bool) -> None:
        """The process has left the group; `graceful`: every remaining member has all that was delivered."""
        if self._reason:
            return
        self.look()
        self._reason = reason
        if graceful:
            self._stable = self._delivered
        self._awaiting_stability.release(self._stable)
        for waiting in (self._awaiting_delivery, self._awaiting_stability):
            waiting.fail(self._unconfirmed())

    async def delivered(self, number: int) -> None:
        """Wait until that message is delivered."""
        if number >= self._delivered:
            await self._wait(self._awaiting_delivery, number)

    async def stable(self, number: int) -> None:
        """Wait until every member has that message, which is delivered."""
        if number >= self._stable and not self._reason:
            self.look()
        if number >= self._stable:
            await self._wait(self._awaiting_stability, number)

    async def _wait(self, waiting: _Waiters, number: int) -> None:
        if self._reason:
            raise self._unconfirmed()
        await waiting.wait(number)

    def _unconfirmed(self) -> Unconfirmed:
        return Unconfirmed(f"it is not known whether the members of {self._group} have this message: {self._reason}")
