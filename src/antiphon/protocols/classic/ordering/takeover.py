"""Algorithm A when originators crash (Notes, "Failure may occur"; N5; docs/spec/multicast.md 4): a member takes over.

When a process is lost, every live member that holds an uncommitted message of a lost originator asks all others what
they know about it, under the ballot (number of losses, own name). In one epoch the least name is the highest ballot: a
member that holds the message answers only the highest ballot that it has seen, and gives up its own. The answers
decide:

- If a member knows the commit, that stamp is sent again to all.
- Otherwise the message is handed to those that lack it, and the largest proposal of all live members is committed.

Order needs only a stamp at or above the proposals of all live members (`two_phase.py`), and no commit is made without
those. But all live members must use the same stamp. Suppose that a taker has all answers of its epoch:

- A commit of a lost process is known to a member that answered, and is sent again. Or no live member will ever know it,
  because each member that answered refuses the frames of lost processes.
- Another taker of the same epoch commits the same stamp: a site proposes once for a message, and both takers count the
  proposals of exactly the live members of this epoch. Ballots only save frames.
- A taker of a later epoch has the answer of this one, which was given after this one committed or gave up the epoch. Or
  this one was lost, and the first case applies.

The proposal of a lost site is left out: a stamp chosen with it is found, or no live member uses it. A lost process may
have delivered under another stamp than the live ones; agreement is among the live processes.
"""

from antiphon.protocols.classic.frames import (
    CommitFrame,
    InquiryFrame,
    Known,
    MessageName,
    ReportFrame,
    Stamp,
)
from antiphon.protocols.classic.inquiries import Inquiries
from antiphon.protocols.classic.ordering.two_phase import SiteClock, TwoPhase
from antiphon.protocols.classic.site import Handlers, Site


class TwoPhaseWithTakeover(TwoPhase):
    """Algorithm A as processes run it."""

    def __init__(self, site: Site, clock: SiteClock) -> None:
        super().__init__(site, clock)
        self._inquiries = Inquiries(site)

    @property
    def handlers(self) -> Handlers:
        """Also the frames about messages of lost originators."""
        return {**super().handlers, InquiryFrame: self._inquiry, ReportFrame: self._report}

    def _inquiry(self, frame: InquiryFrame) -> None:
        if self._inquiries.admits(frame):
            self._tell(frame)

    def _report(self, frame: ReportFrame) -> None:
        for message in self._inquiries.note(frame):
            self._decide(message)

    def lost(self) -> None:
        """Give up all ballots of the epoch before; then take over every message that has no known taker."""
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
            self._decide(message)  # at once, if no other member is left

    def _tell(self, frame: InquiryFrame) -> None:
        """Queue what we are handed; answer for each message that we have not promised to a higher ballot."""
        for copy in frame.handed:
            if self._is_new(copy.name):
                self._propose(copy, taker=frame.sender)
        self._inquiries.answer(
            frame, [self._knowledge(message) for message in frame.messages if self._submits(message, frame)]
        )

    def _submits(self, message: MessageName, frame: InquiryFrame) -> bool:
        """True if this ballot for a message is the highest seen. A site without the message has nothing to promise."""
        entry = self._queue.get(message)
        if entry is None or entry.deliverable:
            return True
        if entry.taker is not None and entry.taker < frame.sender:
            return False
        entry.taker = frame.sender
        self._inquiries.withdraw(message)
        return True

    def _knowledge(self, message: MessageName) -> Known:
        """Our answer about a message. A settled stamp is forgotten, but then no process asks: all of them know it."""
        entry = self._queue.get(message)
        if entry is not None:
            return Known(message, held=True, stamp=entry.stamp, committed=entry.deliverable)
        stamp = self._commits_of(message.origin).get(message.sequence)
        held = message.sequence in self._seen.get(message.origin, ())
        return Known(message, held=held, stamp=stamp, committed=stamp is not None)

    def _decide(self, message: MessageName) -> None:
        """Commit if we know enough; otherwise hand the message to members that lack it."""
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
