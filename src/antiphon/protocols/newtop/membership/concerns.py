"""Concerns: what is wrong with members that stay in the view (docs/spec/newtop.md 9.9).

A member that is slow, that does not hear us, or whose application does not read, holds the whole group back, although
nobody may suspect it. Here it is found out from what members owe, and since when. A concern is told to our own
application alone; it makes nothing leave. One thing follows from it: if the setting asks for that, a process leaves
the group when its own application has read nothing for too long. Only that process can know it.
"""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from antiphon.core.effects import Concern, ConcernReason, Effect, Evicted
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import ProcessId

if TYPE_CHECKING:
    from antiphon.protocols.newtop.group import NewtopGroup

_REPEATED: Final = 2
"""One wrong suspicion may follow from a pause; this number of them says that a direction of a link is broken."""
_RELAYED_MIN: Final = 3
"""This number of frames in a row that only others could repair says the same."""


class _Sample(NamedTuple):
    """How far the group was at one look."""

    at: int
    number: int
    """The largest number: all members are to send one as large."""
    block: int
    """The largest complete number: all members are to complete it."""
    delivered: int
    """The largest number that our application was handed: all applications are to take it."""


class _Doubts(NamedTuple):
    """How often a link was found broken in one direction, and when last."""

    times: int
    at: int


