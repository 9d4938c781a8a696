"""The current procedure of a process: a formation or its own leave, one at a time (docs/spec/newtop.md 11.1, 11.2)."""

from typing import TYPE_CHECKING, NamedTuple

from antiphon.core.vectors import BEYOND
from antiphon.protocols.newtop.frames import BaseFrame, ProposeFrame, ReadyFrame, VoteFrame
from antiphon.protocols.newtop.settings import Values
from antiphon.types import Company, GroupId, ProcessId

if TYPE_CHECKING:
    from antiphon.protocols.newtop.group import NewtopGroup


class Formation:
    """A group that is being formed, as one process sees it.

    Invariant: `base` is None while votes are counted; `ready` is None while something up to the base is undelivered.
    """

    __slots__ = (
        "answers",
        "base",
        "begun",
        "group",
        "initiator",
        "members",
        "number",
        "ready",
        "repeat_at",
        "until",
        "votes",
    )

    def __init__(
        self, group: GroupId, initiator: ProcessId, members: dict[ProcessId, GroupId | None], begun: int, number: int
    ) -> None:
        self.group = group
        self.initiator = initiator
        self.members = members
        """Each with its predecessor."""
        self.begun = self.until = begun
        """When we stopped delivering; and when the formation is aborted."""
        self.number = number
        """v: the number at which we stopped delivering."""
        self.base: int | None = None
        self.ready: ReadyFrame | None = None
        self.votes: dict[ProcessId, int] = {}
        self.answers: dict[ProcessId, ReadyFrame] = {}
        self.repeat_at = 0
        """When the initiator asks members without an answer again."""

    @property
    def has_predecessors(self) -> bool:
        """True if a member comes from a group: then its messages must be delivered first."""
        return any(self.members.values())

    @property
    def contradicts(self) -> bool:
        """True if members report different views of one predecessor, and one view has both: not agreed yet (E-57)."""
        return any(
            self.members[a] == self.members[b] is not None
            and one.view != other.view
            and (a in other.members or b in one.members)
            for a, one in self.answers.items()
            for b, other in self.answers.items()
        )

    @property
    def companies(self) -> tuple[Company, ...]:
        """The members by the view that they come from; a member without a view is alone."""
        if not self.answers:
            return tuple(Company((member,), None, 0, False) for member in self.members)
        found: dict[object, list[ProcessId]] = {}
        for member, ready in sorted(self.answers.items()):
            found.setdefault(ready.view or member, []).append(member)
        companies = []
        for members in found.values():
            ready = self.answers[members[0]]
            last = max(self.answers[member].last for member in members)
            agreed = len({self.answers[member].history for member in members}) == 1
            history = ready.history if agreed else 0
            companies.append(Company(tuple(members), ready.view, len(ready.members), ready.primary, last, history))
        return tuple(sorted(companies))

    def extend(self, until: int) -> None:
        """Set the timeout of the formation."""
        self.until = until

    def vote(self, member: ProcessId, number: int) -> bool:
        """That member has stopped at this number; True if all have voted."""
        self.votes[member] = number
        return self.votes.keys() == self.members.keys()

    def answer(self, frame: ReadyFrame) -> bool:
        """That member has delivered everything up to the base; True if all have."""
        self.answers[frame.sender] = frame
        return self.answers.keys() == self.members.keys()

    def flush(self, base: int) -> None:
        """Everything up to the base must be delivered."""
        self.base = base

    def get_ready(self, frame: ReadyFrame) -> None:
        """Everything up to the base is delivered here, and this frame says so."""
        self.ready = frame

    def ask(self, me: ProcessId, settings: Values, repeat_at: int) -> tuple[ProposeFrame | BaseFrame, list[ProcessId]]:
        """The proposal, or the base, and the members that have not answered it."""
        self.repeat_at = repeat_at
        answered = self.votes if self.base is None else self.answers
        frame: ProposeFrame | BaseFrame = (
            ProposeFrame(self.group, me, tuple(self.members.items()), settings)
            if self.base is None
            else BaseFrame(self.group, me, self.base)
        )
        return frame, [member for member in self.members if member != me and member not in answered]

    def is_led_by(self, me: ProcessId, frame: VoteFrame | ReadyFrame) -> bool:
        """True if we initiated it, and this is an answer to us."""
        return self.group == frame.group and self.initiator == me and frame.sender in self.members


class Leave(NamedTuple):
    """Our last messages must be stable before we leave (11.2 rule 2)."""

    group: "NewtopGroup"
    number: int
    until: int


class Stage:
    """Invariant: `limit` is below `BEYOND` only while there is a procedure."""

    __slots__ = ("limit", "procedure")

    def __init__(self) -> None:
        self.procedure: Formation | Leave | None = None
        self.limit = BEYOND
        """Nothing above this number is delivered now; a plain attribute, because it is read at every drain."""

    @property
    def formation(self) -> Formation | None:
        """The formation that we take part in, if any."""
        return self.procedure if isinstance(self.procedure, Formation) else None

    def formation_of(self, group: GroupId) -> Formation | None:
        """The formation of that group, if we take part in it."""
        formation = self.formation
        return formation if formation is not None and formation.group == group else None

    def begin(self, procedure: Formation | Leave, limit: int) -> None:
        """Take part in it, and stop delivering at that number."""
        self.procedure = procedure
        self.limit = limit

    def stop_at(self, limit: int) -> None:
        """Deliver up to that number."""
        self.limit = limit

    def end(self) -> None:
        """The procedure has ended, with or without success: deliveries continue."""
        self.procedure = None
        self.limit = BEYOND
