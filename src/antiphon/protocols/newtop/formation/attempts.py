"""The memory of earlier formations: epochs, refused formations, and processes that did not vote."""

from collections.abc import Mapping
from typing import Final

from antiphon.protocols.newtop import bounds
from antiphon.types import EPOCH_MAX, GroupId, ProcessId, epoch_of, formed_group, name_of

_DOUBLINGS_MAX: Final = 6
"""How often the pause of a process that does not vote is doubled."""
_MUTE_MAX: Final = 1024
"""Limit of remembered processes that did not vote; the most recent are kept."""
_REFUSED_MAX: Final = 4096
"""Limit of remembered refused formations; no process waits for older ones."""
_PROPOSED_MAX: Final = 64
"""How many of our own proposals are remembered: a vote may come after the formation has ended."""
_HEARD_STEP: Final = 1 << 14
"""How far an epoch of a vote raises ours at once. One that is higher takes several attempts."""
_STEP: Final = 1 << 16
"""How far the epoch of a group may be above the largest known one."""
_BUDGET: Final = 1 << 21
"""How far epochs may rise in total, plus one for each second: faster than groups are formed."""
_FRESH_MAX: Final = 1 << 23
"""The largest epoch of a group whose name we have never been a member of: we do not know how old it is."""
_SECOND_NS: Final = 1_000_000_000


class Attempts:
    """Invariant: a refused group is never entered; a new one has an epoch above all known ones."""

    __slots__ = ("_attempts", "_began", "_pause_ns", "_proposed", "epochs", "mute", "refused")

    def __init__(self, pause_ns: int) -> None:
        self.epochs: dict[GroupId, int] = {}
        """By name, the largest known epoch."""
        self.refused: dict[GroupId, None] = {}
        """Failed formations, in their order."""
        self.mute: dict[ProcessId, tuple[int, int]] = {}
        """Processes that did not vote: how often, and until when they are left out."""
        self._attempts = 0
        self._began: dict[GroupId, tuple[int, int]] = {}
        """By name, the epoch at which we entered the first group of that name, and when."""
        self._proposed: dict[GroupId, frozenset[ProcessId]] = {}
        """Our last proposals, each with the invited processes."""
        self._pause_ns = pause_ns

    def epoch(self, name: GroupId) -> int:
        """The largest known epoch."""
        return self.epochs.get(name, 0)

    def entered(self, group: GroupId, now: int) -> None:
        """We have entered this group: our next proposal must have a larger epoch."""
        name, epoch = name_of(group), epoch_of(group)
        self._began.setdefault(name, (epoch, now))
        self.epochs[name] = max(self.epoch(name), epoch)

    def heard(self, group: GroupId, sender: ProcessId, epoch: int, now: int) -> None:
        """A process that we invited knows a group of that epoch: our next proposal must have a larger one.

        It is believed only within a step, and only from an invited process.
        """
        if sender in self._proposed.get(group, ()):
            name = name_of(group)
            limit = min(self.epoch(name) + _HEARD_STEP, self._ceiling(name, now))
            self.epochs[name] = max(self.epoch(name), min(epoch, limit))

    def require(self, group: GroupId, now: int) -> None:
        """Refuse a group whose epoch is too far ahead."""
        if epoch_of(group) > (limit := self._ceiling(name_of(group), now)):
            bounds.refuse(f"epoch of group {name_of(group)}", epoch_of(group), limit)

    def _ceiling(self, name: GroupId, now: int) -> int:
        began = self._began.get(name)
        if began is None:
            return _FRESH_MAX
        return min(self.epoch(name) + _STEP, began[0] + _BUDGET + max(now - began[1], 0) // _SECOND_NS)

    def next_group(
        self, name: GroupId, initiator: ProcessId, members: Mapping[ProcessId, GroupId | None]
    ) -> GroupId | None:
        """An identity that no group of that name has had, for members with these predecessors; None if none is left."""
        epochs = [epoch_of(group) for group in members.values() if group is not None]
        epoch = 1 + max([self.epoch(name), *epochs])
        if epoch > EPOCH_MAX:
            return None
        self._attempts += 1
        group = formed_group(name, epoch, initiator, self._attempts)
        self._proposed[group] = frozenset(members)
        if len(self._proposed) > _PROPOSED_MAX:
            del self._proposed[next(iter(self._proposed))]
        return group

    def is_new(self, group: GroupId) -> bool:
        """True if it was not refused, and no group with its epoch is known."""
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
        """Leave it out for some time, longer each time."""
        times = self.mute.pop(process, (0, 0))[0] + 1
        self.mute[process] = times, now + (self._pause_ns << min(times, _DOUBLINGS_MAX))
        if len(self.mute) > _MUTE_MAX:
            del self.mute[next(iter(self.mute))]

    def voted(self, process: ProcessId) -> None:
        """The process answers again."""
        self.mute.pop(process, None)

    def answers(self, process: ProcessId, now: int) -> bool:
        """True if the process should be asked."""
        return process not in self.mute or self.mute[process][1] <= now
