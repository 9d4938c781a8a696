"""A group as its application holds it: send, and read one stream of events."""

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Final, Self

from antiphon.api.events import Blocked, Event, Message, Reset, Transitional, View
from antiphon.api.states import (
    Failure,
    Progress,
    Snapshot,
    State,
    Supply,
    received,
    require_state,
    whole,
)
from antiphon.core import effects
from antiphon.drive.drive import Shown
from antiphon.errors import ConfigurationError, FlowBlocked, NotAMember
from antiphon.types import GroupId, ProcessId
from antiphon.types import View as CoreView

if TYPE_CHECKING:
    from antiphon.api.member import Member

MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024
WAITING_BYTES_MAX: Final = 1 << 20
"""So much may wait for the window before senders do; or one message that is larger."""
_SMALL_BYTES: Final = 256
"""A message counts as if it had at least so many."""


@dataclass(frozen=True, slots=True)
class Health:
    """How a member of a group is doing."""

    members: tuple[ProcessId, ...]
    primary: bool
    blocked_by: ProcessId | None
    """The member that flow control waits for."""
    waiting: int
    """Messages of ours that have not left."""
    unstable: int
    """Frames held because some member may lack them."""
    unread: int
    """Deliveries, views and notices that the application has not taken."""
    receiving: Progress | None
    """How much has come of the state that the application waits for; None if it waits for none."""
    sending: Progress | None
    """How much has left of the application's state, for those who come new; None if nobody is told it by us."""


