"""A group as its application holds it: send, and read one stream of events."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from antiphon.api.answers import Answer, Answers
from antiphon.api.arguments import require_count
from antiphon.api.asking import Asking
from antiphon.api.events import Degraded, Event, View
from antiphon.api.incoming import Incoming
from antiphon.api.outgoing import Outgoing
from antiphon.api.receipts import Receipt
from antiphon.api.refusals import Refusal
from antiphon.api.services import Service
from antiphon.api.states import Failure, Progress, Snapshot, received
from antiphon.api.transfers import Transfers
from antiphon.core import effects
from antiphon.drive.drive import Shown
from antiphon.errors import AntiphonError, Excluded, NotAMember
from antiphon.sockets.offenders import Offence
from antiphon.types import GroupId, ProcessId

if TYPE_CHECKING:
    from antiphon.api.process import LocalProcess


@dataclass(frozen=True, slots=True)
class Health:
    """How a member of a group is doing."""

    members: tuple[ProcessId, ...]
    primary: bool
    """Whether the view is primary now; `Group.primary` is the same at the application's place in the stream."""
    blocked_by: ProcessId | None
    """The member that the group waits for: because of flow control, or because its application does not read."""
    waiting: int
    """Messages of ours that have not left."""
    unstable: int
    """Frames held because some member may lack them."""
    unread: int
    """Deliveries, views and notices that the application has not taken."""
    reader_ended: bool
    """Whether there is something unread although the task that read the group last has ended."""
    degraded: tuple[Degraded, ...]
    """What is wrong with members that stay in the view."""
    receiving: Progress | None
    """How much of the state for this application has arrived; None if it waits for none."""
    sending: Progress | None
    """How much of the application's state was sent to joiners; None if this process sends none."""
    offenders: tuple[Offence, ...]
    """Processes that broke a rule of the transport, by address, with the name they gave; the latest first."""
    refused: tuple[Refusal, ...]
    """Peers that form no group with this process, each with the reason; the latest first."""


_ASIDE: Final = frozenset(
    {effects.Blocked, effects.Unblocked, effects.Concern, effects.Evicted, effects.Answered, effects.Unanswered}
)
"""Effects outside of the delivery order."""


