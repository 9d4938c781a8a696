"""Which processes are in a group, or want to be (docs/spec/newtop.md 11.2 rule 8): asked before a group is founded.

A process that does not answer may be in the group. So a process founds a group only after all processes that it
reaches have said that they are in none. Code outside the core decides that (`api/founding.py`).
"""

from collections.abc import Mapping
from typing import Final

from antiphon.core.contract import Answer, Presence
from antiphon.protocols.newtop.formation.host import FormationHost
from antiphon.protocols.newtop.formation.intentions import Intentions
from antiphon.protocols.newtop.formation.procedure import Stage
from antiphon.protocols.newtop.frames import InquireFrame, PresenceFrame
from antiphon.types import GroupId, ProcessId, name_of

_NONE: Final[Mapping[ProcessId, Answer]] = {}


class _Inquiry:
    """Our questions about one group."""

    __slots__ = ("answers", "first", "founding")

    def __init__(self, first: int) -> None:
        self.first = first
        """The round of the first question. Answers to older questions belong to an earlier attempt."""
        self.founding = False
        """Whether we may found the group."""
        self.answers: dict[ProcessId, Answer] = {}
        """A new dictionary at each change, so that a reader detects changes by identity."""


class Inquiries:
    """Invariant: answers are kept only for groups that we ask for, one for each process."""

    __slots__ = ("_host", "_intentions", "_me", "_open", "_round", "_stage")

    def __init__(self, me: ProcessId, host: FormationHost, stage: Stage, intentions: Intentions) -> None:
        self._me = me
        self._host = host
        self._stage = stage
        self._intentions = intentions
        self._open: dict[GroupId, _Inquiry] = {}
        self._round = 0

    def inquire(self, name: GroupId, peers: tuple[ProcessId, ...], *, founding: bool) -> None:
        """Ask each of these once."""
        self._round += 1
        inquiry = self._open.setdefault(name, _Inquiry(self._round))
        inquiry.founding = founding
        inquiry.answers = {peer: answer for peer, answer in inquiry.answers.items() if peer in peers}
        question = InquireFrame(name, self._me, self._round, self._presence(name))
        for peer in peers:
            self._host.transmit(question, peer)

    def answers(self, name: GroupId) -> Mapping[ProcessId, Answer]:
        """What processes have said about that group since our first question."""
        inquiry = self._open.get(name)
        return _NONE if inquiry is None else inquiry.answers

    def forget(self, name: GroupId) -> None:
        """We do not want to be in that group any more."""
        self._open.pop(name, None)

    def on_inquire(self, frame: InquireFrame, now: int) -> None:
        """Answer with our own presence. A question states its sender's presence, so it also answers our question."""
        name = name_of(frame.group)
        inquiry = self._open.get(name)
        if inquiry is not None:
            inquiry.answers = {**inquiry.answers, frame.sender: Answer(frame.presence, now)}
        self._host.transmit(PresenceFrame(name, self._me, frame.round, self._presence(name)), frame.sender)

    def on_presence(self, frame: PresenceFrame, now: int) -> None:
        """An answer."""
        inquiry = self._open.get(name_of(frame.group))
        if inquiry is not None and inquiry.first <= frame.round <= self._round:
            inquiry.answers = {**inquiry.answers, frame.sender: Answer(frame.presence, now)}

    def _presence(self, name: GroupId) -> Presence:
        if self._host.current(name) is not None:
            return Presence.MEMBER
        formation = self._stage.formation
        if formation is not None and name_of(formation.group) == name:
            return Presence.FORMING
        if name not in self._intentions.wishes:
            return Presence.ABSENT
        inquiry = self._open.get(name)
        return Presence.FOUNDING if inquiry is not None and inquiry.founding else Presence.JOINING
