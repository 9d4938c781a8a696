"""Peers that this process forms no group with, and why: for the log and for `Group.health`."""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from antiphon.core.effects import Difference, Refused
from antiphon.errors import SettingsMismatch
from antiphon.limited_log import LimitedLog
from antiphon.types import GroupId, ProcessId, split_process_id

_KEPT_MAX: Final = 32
"""Refusals that are remembered: one for each group and name of a peer, the latest."""


class Refusal(NamedTuple):
    """A peer that this process forms no group with."""

    process: ProcessId
    reason: str
    """One sentence; where settings differ, with their names and both values."""


class Refusals:
    """The refusals of one process. Invariant: no peer that is in a view with us counts as refused in that group."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._log = LimitedLog("antiphon", clock=lambda: clock() / 1e9)
        self._latest: dict[tuple[GroupId, str], Refusal] = {}
        """By group and name of the peer, the oldest first."""

    def note(self, group: GroupId, process: ProcessId, reason: str) -> None:
        """A peer was refused in a group, or refused us. A peer that restarts again and again is logged once."""
        key = group, split_process_id(process)[0]
        self._latest.pop(key, None)
        self._latest[key] = Refusal(process, reason)
        if len(self._latest) > _KEPT_MAX:
            del self._latest[next(iter(self._latest))]
        self._log.warn("/".join(key), "no group %s with %s: %s", group, process, reason)

    def entered(self, group: GroupId, members: Iterable[ProcessId]) -> None:
        """These are in a view with us now: forget earlier refusals."""
        if self._latest:
            for member in members:
                self._latest.pop((group, split_process_id(member)[0]), None)

    def of(self, group: GroupId) -> tuple[Refusal, ...]:
        """The refusals in a group, the latest first."""
        return tuple(refusal for (name, _), refusal in reversed(self._latest.items()) if name == group)


def mismatch(effect: Refused) -> SettingsMismatch:
    """The error for an application that would join the group."""
    return SettingsMismatch(
        f"cannot join {effect.group}: {explanation(effect.differences)}, at its member {effect.process}; "
        "all members of a group need the same values",
        effect.differences,
    )


def explanation(differences: Iterable[Difference]) -> str:
    """Each setting with our value and theirs."""
    return "; ".join(f"{name} is {_shown(ours)} here and {_shown(theirs)} there" for name, ours, theirs in differences)


def _shown(value: str | None) -> str:
    return "unknown" if value is None else value
