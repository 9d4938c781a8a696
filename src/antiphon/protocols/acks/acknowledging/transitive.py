"""Transitive acknowledgments, as in Trans and Transis (Berket98 §1 names them; docs/spec/stability.md 3).

Each message lists its direct predecessors: what its sender has received and not acknowledged before, without what
other listed messages imply. A receiver builds the causal graph from the lists. A process has acknowledged a message
when one of its own messages has it in its transitive past. Idle processes send nulls.

Listing a message acknowledges its whole past. So a process may list a message only if it has all of that past, and a
message that arrives before its predecessors waits for them. Groups that change need three more rules (T12), which the
static groups of the literature do not need:

- A predecessor may never arrive: it was sent before we were connected with its sender, or its sender has crashed. We
  cannot know *its* past, so the message that lists it is acknowledged *alone*, without its past. The first message that
  we hear from a sender has such a predecessor, namely the message of that sender before it.
- So the walk through the past of what x lists ends at what x has acknowledged before, alone or not.
- A sender counts a receiver only from its next message after it has heard one from the receiver. Then it has heard
  every list that says *alone* about messages after that one.
"""

from collections import deque
from collections.abc import Iterable

from antiphon.core.clocks import TimestampClock
from antiphon.core.effects import Transmit
from antiphon.protocols.acks.acknowledging.contract import AckProtocol
from antiphon.protocols.acks.acknowledging.graph import Chain, Graph
from antiphon.protocols.acks.connections.links import Links, Peer
from antiphon.protocols.acks.frames import MessageFrame, MessageId
from antiphon.types import GroupId, ProcessId


class _Heard:
    """What has arrived from one peer.

    Invariant: `complete` <= `last`; what lies between them waits in `waiting` for predecessors.
    """

    __slots__ = ("complete", "first", "last", "waiting")

    def __init__(self, first: int | None) -> None:
        self.first = first
        """Stamp of its first message in this connection; None: none yet."""
        self.last = 0
        self.complete = 0
        """Of its messages up to this stamp, we also have the past."""
        self.waiting: deque[MessageFrame] = deque()


