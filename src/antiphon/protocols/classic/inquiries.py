"""Questions to all live members about messages of lost originators; asked anew after each further loss.

An answer is worth something because of the epoch in which it is given: whoever answers in an epoch refuses from then
on whatever those lost by then transmitted (`site.py`). So when all who live have answered in one epoch, what they know
together is all that will ever be known of the doings of the lost: anything new would have to come from a live member,
who learned it before its answer, or from another live member, and so on back to one who did.

Hence an inquiry of an epoch that we have not reached waits until we are told of the loss. One of an epoch behind ours
is void: whoever sent it will be told of the loss too, and will ask again.
"""

from collections.abc import Iterable, Mapping

from antiphon.protocols.classic.frames import InquiryFrame, Known, MessageName, ReportFrame
from antiphon.protocols.classic.site import Site
from antiphon.types import ProcessId


class Inquiries:
    """What we have asked in this epoch, and what we were asked too early."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._open: dict[MessageName, dict[ProcessId, Known]] = {}
        self._early: list[InquiryFrame] = []

    def __contains__(self, message: MessageName) -> bool:
        return message in self._open

    def ask(self, messages: Iterable[MessageName]) -> None:
        """Ask every other member, in one frame."""
        asked = tuple(messages)
        self._open.update((message, {}) for message in asked)
        if asked and self._site.peers:
            self._site.multicast(InquiryFrame(self._site.group, self._site.me, self._site.losses, asked))

    def withdraw(self, message: MessageName) -> None:
        """Its answers are no longer wanted."""
        self._open.pop(message, None)

    def admits(self, frame: InquiryFrame) -> bool:
        """Whether to answer now. If it comes too early, it is kept until `restart`."""
        if frame.losses > self._site.losses:
            self._early.append(frame)
        return frame.losses == self._site.losses and frame.sender in self._site.members

    def answer(self, frame: InquiryFrame, known: Iterable[Known]) -> None:
        """Tell who asked."""
        told = tuple(known)
        if told:
            self._site.tell(frame.sender, ReportFrame(self._site.group, self._site.me, self._site.losses, told))

    def note(self, frame: ReportFrame) -> list[MessageName]:
        """Keep what a member answered; gives the messages concerned. That it lacked one may be old news."""
        if frame.losses != self._site.losses or frame.sender not in self._site.members:
            return []
        concerned = []
        for known in frame.known:
            answers = self._open.get(known.message)
            if answers is None or (not known.held and frame.sender in answers and answers[frame.sender].held):
                continue
            answers[frame.sender] = known
            concerned.append(known.message)
        return concerned

    def answers(self, message: MessageName) -> Mapping[ProcessId, Known] | None:
        """By member, what is known of it: None until every other member has answered."""
        answers = self._open[message]
        return answers if len(answers) == len(self._site.peers) else None

    def committed(self, message: MessageName) -> Known | None:
        """The answer of somebody who knows its final stamp."""
        return next((known for known in self._open[message].values() if known.committed), None)

    def lack(self, message: MessageName, process: ProcessId) -> None:
        """That member is given the message, and will say again what it knows."""
        del self._open[message][process]

    def restart(self) -> list[InquiryFrame]:
        """A new epoch: nothing asked before counts. Gives the inquiries that waited for it."""
        self._open.clear()
        early, self._early = self._early, []
        return [frame for frame in early if self.admits(frame)]
