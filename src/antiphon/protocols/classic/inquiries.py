"""Inquiries to all live members about messages of lost originators; repeated after each further loss.

The value of an answer comes from its epoch: a member that answers in an epoch refuses from then on every frame of the
processes lost by then (`site.py`). So when all live members have answered in one epoch, they know together everything
that will ever be known about the lost processes. Anything new would have to come from a live member that learned it
before its answer, or from another live member, and so on back to one that did.

Hence an inquiry of an epoch that we have not reached waits until we are told of the loss. An inquiry of an earlier
epoch is void: its sender will be told of the loss too, and will ask again.
"""

from collections.abc import Iterable, Mapping

from antiphon.protocols.classic.frames import InquiryFrame, Known, MessageName, ReportFrame
from antiphon.protocols.classic.site import Site
from antiphon.types import ProcessId


class Inquiries:
    """Our inquiries of this epoch, and inquiries of others that came too early."""

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
        """Ignore further answers about a message."""
        self._open.pop(message, None)

    def admits(self, frame: InquiryFrame) -> bool:
        """True if the inquiry is to be answered now. One that comes too early is kept until `restart`."""
        if frame.losses > self._site.losses:
            self._early.append(frame)
        return frame.losses == self._site.losses and frame.sender in self._site.members

    def answer(self, frame: InquiryFrame, known: Iterable[Known]) -> None:
        told = tuple(known)
        if told:
            self._site.tell(frame.sender, ReportFrame(self._site.group, self._site.me, self._site.losses, told))

    def note(self, frame: ReportFrame) -> list[MessageName]:
        """Store the answers of a member, and return the messages concerned. That it lacked one may be outdated."""
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
        """The answers about a message by member; None until every other member has answered."""
        answers = self._open[message]
        return answers if len(answers) == len(self._site.peers) else None

    def committed(self, message: MessageName) -> Known | None:
        """The answer of a member that knows its final stamp."""
        return next((known for known in self._open[message].values() if known.committed), None)

    def lack(self, message: MessageName, process: ProcessId) -> None:
        """That member is handed the message, and will answer again."""
        del self._open[message][process]

    def restart(self) -> list[InquiryFrame]:
        """A new epoch: earlier inquiries are void. Returns the inquiries of others that waited for it."""
        self._open.clear()
        early, self._early = self._early, []
        return [frame for frame in early if self.admits(frame)]
