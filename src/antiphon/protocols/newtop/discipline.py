"""Who numbers the messages of a group: each sender its own (`symmetric.py`), or one member all (`sequencing/`).

A group has one discipline. It decides what a frame means, when a number is complete, and what leaves; the parts of the
group keep what both disciplines need.
"""

from typing import TYPE_CHECKING, ClassVar, Protocol

from antiphon.core.effects import Effect
from antiphon.core.vectors import Completion
from antiphon.protocols.newtop.frames import AliveFrame, BlockFrame, Notice, ToSequencer
from antiphon.protocols.newtop.membership.agreement import Detection
from antiphon.protocols.newtop.outbox import Unsent
from antiphon.types import ProcessId

if TYPE_CHECKING:
    from antiphon.protocols.newtop.ordering.contract import Order


class Discipline(Protocol):
    """What the process, the membership parts and the group ask of it."""

    sequenced: ClassVar[bool]
    """Whether one member numbers the messages of all (11.3)."""

    @property
    def horizon(self) -> Completion:
        """Knows D: the largest number that nobody can still send into."""

    @property
    def largest(self) -> int:
        """The largest number that the group has got to, or is to get to."""

    @property
    def deadline(self) -> int | None:
        """When this group must be looked at again."""

    @property
    def released(self) -> bool:
        """Whether a message that was refused would be permitted now."""

    @property
    def awaits_application(self) -> bool:
        """Whether something may follow at once when our application takes a message."""

    @property
    def awaits_return(self) -> bool:
        """Whether a message of ours has left and has no number that we know of."""

    @property
    def in_doubt(self) -> bool:
        """Whether a message of ours may have got a number elsewhere."""

    # What comes in

    def follows(self, frame: BlockFrame) -> bool:
        """Whether it is the next one of its sender."""

    def receive(self, frame: BlockFrame, now: int) -> bool | None:
        """Record a numbered frame of another member; None if it is refused, True if something follows from it."""

    def submitted(self, frame: ToSequencer) -> bool:
        """A member asks us to number a message, or to get to a number; False if that is nothing for us."""

    def stored(self, process: ProcessId, above: int) -> tuple[BlockFrame, ...]:
        """All that we hold of a member above a number, in order."""

    def delivered(self, frame: BlockFrame) -> int | None:
        """The turn of a frame has come; returns the number under which flow control counts it, or None."""

    # What goes out

    def serve(self, order: "Order", now: int, effects: list[Effect]) -> int:
        """What members owe each other, whatever applications want; returns the last number given, or 0."""

    def send_waiting(self, order: "Order", now: int, effects: list[Effect]) -> int:
        """Let leave what waits, as far as that is permitted; returns the last number given, or 0."""

    def answer(self, now: int, effects: list[Effect]) -> None:
        """Send the null that is owed and due (rule CA3)."""

    def null(self, block: int, now: int, effects: list[Effect]) -> None:
        """Get to this number (rules CA3, CA4), if that is permitted now."""

    def reach(self, number: int, now: int) -> None:
        """The same, where a formation or a leave asks for it."""

    def begin(self, now: int) -> None:
        """The first view of a formed group has its turn."""

    def show_life(self, now: int) -> None:
        """A null with a new number: others refute a suspicion of us with it."""

    def say_alive(self, now: int, *, blocked: bool = False) -> None:
        """A sign of life, whether or not there is news."""

    def alive(self) -> AliveFrame:
        """An announcement of what we have completed."""

    def settle(self, now: int, effects: list[Effect]) -> None:
        """Draw the consequences of what has come, gone and been taken: completion, then stability."""

    def stabilise(self, effects: list[Effect]) -> None:
        """Learn what is stable before anything is delivered for it (14, rule 1)."""

    def finish(self, now: int, effects: list[Effect]) -> None:
        """Do what time has brought: announcements, repairs, repetitions."""

    # Members that fail, and groups that change

    def confirmed(self, detection: Detection, cut_after: int | None) -> tuple[Notice | None, int | None]:
        """Members have failed: returns what members are to be told by a number, and where the view changes."""

    def installed(self, before: ProcessId) -> None:
        """The view has changed; `before` was the first member of the last one."""

    def waits_for(self, rank: int) -> bool:
        """Whether our application is held back because of that member (9.2 d)."""

    def hand_over(self, undelivered: list[BlockFrame]) -> tuple[list[Unsent], int]:
        """What is left to the group that takes our place, and how many of these messages had left here."""
