"""From a detection to the view without it: six ways, each the same at all survivors (newtop.md 9.6, 9.8, 11.3).

    cut      total, causal-slow   between two numbers of the order over all groups; nothing is sent, no sender waits
    remove   total                where the first notice about the detection is delivered (Macedo94 §6.3.2 ix)
    closed   total                where the last one is delivered; senders wait: original virtual synchrony (§6.4)
    halted   total                the same; senders wait from the first suspicion on, as in Schiper93c (§6.4)
    flush    all other orders     when all notices have arrived and all before them is delivered; senders wait
    view     asymmetric groups    where the sequencer says; if it has failed, at a cut after its last number

All have the same interface; `ViewChange` answers the questions that do not concern a subclass.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import ClassVar, Literal

from antiphon.protocols.newtop.frames import BlockFrame, Notice, Suspicion
from antiphon.protocols.newtop.membership.agreement import Detection
from antiphon.types import ProcessId, View

_Failed = tuple[Suspicion, ...]


class ViewChange:
    """Confirmed detections of one group that are not installed. The base class is the cut."""

    kind: ClassVar[Literal["remove", "flush", "view"] | None] = None
    """The kind of notices that members send each other, if they do."""
    holds_senders: ClassVar[bool] = False
    """True if applications wait from the agreement to the view."""
    halts: ClassVar[bool] = False
    """True if they wait from a suspicion on, until it is refuted or leads to a view."""
    closes: ClassVar[bool] = False
    """True if a message is delivered only in the view in which it was sent."""

    discards: ClassVar[bool] = True
    """True if, of members that failed together, nothing above the smallest of their last numbers counts."""

    def __init__(self) -> None:
        self.open: list[Detection] = []
        """In the order of their confirmation, which is the same at all survivors that stay together."""

    def confirmed(self, detection: Detection) -> Notice | None:
        """Add a detection; returns the notice to send by a numbered message."""
        self.open.append(detection)
        return None if self.kind is None else Notice(self.kind, detection.failed)

    def withholds(self, notice: Notice, remaining: frozenset[ProcessId], now: int) -> bool:  # noqa: ARG002
        """True if the notice must wait until the application accepts the view of the remaining members."""
        return False

    def accepted(self, members: frozenset[ProcessId]) -> list[Notice]:  # noqa: ARG002
        """The application accepts the view of these members: returns the notices that waited for it."""
        return []

    def unaccepted_since(self) -> int | None:
        """Since when our own application has not accepted a view; None: it need not, or has."""
        return None

    def awaited(self, view: View) -> dict[ProcessId, int]:  # noqa: ARG002
        """The members whose application has not accepted the next view, and since when."""
        return {}

    def delivered(self, frame: BlockFrame, view: View) -> list[Detection]:  # noqa: ARG002
        """A notice is delivered: returns the detections to install there, in one view."""
        return []

    def flushed(self, frame: BlockFrame) -> None:
        """A notice is received; for modes in which its place in the order does not matter."""

    def complete(self, view: View, failed: frozenset[ProcessId]) -> list[Detection]:  # noqa: ARG002
        """The detections that all have flushed for; one view installs them when the rest is delivered."""
        return []

    def owing(self, view: View) -> dict[ProcessId, int]:  # noqa: ARG002
        """The members whose notice the view change waits for, and since when."""
        return {}

    def holds(self, frame: BlockFrame) -> bool:  # noqa: ARG002
        """True if a message belongs to a view that is not installed yet."""
        return False

    def along(self, detection: Detection, number: int) -> list[Detection]:
        """Later detections to install with a cut at that number: we lack messages of their members that a view needs.

        Only the Slow order has them, because it cuts above the last number that all members have. There, another member
        may install a view with them that we cannot share (E-82).
        """
        return [each for each in self.open if each is not detection and each.last < number]

    def installed(self, detections: list[Detection]) -> None:
        """These detections are installed."""
        self.open = [detection for detection in self.open if detection not in detections]


class RemoveChange(ViewChange):
    """A member that delivers a remove above the cut of a detection has confirmed it: D cannot pass the cut before."""

    kind = "remove"

    def delivered(self, frame: BlockFrame, view: View) -> list[Detection]:  # noqa: ARG002
        """Install not only the detection of this remove: a later one with a smaller number is included (E-46)."""
        return [detection for detection in self.open if detection.last < frame.block]


class ClosedChange(RemoveChange):
    """The last remove of a detection closes the old view: all messages sent in it have been delivered.

    Counted per detection, not per set of failed members, which survivors may name differently (E-28).
    """

    holds_senders = True
    closes = True

    def __init__(self) -> None:
        super().__init__()
        self._removes: dict[_Failed, set[ProcessId]] = defaultdict(set)

    def delivered(self, frame: BlockFrame, view: View) -> list[Detection]:
        """Earlier open detections are included; a later one with a smaller number includes this one (E-46)."""
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
        """True if later detections have a smaller number than the last remove."""
        return any(other.last < block for other in later)

    def owing(self, view: View) -> dict[ProcessId, int]:
        """The members whose remove is not delivered."""
        return _owing(view, self.open, lambda failed, process: process in self._removes[failed])

    def installed(self, detections: list[Detection]) -> None:
        """Their removes are no longer needed."""
        super().installed(detections)
        for detection in detections:
            self._removes.pop(detection.failed, None)


class HaltedChange(ClosedChange):
    """The same view at the same place. Only the pause of senders is longer."""

    halts = True


class FlushChange(ViewChange):
    """Other orders have no common number to cut at: each sender marks its line by a flush (9.8 rule 3)."""

    kind = "flush"
    holds_senders = True

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[ProcessId, dict[_Failed, int]] = defaultdict(dict)  # by sender, the positions of its lines
        self._done: set[_Failed] = set()

    def flushed(self, frame: BlockFrame) -> None:
        """The sender has marked its line: earlier messages belong to the old view, later ones do not."""
        assert frame.notice is not None
        if frame.notice.failed not in self._done:
            self._lines[frame.sender][frame.notice.failed] = frame.block

    def complete(self, view: View, failed: frozenset[ProcessId]) -> list[Detection]:
        """The first detections up to one for which all members have marked a line.

        A line that only failed members owe will never come, and no member has it: then the next detection includes this
        one (E-62).
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
        """The members whose line is missing."""
        return _owing(view, self.open, lambda failed, process: failed in self._lines[process])

    def holds(self, frame: BlockFrame) -> bool:
        """True if it was sent after a line of its sender that we have not passed."""
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
    """Views change where the sequencer says, or after its last number if it has failed (11.3 rule 6.3)."""

    kind = "view"
    discards = False

    def delivered(self, frame: BlockFrame, view: View) -> list[Detection]:  # noqa: ARG002
        """All detections confirmed up to that one."""
        assert frame.notice is not None
        for place, detection in enumerate(self.open, start=1):
            if detection.failed == frame.notice.failed:
                return self.open[:place]
        return []

    def along(self, detection: Detection, number: int) -> list[Detection]:  # noqa: ARG002
        """Earlier detections: the message that should place them is lost with the sequencer (E-68)."""
        return self.open[: self.open.index(detection)]

    def untold(self) -> list[Notice]:
        """The notices that a new sequencer must send before anything else (11.3 rule 6.5)."""
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
