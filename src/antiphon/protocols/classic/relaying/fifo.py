"""Algorithm F, FIFO multicast over R (Notes; its delivery step is F-delivery, N3): a bag, and a counter per sender.

The notes assume that every gap closes. Over links that keep no order, a gap may stay: a sender crashes, number 3
reaches no process, and number 4 reaches us. So a member that holds a message of a lost sender beyond a gap asks all
others whether the missing number ever reached them. If it reached one of them, that one has relayed it, and we wait. If
it reached none, it never will (`inquiries.py`): what we hold beyond the gap can be delivered nowhere, and is dropped.
All members find the same gap, because no live one has that number. On FIFO links no such gap arises: every member sees
the messages of a sender in order, and relays them in that order.
"""

from antiphon.protocols.classic.frames import DataFrame, InquiryFrame, Known, MessageName, ReportFrame
from antiphon.protocols.classic.inquiries import Inquiries
from antiphon.protocols.classic.relaying.reliable import Reliable
from antiphon.protocols.classic.site import Handlers, Site
from antiphon.types import ProcessId


class Fifo(Reliable):
    """One process under algorithm F."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._bag: dict[ProcessId, dict[int, DataFrame]] = {}  # msgbag, by sender; no entry is empty
        self._next: dict[ProcessId, int] = {}  # next[q]
        self._inquiries = Inquiries(site)

    @property
    def held(self) -> int:
        """Number of messages in the bag."""
        return sum(map(len, self._bag.values()))

    @property
    def handlers(self) -> Handlers:
        """Data and relays as in R, and the frames about gaps."""
        return {**super().handlers, InquiryFrame: self._inquiry, ReportFrame: self._report}

    def _inquiry(self, frame: InquiryFrame) -> None:
        if self._inquiries.admits(frame):
            self._tell(frame)

    def _report(self, frame: ReportFrame) -> None:
        for message in self._inquiries.note(frame):
            self._conclude(message)

    def lost(self) -> None:
        """Answer the inquiries that waited for this epoch; ask again about the gaps of all lost senders."""
        for frame in self._inquiries.restart():
            self._tell(frame)
        for sender in [sender for sender in self._bag if sender in self._site.gone]:
            self._ask(sender)

    def _reliable(self, frame: DataFrame) -> None:
        """receive(R, m): put it into the bag, and take out all messages whose turn has come."""
        sender = frame.sender
        bag = self._bag.setdefault(sender, {})
        bag[frame.sequence] = frame
        following = self._next.get(sender, 1)
        while (ready := bag.pop(following, None)) is not None:
            self._inquiries.withdraw(ready.name)
            following += 1
            self._next[sender] = following
            self._fifo(ready)
        if not bag:
            del self._bag[sender]
        elif sender in self._site.gone:
            self._ask(sender)

    def _fifo(self, frame: DataFrame) -> None:
        """receive(F, m)."""
        self._site.deliver(frame)

    def _ask(self, sender: ProcessId) -> None:
        missing = MessageName(sender, self._next.get(sender, 1))
        if missing not in self._inquiries:
            self._inquiries.ask([missing])
            self._conclude(missing)  # at once, if no other member is left

    def _tell(self, frame: InquiryFrame) -> None:
        known = []
        for message in frame.messages:
            seen = self._seen.get(message.origin)
            known.append(Known(message, seen is not None and message.sequence in seen))
        self._inquiries.answer(frame, known)

    def _conclude(self, missing: MessageName) -> None:
        if missing not in self._inquiries:
            return  # the report names a message twice
        answers = self._inquiries.answers(missing)
        if answers is not None and not any(known.held for known in answers.values()):
            self._inquiries.withdraw(missing)
            self._seen[missing.origin].close()
            del self._bag[missing.origin]
