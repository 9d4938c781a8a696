"""Limits for numbers from peers: a larger number is refused before it changes anything (docs/design/bounds.md).

Numbers rise only with work, so an honest one is never far above what its receiver knows. A single frame may be at most
one step ahead. All steps together may rise by a budget, plus one for each nanosecond. So no sequence of false numbers
gets near the largest number that a frame can carry. Bounds only rise, so a frame that was accepted stays acceptable.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from antiphon.core.clocks import BlockCounter
from antiphon.core.effects import Frame
from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.frames import (
    AliveFrame,
    BlockFrame,
    ConfirmedFrame,
    LeavingFrame,
    MapStamp,
    NeedFrame,
    RefuteFrame,
    RepairFrame,
    SubmitFrame,
    SuspectFrame,
    WantFrame,
)
from antiphon.types import GroupId

if TYPE_CHECKING:
    from antiphon.protocols.newtop.group import NewtopGroup

VOTE_STEP: Final = 1 << 47
"""The number of a vote, above the largest one known here: groups that merge differ by all that either has sent."""
BASE_STEP: Final = 1 << 48
"""The same for a base: the largest vote, seen by a member that may know less than the initiator."""
STEP: Final = 1 << 49
"""The same for a number in a group: another member may answer a base before the base has reached us."""
_BY_BLOCK_SHIFT: Final = 26
"""Where blocks are counted, all steps are smaller by this shift: numbers are reached in steps of a window (E-90)."""
BUDGET: Final = 1 << 52
"""Limit of all steps together, plus one for each nanosecond since the process entered its first group."""
FRESH_MAX: Final = 1 << 56
"""The largest number for a process that was in no group yet: it knows nothing of those that it joins."""
PLACES_STEP: Final = 1 << 32
"""A place in a stream, or among the messages of one origin, above the largest one known here."""


class Bounds:
    """The bounds of one process. Invariant: every number up to `limit` is plausible in a group, at any later time."""

    __slots__ = ("_began", "_by_block", "_counter", "_groups", "_origin", "limit")

    def __init__(self, counter: BlockCounter, groups: "Mapping[GroupId, NewtopGroup]", *, by_block: bool) -> None:
        self.limit = 0
        """A plain attribute: it is read for every frame. `require` raises it when it is too low."""
        self._counter = counter
        self._groups = groups
        self._by_block = by_block
        self._origin = 0 if groups else None
        """The number at which the process entered its first group; None: it was in none."""
        self._began = 0

    def entered(self, base: int, now: int) -> None:
        """The process has entered a group whose numbers begin at `base`."""
        if self._origin is None:
            self._origin, self._began = base, now

    def require(self, number: int, now: int) -> None:
        """Refuse a number of a group that is too far ahead."""
        if number > self.limit:
            self.limit = self._ceiling(STEP, now)
            if number > self.limit:
                refuse("number", number, self.limit)

    def require_frame(self, frame: Frame, now: int) -> None:
        """The same for all numbers of a frame, except places in streams."""
        largest = _LARGEST.get(type(frame))
        if largest is not None:
            self.require(largest(frame), now)

    def require_vote(self, number: int, now: int) -> None:
        """Refuse the number of a vote that is too far ahead."""
        self._require_formation(number, VOTE_STEP, now)

    def require_base(self, number: int, now: int) -> None:
        """Refuse a base that is too far ahead."""
        self._require_formation(number, BASE_STEP, now)

    def _require_formation(self, number: int, step: int, now: int) -> None:
        limit = self._ceiling(step, now)
        if number > limit:
            refuse("number of a formation", number, limit)

    def _ceiling(self, step: int, now: int) -> int:
        if self._origin is None:
            return FRESH_MAX
        known = max([self._counter.value, *(group.discipline.largest for group in self._groups.values())])
        ahead = step >> _BY_BLOCK_SHIFT if self._by_block else step
        return min(known + ahead, self._origin + BUDGET + max(now - self._began, 0))


def refuse(what: str, number: int, limit: int) -> None:
    """Refuse a frame for a number that is too large. Its place in a stream is lost with it."""
    raise ProtocolViolation("number", f"{what} {number:,} is implausible: at most {limit:,} is possible")


def refuse_gap(frame: BlockFrame, reached: int) -> None:
    """Refuse a numbered frame after a gap, because the channel below loses nothing. A copy may come at any time."""
    if frame.block <= reached:
        return
    what = f"number {frame.block:,} follows {frame.previous_block:,}"
    raise ProtocolViolation("number", f"{what}, but the last number of {frame.sender} here is {reached:,}")


def _of_block(frame: BlockFrame) -> int:
    named = [frame.block, frame.complete_block]
    if frame.notice is not None:
        named += [last for _, last in frame.notice.failed]
    if frame.ordering is not None:
        named.append(frame.ordering.stable)
    if isinstance(frame.stamp, MapStamp):
        named += [number for _, _, number in frame.stamp.entries]
    elif frame.stamp is not None:
        named += [*frame.stamp.delivered, *(number for _, number in frame.stamp.blocks)]
    return max(named)


def _of_refute(frame: RefuteFrame) -> int:
    return max([frame.block, frame.last_block, *map(_of_block, frame.messages)])


def _of_repair(frame: RepairFrame) -> int:
    return max((_LARGEST[type(copy)](copy) for copy in frame.copies), default=0)


_LARGEST: Final[Mapping[type[Frame], Callable[[Any], int]]] = {
    BlockFrame: _of_block,
    AliveFrame: lambda frame: max(frame.block, frame.complete_block),
    SuspectFrame: lambda frame: max(frame.block, frame.last_block),
    RefuteFrame: _of_refute,
    ConfirmedFrame: lambda frame: max([frame.block, *(last for _, last in frame.failed)]),
    LeavingFrame: lambda frame: frame.block,
    WantFrame: lambda frame: max(frame.block, frame.wanted),
    NeedFrame: lambda frame: frame.number,
    SubmitFrame: lambda frame: max(frame.block, frame.stable),
    RepairFrame: _of_repair,
}
"""By class, the largest number of a frame that is compared with the numbers of its group."""
