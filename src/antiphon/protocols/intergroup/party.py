"""One process in one group, whatever it is there: what all have in common, and what all who ask for repairs have."""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from antiphon.core.clocks import TimestampClock
from antiphon.core.effects import Channel, Deliver, Effect, Gauge, InstallView, Left, Scope, Transmit
from antiphon.protocols.intergroup.frames import (
    Answer,
    DataFrame,
    InterGroupFrame,
    KeepAliveFrame,
    RepairFrame,
    RequestFrame,
)
from antiphon.protocols.intergroup.requests import Draw, Requests, Ticket
from antiphon.protocols.intergroup.rules import Rules
from antiphon.protocols.intergroup.services import offered
from antiphon.protocols.intergroup.settings import CLOCK_AHEAD_US, InterGroupPlan, InterGroupSettings
from antiphon.protocols.intergroup.stream import Stream
from antiphon.protocols.intergroup.untaken import Untaken
from antiphon.types import GroupId, ProcessId, View, onlooker_view


class Part(NamedTuple):
    """Who takes part in a group, as what, and with what."""

    me: ProcessId
    plan: InterGroupPlan
    settings: InterGroupSettings
    clock: TimestampClock
    draw: Draw
    rules: Rules


class Party:
    """Takes frames, and says at each `settle` what follows."""

    def __init__(self, part: Part) -> None:
        self._me, self._plan, self._settings, self._clock, self._draw, self._rules = part
        self._name: GroupId = part.plan.view.group
        self._senders = frozenset(part.plan.view.members)
        self._untaken = Untaken()
        self._service = offered(part.plan.service, part.settings, part.plan.view.members)
        self.outbox: deque[tuple[bytes, int, bytes]] = deque()
        self.writable = True
        self.joined = False
        self._view: View | None = None
        self._views = 0  # how many there were
        self._ahead = 0  # of how much more a clock must be ahead before that is told again
        self._effects: list[Effect] = []

    # What is asked of it

    def join(self, now: int) -> None:
        """Be in the group from now on."""
        if not self.joined:
            self.joined = True
            self._begin(now)

    def leave(self) -> None:
        """Be in it no more."""
        if self.joined:
            self._end()
            self.joined, self._view = False, None
            self._effects.append(Left(self._name, graceful=True))

    def receive(self, frame: InterGroupFrame, now: int) -> None:
        """Take a frame; what comes before and after concerns nobody, nor do messages of who is no sender here."""
        source = _source(frame)
        if not self.joined or (source is not None and source not in self._senders):
            return
        if isinstance(frame, DataFrame):
            self._note_clock(frame.sender, frame.stamp, now)
            self._data(frame, now)
        elif isinstance(frame, KeepAliveFrame):
            self._note_clock(frame.sender, frame.stamp, now)
            self._clock.merge(frame.stamp)
            self._service.heard(frame.sender, frame.stamp)
            self._keep_alive(frame, now)
        elif isinstance(frame, RepairFrame):
            self._repair(frame, now)
        elif isinstance(frame, RequestFrame):
            self._request(frame, now)
        else:
            self._answer(frame, now)

    def consumed(self, position: int) -> None:
        """The application has taken so many deliveries."""
        self._untaken.take(position)

    def settle(self, now: int, effects: list[Effect]) -> None:
        """What follows from all that has come, and from the time."""
        if self.joined:
            self._conclude(now)
            self._deliver(self._service.due(now // 1000))
        effects += self._effects
        self._effects.clear()

    @property
    def deadline(self) -> int | None:
        """When it must be looked at again."""
        if not self.joined:
            return None
        due = self._service.deadline_us
        times = [*self._deadlines(), *([due * 1000] if due is not None else [])]
        return min(times, default=None)

    @property
    def unstable(self) -> int:
        """How many messages are held because somebody may lack them."""
        return 0

    @property
    def unfinished(self) -> bool:
        """Whether it is on its way in, or messages wait to leave."""
        return bool(self.outbox)

    # What each kind does

    def _begin(self, now: int) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        """Nothing is owed to anybody."""

    def _data(self, message: DataFrame, now: int) -> None:  # noqa: ARG002
        self._arrived(message, repair=False)

    def _keep_alive(self, frame: KeepAliveFrame, now: int) -> None:
        """Nothing follows."""

    def _repair(self, frame: RepairFrame, now: int) -> None:  # noqa: ARG002
        self._arrived(frame.message, repair=True)

    def _request(self, frame: RequestFrame, now: int) -> None:
        """Others will answer."""

    def _answer(self, frame: Answer, now: int) -> None:
        """Not for us."""

    def _conclude(self, now: int) -> None:
        """Nothing follows."""

    def _deadlines(self) -> Iterable[int]:
        return ()

    # What it does

    def _arrived(self, message: DataFrame, *, repair: bool) -> None:
        self._clock.merge(message.stamp)
        self._service.heard(message.sender, message.stamp)
        self._deliver(self._service.arrived(message, repair=repair))

    def _deliver(self, messages: Iterable[DataFrame]) -> None:
        for message in messages:
            self._untaken.hand(message.stamp)
            self._effects.append(Deliver(message))

    def _note_clock(self, sender: ProcessId, stamp: int, now: int) -> None:
        """P1: a clock far ahead drags those of all others along; that is borne, and told."""
        ahead = stamp - now // 1000
        if ahead > max(self._ahead, CLOCK_AHEAD_US) and self._settings.tracing:
            self._ahead = 2 * ahead
            self._effects.append(Gauge(self._name, "clock_ahead_us", ahead, sender))

    def _install(self, view: View) -> None:
        self._view = view
        self._views += 1
        self._effects.append(InstallView(view))

    def _follow_these(self, senders: Iterable[ProcessId]) -> None:
        """Of who only receives: a view of its own, of those whom it hears."""
        self._install(onlooker_view(self._me, self._name, self._views, senders, self._view))

    def _say(self, frame: InterGroupFrame, to: ProcessId | Scope = Scope.GROUP) -> None:
        self._effects.append(Transmit(frame, to, Channel.DATAGRAM))


def _source(frame: InterGroupFrame) -> ProcessId | None:
    """Whose stream a frame is of, if it is of one."""
    if isinstance(frame, RepairFrame):
        return frame.message.sender
    return frame.sender if isinstance(frame, DataFrame | KeepAliveFrame) else None


class Asking(Party):
    """A process that asks for messages that it misses."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self._requests = self._no_requests()

    def _no_requests(self) -> Requests:
        return self._rules.requests(self._draw, self._settings.profile)

    @property
    def unfinished(self) -> bool:
        """Whether it lacks something that it asks for, too."""
        return super().unfinished or (self.joined and len(self._requests) > 0)

    def _request(self, frame: RequestFrame, now: int) -> None:
        self._requests.heard(frame.ticket, now)

    def _conclude(self, now: int) -> None:
        for ticket in self._requests.due(now):
            self._say(RequestFrame(self._name, self._me, ticket))

    def _deadlines(self) -> Iterable[int]:
        deadline = self._requests.deadline
        return () if deadline is None else (deadline,)


class Repaired(Asking):
    """One that asks for all that it misses of those senders whose streams it follows."""

    def _streams(self) -> dict[ProcessId, Stream[DataFrame]]:
        raise NotImplementedError

    def _ordered(self, message: DataFrame) -> list[DataFrame]:
        """A message of a stream that lacked it: what is in its sender's order now."""
        raise NotImplementedError

    def _data(self, message: DataFrame, now: int) -> None:
        super()._data(message, now)
        self._place(message, now)

    def _repair(self, frame: RepairFrame, now: int) -> None:
        super()._repair(frame, now)
        self._place(frame.message, now)

    def _place(self, message: DataFrame, now: int) -> None:
        stream = self._streams().get(message.sender)
        if stream is None or not stream.lacks(message.seq):
            return
        self._requests.done(Ticket(message.sender, message.seq))
        for following in self._ordered(message):
            self._deliver(self._service.in_source_order(following))
        self._ask_for(message.sender, stream, message.seq, now)

    def _keep_alive(self, frame: KeepAliveFrame, now: int) -> None:
        stream = self._streams().get(frame.sender)
        if stream is not None:
            stream.keep_alive(frame.seq, frame.stamp)
            self._ask_for(frame.sender, stream, frame.seq, now)

    def _ask_for(self, sender: ProcessId, stream: Stream[DataFrame], upto: int, now: int) -> None:
        for seq in stream.missing(upto):
            self._requests.missing(Ticket(sender, seq), self._settings.distance(sender), now)
