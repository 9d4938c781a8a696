"""The sending side of a group: messages wait here for the core, and senders wait while there are too many.

Most messages cost no call into the core. As long as there is room, they gather in a list, and the core gets the list at
its next turn.
"""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from antiphon.api.receipts import Confirmations, Receipt
from antiphon.errors import ConfigurationError, FlowBlocked, NotAMember
from antiphon.types import GroupId, ProcessId

if TYPE_CHECKING:
    from antiphon.api.process import LocalProcess

MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024
WAITING_BYTES_MAX: Final = 1 << 20
"""Bytes that may wait for the window before senders must wait; or one larger message."""
_CREDIT_STEP: Final = 256
"""After this number of messages `send` looks whether the event loop must run: until then it may never wait."""
_SMALL_BYTES: Final = 256
"""A message counts as if it had at least this size."""


class Outgoing:
    """The unsent messages and the waiting senders of one group."""

    def __init__(self, member: "LocalProcess", group: GroupId) -> None:
        self.confirmations = Confirmations(member, group)
        self._unconfirmed = self.confirmations.waiters
        self.batch: list[bytes] = []
        """What was sent since the last turn, within the credit."""
        self.receipt = Receipt(self.confirmations, self.batch)
        """Of all messages in the batch."""
        self.credit = self.credit_bytes = 0
        """This number of messages, each up to this size, may be sent without asking the core."""
        self._reserve = 0
        """The credit may be raised by this number. Invariant: both together fit into the room that the core had."""
        self.blocked_by: ProcessId | None = None
        """The member that flow control waits for."""
        self._member = member
        self._group = group
        self._closed = False
        self._reason = f"this process has left {group}"
        self._senders: deque[tuple[asyncio.Future[None], int]] = deque()
        """Senders that wait for their turn, each with the size of its message."""
        self._admitted = 0
        """The number of senders that may go on, and have not done so yet."""

    @property
    def waiting(self) -> int:
        """The number of messages that have not left."""
        return self._member.core.waiting(self._group) + len(self.batch)

    async def admit(self, payload: bytes) -> None:
        """Wait until a message beyond the credit may be sent: after earlier senders, and when there is room."""
        if self._member.starves:
            await asyncio.sleep(0)  # an application that only sends must let this process receive
        self.collect()
        self._require(payload)
        if self._queued or self._full(payload):
            await self._room(len(payload))
            self._require(payload)
            self.collect()  # what was sent meanwhile comes first

    async def send_in_turn(self, payload: bytes) -> Receipt:
        """Send a message beyond the credit."""
        if self._raises_credit_for(payload):
            self.batch.append(payload)
            return self.receipt
        await self.admit(payload)
        receipt = self._send(payload)
        self.urge()
        if not self._queued and not self._closed:
            self.credit_bytes = max(_SMALL_BYTES, len(payload))
            room = max(0, _places(len(payload)) - self._member.core.waiting(self._group))
            self.credit = min(room, _CREDIT_STEP)
            self._reserve = room - self.credit
        return receipt

    def _raises_credit_for(self, payload: bytes) -> bool:
        """Whether the batch may grow by this message and more: there is room, and the event loop has run lately."""
        fits = type(payload) is bytes and len(payload) <= self.credit_bytes
        if not (self._reserve and self.batch and fits) or self._member.starves:
            return False
        more = min(self._reserve, _CREDIT_STEP)
        self._reserve -= more
        self.credit += more
        return True

    def _withdraw_credit(self) -> None:
        self.credit = self._reserve = 0

    def try_send(self, payload: bytes) -> Receipt:
        """Send a message, or raise `FlowBlocked` if it would have to wait."""
        self.collect()
        self._withdraw_credit()  # it was computed for calls of `send` only
        self._require(payload)
        if self._queued or self._full(payload):
            by = f"; it waits for {self.blocked_by}" if self.blocked_by else ""
            raise FlowBlocked(f"{self._group} takes no more messages now{by}")
        if self._member.draining:
            receipt = self.receipt
            self.batch.append(payload)  # sent during a turn, by an application whose state is being read
        else:
            receipt = self._send(payload)
        self.urge()
        return receipt

    def _send(self, payload: bytes) -> Receipt:
        """Give the core a message, after those that were sent before it."""
        self.collect()
        return Receipt(self.confirmations, last=self._member.send(self._group, payload))

    def urge(self) -> None:
        """Ask for a turn that transmits what was sent; not if flow control holds it back anyway."""
        if self.blocked_by is None:
            self._member.hurry()
        else:
            self._member.stir()

    def collect(self) -> None:
        """Give the core what was sent since its last turn."""
        if self.batch and not self._member.draining:
            batch, receipt = self.batch, self.receipt
            self.batch = []
            self.receipt = Receipt(self.confirmations, self.batch)
            self.credit = max(0, self.credit - len(batch))
            receipt.close(self._member.send_all(self._group, batch))

    @property
    def reason(self) -> str:
        """Why nothing more may be sent, if that is so."""
        return self._reason

    def close(self, reason: str = "") -> None:
        """Nothing more may be sent; senders that wait get an error, with the first reason that was given."""
        if reason and not self._closed:
            self._reason = reason
        self._closed = True
        self._withdraw_credit()
        self.turned()

    def turned(self) -> None:
        """The core has transmitted what it may: let as many senders go on as there is room for. More may be stable."""
        if self._unconfirmed:
            self.confirmations.turned()
        if not self._senders:
            return
        waiting = 0 if self._closed else self._member.core.waiting(self._group) + self._admitted
        if 2 * waiting >= _places(self._senders[0][1]) > 1:
            return  # wake senders rarely and many at once, not one by one
        while self._senders and (self._closed or waiting < _places(self._senders[0][1])):
            turn, _ = self._senders.popleft()
            if not turn.done():
                turn.set_result(None)
                self._admitted += 1
                waiting += 1

    @property
    def _queued(self) -> bool:
        """Whether another sender came before, and has not sent yet."""
        return bool(self._senders) or self._admitted > 0

    def require_size(self, payload: bytes) -> None:
        """Refuse what is not a message."""
        if type(payload) is not bytes:
            raise ConfigurationError(f"a message is bytes, not {type(payload).__name__}")
        if len(payload) > MESSAGE_BYTES_MAX:
            raise ConfigurationError(f"a message of {len(payload):,} bytes is larger than {MESSAGE_BYTES_MAX:,}")

    def require_open(self) -> None:
        """Refuse to send once the process leaves."""
        if self._closed:
            raise NotAMember(self._reason)

    def _require(self, payload: bytes) -> None:
        self.require_size(payload)
        self.require_open()

    def _full(self, payload: bytes) -> bool:
        return not self._closed and self.waiting + self._admitted >= _places(len(payload))

    async def _room(self, size_bytes: int) -> None:
        """Wait for room: senders go on in the order of their calls, each with its own place."""
        turn = asyncio.get_running_loop().create_future(), size_bytes
        self._senders.append(turn)
        self._withdraw_credit()
        try:
            await turn[0]
        except asyncio.CancelledError:
            if turn in self._senders:
                self._senders.remove(turn)
            elif not turn[0].cancelled():
                self._admitted -= 1
                self.turned()  # this one was admitted: let another one take its place
            raise
        self._admitted -= 1


def _places(size_bytes: int) -> int:
    """Queue capacity in messages, assuming that all have this size.

    So waiting bytes need not be counted. With mixed sizes up to nine times as many may wait (1 + 1/2 + 1/3 …).
    """
    return max(1, WAITING_BYTES_MAX // max(_SMALL_BYTES, size_bytes))
