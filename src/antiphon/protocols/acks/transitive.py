"""Transitive acknowledgments, as in Trans and Transis (Berket98 §1 names them; docs/spec/stability.md 3).

Each message lists its direct predecessors: what its sender has received and not acknowledged before, less what other
listed messages imply. Whoever receives messages builds the causal graph from the lists; a process has acknowledged a
message once one of its own has it in its transitive past. Idle processes send nulls.

A process may list a message only if it has all of that message's past, for listing it acknowledges the whole past: a
message that arrives before its predecessors waits for them. Three things follow from coming and going (T12), of which
the literature's static groups need none:

- A predecessor may never come: it was sent before we were connected with its sender, or that one has crashed. We
  cannot know what lies in *its* past, so the message that lists it is acknowledged *alone*, without its past. The first
  message that we hear of a sender has such a predecessor, namely the sender's message before it.
- So the walk through the past of what x lists ends at what x has acknowledged before, alone or not.
- A sender counts a receiver only from its next message on after it has heard one of it: then it has heard every list
  that says *alone* about what lies behind that message.
"""

from collections import deque
from collections.abc import Iterable

from antiphon.core.clocks import TimestampClock
from antiphon.core.effects import Transmit
from antiphon.protocols.acks.contract import AckProtocol
from antiphon.protocols.acks.frames import MessageFrame, MessageId
from antiphon.protocols.acks.graph import Chain, Graph
from antiphon.protocols.acks.links import Links, Peer
from antiphon.types import GroupId, ProcessId


class _Heard:
    """What has come from one peer.

    Invariant: `complete` <= `last`; what lies between them waits in `waiting` for predecessors.
    """

    __slots__ = ("complete", "first", "last", "waiting")

    def __init__(self, first: int | None) -> None:
        self.first = first
        """Its first message since we are connected; None: none yet."""
        self.last = 0
        self.complete = 0
        """Up to here we have, of its messages, also the past."""
        self.waiting: deque[MessageFrame] = deque()


class TransitiveAcks(AckProtocol):
    """Lists ride on messages and nulls, which go to receivers and senders alike."""

    rides = True

    def __init__(self, group: GroupId, links: Links, clock: TimestampClock, *, watches_all: bool) -> None:
        super().__init__(group, links, clock, watches_all=watches_all)
        self._heard: dict[ProcessId, _Heard] = {}
        self._awaiting: dict[ProcessId, dict[ProcessId, None]] = {}  # who is awaited, by messages of whom
        self._graph = Graph()
        self._graph.chains[self._me] = Chain(self._acked_by)
        self._past: dict[MessageId, None] = {}  # what our next message lists, in order of completion
        self._alone: list[MessageId] = []
        self._lists = links.itself.role != "sender"
        self._work = 0

    # As a receiver

    def hear(self, peer: Peer, *, from_start: bool = False) -> None:
        """Its messages have a place in the graph, and it has to acknowledge the messages of those whom it takes."""
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
        """It goes, its messages go from the graph, and nobody waits for them or for its acknowledgments any more."""
        del self._heard[process]
        self._graph.forget(process)
        self._advance([*self._awaiting.pop(process, ())])
        if not self._heard:
            self.past()  # nobody is left to tell

    def add_sender(self, sender: ProcessId, value: int) -> None:
        """Nothing: that we hear it is enough."""

    def remove_sender(self, sender: ProcessId) -> None:
        """Nothing."""

    def received(self, frame: MessageFrame) -> bool:
        """Every message of a peer that we hear, whether or not its predecessors are here."""
        heard = self._heard.get(frame.sender)
        self._work += 1 + len(frame.past) + len(frame.alone)
        if heard is None or frame.stamp <= heard.last:
            return False
        heard.last = frame.stamp
        heard.waiting.append(frame)
        if heard.first is None:
            heard.first = frame.stamp
            self._advance([frame.sender, *self._awaiting.pop(frame.sender, ())])  # who waits for earlier ones, in vain
        elif len(heard.waiting) == 1:
            self._advance([frame.sender])
        return True

    def acknowledge(self, now: int) -> Iterable[Transmit]:  # noqa: ARG002
        """Never by itself."""
        return ()

    def _advance(self, senders: list[ProcessId]) -> None:
        """Messages of these may have become complete, and then those of others that waited for them."""
        for sender in senders:  # which grows meanwhile
            heard = self._heard.get(sender)
            while heard is not None and heard.waiting:
                awaited = self._awaits(heard.waiting[0])
                if awaited is not None:
                    self._awaiting.setdefault(awaited, {})[sender] = None
                    break
                self._complete(heard, heard.waiting.popleft())
                senders += self._awaiting.pop(sender, ())

    def _awaits(self, frame: MessageFrame) -> ProcessId | None:
        """Whose message must come, or become complete, first."""
        for sender, stamp in (*frame.past, *frame.alone):
            heard = self._heard.get(sender)
            self._work += 1
            if heard is not None and stamp > heard.complete and (heard.first is None or stamp >= heard.first):
                return sender
        return None

    def _complete(self, heard: _Heard, frame: MessageFrame) -> None:
        """It takes its place in the graph, on our list, and as an acknowledgment of its sender."""
        sender, stamp, previous = frame.sender, frame.stamp, heard.complete
        if self._lists and self._links.takes(self._links.peers[sender]):
            if self._vouches(heard, frame):
                self._list(frame, previous)
            else:
                self._alone.append((sender, stamp))
        heard.complete = stamp
        self._graph.add(frame, previous)

    def _vouches(self, heard: _Heard, frame: MessageFrame) -> bool:
        """Whether we have all that it implies: that is, all its direct predecessors, and those are complete."""
        if heard.first == frame.stamp:
            return False
        return all(sender == self._me or self._has(sender, stamp) for sender, stamp in frame.past)

    def _has(self, sender: ProcessId, stamp: int) -> bool:
        heard = self._heard.get(sender)
        return heard is not None and heard.first is not None and heard.first <= stamp <= heard.complete

    def _list(self, frame: MessageFrame, previous: int) -> None:
        """What it lists directly need not be listed; what lies further back was taken out when that was listed.

        Nobody waits in vain for what is left out: who vouches for a message of s has received it, so s hears him.
        """
        past = self._past
        for message in ((frame.sender, previous), *frame.past):
            past.pop(message, None)
        past[frame.sender, frame.stamp] = None

    # As a sender

    def add_receiver(self, receiver: ProcessId, value: int) -> None:  # noqa: ARG002
        """It owes nothing of what was sent before."""
        super().add_receiver(receiver, self._graph.last_of(self._me))

    def past(self) -> tuple[tuple[MessageId, ...], tuple[MessageId, ...]]:
        """All that came since our last message."""
        told = tuple(self._past), tuple(self._alone)
        self._past.clear()
        self._alone.clear()
        return told

    def sent(self, frame: MessageFrame) -> None:
        """It has its place in the graph, too: others will list it."""
        self._graph.add(frame, self._graph.last_of(self._me))

    def stable_of(self, sender: ProcessId) -> int:
        """What all others have acknowledged, if we have it."""
        others, held = self._graph.chains[sender].acked_by.smallest, self._heard[sender].complete
        return held if others is None else min(others, held)

    @property
    def receiver_work(self) -> int:
        """Edges entered and predecessors looked for."""
        return self._work

    @property
    def sender_work(self) -> int:
        """Edges walked, and the entries of the vectors."""
        return self._graph.work
