"""The next alarm of each group of a process, and of its formations."""

from typing import Final

from antiphon.core.timers import Timers
from antiphon.types import GroupId

FORMATIONS: Final = GroupId("")
"""Stands for the formations among the groups."""


ASKING: Final = GroupId("#")
"""Stands for the requests."""


class Alarms:
    """Invariant: `armed` is what the timers are set to, by group; a group without an alarm has None or no entry."""

    __slots__ = ("_timers", "armed")

    def __init__(self) -> None:
        self.armed: dict[GroupId, int | None] = {}
        self._timers: Timers[tuple[GroupId]] = Timers()

    @property
    def deadline(self) -> int | None:
        """The earliest alarm."""
        return self._timers.deadline

    def arm(self, name: GroupId, at: int | None) -> None:
        """Set the alarm of this group, in place of its last one; None: no alarm."""
        self.armed[name] = at
        self._timers.set((name,), at)

    def rung(self, now: int) -> list[GroupId]:
        """The groups whose alarm is due, in the order of their times; their alarms are removed."""
        names = [name for (name,) in self._timers.due(now)]
        for name in names:
            self.armed[name] = None
        return names

    def forget(self, name: GroupId) -> None:
        """The group is gone."""
        self.arm(name, None)
        del self.armed[name]