class TransitiveAcks(AckProtocol):
    """Lists travel in messages and nulls, which go to both receivers and senders."""

    piggybacks = True

    def __init__(self, group: GroupId, links: Links, clock: TimestampClock, *, watches_all: bool) -> None:
        super().__init__(group, links, clock, watches_all=watches_all)
        self._heard: dict[ProcessId, _Heard] = {}
        self._awaiting: dict[ProcessId, dict[ProcessId, None]] = {}
        """By awaited sender, the senders whose messages wait for it."""
        self._graph = Graph()
        self._graph.chains[self._me] = Chain(self._acked_by)
        self._past: dict[MessageId, None] = {}  # what our next message lists, in order of completion
        self._alone: list[MessageId] = []
        self._lists = links.itself.role != "sender"
        self._work = 0

    # As a receiver

    def hear(self, peer: Peer, *, from_start: bool = False) -> None:
        """Make a chain for its messages; it must acknowledge the messages of all senders that it receives from."""
        process, links = peer.process, self._links
        self._heard[process] = _Heard(0 if from_start else None)
        self._graph.chains[process] = chain = Chain()
        for other in self._heard:
            if other != process:
                if links.peers[other].takes(process) and peer.sends:
                    chain.acked_by.add(other, 0)
                if peer.takes(other) and links.peers[other].sends:
                    self._graph.chains[other].acked_by.add(process, self._heard[other].complete)

    def forget(self, process: ProcessId) -> None:
        """Remove its messages from the graph; nothing waits for them or for its acknowledgments any more."""
        del self._heard[process]
        self._graph.forget(process)
        self._advance([*self._awaiting.pop(process, ())])
        if not self._heard:
            self.past()  # no process is left that would read it

    def add_sender(self, sender: ProcessId, value: int) -> None:
        """No effect: `hear` is enough."""

    def remove_sender(self, sender: ProcessId) -> None: ...

    def received(self, frame: MessageFrame) -> bool:
        """Accept every message of a connected peer, even if its predecessors are missing."""
        heard = self._heard.get(frame.sender)
        self._work += 1 + len(frame.past) + len(frame.alone)
        if heard is None or frame.stamp <= heard.last:
            return False
        heard.last = frame.stamp
        heard.waiting.append(frame)
        if heard.first is None:
            heard.first = frame.stamp
            waiting = self._awaiting.pop(frame.sender, ())  # some of them wait for earlier messages that never come
            self._advance([frame.sender, *waiting])
        elif len(heard.waiting) == 1:
            self._advance([frame.sender])
        return True

    def acknowledge(self, now: int) -> Iterable[Transmit]:  # noqa: ARG002
        return ()

    def _advance(self, senders: list[ProcessId]) -> None:
        """Complete the messages of these senders that can be completed, and then those that waited for them."""
        for sender in senders:  # the list grows meanwhile
            heard = self._heard.get(sender)
            while heard is not None and heard.waiting:
                awaited = self._awaits(heard.waiting[0])
                if awaited is not None:
                    self._awaiting.setdefault(awaited, {})[sender] = None
                    break
                self._complete(heard, heard.waiting.popleft())
                senders += self._awaiting.pop(sender, ())

    def _awaits(self, frame: MessageFrame) -> ProcessId | None:
        """The sender of a message that must arrive or become complete before this one."""
        for sender, stamp in (*frame.past, *frame.alone):
            heard = self._heard.get(sender)
            self._work += 1
            if heard is not None and stamp > heard.complete and (heard.first is None or stamp >= heard.first):
                return sender
        return None

    def _complete(self, heard: _Heard, frame: MessageFrame) -> None:
        """Enter a message in the graph and in our list; it acknowledges what its sender has received."""
        sender, stamp, previous = frame.sender, frame.stamp, heard.complete
        if self._lists and self._links.takes(self._links.peers[sender]):
            if self._vouches(heard, frame):
                self._list(frame, previous)
            else:
                self._alone.append((sender, stamp))
        heard.complete = stamp
        self._graph.add(frame, previous)

    def _vouches(self, heard: _Heard, frame: MessageFrame) -> bool:
        """True if we have everything that it implies: all its direct predecessors are here and complete."""
        if heard.first == frame.stamp:
            return False
        return all(sender == self._me or self._has(sender, stamp) for sender, stamp in frame.past)

    def _has(self, sender: ProcessId, stamp: int) -> bool:
        heard = self._heard.get(sender)
        return heard is not None and heard.first is not None and heard.first <= stamp <= heard.complete

    def _list(self, frame: MessageFrame, previous: int) -> None:
        """Add it to our list, and remove what it lists itself. What lies further back was removed before.

        No sender waits in vain for what is left out: a process that vouches for a message of s has received it, so s
        hears that process.
        """
        past = self._past
        for message in ((frame.sender, previous), *frame.past):
            past.pop(message, None)
        past[frame.sender, frame.stamp] = None

    # As a sender

    def add_receiver(self, receiver: ProcessId, value: int) -> None:  # noqa: ARG002
        """It need not acknowledge what was sent before."""
        super().add_receiver(receiver, self._graph.last_of(self._me))

    def past(self) -> tuple[tuple[MessageId, ...], tuple[MessageId, ...]]:
        """Everything that arrived since our last message."""
        told = tuple(self._past), tuple(self._alone)
        self._past.clear()
        self._alone.clear()
        return told

    def sent(self, frame: MessageFrame) -> None:
        """Enter it in the graph too: others will list it."""
        self._graph.add(frame, self._graph.last_of(self._me))

    def stable_of(self, sender: ProcessId) -> int:
        """What all others have acknowledged and we have."""
        others, held = self._graph.chains[sender].acked_by.smallest, self._heard[sender].complete
        return held if others is None else min(others, held)

    @property
    def receiver_work(self) -> int:
        """Edges entered and predecessors looked up."""
        return self._work

    @property
    def sender_work(self) -> int:
        """Edges walked, and the entries of the vectors."""
        return self._graph.work
