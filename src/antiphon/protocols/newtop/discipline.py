"""Which member numbers a group's messages: each sender its own (`symmetric.py`), or one member all (`sequencing/`).

A group has one discipline. It decides the meaning of a frame, when a number is complete, and which frames leave. The
parts of the group keep the state that both disciplines need.
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
    """The interface that the process, the membership parts and the group use."""

    sequenced: ClassVar[bool]
    """Whether one member numbers the messages of all (11.3)."""

    @property
    def horizon(self) -> Completion:
        """Knows D: the largest number into which no member can still send."""

    @property
    def largest(self) -> int:
        """The largest number that the group has reached, or must reach."""

    @property
    def deadline(self) -> int | None:
        """The time of the next alarm of this group."""

    @property
    def released(self) -> bool:
        """True if a refused message would be permitted now."""

    @property
    def awaits_application(self) -> bool:
        """True if a message that our application consumes may have an effect at once."""

    @property
    def awaits_return(self) -> bool:
        """True if a message of ours has left and we do not know its number yet."""

    @property
    def in_doubt(self) -> bool:
        """True if a message of ours may have been numbered elsewhere."""

    # Input

    def follows(self, frame: BlockFrame) -> bool:
        """True if it is the next frame of its sender."""

    def receive(self, frame: BlockFrame, now: int) -> bool | None:
        """Record a numbered frame of another member; None if it is a copy or not for us, True if something follows.

        Raises `ProtocolViolation` if no correct member could have sent it. Nothing has changed then.
        """

    def require(self, frame: AliveFrame) -> None:
        """Refuse an announcement that no correct member could have sent: raises `ProtocolViolation`."""

    def submitted(self, frame: ToSequencer) -> bool:
        """A member asks us to number a message, or to reach a number; False if we are not the sequencer."""

    def stored(self, process: ProcessId, above: int) -> tuple[BlockFrame, ...]:
        """All frames of a member above a number that we hold, in order."""

    def delivered(self, frame: BlockFrame) -> int | None:
        """A frame is delivered; returns the number under which flow control counts it, or None."""

    # Output

    def serve(self, order: "Order", now: int, effects: list[Effect]) -> int:
        """Send what members owe each other, independent of applications; returns the last assigned number, or 0."""

    def send_waiting(self, order: "Order", now: int, effects: list[Effect]) -> int:
        """Send waiting messages, as far as permitted; returns the last assigned number, or 0."""

    def answer(self, now: int, effects: list[Effect]) -> None:
        """Send the null that is owed and due (rule CA3)."""

    def null(self, block: int, now: int, effects: list[Effect]) -> None:
        """Reach this number (rules CA3, CA4), if that is permitted now."""

    def reach(self, number: int, now: int) -> None:
        """Reach this number for a formation or a leave."""

    def begin(self, now: int) -> None:
        """The first view of a formed group is installed."""

    def show_life(self, now: int) -> None:
        """A null with a new number: others refute a suspicion of us with it."""

    def say_alive(self, now: int, *, blocked: bool = False) -> None:
        """Send a sign of life, even without news."""

    def alive(self) -> AliveFrame:
        """An announcement of what we have completed."""

    def settle(self, now: int, effects: list[Effect]) -> None:
        """Compute completion, then stability, from what was received, sent and consumed."""

    def stabilise(self, effects: list[Effect]) -> None:
        """Compute stability before deliveries that depend on it (14, rule 1)."""

    def finish(self, now: int, effects: list[Effect]) -> None:
        """Do what is due: announcements, repairs, repetitions."""

    # Members that fail, and groups that change

    def confirmed(self, detection: Detection, cut_after: int | None) -> tuple[Notice | None, int | None]:
        """Members have failed: returns the notice to send by a numbered message, and where the view changes."""

    def installed(self, before: ProcessId) -> None:
        """The view has changed; `before` was the first member of the last one."""

    def waits_for(self, rank: int) -> bool:
        """True if our application is blocked because of that member (9.2 d)."""

    def hand_over(self, undelivered: list[BlockFrame]) -> tuple[list[Unsent], int]:
        """The messages that the successor group takes over, and how many of them had left here."""
