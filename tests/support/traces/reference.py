"""Stability and flow control by an omniscient reference: right by construction, and simple."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

WINDOW_MIN = {0: 1, 1: 3, 2: 2, 3: 2}
"""By algorithm the least window with which it can send at all."""


@dataclass
class Frame:
    """One data frame: its place in the group and the numbers of the messages in it."""

    sender: str
    flow: int
    numbers: Sequence[int]


@dataclass
class Ledger:
    """One group: every frame in the order of sending, and how far each member is."""

    algorithm: int
    window: int
    members: Sequence[str]
    frames: list[Frame] = field(default_factory=list)
    complete: dict[str, int] = field(default_factory=dict)
    """Per member the frame up to which it has delivered."""
    known: dict[str, int] = field(default_factory=dict)
    """Per member the frame up to which it has said that all is stable."""
    freed: dict[str, int] = field(default_factory=dict)
    held: dict[str, set[int]] = field(default_factory=dict)
    """Per member the frames it sent or received."""
    peaks: dict[tuple[str, str], int] = field(default_factory=dict)
    """Per member and gauge its high-water mark."""

    def __post_init__(self) -> None:
        for marks in (self.complete, self.known, self.freed):
            marks.update(dict.fromkeys(self.members, 0))
        self.held.update({member: set() for member in self.members})

    def header(self, sender: str, live: Sequence[str]) -> list[int]:
        """The flow-control header of the next frame; stable is known by all live members, hence super-stable."""
        floor = min(self.known[member] for member in self.members if member in live)
        return [len(self.frames) + 1, self.complete[sender], floor, floor]

    def may_send(self, sender: str, live: Sequence[str]) -> bool:
        """The table of docs/spec/flow-control.md 3."""
        number, complete, stable, super_stable = self.header(sender, live)
        beyond = number - self.window
        if self.algorithm == 1:
            return super_stable >= beyond and stable >= beyond + 1 and complete >= beyond + 2
        if self.algorithm == 2:
            return stable >= beyond and complete >= beyond + 1
        own = sum(frame.sender == sender for frame in self.frames[stable:])
        return self.algorithm == 0 or (own < self.window and complete >= beyond + 1)

    def stable_for(self, view: Sequence[str]) -> int:
        """The frame up to which all members of that view have delivered, hence received."""
        return min(self.complete[member] for member in view)

    def upto(self, above: int, flow: int) -> dict[str, int]:
        """Per sender the last number in the frames of (above, flow]."""
        return {frame.sender: frame.numbers[-1] for frame in self.frames[above:flow]}

    def gauges(self, member: str) -> Mapping[str, tuple[int, str | None]]:
        """The gauges that rose at a member, each with the sender it speaks of."""
        held = [frame for frame in self.frames[self.known[member] :] if frame.flow in self.held[member]]
        counts = {sender: sum(frame.sender == sender for frame in held) for sender in self.members}
        most = max(counts, key=lambda sender: counts[sender])
        own = sum(len(frame.numbers) * 8 for frame in held if frame.sender == member)
        values: dict[str, tuple[int, str | None]] = {
            "unstable_blocks": (len(held), None),
            "unstable_frames_of_sender": (counts[most], most),
            "buffers": (len(held), None),
            "own_unstable_bytes": (own, None),
        }
        rose = {name: value for name, value in values.items() if value[0] > self.peaks.get((member, name), 0)}
        self.peaks.update({(member, name): value for name, (value, _) in rose.items()})
        return rose
