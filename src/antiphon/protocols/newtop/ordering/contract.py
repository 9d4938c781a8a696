"""What an ordering part is: it stamps our frames and says whose turn it is."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from antiphon.protocols.newtop.frames import BlockFrame, Stamp
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.membership.agreement import Detection
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import GroupId, ProcessId


class Order(Protocol):
    """The order of delivery at one process, the same rule in all its groups.

    It sees data frames only, in the order of their streams: nulls never touch it (E-12).
    """

    crosses: ClassVar[bool]
    """Whether a number in one group must be answered in all others (rule CA4): delivery waits for all of them."""

    stamps: ClassVar[bool]
    """Whether a message needs more than its number."""

    forms: ClassVar[bool]
    """Whether groups may be entered and left on the way."""

    cut_after: ClassVar[int | None]
    """Views change so far behind the last number that all have of those who failed. None: not by numbers."""

    def __init__(self, me: ProcessId, groups: Mapping[GroupId, NewtopGroup], settings: NewtopSettings) -> None: ...

    def fits(self, group: NewtopGroup, frame: BlockFrame) -> bool:
        """Whether a data frame carries a stamp of this order; a peer under another order sends others."""

    def stamp(self, group: NewtopGroup) -> Stamp | None:
        """What our next data frame in this group says of its past, beside its number."""

    def sent(self, group: NewtopGroup, frame: BlockFrame, now: int) -> object:
        """That frame has left; it is ours to deliver too."""

    def received(self, group: NewtopGroup, frame: BlockFrame, now: int) -> Sequence[GroupId]:
        """A data frame of another member came; gives the other groups in which something follows from it."""

    def take(self, upto: int) -> list[BlockFrame]:
        """Every frame whose turn has come, in order; for each, the counter of its group is raised first (rule CA2).

        None with a number above `upto`: there a view changes first.
        """

    def passed(self, block: int) -> bool:
        """Whether everything up to that number has had its turn, so that a view may change behind it."""

    def failed(self, group: NewtopGroup, detection: Detection) -> list[BlockFrame]:
        """These members have failed: gives what nobody will deliver of them, and waits for nothing else of them."""

    def settled(self, group: NewtopGroup) -> bool:
        """Whether everything of the old view is delivered; asked where views do not change by numbers."""

    def installed(self, group: NewtopGroup, removed: Sequence[ProcessId]) -> list[BlockFrame]:
        """The view has changed: gives what the removed have left undelivered; what waited for the view may go on."""


class FormingOrder(Order, Protocol):
    """An order over groups that come and go (docs/spec/newtop.md 11)."""

    def opened(self, group: NewtopGroup) -> None:
        """We have entered a group: deliveries wait for it too."""

    def closed(self, group: NewtopGroup) -> list[BlockFrame]:
        """We have left it: nothing of it is delivered any more; gives what waited."""

    @property
    def highest(self) -> int:
        """The largest number that waits for its turn, or 0."""
