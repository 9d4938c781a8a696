"""Concerns: what is wrong with members that stay in the view (docs/spec/newtop.md 9.9).

A member that is slow, that does not hear us, or whose application does not read, holds the whole group back, although
it must not be suspected. It is detected by what members owe, and since when. A concern is reported only to our own
application and transmits nothing. There is one consequence, if the setting asks for it: a process leaves the group when
its own application has read nothing for too long. Only that process can know this.
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
"""One wrong suspicion may follow from a pause; this number of them means that one direction of a link is broken."""
_RELAYED_MIN: Final = 3
"""This number of consecutive frames that only others could repair means the same."""


class _Sample(NamedTuple):
    """The progress of the group at one check."""

    at: int
    number: int
    """The largest number: all members must send one at least as large."""
    block: int
    """The largest complete number: all members must complete it."""
    delivered: int
    """The largest number delivered to our application: all applications must consume it."""


class _Doubts(NamedTuple):
    """How often a link was found broken in one direction, and when last."""

    times: int
    at: int


class Concerns:
    """Invariant: `_open` holds the concerns that our application was told of, and that are not over."""

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
        """Whether our own application has not read for too long: our announcements say so."""
        self.evicted = False
        """Whether we leave the group because of that."""
        self._limit_ns = settings.suspect_after_ns // 2 + settings.silence_timeout_ns
        self._lag_ns = self._limit_ns * (2 if sequenced else 1)  # there a stall shows only by an announcement
        self._memory_ns = 4 * settings.suspect_after_ns
        self._exclude_ns = settings.exclude_stalled_after_ns
        self._open: dict[tuple[ProcessId, ConcernReason], int] = {}  # when a check last found it
        self._samples: deque[_Sample] = deque()  # one for each check that found progress of the group
        self._said_stalled: set[int] = set()  # ranks of members that announced that they are stalled
        self._vouched: dict[ProcessId, _Doubts] = {}  # members that others heard while we did not
        self._accusers: dict[ProcessId, _Doubts] = {}  # members that said that they do not hear us
        self._progress = 0, 0  # the last number that our application has consumed, and when

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

    # Checks

    def look(self, group: "NewtopGroup", now: int, effects: list[Effect]) -> None:
        """Check, and tell our application which concerns are new and which are over."""
        self._sample(group, now)
        found = dict.fromkeys(self._find(group, now), now)
        if group.suspector.at is not None:  # else no later check would end it
            found = {**self._lingering(group, now), **found}
        self.stalled = (group.roster.me, "stalled") in found
        name = group.view.group
        effects += [Concern(name, *each, over=True) for each in self._open if each not in found]
        effects += [Concern(name, *each) for each in found if each not in self._open]
        self._open = found
        if self._exclude_ns and not self.evicted:
            self._evict(group, now, effects)

    def _evict(self, group: "NewtopGroup", now: int, effects: list[Effect]) -> None:
        """Leave for our application if it has read nothing, or accepted no view, for too long."""
        since = group.change.unaccepted_since()
        waits = {"stalled": self._idle_ns(group, now), "unaccepted": 0 if since is None else now - since}
        reason = max(waits, key=waits.__getitem__)
        if waits[reason] >= self._exclude_ns:
            self.evicted = True
            effects.append(Evicted(group.view.group, reason, waits[reason]))

    def _lingering(self, group: "NewtopGroup", now: int) -> dict[tuple[ProcessId, ConcernReason], int]:
        """A repeated lag counts as one: it is over when no check has found it for a while."""
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
        for process, since in group.change.awaited(group.view).items():
            if since + self._limit_ns <= now:
                yield process, "unaccepted"
        if group.gate.blocked and group.gate.blocked_at + self._limit_ns <= now:
            yield self._blocker(group), "blocking"

    def _late(self, group: "NewtopGroup", rank: int, basis: _Sample) -> ConcernReason | None:
        """The concern if a member still owes what it owed at that sample: numbers, completions, or consumption."""
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
        """The member that holds our messages back; of several, the one that we have reported."""
        ranks, discipline = group.roster.ranks, group.discipline
        named = (process for process, reason in self._open if reason == "blocking")
        waited_for = (each for each in named if each in ranks and discipline.waits_for(ranks[each]))
        return next(waited_for, group.gate.blocked_by or group.roster.me)

    def _sample(self, group: "NewtopGroup", now: int) -> None:
        """Record the progress of the group, and drop samples that are too old."""
        samples = self._samples
        sample = _Sample(now, group.discipline.largest, group.complete_block, _delivered(group))
        if not samples or samples[-1][1:] != sample[1:]:
            samples.append(sample)
        while len(samples) > 1 and samples[1].at + self._lag_ns <= now:
            samples.popleft()

    def _basis(self, at: int) -> _Sample | None:
        """The last sample that is not newer than `at`."""
        return next((sample for sample in reversed(self._samples) if sample.at <= at), None)

    def _idle_ns(self, group: "NewtopGroup", now: int) -> int:
        """For how long our own application has consumed nothing although something is delivered."""
        taken = _taken(group, group.roster.my_rank)
        if taken is None or taken >= _delivered(group) or taken != self._progress[0]:
            self._progress = taken or 0, now
        return now - self._progress[1]


def _taken(group: "NewtopGroup", rank: int) -> int | None:
    """The number up to which the application of a member has consumed everything; None where that is not counted."""
    if group.flow is not None:
        return group.flow.completed.values[rank]
    return group.progress.completed.values[rank] if group.discipline.sequenced else None


def _delivered(group: "NewtopGroup") -> int:
    """The largest number delivered to our own application."""
    handed = group.consumption.handed
    last = (handed[-1] or 0) if handed else 0
    own = _taken(group, group.roster.my_rank)
    return max(last, own or 0)
