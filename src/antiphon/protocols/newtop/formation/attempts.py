"""What is remembered of earlier formations: epochs, those that were refused, and processes that did not vote."""

from collections.abc import Iterable
from typing import Final

from antiphon.types import EPOCH_MAX, GroupId, ProcessId, epoch_of, formed_group, name_of

_DOUBLINGS_MAX: Final = 6
"""How often the pause of a process that does not vote is doubled."""
_REFUSED_MAX: Final = 4096
"""How many refused formations are remembered; nobody waits for older ones."""


class Attempts:
    """Invariant: a group that was refused is never entered; a new one has an epoch above all that we have heard of."""

    __slots__ = ("_attempts", "_pause_ns", "epochs", "mute", "refused")

    def __init__(self, pause_ns: int) -> None:
        self.epochs: dict[GroupId, int] = {}
        """By name, the largest that we have heard of."""
        self.refused: dict[GroupId, None] = {}
        """Formations that came to nothing, in the order in which they did."""
        self.mute: dict[ProcessId, tuple[int, int]] = {}
        """Processes that did not vote: how often, and until when they are left out."""
        self._attempts = 0
        self._pause_ns = pause_ns

    def epoch(self, name: GroupId) -> int:
        """The largest that we have heard of."""
        return self.epochs.get(name, 0)

    def heard(self, name: GroupId, epoch: int) -> None:
        """What we try next must be above this."""
        self.epochs[name] = max(self.epoch(name), epoch)

    def next_group(self, name: GroupId, initiator: ProcessId, predecessors: Iterable[GroupId]) -> GroupId | None:
        """An identity that no group of that name has had; None if a peer that lies has used up all epochs."""
        epoch = 1 + max(self.epoch(name), *(epoch_of(group) for group in predecessors), 0)
        if epoch > EPOCH_MAX:
            return None
        self._attempts += 1
        return formed_group(name, epoch, initiator, self._attempts)

    def is_new(self, group: GroupId) -> bool:
        """Whether it was not refused, and no group with its epoch was heard of."""
        return group not in self.refused and epoch_of(group) > self.epoch(name_of(group))

    def refuse(self, group: GroupId) -> None:
        """We will never be in that group."""
        self.refused[group] = None
        if len(self.refused) > _REFUSED_MAX:
            del self.refused[next(iter(self.refused))]

    def forget_mute(self, now: int) -> None:
        """Forget processes that did not vote long ago."""
        forgotten = now - (self._pause_ns << _DOUBLINGS_MAX)
        self.mute = {process: mute for process, mute in self.mute.items() if mute[1] > forgotten}

    def did_not_vote(self, process: ProcessId, now: int) -> None:
        """It is left out for a while, longer each time."""
        times = self.mute.get(process, (0, 0))[0] + 1
        self.mute[process] = times, now + (self._pause_ns << min(times, _DOUBLINGS_MAX))

    def voted(self, process: ProcessId) -> None:
        """It answers again."""
        self.mute.pop(process, None)

    def answers(self, process: ProcessId, now: int) -> bool:
        """Whether it is worth asking."""
        return process not in self.mute or self.mute[process][1] <= now
