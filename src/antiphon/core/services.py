"""What one group of a process asks for, within the one order that the process has over all its groups."""

from dataclasses import dataclass
from typing import Literal

ViewMode = Literal["cut", "remove", "closed", "halted"]
"""How a view without failed members is installed (docs/spec/newtop.md 9.6)."""


@dataclass(frozen=True, slots=True)
class GroupService:
    """The service of one group. The caller refuses impossible combinations, in the words of its user."""

    name: str = "total"
    """The order of delivery, and whether a message must be stable before it is delivered."""
    sequencer: bool = False
    """Whether one member numbers the messages of all (docs/spec/newtop.md 11.3)."""
    views: ViewMode = "cut"
    accept: bool = False
    """Whether the application must accept a view without failed members before it is installed."""

    def __post_init__(self) -> None:
        assert self.views == "closed" or not self.accept, "only closed views are accepted"
        assert self.views == "cut" or not (self.is_safe or self.sequencer), "safe delivery and sequencers go with cuts"

    @property
    def is_safe(self) -> bool:
        """Whether nothing is delivered before every member has it (docs/spec/newtop.md 14)."""
        return self.name == "total-safe"

    @property
    def values(self) -> tuple[tuple[str, str], ...]:
        """What group formation compares: name and text."""
        return (
            ("sequencer", "yes" if self.sequencer else "no"),
            ("service", self.name),
            ("views", f"{self.views}-accepted" if self.accept else self.views),
        )
