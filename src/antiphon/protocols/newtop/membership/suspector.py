"""The suspector: when silence makes a member suspect (docs/spec/newtop.md 9.2; Macedo94 §6.3.2, §7.2.12, completed).

It checks every quarter of the timeout while a member owes something, and not at all otherwise. To know how long a
number has been owed, it records the largest number at each check, so the cost per message is constant. It does the same
for acknowledgments, with the largest complete number, where deliveries wait for them (newtop.md 14, rule 3).
"""

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import ProcessId

if TYPE_CHECKING:
    from antiphon.protocols.newtop.group import NewtopGroup

_PROBE_STEP_NS: Final = 10_000_000
"""ε: members probe an idle group one after another, each this much later than the one before."""


class Suspector:
    """The clocks of one member in one group. A member is suspected if it is silent and owes us something."""

    __slots__ = (
        "_advanced",
        "_completed",
        "_formed_at",
        "_merges",
        "_pardoned",
        "_patience_ns",
        "_period_ns",
        "_probe_ns",
        "_samples",
        "_severed",
        "_stuck_ns",
        "at",
        "clock",
        "idle",
    )

    def __init__(self, size: int, settings: NewtopSettings, now: int = 0) -> None:
        self.clock = [0] * size
        """By rank, when something was last received; written directly by the parts that receive frames."""
        self.at: int | None = None
        """The time of the next check."""
        self.idle = settings.suspect_after_ns > 0
        """Whether checks pause until a member owes something; False for good if suspicion is off."""
        self._formed_at = now
        self._pardoned = [now] * size  # when a suspicion was last taken back, or the connection broke
        self._severed: set[int] = set()
        self._samples: deque[tuple[int, int]] = deque()  # (time, largest number then) of the checks that matter
        self._completed: deque[tuple[int, int]] = deque()  # (time, number to be acknowledged then), in safe groups
        self._advanced = [(0, now)] * size  # by rank, its last number at a check, and when that changed
        self._merges = settings.merge_every_ns > 0
        self._patience_ns = settings.suspect_after_ns
        self._stuck_ns = settings.stuck_after_ns
        self._period_ns = settings.suspect_after_ns // 4
        self._probe_ns = settings.idle_probe_ns if settings.suspect_after_ns else 0

    def begin(self, group: "NewtopGroup", now: int) -> None:
        """A member owes something from now on."""
        self.idle = False
        self._samples.append((now, group.discipline.largest))
        self._note_completion(group, now)
        self.at = now + self._period_ns

    def rest(self, group: "NewtopGroup", now: int) -> None:
        """No member owes anything: wait for the next probe, if idle groups are probed."""
        self.idle = self._patience_ns > 0
        self._samples.clear()
        self._completed.clear()
        self.at = max(self._probe_due(group), now + 1) if self._probes(group) else None

    def severed(self, rank: int, now: int) -> None:
        """The connection with it has lost frames: later frames are no sign of life (E-47)."""
        self._severed.add(rank)
        self._pardoned[rank] = now

    def remember(self) -> list[int]:
        """When something was last received from each member; for `recall`."""
        return self.clock[:]

    def recall(self, clock: list[int]) -> None:
        """Undo the signs of life since `remember`: those frames were relayed by others."""
        self.clock[:] = clock

    def is_severed(self, rank: int) -> bool:
        """Whether the connection with it is known to have lost frames."""
        return rank in self._severed

    def cut_off(self, group: "NewtopGroup") -> bool:
        """Whether a connection with a member is broken; after a separation, groups merge over the next one (E-89)."""
        return self._merges and not self._severed.isdisjoint(group.roster.ranks.values())

    def pardon(self, rank: int, now: int) -> None:
        """A suspicion was wrong: restart its clock, or the same silence would make it suspect at once."""
        self._pardoned[rank] = now

    def silent_ns(self, rank: int, now: int) -> int:
        """How long it has been silent."""
        return now - self._silent_since(rank)

    def look(self, group: "NewtopGroup", now: int) -> None:
        """Periodic check: suspect members that were silent for too long, show that we are alive, or probe."""
        if self.idle:
            if self._probes(group) and now >= self._probe_due(group):
                group.discipline.show_life(now)
                if self.idle and group.discipline.largest > group.complete_block:
                    self.begin(group, now)
        else:
            sampled = self._samples[-1][1] if self._samples else group.complete_block
            if group.discipline.largest > sampled:
                self._samples.append((now, group.discipline.largest))
            self._note_completion(group, now)
            self._accuse(group, now)
            group.agreement.evaluate(now)  # a grace period may be over
            owed = group.discipline.largest > group.complete_block
            if not owed and self._probes(group) and now >= self._probe_due(group):
                group.discipline.show_life(now)  # we wait for something other than numbers
        if group.discipline.largest > group.complete_block or group.unanswered:
            self._say_that_we_live(group, now)
            self.at = now + self._period_ns
            self.idle = False
        else:
            self.rest(group, now)

    def _accuse(self, group: "NewtopGroup", now: int) -> None:
        agreement, complete = group.agreement, group.complete_block
        while self._samples and self._samples[0][1] <= complete:
            self._samples.popleft()
        while self._completed and self._completed[0][1] <= group.progress.stable_block:
            self._completed.popleft()
        owing = group.change.owing(group.view)
        for process, rank in [*group.roster.ranks.items()]:
            reached = group.progress.received.values[rank]
            if reached != self._advanced[rank][0]:
                self._advanced[rank] = reached, now
            if rank != group.roster.my_rank and (reason := self._charge(group, process, rank, owing, now)):
                if reason == "stuck":
                    agreement.stuck(process, now)
                else:
                    agreement.suspect(process, reason, now)
        for process in agreement.accused(now - self._patience_ns):
            if self._pardoned[group.roster.ranks[process]] <= now - self._patience_ns:
                agreement.suspect(process, "accused", now)  # clause c, whether or not it is heard (E-50)

    def _charge(
        self, group: "NewtopGroup", process: ProcessId, rank: int, owing: Mapping[ProcessId, int], now: int
    ) -> str | None:
        """The reason to suspect a member: it owes a number, an acknowledgment (a), a vote (b), room (d), a flush (e).

        It may also owe a notice (E-77), in a new group a state (E-95), and where groups merge a connection (E-89). A
        deaf member may not know what it owes; that it does not answer is enough (E-80).
        """
        limit = now - self._patience_ns
        if self._deaf(group, process, now):
            return "deaf"
        owed = next((when for when, number in self._samples if number > group.progress.received.values[rank]), None)
        if self._is_stuck(group, rank, owed, now):
            return "stuck"
        if self._silent_since(rank) > limit:
            return None
        charges = (
            ("silent", owed),
            ("unacknowledged", self._unacknowledged_since(group, rank)),
            ("mute", group.agreement.mute(process)),
            ("blocking", group.gate.blocked_at if group.discipline.waits_for(rank) else None),
            ("unready", owing.get(process)),
            ("unready", group.leaving.owed_since(group.progress.acknowledged(rank))),
            ("unready", self._formed_at if group.transfer is not None and group.transfer.awaits(process) else None),
            ("severed", self._pardoned[rank] if self._merges and rank in self._severed else None),
        )
        return next((reason for reason, since in charges if since is not None and since <= limit), None)

    def _note_completion(self, group: "NewtopGroup", now: int) -> None:
        known = self._completed[-1][1] if self._completed else group.progress.stable_block
        if group.unacknowledged and group.awaited_block > known:
            self._completed.append((now, group.awaited_block))

    def _unacknowledged_since(self, group: "NewtopGroup", rank: int) -> int | None:
        """Since when we have completed a number that it has not acknowledged (docs/spec/newtop.md 14, rule 3)."""
        said = group.progress.acknowledged(rank)
        return next((when for when, number in self._completed if number > said), None)

    def _deaf(self, group: "NewtopGroup", process: ProcessId, now: int) -> bool:
        """On datagrams: whether it has not answered for a long time, so that the connection counts as broken."""
        since = group.deaf_since(process)
        if since is None:
            return False
        return max(since, self._pardoned[group.roster.ranks[process]]) + 2 * self._patience_ns <= now

    def _is_stuck(self, group: "NewtopGroup", rank: int, owed_since: int | None, now: int) -> bool:
        """Whether it is heard, but has sent no number for very long; a stalled member announces that (9.9)."""
        if owed_since is None or not self._stuck_ns:
            return False
        since = max(owed_since, self._advanced[rank][1], self._pardoned[rank])
        return since + self._stuck_ns <= now and not group.concerns.says_stalled(rank)

    def _silent_since(self, rank: int) -> int:
        if rank in self._severed:
            return self._pardoned[rank]
        return max(self.clock[rank], self._pardoned[rank])

    def _say_that_we_live(self, group: "NewtopGroup", now: int) -> None:
        """Send a sign of life: soon while clauses b to e may apply, otherwise at the pace of probes."""
        asks = group.gate.blocked and group.gate.blocked_at + self._period_ns <= now
        requested = group.leaving.completion_requested > 0
        presses = group.agreement.wary or requested or group.unacknowledged or group.transfer is not None
        patience = self._period_ns if presses else self._probe_ns
        if asks or (patience and group.numbers.spoke_at + patience <= now):
            group.discipline.say_alive(now, blocked=asks)

    def _probes(self, group: "NewtopGroup") -> bool:
        return self._probe_ns > 0 and len(group.view.members) > 1

    def _probe_due(self, group: "NewtopGroup") -> int:
        return group.numbers.row_at + self._probe_ns + group.roster.place * _PROBE_STEP_NS


class SteadySuspector(Suspector):
    """For asymmetric groups: no member owes numbers, but all send signs of life regularly (newtop.md 11.3 rule 6.2)."""

    __slots__ = ()

    def rest(self, group: "NewtopGroup", now: int) -> None:
        """Checks never pause, unless we are alone."""
        self.idle = False
        self.at = now + self._period_ns if self._period_ns and len(group.view.members) > 1 else None

    def look(self, group: "NewtopGroup", now: int) -> None:
        """Periodic check: suspect members that were silent for too long, then send a sign of life."""
        self._accuse(group, now)
        group.agreement.evaluate(now)
        if group.numbers.spoke_at + self._period_ns <= now:
            group.discipline.say_alive(now)
        self.rest(group, now)

    def _charge(
        self,
        group: "NewtopGroup",
        process: ProcessId,
        rank: int,
        owing: Mapping[ProcessId, int],  # noqa: ARG002
        now: int,
    ) -> str | None:
        if self._deaf(group, process, now):
            return "deaf"
        return "silent" if self._silent_since(rank) <= now - self._patience_ns else None
