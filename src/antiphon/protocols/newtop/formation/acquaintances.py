"""Processes that were in a group with us, and when to search for lost ones (11.2 rule 5)."""

from collections.abc import Callable, Iterable
from typing import Final

from antiphon.types import GroupId, ProcessId, dice, split_process_id

_KNOWN_MAX: Final = 4096
"""Limit of remembered processes of a group, besides those just reported; the most recent are kept."""
_HEARD_OF_MAX: Final = 64
"""Limit of those that were never in a view with us: a peer can invent names."""
_FEW: Final = 8
"""If more of these are missing, every second search is for a process that was in a view with us."""


class Acquaintances:
    """Invariant: of a restarted process, only the last incarnation is known."""

    __slots__ = ("_heard_of", "_me", "_pause_ns", "_pauses", "_probe_ns", "_probed", "known", "probes")

    def __init__(self, me: ProcessId, pause_ns: int, probe_ns: int) -> None:
        self.known: dict[GroupId, list[ProcessId]] = {}
        """By name."""
        self.probes: dict[GroupId, int] = {}
        """By name, when to search for them; empty if groups do not merge."""
        self._heard_of: dict[GroupId, dict[ProcessId, None]] = {}
        """By name, known processes that were never in a view with us; the oldest first."""
        self._me = me
        self._pause_ns = pause_ns
        self._probe_ns = probe_ns
        self._probed = self._pauses = 0  # how often

    def know(self, name: GroupId, processes: tuple[ProcessId, ...]) -> None:
        """These are or were in a group of that name."""
        known = self.known.setdefault(name, [])
        fresh = [each for each in processes if each not in known and each != self._me]
        gone = {old for each in fresh for old in earlier(each, known)}
        self.known[name] = [*[each for each in known if each not in gone][-_KNOWN_MAX:], *fresh]
        heard_of = self._heard_of.get(name, {})
        for each in [each for each in heard_of if each not in self.known[name]]:
            del heard_of[each]

    def companions(self, name: GroupId, members: tuple[ProcessId, ...]) -> None:
        """These are in a view with us."""
        self.know(name, members)
        heard_of = self._heard_of.get(name, {})
        for member in members:
            heard_of.pop(member, None)

    def hear_of(self, name: GroupId, processes: tuple[ProcessId, ...]) -> None:
        """These processes search for a group of that name, or are connected with us."""
        before = {*self.known.get(name, ())}
        self.know(name, processes)
        heard_of = self._heard_of.setdefault(name, {})
        heard_of.update((process, None) for process in processes if process not in before and process != self._me)
        while len(heard_of) > _HEARD_OF_MAX:
            oldest = next(iter(heard_of))
            del heard_of[oldest]
            self.known[name].remove(oldest)

    def look_later(self, name: GroupId, now: int) -> None:
        """Search for lost processes after a pause, if groups merge."""
        if self._probe_ns:
            self.probes[name] = now + self._probe_ns + self.spread(name)

    def lost(self, name: GroupId, members: Iterable[ProcessId]) -> ProcessId | None:
        """A process that was in a group with us and is not now; the next one at each call."""
        present = {*members}
        lost = [each for each in self.known[name] if each not in present]
        if not lost:
            return None
        self._probed += 1
        heard_of = self._heard_of.get(name, {})
        met = [each for each in lost if each not in heard_of]
        if met and len(lost) - len(met) > _FEW and self._probed % 2:
            return met[self._probed // 2 % len(met)]
        return lost[self._probed % len(lost)]

    def forget(self, name: GroupId) -> None:
        """We have left the group: stop searching."""
        self.probes.pop(name, None)
        self.known.pop(name, None)
        self._heard_of.pop(name, None)

    def spread(self, name: GroupId) -> int:
        """A pause that differs between processes: pseudo-random, because a core has no randomness."""
        self._pauses += 1
        return dice(f"{self._me}/{name}/{self._pauses}", 2 * self._pause_ns + 1)


def is_succeeded(process: ProcessId, others: Iterable[ProcessId]) -> bool:
    """Whether a later incarnation of it is among these."""
    return any(earlier(other, (process,)) for other in others)


def earlier(process: ProcessId, others: Iterable[ProcessId]) -> list[ProcessId]:
    """Earlier incarnations of it among these."""
    name, incarnation = split_process_id(process)
    parts: Callable[[ProcessId], tuple[str, int]] = split_process_id
    return [other for other in others if parts(other)[0] == name and parts(other)[1] < incarnation]