class Group:
    """Made by `antiphon.join` or `Member.join`; an async context that leaves the group at its end."""

    def __init__(self, member: "Member", name: GroupId, snapshot: Snapshot | None) -> None:
        self.name = str(name)
        self._member = member
        self._id = name
        self._snapshot = snapshot
        self._supply: Supply | None = None  # our state, for those who come new
        self._shown: deque[Shown | Failure] = deque()
        self._events: deque[Event] = deque()  # of the last of these that was opened, what is not taken yet
        self._taking: tuple[GroupId, int] | None = None  # the `Deliver` effect whose messages are being taken
        self._waived: dict[GroupId, int] = {}  # by group, how many `Deliver` effects count as taken
        self._read: View | None = None  # the view that the application has got to
        self._members: tuple[ProcessId, ...] = ()
        self._primary = True
        self._blocked_by: ProcessId | None = None
        self._left = asyncio.Event()
        self._graceful = False
        self.leaving = False
        self._reader: asyncio.Future[None] | None = None
        self._senders: deque[tuple[asyncio.Future[None], int]] = deque()  # each with the size of its message
        self._admitted = 0  # how many of them were let through and have not gone on yet
        self._credit = self._credit_bytes = 0  # so many messages up to this size are not too many, whatever has left
        self._batch: list[bytes] = []  # what was sent since the last turn, within the credit

    # Sending

    async def send(self, payload: bytes) -> None:
        """Multicast to the group; waits while flow control holds messages back. Cancelled, it has sent nothing."""
        batch = self._batch
        if len(batch) >= self._credit or type(payload) is not bytes or len(payload) > self._credit_bytes:
            await self._send_in_turn(payload)
            return
        is_first = not batch
        batch.append(payload)
        if is_first:
            self._urge()

    async def _send_in_turn(self, payload: bytes) -> None:
        self.collect()
        self._require(payload)
        if self._queued or self._full(payload):
            await self._room(len(payload))
            self._require(payload)
        self._member.send(self._id, payload)
        self._urge()
        if not self._queued and not self.leaving:
            self._credit_bytes = max(_SMALL_BYTES, len(payload))
            self._credit = max(0, _places(len(payload)) - self._member.core.waiting(self._id))

    def try_send(self, payload: bytes) -> None:
        """Multicast, or raise `FlowBlocked` if the message would have to wait."""
        self.collect()
        self._credit = 0  # it was for what `send` alone would fill
        self._require(payload)
        if self._queued or self._full(payload):
            by = f"; it waits for {self._blocked_by}" if self._blocked_by else ""
            raise FlowBlocked(f"{self.name} takes no more messages now{by}")
        if self._member.draining:
            self._batch.append(payload)  # a state that is read while it leaves, hence within a turn, sends something
        else:
            self._member.send(self._id, payload)
        self._urge()

    def _urge(self) -> None:
        """Let what was sent leave; where flow control holds it back anyway, a turn for each message would be waste."""
        if self._blocked_by is None:
            self._member.hurry()
        else:
            self._member.stir()

    def collect(self) -> None:
        """Let the core have what was sent since its last turn."""
        if self._batch and not self._member.draining:
            batch, self._batch = self._batch, []
            self._credit = max(0, self._credit - len(batch))
            self._member.send_all(self._id, batch)

    def _require(self, payload: bytes) -> None:
        if type(payload) is not bytes:
            raise ConfigurationError(f"a message is bytes, not {type(payload).__name__}")
        if len(payload) > MESSAGE_BYTES_MAX:
            raise ConfigurationError(f"a message of {len(payload):,} bytes is larger than {MESSAGE_BYTES_MAX:,}")
        if self.leaving:
            raise NotAMember(f"this process has left {self.name}")

    @property
    def _queued(self) -> bool:
        """Whether somebody came before, and has not sent yet."""
        return bool(self._senders) or self._admitted > 0

    def _full(self, payload: bytes) -> bool:
        waiting = self._member.core.waiting(self._id) + len(self._batch) + self._admitted
        return not self.leaving and waiting >= _places(len(payload))

    async def _room(self, size_bytes: int) -> None:
        """Wait for one's turn: senders are let through in the order in which they came, each to a place of its own."""
        turn = asyncio.get_running_loop().create_future(), size_bytes
        self._senders.append(turn)
        self._credit = 0
        try:
            await turn[0]
        except asyncio.CancelledError:
            if turn in self._senders:
                self._senders.remove(turn)
            elif not turn[0].cancelled():
                self._admitted -= 1
                self.turned()  # we had been let through: another may go in our place
            raise
        self._admitted -= 1

    def turned(self) -> None:
        """The core has let leave what may leave: as many senders go on as there is room for."""
        if not self._senders:
            return
        waiting = 0 if self.leaving else self._member.core.waiting(self._id) + self._admitted
        if 2 * waiting >= _places(self._senders[0][1]) > 1:
            return  # rarely and many at once, not one by one
        while self._senders and (self.leaving or waiting < _places(self._senders[0][1])):
            turn, _ = self._senders.popleft()
            if not turn.done():
                turn.set_result(None)
                self._admitted += 1
                waiting += 1

    # Reading

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if not await self._fill():
                raise StopAsyncIteration
        return self._events.popleft()

    async def receive(self) -> list[Event]:
        """All events that are there, at least one; an empty list once the process has left the group.

        It ends before an event that asks for the application's state: until then the application has to take the rest;
        and before an error that is to be raised.
        """
        while not self._events:
            if not await self._fill():
                return []
        events = [*self._events]
        self._events.clear()
        while self._shown and not _stands_alone(self._shown[0]):
            events += self.open_next()
        return events

    def open_next(self) -> Iterable[Event]:
        """What the next effect brings. Asking for it says that the application has done with what it took before."""
        self.done()
        effect = self._shown.popleft()
        if isinstance(effect, effects.Deliver):
            return self._open(effect)
        event = self._event(effect)
        return () if event is None else (event,)

    def _open(self, effect: effects.Deliver) -> list[Event]:
        frame = effect.frame
        self._taking = frame.group, self._member.delivered(self, frame)
        return [*map(Message, repeat(frame.author), frame.payloads)]

    def done(self) -> None:
        """The application has done with what it took: flow control counts it (the papers' Δ)."""
        if self._taking is not None and not self.leaving:
            self._member.consumed(*self._taking)
        self._taking = None

    def _waive(self, effect: Shown | Failure) -> None:
        """Who leaves may read on, but nobody waits for it, nor do its own messages."""
        if isinstance(effect, effects.Deliver):
            group = effect.frame.group
            self._waived[group] = self._waived.get(group, self._member.position(group)) + 1
            self._member.consumed(group, self._waived[group])
        elif isinstance(effect, effects.InstallView):
            self._member.passed_over(effect.view)

    def _event(self, effect: Shown | Failure) -> Event | None:
        if isinstance(effect, effects.InstallView):
            return self._enter(effect)
        if isinstance(effect, effects.InstallState):
            return self._restore(effect)
        if isinstance(effect, effects.Transitional):
            self._member.noticed(self, effect)
            return Transitional(members=effect.members)
        if isinstance(effect, effects.Blocked):
            return Blocked(by=effect.by)
        if isinstance(effect, effects.Unblocked):
            return Blocked(by=None)
        if isinstance(effect, Failure):
            raise effect.error
        assert isinstance(effect, effects.Left)
        self._member.left(self, effect)
        return None

    def _enter(self, effect: effects.InstallView) -> View:
        """The application gets to a view; what its state is at this place is told to those who come new."""
        view, before = effect.view, () if self._read is None else self._read.members
        state = self._state_at(view) if effect.snapshot else None
        self._member.entered(self, effect)
        if state is not None and self._snapshot is not None:
            self._hand_over(view, state)
        self._read = View(
            id=view.id,
            members=view.members,
            joined=tuple(member for member in view.members if member not in before),
            left=effect.left,
            together=view.transitional,
            primary=view.primary,
        )
        return self._read

    def _state_at(self, view: CoreView) -> State:
        """The application's state at this view. A member that cannot tell it leaves, so that another one is asked."""
        try:
            return self._state()
        except Exception:
            self._member.passed_over(view)
            self.depart()
            raise

    def _state(self) -> State:
        return b"" if self._snapshot is None else require_state(self.name, self._snapshot())

    def _hand_over(self, view: CoreView, state: State) -> None:
        """For those who come new; read while it leaves."""
        if self._supply is not None:
            self._supply.close()
        self._supply = Supply(self.name, state, self._failed, self._member.digester(view, state))
        self._member.hand_over(view, self._supply)

    def _failed(self, error: Exception) -> None:
        asyncio.get_running_loop().call_soon(self._fail, error)  # the core is at work now

    def _fail(self, error: Exception) -> None:
        """Our application could not tell its state to the end: another shall, and we are out of the way."""
        self._shown.append(Failure(error))
        self._member.queue(self)
        self._rouse()
        self.depart()

    def _restore(self, effect: effects.InstallState) -> Reset | None:
        try:
            states = dict(effect.states)
            if effect.own is not None:
                states[effect.own] = whole(self.name, self._state())
        except Exception:
            self.depart()  # without a state it is of no use here
            raise
        ordered = sorted(states)
        self._member.restored(self, effect, [states[place] for place in ordered])
        if self._snapshot is None:
            return None  # an application without a state has nothing to merge
        own = ordered.index(effect.own) if effect.own is not None else None
        return Reset(states=tuple(states[place] for place in ordered), own=own)

    async def _fill(self) -> bool:
        """Open what comes next, or wait until there is something; False if nothing will come."""
        if self._shown:
            self._events.extend(self.open_next())
            return True
        if self._left.is_set():
            return False
        self.done()
        if self._reader is not None:
            raise ConfigurationError(f"two tasks read {self.name} at once; let one read, and hand on what it gets")
        self._reader = asyncio.get_running_loop().create_future()
        try:
            await self._reader
        finally:
            self._reader = None
        return True

    def show(self, effect: Shown) -> None:
        """What comes next in the order."""
        self._shown.append(effect)
        self._rouse()
        if type(effect) is not effects.Deliver:
            self._note(effect)
        if self.leaving:
            self._waive(effect)

    def _rouse(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _note(self, effect: Shown) -> None:
        """What the protocol knows already, and the application will get to."""
        if isinstance(effect, effects.InstallView):
            if not self._members:
                self._member.entered(self, effect)  # `join` returns with it: what is sent then need not wait
            self._members, self._primary = effect.view.members, effect.view.primary
            if effect.snapshot and self._snapshot is None:
                self._hand_over(effect.view, b"")  # an application without a state need not be asked
        elif isinstance(effect, effects.Blocked):
            self._blocked_by = effect.by
        elif isinstance(effect, effects.Unblocked):
            self._blocked_by = None
        elif isinstance(effect, effects.Left):
            self._blocked_by = None  # in the group that takes its place nobody is held back yet
            if effect.successor is None:
                self._graceful = effect.graceful
                self.end()

    # Coming and going

    @property
    def view(self) -> View | None:
        """The view that the application has got to; None before the first."""
        return self._read

    @property
    def health(self) -> Health:
        """How this member is doing, as the protocol knows."""
        core = self._member.core
        return Health(
            members=self._members,
            primary=self._primary,
            blocked_by=self._blocked_by,
            waiting=core.waiting(self._id) + len(self._batch),
            unstable=core.unstable(self._id),
            unread=len(self._shown) + len(self._events),
            receiving=received(core.incoming(self._id)),
            sending=None if self._supply is None else self._supply.progress,
        )

    async def ready(self, members: int = 1) -> None:
        """Wait until the process is in the group, with so many members in its view."""
        while not self.leaving and len(self._members) < members:
            await self._member.next_turn()
        if self.leaving:
            raise NotAMember(f"this process has left {self.name}")

    async def leave(self) -> bool:
        """Be a member no longer, as soon as everybody has what was sent. What is delivered until then can be read.

        True: everybody who stays has it; False: that took too long. Cancelled, the process leaves nevertheless.
        """
        self.depart()
        await self._left.wait()
        return self._graceful

    def depart(self) -> None:
        """Begin to leave."""
        if not self.leaving:
            self.collect()
            self.done()  # what it took last, too: others may wait to hear that it is complete here
            self.leaving = True
            self._credit = 0
            self.turned()
            for effect in self._shown:
                self._waive(effect)
            self._member.leave(self._id)

    def end(self) -> None:
        """Nothing more will come."""
        self.leaving = True
        self._credit = 0
        self._left.set()
        if self._supply is not None:
            self._supply.close()
        self.turned()
        self._rouse()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.leave()


def _places(size_bytes: int) -> int:
    """How many messages may wait with one of this size: as many as would fit if all were alike.

    So what waits is counted without being looked at. Of mixed sizes it may be nine times as much (1 + 1/2 + 1/3 …).
    """
    return max(1, WAITING_BYTES_MAX // max(_SMALL_BYTES, size_bytes))


def _stands_alone(effect: Shown | Failure) -> bool:
    asks_for_state = isinstance(effect, effects.InstallView) and effect.snapshot
    return asks_for_state or isinstance(effect, effects.InstallState | Failure)
