"""Processes that we have been in a group with, and when to look for those that are gone (11.2 rule 5)."""

from collections.abc import Callable, Iterable
from typing import Final

from antiphon.types import GroupId, ProcessId, dice, split_process_id

_KNOWN_MAX: Final = 4096
"""How many processes of a group are remembered beside those that are told of now: those met last."""


class Acquaintances:
    """Invariant: of a process that has started anew, only the last incarnation is known."""

    __slots__ = ("_me", "_pause_ns", "_pauses", "_probe_ns", "_probed", "known", "probes")

    def __init__(self, me: ProcessId, pause_ns: int, probe_ns: int) -> None:
        self.known: dict[GroupId, list[ProcessId]] = {}
        """By name."""
        self.probes: dict[GroupId, int] = {}
        """By name, when to look for them; empty where groups do not merge."""
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

    def look_later(self, name: GroupId, now: int) -> None:
        """Look for lost ones after a pause, if groups merge."""
        if self._probe_ns:
            self.probes[name] = now + self._probe_ns + self.spread(name)

    def lost(self, name: GroupId, members: Iterable[ProcessId]) -> ProcessId | None:
        """One of those that we have been with and are not with now: each in turn."""
        present = {*members}
        lost = [each for each in self.known[name] if each not in present]
        if not lost:
            return None
        self._probed += 1
        return lost[self._probed % len(lost)]

    def forget(self, name: GroupId) -> None:
        """We have left the group: nobody is looked for."""
        self.probes.pop(name, None)
        self.known.pop(name, None)

    def spread(self, name: GroupId) -> int:
        """A pause that others do not make at the same time; by chance, as far as a core can."""
        self._pauses += 1
        return dice(f"{self._me}/{name}/{self._pauses}", 2 * self._pause_ns + 1)


def earlier(process: ProcessId, others: Iterable[ProcessId]) -> list[ProcessId]:
    """Earlier incarnations of it among these."""
    name, incarnation = split_process_id(process)
    parts: Callable[[ProcessId], tuple[str, int]] = split_process_id
    return [other for other in others if parts(other)[0] == name and parts(other)[1] < incarnation]
