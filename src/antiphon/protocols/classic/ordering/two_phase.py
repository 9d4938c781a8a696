"""Algorithm A, totally ordered multicast in two phases (Notes, "totally ordered multicast"), while originators live.

The originator multicasts m. Each site queues it under a stamp of its own clock, and proposes that stamp. The originator
commits the largest proposal. Each site then moves m to its place in the queue, and delivers from the top what is
deliverable. No site delivers past an undeliverable message, so all sites deliver in the order of the final stamps: a
message that is still undeliverable here gets a final stamp at or above our proposal, and a later message gets a
proposal above everything delivered (N1). This holds because every commit needs the proposals of all live sites.

A lost site is simply not waited for. `takeover.py` handles the loss of an originator.
"""

from dataclasses import dataclass

from antiphon.protocols.classic.frames import CommitFrame, DataFrame, MessageName, ProposalFrame, Stamp
from antiphon.protocols.classic.ordering.commits import Commits
from antiphon.protocols.classic.ordering.queue import Entry, StampedQueue
from antiphon.protocols.classic.seen import Seen
from antiphon.protocols.classic.site import Handlers, Site
from antiphon.types import ProcessId


class SiteClock:
    """The local clock of a site: it counts proposals, and never falls behind a committed stamp."""

    __slots__ = ("value",)

    def __init__(self, first: int) -> None:
        self.value = first

    def propose(self) -> int:
        """A time above all times proposed or committed here; counted per arrival, as in the worked example (N6)."""
        self.value += 1
        return self.value - 1

    def committed(self, time: int) -> None:
        """Rule N1: later arrivals get proposals above everything that may be delivered now."""
        if time >= self.value:
            self.value = time + 1


@dataclass(slots=True)
class _Collection:
    """The proposals for a message of ours, while some are missing."""

    awaited: set[ProcessId]
    largest: Stamp | None = None


class TwoPhase:
    """One process under algorithm A: site, originator, or both."""

    def __init__(self, site: Site, clock: SiteClock) -> None:
        self._site = site
        self._clock = clock
        self._queue = StampedQueue()
        self._seen: dict[ProcessId, Seen] = {}
        self._commits: dict[ProcessId, Commits] = {}
        """By originator other than us; the stamps of a live originator are never asked for."""
        self._sent = 0
        self._collections: dict[int, _Collection] = {}
        self._known_at: dict[ProcessId, int] = {}
        """By site, the number up to which it knows the stamps of our messages."""

    @property
    def held(self) -> int:
        """Number of messages queued; outside the group, of messages not committed yet."""
        return len(self._queue) if self._site.delivers else len(self._collections)

    @property
    def queue(self) -> list[tuple[MessageName, Stamp, bool]]:
        """Message, stamp and whether it is deliverable, in queue order; for tests."""
        return self._queue.contents

    @property
    def remembered(self) -> int:
        """Number of final stamps kept for a takeover."""
        return sum(map(len, self._commits.values()))

    def send(self, payload: bytes, label: int, request: int | None = None) -> None:
        """First phase: multicast it to all sites. Our own proposal does not travel."""
        self._sent += 1
        site = self._site
        frame = DataFrame(site.group, site.me, self._sent, (payload,), label, request, stamp=self._floor())
        site.multicast(frame)
        if site.members:
            self._collections[self._sent] = _Collection(set(site.members))
            if site.delivers:
                self._proposed(self._sent, site.me, self._propose(frame))

    @property
    def handlers(self) -> Handlers:
        return {ProposalFrame: self._proposal, DataFrame: self._arrived, CommitFrame: self._commit_received}

    def lost(self) -> None:
        """Do not wait for the proposals of a lost site."""
        for sequence, collection in list(self._collections.items()):
            collection.awaited &= self._site.members
            self._conclude(sequence, collection)

    def reach(self, now: int) -> None: ...

    def settle(self, now: int) -> None:  # noqa: ARG002
        """Deliver from the top of the queue."""
        for frame in self._queue.take():
            self._site.deliver(frame)

    # A site

    def _arrived(self, frame: DataFrame) -> None:
        """Queue a message and answer its originator with our proposal."""
        if not self._site.delivers or not self._is_new(frame.name):
            return
        site, mark = self._site, self._commits_of(frame.sender).mark
        site.tell(frame.sender, ProposalFrame(site.group, site.me, frame.sequence, self._propose(frame), mark))

    def _propose(self, frame: DataFrame, taker: ProcessId | None = None) -> Stamp:
        stamp = Stamp(self._clock.propose(), self._site.me)
        self._queue.add(Entry(frame, stamp, taker=taker))
        return stamp

    def _commit_received(self, frame: CommitFrame) -> None:
        if self._site.delivers:
            self._committed(frame.message, frame.stamp)
            if frame.sender == frame.message.origin:
                self._commits_of(frame.sender).settle(frame.settled)

    def _committed(self, message: MessageName, stamp: Stamp) -> None:
        """Second phase: the message gets its place.

        A copy of the commit changes nothing. No commit arrives before its data, because it needs our proposal.
        """
        entry = self._queue.get(message)
        if entry is None or entry.deliverable:
            return
        self._queue.commit(entry, stamp)
        self._clock.committed(stamp.time)
        if message.origin != self._site.me:
            self._commits_of(message.origin).note(message.sequence, stamp)

    def _is_new(self, message: MessageName) -> bool:
        return self._seen.setdefault(message.origin, Seen()).add(message.sequence)

    def _commits_of(self, origin: ProcessId) -> Commits:
        commits = self._commits.get(origin)
        if commits is None:
            commits = self._commits[origin] = Commits()
        return commits

    # The originator

    def _proposal(self, frame: ProposalFrame) -> None:
        if frame.committed > self._known_at.get(frame.sender, 0):
            self._known_at[frame.sender] = frame.committed
        self._proposed(frame.sequence, frame.sender, frame.stamp)

    def _proposed(self, sequence: int, by: ProcessId, stamp: Stamp) -> None:
        """Add a proposal for a message of ours; after the commit it is a duplicate."""
        collection = self._collections.get(sequence)
        if collection is not None and by in collection.awaited:
            collection.awaited.remove(by)
            if collection.largest is None or stamp > collection.largest:
                collection.largest = stamp
            self._conclude(sequence, collection)

    def _conclude(self, sequence: int, collection: _Collection) -> None:
        """Commit as soon as no proposal is missing.

        The proposal of a site lost meanwhile may be the largest. It is valid: it is unique, and above ours.
        """
        if collection.awaited:
            return
        del self._collections[sequence]
        if collection.largest is None:
            return  # the group is lost
        site = self._site
        message = MessageName(site.me, sequence)
        settled = min((self._known_at.get(peer, 0) for peer in site.peers), default=0)
        site.multicast(CommitFrame(site.group, site.me, message, collection.largest, settled))
        self._concluded(collection.largest)
        if site.delivers:
            self._committed(message, collection.largest)

    def _concluded(self, stamp: Stamp) -> None:
        """A message of ours is committed."""

    def _floor(self) -> Stamp | None:
        """A time that travels with our next message: every site must propose one above it."""
        return None
