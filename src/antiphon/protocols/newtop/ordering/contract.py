"""The interface of an ordering part: it stamps our frames and decides which frames are deliverable."""

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

    total: ClassVar[bool]
    """True if all members deliver in the same order."""

    crosses: ClassVar[bool]
    """True if a number in one group must be answered in all others (rule CA4): delivery waits for all of them."""

    lazy: ClassVar[bool]
    """True if no delivery waits for a number: answers to numbers may wait."""

    stamps: ClassVar[bool]
    """True if a message needs more than its number."""

    cut_after: ClassVar[int | None]
    """Views change this far after the last common number of the failed members. None: not by numbers."""

    def __init__(self, me: ProcessId, groups: Mapping[GroupId, NewtopGroup], settings: NewtopSettings) -> None: ...

    def fits(self, group: NewtopGroup, frame: BlockFrame) -> bool:
        """True if a data frame carries a stamp of this order; a peer with another order sends other stamps."""

    def stamp(self, group: NewtopGroup) -> Stamp | None:
        """The stamp of our next data frame in this group, besides its number."""

    def sent(self, group: NewtopGroup, frame: BlockFrame, now: int) -> object:
        """That frame has left; we deliver it too."""

    def received(self, group: NewtopGroup, frame: BlockFrame, now: int) -> Sequence[GroupId]:
        """A data frame of another member is received; returns the other groups that it affects."""

    def take(self, upto: int) -> list[BlockFrame]:
        """Every deliverable frame, in order; for each, the counter of its group is raised first (rule CA2).

        No frame above `upto`: a view changes there first.
        """

    def passed(self, block: int) -> bool:
        """True if everything up to that number is delivered, so that a view may change after it."""

    def failed(self, group: NewtopGroup, detection: Detection) -> list[BlockFrame]:
        """These members have failed: returns their undeliverable frames, and waits for no others of them."""

    def settled(self, group: NewtopGroup) -> bool:
        """True if everything of the old view is delivered; used if views do not change by numbers."""

    def installed(self, group: NewtopGroup, removed: Sequence[ProcessId]) -> list[BlockFrame]:
        """The view has changed: returns undelivered frames of removed members, and releases frames that waited."""

    # Groups that come and go (docs/spec/newtop.md 11)

    def opened(self, group: NewtopGroup, now: int) -> None:
        """We have joined a group: deliveries also wait for it."""

    def closed(self, group: NewtopGroup) -> list[BlockFrame]:
        """We have left a group: nothing of it is delivered any more; returns the waiting frames."""

    def drained(self, group: NewtopGroup | None, number: int) -> bool:
        """True if everything up to that number is delivered that must be, before we leave this group for another one.

        None: we come from no group of that name.
        """

    @property
    def highest(self) -> int:
        """The largest waiting number, or 0."""


def require_consistent(settings: NewtopSettings, order: Order) -> None:
    """Our own mistakes: such settings do not go with this order."""
    assert not settings.block_numbered or not settings.suspect_after_ns or order.cut_after is not None, (
        "a flush is in no window, so blocks cannot be counted"
    )
