"""One group at one member: symmetric total order without failures (Macedo94 §3.2-3.6, §4.3; Macedo95 §2.2).

Blocks, outbox and silence are parts; this file shows their coupling in one place. Stability is by piggybacked
completion (Macedo94 §6.3.1): every numbered message says which block its sender had completed, and a block that every
member has completed is held by all, so that nobody will ask for it again and it may go.
"""

from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from antiphon.core.clocks import BlockCounter
from antiphon.core.effects import Discard, Effect, Stable, Transmit
from antiphon.core.newtop.blocks import BlockMatrix
from antiphon.core.newtop.frames import BlockFrame
from antiphon.core.newtop.outbox import Outbox
from antiphon.core.newtop.settings import NewtopSettings
from antiphon.core.newtop.silence import Silence
from antiphon.core.vectors import MinVector
from antiphon.types import ProcessId, View

_SENDER: Final = attrgetter("sender")


class NewtopGroup:
    """Invariant: `_sent` is our own entry of the receive vector, `_received` never falls (E-48)."""

    def __init__(self, me: ProcessId, view: View, counter: BlockCounter, settings: NewtopSettings) -> None:
        self.view = view
        self.matrix = BlockMatrix(len(view.members))
        self.silence = Silence(settings.silence_timeout_ns)
        self.outbox = Outbox(packing=settings.packing, frame_bytes_max=settings.frame_bytes_max)
        self._me = me
        self._counter = counter
        self._tracing = settings.tracing
        self._last_received = self.matrix.last_received
        self._complete_at = MinVector(len(view.members))  # what each member said it had completed
        self._my_rank = view.ranks[me]
        self._rank_of = view.ranks.get
        self._sent = 0  # SENT: our own last number in this group
        self._received = 0  # RECD: the largest number received
        self._complete = 0  # D: the block up to which deliveries were taken
        self._stable = 0  # min(_complete_at): the block up to which the matrix was freed

    def receive(self, frame: BlockFrame, now: int) -> bool:
        """Record a frame of another member (5.3); anything but the next one of its sender is refused.

        True if something follows from it: an answer owed, a block complete, a block stable. In a large group most
        frames only fill a cell of a row.
        """
        rank = self._rank_of(frame.sender)
        if rank is None or rank == self._my_rank:
            return False  # not in our view, or an echo of ourselves: own copies never travel (Macedo94 §7.1)
        block = frame.block
        if not frame.previous_block == self._last_received.values[rank] < block:
            return False  # a copy or a gap: below us the channel is FIFO and lossless
        self.matrix.insert(rank, frame)
        self._complete_at.raise_to(rank, frame.complete_block)
        if block > self._received:
            self._received = block
            if block > self._sent:
                self.silence.owe(block, now)
                return True
        return self._last_received.minimum != self._complete or self._complete_at.minimum != self._stable

    def speak(self, now: int, writable: bool, effects: list[Effect]) -> None:
        """Send what the application asked for, then the null that is still owed (rules CA1, CA3)."""
        if writable and self.outbox:
            for label, payloads in self.outbox.take():
                self._send(self._counter.advance(), payloads, label, effects)
        if self.silence.due(now):
            self._counter.witness(self._received)
            self._send(self._received, (), 0, effects)

    def take_complete(self) -> list[BlockFrame]:
        """The data of blocks that became complete, in the one order of all members: (block, sender) (TO1, TO2)."""
        complete = self._last_received.minimum
        if complete == self._complete:
            return []
        self._complete = complete
        self._complete_at.raise_to(self._my_rank, complete)
        deliverable: list[BlockFrame] = []
        for row in self.matrix.take_complete():
            data = [frame for frame in row if frame.payloads]
            if len(data) > 1:
                data.sort(key=_SENDER)
            deliverable += data
        return deliverable

    def stabilise(self, effects: list[Effect]) -> None:
        """Free what every member is now known to hold: each has said that it completed that block."""
        stable = self._complete_at.minimum
        if stable == self._stable:
            return
        self._stable = stable
        freed = self.matrix.discard(stable)
        if self._tracing and (upto := _last_labels(freed)):
            effects.append(Stable(self.view.group, upto))
            effects.append(Discard(self.view.group, upto))

    def _send(self, block: int, payloads: tuple[bytes, ...], label: int, effects: list[Effect]) -> None:
        assert block > self._sent  # own numbers strictly increase (pr1'); a null never repeats one (E-6)
        complete = self._last_received.minimum  # before our own number is entered
        frame = BlockFrame(self.view.group, self._me, block, self._sent, complete, payloads, label)
        effects.append(Transmit(frame))
        self._sent = block
        self.matrix.insert(self._my_rank, frame)
        self.silence.spoke(block)


def _last_labels(frames: Iterable[BlockFrame]) -> tuple[tuple[ProcessId, int], ...]:
    """Per sender the largest label among these frames' payloads, for the trace."""
    upto: dict[ProcessId, int] = {}
    for frame in frames:
        if frame.payloads:
            upto[frame.sender] = frame.label + len(frame.payloads) - 1
    return tuple(sorted(upto.items()))