class Concerns:
    """Invariant: `_open` is what our application has been told, and has not been told to be over."""

    __slots__ = (
        "_accusers",
        "_exclude_ns",
        "_lag_ns",
        "_limit_ns",
        "_memory_ns",
        "_open",
        "_progress",
        "_said_stalled",
        "_samples",
        "_vouched",
        "evicted",
        "stalled",
    )

    def __init__(self, settings: NewtopSettings, *, sequenced: bool) -> None:
        self.stalled = False
        """Whether our own application has not taken what it was handed long ago: our announcements say so."""
        self.evicted = False
        """Whether we leave the group because of that."""
        self._limit_ns = settings.suspect_after_ns // 2 + settings.silence_timeout_ns
        self._lag_ns = self._limit_ns * (2 if sequenced else 1)  # there only its word tells a stall from a lag
        self._memory_ns = 4 * settings.suspect_after_ns
        self._exclude_ns = settings.exclude_stalled_after_ns
        self._open: dict[tuple[ProcessId, ConcernReason], int] = {}  # when a look last found it
        self._samples: deque[_Sample] = deque()  # one for each look at which the group was further than before
        self._said_stalled: set[int] = set()  # ranks of members that said so of themselves
        self._vouched: dict[ProcessId, _Doubts] = {}  # members that others heard while we did not
        self._accusers: dict[ProcessId, _Doubts] = {}  # members that said that they do not hear us
        self._progress = 0, 0  # what our own application has taken, and when it last took something

    # What other parts notice

    def said(self, rank: int, *, stalled: bool) -> None:
        """A member says whether its application, or flow control, keeps it from answering (docs/spec/README.md 12)."""
        if stalled:
            self._said_stalled.add(rank)
        else:
            self._said_stalled.discard(rank)

    def says_stalled(self, rank: int) -> bool:
        """Whether that member last said that it is stalled."""
        return rank in self._said_stalled

    def vouched(self, process: ProcessId, now: int) -> None:
        """We suspected a member, and another member had more of it: it speaks, but we do not hear it."""
        self._vouched[process] = _Doubts(self._times(self._vouched, process, now) + 1, now)

    def accused_by(self, process: ProcessId, now: int) -> None:
        """A member suspects us: it does not hear us."""
        self._accusers[process] = _Doubts(self._times(self._accusers, process, now) + 1, now)

    def _times(self, doubts: dict[ProcessId, _Doubts], process: ProcessId, now: int) -> int:
        known = doubts.get(process)
        return 0 if known is None or known.at + self._memory_ns < now else known.times

    # What a look finds

    def look(self, group: "NewtopGroup", now: int, effects: list[Effect]) -> None:
        """Tell our application what is new, and what is over."""
        self._sample(group, now)
        found = dict.fromkeys(self._find(group, now), now)
        if group.suspector.at is not None:  # else no look would find out that it is over
            found = {**self._lingering(group, now), **found}
        self.stalled = (group.roster.me, "stalled") in found
        name = group.view.group
        effects += [Concern(name, *each, over=True) for each in self._open if each not in found]
        effects += [Concern(name, *each) for each in found if each not in self._open]
        self._open = found
        if self._exclude_ns and not self.evicted and self._idle_ns(group, now) >= self._exclude_ns:
            self.evicted = True
            effects.append(Evicted(name, "stalled", now - self._progress[1]))

    def _lingering(self, group: "NewtopGroup", now: int) -> dict[tuple[ProcessId, ConcernReason], int]:
        """A lag that comes again and again is one lag: it is over when no look has found it for a while."""
        ranks, memory_ns = group.roster.ranks, self._memory_ns
        return {
            (process, reason): at
            for (process, reason), at in self._open.items()
            if reason == "lagging" and process in ranks and at + memory_ns > now
        }

    def _find(self, group: "NewtopGroup", now: int) -> Iterator[tuple[ProcessId, ConcernReason]]:
        roster = group.roster
        own, others = self._basis(now - self._limit_ns), self._basis(now - self._lag_ns)
        for process, rank in roster.ranks.items():
            basis = own if rank == roster.my_rank else others
            if basis is not None and (reason := self._late(group, rank, basis)) is not None:
                yield process, reason
            if rank != roster.my_rank:
                if self._is_relayed(group, process, rank):
                    yield process, "relayed"
                if group.deaf_since(process) is not None or self._times(self._accusers, process, now) >= _REPEATED:
                    yield process, "deaf"
        if group.gate.blocked and group.gate.blocked_at + self._limit_ns <= now:
            yield self._blocker(group), "blocking"

    def _late(self, group: "NewtopGroup", rank: int, basis: _Sample) -> ConcernReason | None:
        """What a member has owed since that sample: numbers and completions, or what only its application can do."""
        progress, mine = group.progress, rank == group.roster.my_rank
        taken = _taken(group, rank)
        if mine:
            return "stalled" if taken is not None and taken < basis.delivered else None
        behind = progress.completed.values[rank] < basis.block
        if not group.discipline.sequenced:
            behind = behind or progress.received.values[rank] < basis.number
        if behind:
            return "stalled" if rank in self._said_stalled else "lagging"
        return "stalled" if taken is not None and taken < basis.delivered else None

    def _is_relayed(self, group: "NewtopGroup", process: ProcessId, rank: int) -> bool:
        """Whether what a member sends reaches us only through others."""
        recovery, vouched = group.voice.recovery, self._vouched.get(process)
        if recovery is not None and recovery.relayed(process) >= _RELAYED_MIN:
            return True
        return vouched is not None and vouched.times >= _REPEATED and group.suspector.clock[rank] <= vouched.at

    def _blocker(self, group: "NewtopGroup") -> ProcessId:
        """The member that holds our messages back; the one that we have named, as long as it is one of them."""
        ranks, discipline = group.roster.ranks, group.discipline
        named = (process for process, reason in self._open if reason == "blocking")
        waited_for = (each for each in named if each in ranks and discipline.waits_for(ranks[each]))
        return next(waited_for, group.gate.blocked_by or group.roster.me)

    def _sample(self, group: "NewtopGroup", now: int) -> None:
        """Note how far the group is, and forget samples that are too old."""
        samples = self._samples
        sample = _Sample(now, group.discipline.largest, group.complete_block, _delivered(group))
        if not samples or samples[-1][1:] != sample[1:]:
            samples.append(sample)
        while len(samples) > 1 and samples[1].at + self._lag_ns <= now:
            samples.popleft()

    def _basis(self, at: int) -> _Sample | None:
        """The last sample that is as old as that."""
        return next((sample for sample in reversed(self._samples) if sample.at <= at), None)

    def _idle_ns(self, group: "NewtopGroup", now: int) -> int:
        """For how long our own application has taken nothing of what it was handed."""
        taken = _taken(group, group.roster.my_rank)
        if taken is None or taken >= _delivered(group) or taken != self._progress[0]:
            self._progress = taken or 0, now
        return now - self._progress[1]


def _taken(group: "NewtopGroup", rank: int) -> int | None:
    """Up to where the application of a member has taken everything, as it said; None where nobody counts that."""
    if group.flow is not None:
        return group.flow.completed.values[rank]
    return group.progress.completed.values[rank] if group.discipline.sequenced else None


def _delivered(group: "NewtopGroup") -> int:
    """The largest number that our own application was handed."""
    handed = group.consumption.handed
    last = (handed[-1] or 0) if handed else 0
    own = _taken(group, group.roster.my_rank)
    return max(last, own or 0)