class Group:
    """Made by `antiphon.join` or `Member.join`; an async context that leaves the group at its end."""

    def __init__(
        self, member: "LocalProcess", name: GroupId, snapshot: Snapshot | None, service: Service | None = None
    ) -> None:
        self.name = str(name)
        self.service = service
        """What the group promises about deliveries; None if a scenario says it."""
        self.leaving = False
        """Whether the process leaves the group, or has left it."""
        self._member = member
        self._id = name
        self._outgoing = Outgoing(member, name)
        self.collect = self._outgoing.collect
        """A turn begins: give the core what was sent since the last one. Without a call in between, like `turned`."""
        self.turned = self._outgoing.turned
        """A turn is over: there may be room for messages, and more may be stable."""
        self._asking = Asking(member, name, self._outgoing)
        self._transfers = Transfers(member, self, snapshot)
        self._incoming = Incoming(member, self, self._transfers, self._asking)
        self._members: tuple[ProcessId, ...] = ()
        self._primary = False
        self._refused: AntiphonError | None = None
        self._left = asyncio.Event()
        self._graceful = False
        self._leaving_calls: dict[object, Callable[[], None]] = {}

    # Sending

    async def send(self, payload: bytes) -> Receipt:
        """Multicast to the group; waits while flow control holds messages back. If cancelled, nothing was sent.

        The receipt tells what becomes of the message: `await receipt.delivered()`, `await receipt.stable()`.
        """
        outgoing = self._outgoing
        batch = outgoing.batch
        if len(batch) >= outgoing.credit or type(payload) is not bytes or len(payload) > outgoing.credit_bytes:
            return await outgoing.send_in_turn(payload)
        if batch:
            batch.append(payload)  # the usual case: no further call, no other coroutine, no object
            return outgoing.receipt
        receipt = outgoing.receipt
        batch.append(payload)
        outgoing.urge()
        return receipt

    def try_send(self, payload: bytes) -> Receipt:
        """Multicast, or raise `FlowBlocked` if the message would have to wait."""
        return self._outgoing.try_send(payload)

    async def ask(self, payload: bytes, *, answers: Answers, within: float = 10.0) -> tuple[Answer, ...]:
        """Send a request to the group, and wait for these answers, at most `within` seconds.

        `RequestFailed` if they do not come: `AnswersLate`, `TooFewMembers`, or `AskerLeft` if this process leaves the
        group meanwhile, or has left it. `FlowBlocked` if 4,096 requests wait already. If cancelled, nobody waits any
        more; the request may have been sent.
        """
        return await self._asking.ask(payload, answers, within)

    # Reading

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        events = self._incoming.events
        while not events:
            if not await self._incoming.fill(self._left):
                raise StopAsyncIteration
        return events.popleft()

    async def receive(self) -> list[Event]:
        """All available events, at least one; an empty list once the process has left the group.

        The list ends before an event that needs the application's state, because the application must process the rest
        first. It also ends before an error that the next call raises.
        """
        while not self._incoming.events:
            if not await self._incoming.fill(self._left):
                await asyncio.sleep(0)  # a task that asks again and again must let others run, and can be cancelled
                return []
        return self._incoming.take_all()

    def open_next(self) -> Iterable[Event]:
        """The events of the next effect. The application is done with what it took before."""
        return self._incoming.open_next()

    def done(self) -> None:
        """The application is done with what it took."""
        self._incoming.done()

    def show(self, effect: Shown) -> bool:
        """The next effect in the order; True if the application will read it."""
        is_delivery = type(effect) is effects.Deliver
        if not is_delivery and type(effect) in _ASIDE:
            self._note_aside(effect)
            return False
        if type(effect) is effects.Query and not self._asking.admits(effect):
            return False
        incoming = self._incoming
        incoming.shown.append(effect)
        if incoming.reader is not None:
            incoming.wake()
        if type(effect) is effects.Deliver:
            frame = effect.frame
            if frame.author == self._member.id:
                self._outgoing.confirmations.deliver(frame.label + len(frame.payloads))
        else:
            self._note(effect)
        if self.leaving:
            incoming.waive(effect)
        return True

    def _note_aside(self, effect: Shown) -> None:
        """Record what is outside of the order: the state of flow control, and concerns about members."""
        if isinstance(effect, effects.Blocked):
            self._outgoing.blocked_by = effect.by
        elif isinstance(effect, effects.Unblocked):
            self._outgoing.blocked_by = None
        elif isinstance(effect, effects.Concern):
            ended = effect.process == self._member.id and self._incoming.reader_ended
            self._incoming.notices.note(effect, "; the task that read it has ended" if ended else "")
        elif isinstance(effect, effects.Answered | effects.Unanswered):
            self._asking.show(effect)
        elif isinstance(effect, effects.Evicted) and not self.leaving:
            did = "accepted no view" if effect.reason == "unaccepted" else "read nothing"
            error = Excluded(
                f"this process was excluded from {self.name}: its application {did} for "
                f"{effect.idle_ns / 1e9:.1f} seconds (exclude_stalled_after)"
            )
            asyncio.get_running_loop().call_soon(self.fail, error)  # not while effects are carried out

    def _note(self, effect: Shown) -> None:
        """Act on an effect before the application reads it."""
        if isinstance(effect, effects.InstallView):
            if not self._members:
                self._member.entered(self, effect)  # `join` returns now, and the application may send at once
            self._members, self._primary = effect.view.members, False
            self._member.refusals.entered(self._id, self._members)
            self._incoming.notices.keep(self._members)
            if effect.snapshot and not self._transfers.has_state:
                self._transfers.hand_over(effect.view, b"")  # an application without a state need not be asked
        elif isinstance(effect, effects.Primary):
            self._primary = effect.holds
            if effect.holds:
                self._member.stop_looking_for(self._id)
        elif isinstance(effect, effects.Transitional):
            self._primary = False
        elif isinstance(effect, effects.Left):
            self._outgoing.blocked_by = None  # the successor holds back no sender yet
            self._incoming.notices.keep(())
            if effect.successor is None:
                self._graceful = effect.graceful
                self.end()

    # Joining and leaving

    @property
    def me(self) -> ProcessId:
        """The identity of this process, as it stands in `View.members` and `Message.sender`."""
        return self._member.id

    @property
    def address(self) -> str:
        """Where other processes find this one."""
        return self._member.address

    @property
    def view(self) -> View | None:
        """The view at the application's place in the stream; None before the first."""
        return self._incoming.view

    @property
    def primary(self) -> bool:
        """Whether the view is primary at the application's place in the stream."""
        return self._incoming.primary

    @property
    def health(self) -> Health:
        """The current state of this member, ahead of what the application has read."""
        core, incoming = self._member.core, self._incoming
        return Health(
            members=self._members,
            primary=self._primary,
            blocked_by=self._outgoing.blocked_by or incoming.notices.blocked_by,
            waiting=self._outgoing.waiting,
            unstable=core.unstable(self._id),
            unread=len(incoming.shown) + len(incoming.events),
            reader_ended=incoming.reader_ended,
            degraded=incoming.notices.degraded,
            receiving=received(core.incoming(self._id)),
            sending=self._transfers.sending,
            offenders=self._member.offenders,
            refused=self._member.namesakes.refusals + self._member.refusals.of(self._id),
        )

    async def ready(self, members: int = 1) -> None:
        """Wait until the process is in the group, with this number of members in its view."""
        require_count(members)
        while not self.leaving and self._refused is None and len(self._members) < members:
            await self._member.next_turn()
        if self._refused is not None:
            raise self._refused
        if self.leaving:
            raise NotAMember(f"this process has left {self.name}")

    async def leave(self) -> bool:
        """Leave as soon as every member has what was sent. What is delivered until then can still be read.

        True: every remaining member has it; False: that took too long. If cancelled, the process leaves all the same.
        """
        self.depart()
        await self._left.wait()
        return self._graceful

    def depart(self, reason: str = "") -> None:
        """Begin to leave. `reason`: the error text of later calls of `send`."""
        if not self.leaving:
            self._outgoing.collect()
            self._outgoing.confirmations.look()  # the core forgets the group
            self._incoming.done()  # others may wait until this is complete here
            self.leaving = True
            self._tell_leaving()
            self._outgoing.close(reason)
            self._asking.close(reason)
            self._incoming.waive_all()
            self._member.leave(self._id)

    def refuse(self, error: AntiphonError) -> None:
        """The process cannot become a member; nothing changes if it is one."""
        if not self._members and self._refused is None:
            self._refused = error

    def fail(self, error: BaseException) -> None:
        """Leave because of an error. It is raised after the application has read everything else.

        The application failed to provide its whole state, or did not read for too long.
        """
        self._incoming.add(Failure(error))
        self.depart(str(error) if isinstance(error, AntiphonError) else "")

    def end(self) -> None:
        """End the stream of events."""
        self.leaving = True
        self._tell_leaving()
        self._members, self._primary = (), False
        self._left.set()
        self._transfers.close()
        self._outgoing.close()
        self._outgoing.confirmations.close(self._outgoing.reason, graceful=self._graceful)
        self._asking.close()
        self._incoming.wake()

    def on_leaving(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call this once, when the process begins to leave the group. The function that it returns withdraws it."""
        token = object()
        self._leaving_calls[token] = call

        def withdraw() -> None:
            self._leaving_calls.pop(token, None)

        return withdraw

    def _tell_leaving(self) -> None:
        calls, self._leaving_calls = self._leaving_calls, {}
        for call in calls.values():
            call()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.leave()
