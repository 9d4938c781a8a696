"""From a detection to the view without it: five ways, all the same at everybody who goes on (newtop.md 9.6, 9.8, 11.3).

    cut      total, causal-slow   between two numbers of the order over all groups; nothing is sent, nobody waits
    remove   total                where the first notice about the detection is delivered (Macedo94 §6.3.2 ix)
    closed   total                where the last one is delivered; senders wait: original virtual synchrony (§6.4)
    flush    other causal orders  when everybody's notice is here and all before it is delivered; senders wait
    view     asymmetric groups    where the sequencer says; if it has failed, at a cut behind its last number

All answer the same questions; those that do not concern one of them are answered by `ViewChange`.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import ClassVar, Literal

from antiphon.protocols.newtop.frames import BlockFrame, Notice, Suspicion
from antiphon.protocols.newtop.membership.agreement import Detection
from antiphon.types import ProcessId, View

_Failed = tuple[Suspicion, ...]


class ViewChange:
    """What is confirmed in one group and not installed. By itself it is the cut: the order over all groups acts."""

    kind: ClassVar[Literal["remove", "flush", "view"] | None] = None
    """Of the notices that members send each other, where they do."""
    holds_senders: ClassVar[bool] = False
    """Whether applications wait from the agreement to the view."""
    closes: ClassVar[bool] = False
    """Whether a message is delivered in no other view than the one its application sent it in."""

    discards: ClassVar[bool] = True
    """Whether of those who failed together nothing counts behind the smallest of their last numbers."""

    def __init__(self) -> None:
        self.open: list[Detection] = []
        """In the order of their confirmation, which is the same at all who go on together."""

    def confirmed(self, detection: Detection) -> Notice | None:
        """One more; gives what the members are to be told by a numbered message."""
        self.open.append(detection)
        return None if self.kind is None else Notice(self.kind, detection.failed)

    def delivered(self, frame: BlockFrame, view: View) -> list[Detection]:  # noqa: ARG002
        """A notice has its turn in the order: gives what is installed there, in one view."""
        return []

    def flushed(self, frame: BlockFrame) -> None:
        """A notice is here whose turn does not matter."""

    def complete(self, view: View, failed: frozenset[ProcessId]) -> list[Detection]:  # noqa: ARG002
        """What all have flushed for, to be installed in one view once the rest is delivered."""
        return []

    def owing(self, view: View) -> dict[ProcessId, int]:  # noqa: ARG002
        """Whose notice the change of views waits for, and since when."""
        return {}

    def holds(self, frame: BlockFrame) -> bool:  # noqa: ARG002
        """Whether a message belongs to a view that is not installed yet."""
        return False

    def along(self, detection: Detection, number: int) -> list[Detection]:
        """At a cut at that number, later ones that go along: of their members we lack what a view with them needs.

        Only the Slow order has such, which cuts beyond the last number that all have; there a member may go from this
        view to one with them that we cannot share (E-82).
        """
        return [each for each in self.open if each is not detection and each.last < number]

    def installed(self, detections: list[Detection]) -> None:
        """These are done."""
        self.open = [detection for detection in self.open if detection not in detections]


class RemoveChange(ViewChange):
    """A member that delivers a remove above the cut of a detection has confirmed it, for D cannot pass it before."""

    kind = "remove"

    def delivered(self, frame: BlockFrame, view: View) -> list[Detection]:  # noqa: ARG002
        """Not only the detection it was sent for: a later one with a smaller number goes along (E-46)."""
        return [detection for detection in self.open if detection.last < frame.block]


class ClosedChange(RemoveChange):
    """The last remove of a detection closes the old view: whatever anybody sent in it has been delivered.

    Counted per detection, not per set of failed members, which survivors may name differently (E-28).
    """

    holds_senders = True
    closes = True

    def __init__(self) -> None:
        super().__init__()
        self._removes: dict[_Failed, set[ProcessId]] = defaultdict(set)

    def delivered(self, frame: BlockFrame, view: View) -> list[Detection]:
        """Earlier ones that are still open go along; a later one with a smaller number takes this one along (E-46)."""
        assert frame.notice is not None
        removes = self._removes[frame.notice.failed]
        removes.add(frame.sender)
        for place, detection in enumerate(self.open, start=1):
            if detection.failed == frame.notice.failed:
                needed = {*view.members} - _members(self.open[:place])
                waits = not needed <= removes or self._leaves_to(self.open[place:], frame.block)
                return [] if waits else self.open[:place]
        return []

    def _leaves_to(self, later: list[Detection], block: int) -> bool:
        """Whether later detections have a smaller number than the last remove."""
        return any(other.last < block for other in later)

    def owing(self, view: View) -> dict[ProcessId, int]:
        """Whose remove has not been delivered."""
        return _owing(view, self.open, lambda failed, process: process in self._removes[failed])

    def installed(self, detections: list[Detection]) -> None:
        """Their removes are of no more use."""
        super().installed(detections)
        for detection in detections:
            self._removes.pop(detection.failed, None)


class FlushChange(ViewChange):
    """Fast and Relative order have no common number to cut at: each sender draws its own line (9.8 rule 3)."""

    kind = "flush"
    holds_senders = True

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[ProcessId, dict[_Failed, int]] = defaultdict(dict)  # by sender, where each line is
        self._done: set[_Failed] = set()

    def flushed(self, frame: BlockFrame) -> None:
        """The sender has drawn its line: what it sent before belongs to the old view, what follows does not."""
        assert frame.notice is not None
        if frame.notice.failed not in self._done:
            self._lines[frame.sender][frame.notice.failed] = frame.block

    def complete(self, view: View, failed: frozenset[ProcessId]) -> list[Detection]:
        """The first detections of which the last has everybody's line.

        A line that only failed members owe will never come, and nobody has it: then the next detection takes this one
        along (E-62).
        """
        for place, detection in enumerate(self.open, start=1):
            needed = {*view.members} - _members(self.open[:place])
            missing = {process for process in needed if detection.failed not in self._lines[process]}
            if not missing:
                return self.open[:place]
            if not missing <= failed:
                return []
        return []

    def owing(self, view: View) -> dict[ProcessId, int]:
        """Whose line is not here."""
        return _owing(view, self.open, lambda failed, process: failed in self._lines[process])

    def holds(self, frame: BlockFrame) -> bool:
        """Whether it was sent behind a line of its sender that we have not passed."""
        lines = self._lines.get(frame.sender)
        return lines is not None and len(lines) > 0 and frame.block > min(lines.values())

    def installed(self, detections: list[Detection]) -> None:
        """Their lines are passed."""
        super().installed(detections)
        for detection in detections:
            self._done.add(detection.failed)
            for lines in self._lines.values():
                lines.pop(detection.failed, None)
        for process in _members(detections):
            self._lines.pop(process, None)


class SequencerChange(ViewChange):
    """Views change where the sequencer says, or behind its last number if it has failed itself (11.3 rule 6.3)."""

    kind = "view"
    discards = False

    def delivered(self, frame: BlockFrame, view: View) -> list[Detection]:  # noqa: ARG002
        """All that was confirmed up to that detection."""
        assert frame.notice is not None
        for place, detection in enumerate(self.open, start=1):
            if detection.failed == frame.notice.failed:
                return self.open[:place]
        return []

    def along(self, detection: Detection, number: int) -> list[Detection]:  # noqa: ARG002
        """Earlier ones: the message that was to tell where they go is lost with the sequencer (E-68)."""
        return self.open[: self.open.index(detection)]

    def untold(self) -> list[Notice]:
        """What a new sequencer has to tell before anything else (11.3 rule 6.5)."""
        return [Notice("view", detection.failed) for detection in self.open]


def _members(detections: list[Detection]) -> set[ProcessId]:
    return {process for detection in detections for process, _ in detection.failed}


def _owing(view: View, detections: list[Detection], told: Callable[[_Failed, ProcessId], bool]) -> dict[ProcessId, int]:
    gone = _members(detections)
    owing: dict[ProcessId, int] = {}
    for detection in reversed(detections):
        owing |= {
            process: detection.at
            for process in view.members
            if process not in gone and not told(detection.failed, process)
        }
    return owing
