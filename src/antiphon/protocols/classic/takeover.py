"""Algorithm A when originators die (Notes, "Failure may occur"; N5; docs/spec/multicast.md 4): a recipient takes over.

When a process is lost, every live member that holds an uncommitted message of a lost originator asks all others what
they know of it, under the ballot (number of losses, own name). In one epoch the least name is the highest ballot: who
holds the message answers only the highest that it has seen, and gives up its own. The answers decide:

- somebody knows the commit: that stamp is sent again to all;
- else the message is handed to those who lack it, and the largest proposal of all who live is committed.

Order needs no more than a stamp at or above the proposals of all who live (`two_phase.py`), and no commit is ever made
without those. But all who live must use the same one. So let a taker have all answers of its epoch:

- A commit of somebody lost is known to one of those who answered, and is sent again; or nobody who lives will ever
  know it, for whoever answered refuses what the lost transmitted.
- Another taker of the same epoch commits the same stamp: a site proposes once for a message, and both count the
  proposals of exactly those who live in this epoch. Ballots only save frames.
- A taker of a later epoch has the answer of this one, given after it committed or gave up this epoch; or this one was
  lost, and the first case applies.

The proposal of a lost site is left out: a stamp chosen with it is found, or used by nobody who lives. Who is lost may
have delivered under another stamp than those who live; agreement is among the living.
"""

from antiphon.protocols.classic.frames import (
    ClassicFrame,
    CommitFrame,
    InquiryFrame,
    Known,
    MessageName,
    ReportFrame,
    Stamp,
)
from antiphon.protocols.classic.inquiries import Inquiries
from antiphon.protocols.classic.site import Site
from antiphon.protocols.classic.two_phase import SiteClock, TwoPhase


class TwoPhaseWithTakeover(TwoPhase):
    """Algorithm A as we use it."""

    def __init__(self, site: Site, clock: SiteClock) -> None:
        super().__init__(site, clock)
        self._inquiries = Inquiries(site)

    def receive(self, frame: ClassicFrame) -> None:
        """What is asked and said about the messages of the lost; all else as before."""
        if isinstance(frame, InquiryFrame):
            if self._inquiries.admits(frame):
                self._tell(frame)
        elif isinstance(frame, ReportFrame):
            for message in self._inquiries.note(frame):
                self._decide(message)
        else:
            super().receive(frame)

    def lost(self) -> None:
        """Give up all ballots of the epoch before; then take over what nobody is known to have taken over."""
        super().lost()
        for _, entry in self._queue:
            entry.taker = None
        for frame in self._inquiries.restart():
            self._tell(frame)
        orphans = []
        for message, entry in self._queue:
            if message.origin in self._site.gone and not entry.deliverable and entry.taker is None:
                entry.taker = self._site.me
                orphans.append(message)
        self._inquiries.ask(orphans)
        for message in orphans:
            self._decide(message)  # at once, if nobody else is left

    def _tell(self, frame: InquiryFrame) -> None:
        """Take what we are handed; answer for what we have not promised to a higher ballot."""
        for copy in frame.handed:
            if self._is_new(copy.name):
                self._propose(copy, taker=frame.sender)
        self._inquiries.answer(
            frame, [self._knowledge(message) for message in frame.messages if self._submits(message, frame)]
        )

    def _submits(self, message: MessageName, frame: InquiryFrame) -> bool:
        """Whether this ballot for a message is the highest seen. Who lacks the message has nothing to promise."""
        entry = self._queue.get(message)
        if entry is None or entry.deliverable:
            return True
        if entry.taker is not None and entry.taker < frame.sender:
            return False
        entry.taker = frame.sender
        self._inquiries.withdraw(message)
        return True

    def _knowledge(self, message: MessageName) -> Known:
        """Of what is settled no stamp is left; but then whoever asks knows it, and would not."""
        entry = self._queue.get(message)
        if entry is not None:
            return Known(message, held=True, stamp=entry.stamp, committed=entry.deliverable)
        stamp = self._commits_of(message.origin).get(message.sequence)
        held = message.sequence in self._seen.get(message.origin, ())
        return Known(message, held=held, stamp=stamp, committed=stamp is not None)

    def _decide(self, message: MessageName) -> None:
        """Commit, if we know enough; hand the message to those who lack it, if that is what is missing."""
        if message not in self._inquiries:
            return
        found = self._inquiries.committed(message)
        if found is not None and found.stamp is not None:
            self._commit(message, found.stamp)
            return
        answers, entry = self._inquiries.answers(message), self._queue.get(message)
        if answers is None or entry is None:
            return
        proposals = [known.stamp for known in answers.values() if known.stamp is not None]
        if len(proposals) == len(answers):
            self._commit(message, max([entry.stamp, *proposals]))
            return
        site = self._site
        for process in [process for process, known in answers.items() if not known.held]:
            self._inquiries.lack(message, process)
            site.tell(process, InquiryFrame(site.group, site.me, site.losses, (message,), (entry.frame,)))

    def _commit(self, message: MessageName, stamp: Stamp) -> None:
        self._site.multicast(CommitFrame(self._site.group, self._site.me, message, stamp))
        self._committed(message, stamp)

    def _committed(self, message: MessageName, stamp: Stamp) -> None:
        super()._committed(message, stamp)
        self._inquiries.withdraw(message)
