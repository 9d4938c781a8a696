"""Transmits the frames of one member in one group: place in the stream, channel, and announced progress."""

from typing import TypeVar

from antiphon.core.effects import Channel, Effect, Scope, Transmit
from antiphon.protocols.newtop.frames import (
    AliveFrame,
    BlockFrame,
    FormationFrame,
    MembershipFrame,
    SequencedFrame,
    ToSequencer,
)
from antiphon.protocols.newtop.news import News
from antiphon.protocols.newtop.numbers import Numbers
from antiphon.protocols.newtop.recovery.streams import Recovery
from antiphon.types import ProcessId

Sequenced = TypeVar("Sequenced", bound=SequencedFrame)


class Voice:
    """Invariant: every multicast in the group leaves through here."""

    __slots__ = ("_news", "_numbers", "channel", "early", "recovery")

    def __init__(self, numbers: Numbers, news: News, recovery: Recovery | None, early: list[Effect]) -> None:
        self.early = early
        """Effects between two drains, in order; one list for all groups of the process."""
        self.recovery = recovery
        """On datagrams: the streams of this group."""
        self.channel = Channel.STREAM if recovery is None else Channel.DATAGRAM
        self._numbers = numbers
        self._news = news

    def place(self, frame: Sequenced, now: int) -> Sequenced:
        """On datagrams, assign the next place in our stream to a frame."""
        return frame if self.recovery is None else self.recovery.outgoing(frame, now)

    def multicast(self, frame: BlockFrame | AliveFrame, effects: list[Effect]) -> None:
        """Transmit to the view, unchanged."""
        effects.append(Transmit(frame, Scope.VIEW, self.channel))

    def say(self, frame: AliveFrame | MembershipFrame, now: int, effects: list[Effect]) -> None:
        """Transmit to the view, without a number, in order with the channel of the group."""
        frame = self.place(frame, now)
        self._numbers.spoke(now)
        if isinstance(frame, AliveFrame):
            self._news.spoken(frame.complete_block, frame.flow, now)
        effects.append(Transmit(frame, Scope.VIEW, self.channel))

    def say_aside(self, frame: AliveFrame, now: int) -> None:
        """Transmit to the view, outside the stream: frames that are soon repeated need no repair."""
        self._numbers.spoke(now)
        self.multicast(frame, self.early)

    def submit(self, frame: ToSequencer, sequencer: ProcessId, effects: list[Effect]) -> None:
        """Transmit to the sequencer only."""
        effects.append(Transmit(frame, sequencer, self.channel))


class Post:
    """Transmits frames that belong to no group yet, each to one process."""

    __slots__ = ("_channel", "early")

    def __init__(self, *, datagrams: bool) -> None:
        self.early: list[Effect] = []
        """Effects between two drains, in order; shared with the groups of the process."""
        self._channel = Channel.DATAGRAM if datagrams else Channel.STREAM

    def transmit(self, frame: FormationFrame, to: ProcessId) -> None:
        """Transmit a frame to one process."""
        self.early.append(Transmit(frame, to, self._channel))
