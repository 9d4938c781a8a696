"""Which messages every process has: the flat form of stability.

From docs/spec/intergroup.md 4.5; docs/spec/stability.md 2; errata T3, T5, J0, J3, J9, J16.

A process that acknowledges a stamp has delivered everything up to it. Members of the view always count. A member that
left counts while it is heard, until it has everything up to its own last message. A receiver counts while its
acknowledgment rises: a receiver that receives nothing must not block all others forever.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from antiphon.protocols.intergroup.settings import ASK_EVERY_NS
from antiphon.protocols.intergroup.stability.schedule import FORGET_AFTER, REPORTERS_MAX
from antiphon.types import ProcessId

HOLDS_MAX: Final = 1_024
"""At most this number of joiners is answered at a time: any process may use any name."""


@dataclass(slots=True)
class _Receiver:
    ack: int
    rose: int
    """The time at which `ack` last rose."""


@dataclass(slots=True)
class _Leaver:
    ack: int
    upto: int
    """The stamp of its last message."""
    heard: int


class Stability:
    """Stability in one group, as far as one process knows."""

    def __init__(
        self, me: ProcessId, members: Iterable[ProcessId], start: int, stall_ns: int, report_every_ns: int = 0
    ) -> None:
        self._me, self._least_stall_ns, self._report_every_ns = me, stall_ns, report_every_ns
        self._members = dict.fromkeys((member for member in members if member != me), 0)
        self._leavers: dict[ProcessId, _Leaver] = {}
        self._receivers: dict[ProcessId, _Receiver] = {}
        self._holds: dict[ProcessId, list[tuple[int, int]]] = {}
        """By joiner, for each answer that it has from us: the stamp that it begins at, and the end of the hold."""
        self._slowest_receiver = ProcessId("")
        """The receiver that acknowledged least when all were last compared: while it blocks, no other matters."""
        self._forget_at = 0
        self.stable = start
        """Every process that counts has everything with a stamp up to here."""

    @property
    def receivers(self) -> int:
        """Number of known processes that do not send."""
        return len(self._receivers)

    @property
    def _stall_ns(self) -> int:
        """RECV_STALL: a receiver without progress for this time does not count; many receivers report rarely."""
        return max(self._least_stall_ns, FORGET_AFTER * self._report_every_ns * len(self._receivers))

    # Members of the view

    def begin(self, members: Iterable[ProcessId], start: int, now: int) -> None:
        """A new view that all its members enter with everything up to `start`.

        Receivers follow later. Until they report, or for RECV_STALL, nothing of the new view is freed without them.
        """
        self._members = dict.fromkeys((member for member in members if member != self._me), 0)
        self._leavers.clear()
        self._holds.clear()
        self._forget_lost(now)
        self._receivers = {receiver: _Receiver(start, now) for receiver in self._receivers}
        self.stable = start

    def add(self, member: ProcessId) -> None:
        """The member was added to the view: it counts from now on, and no hold is needed for it."""
        self._holds.pop(member, None)
        self._leavers.pop(member, None)
        self._receivers.pop(member, None)
        if member != self._me:
            self._members[member] = 0

    def count(self, member: ProcessId) -> None:
        """The member is in the view that we have joined."""
        if member != self._me:
            self._members.setdefault(member, 0)

    def remove(self, member: ProcessId, upto: int, now: int) -> None:
        """The member left in order; its last message has the stamp `upto` (J3)."""
        ack = self._members.pop(member, None)
        if ack is not None:
            self._leavers[member] = _Leaver(ack, upto, now)

    def told(self, member: ProcessId, ack: int, now: int = 0) -> None:
        """A member of the view acknowledges; a late frame changes nothing."""
        if ack > self._members.get(member, ack):
            self._members[member] = ack
        leaver = self._leavers.get(member)
        if leaver is not None:
            leaver.ack, leaver.heard = max(leaver.ack, ack), now

    def is_with_members(self, stamp: int) -> bool:
        """True if every other member of the view has everything with a stamp up to here; receivers do not count."""
        return all(ack >= stamp for ack in self._members.values())

    # Receivers

    def reported(self, receiver: ProcessId, ack: int, now: int) -> None:
        """A process that does not send acknowledges."""
        if receiver in self._members:
            return  # a late report: it has been added since
        known = self._receivers.get(receiver)
        if known is None:
            if now >= self._forget_at:
                self._forget_lost(now)
            if len(self._receivers) < REPORTERS_MAX:
                self._receivers[receiver] = _Receiver(ack, now)
        elif ack > known.ack:
            known.ack, known.rose = ack, now

    def knows(self, receiver: ProcessId) -> bool:
        return receiver in self._receivers

    def _forget_lost(self, now: int) -> None:
        """Remove receivers that have not counted for long, so that crashed ones do not accumulate."""
        stall_ns = self._stall_ns
        self._forget_at = now + stall_ns
        lost = [each for each, known in self._receivers.items() if now - known.rose >= 2 * stall_ns]
        for receiver in lost:
            del self._receivers[receiver]

    def begun(self, receiver: ProcessId) -> None:
        """A report names us: the receiver has begun at a stamp that we told it (J9)."""
        self._holds.pop(receiver, None)

    def left(self, receiver: ProcessId) -> None:
        """The receiver has left the group."""
        self._receivers.pop(receiver, None)
        self._holds.pop(receiver, None)

    def hold(self, joiner: ProcessId, start: int, until: int, now: int) -> bool:
        """We told a joiner to begin above `start`: until it has begun, nothing above may become stable (T5).

        A joiner whose request came twice has two answers, and may begin with either. But a joiner that asks
        repeatedly and never begins must not block all others. So an older answer counts for two more requests: a joiner
        that uses it has begun long before, and has reported so. False if there are too many joiners to keep this.
        """
        if joiner not in self._holds and len(self._holds) >= HOLDS_MAX:
            return False
        soon = now + 2 * ASK_EVERY_NS
        older = [(place, min(end, soon)) for place, end in self._holds.get(joiner, ()) if place < start]
        self._holds[joiner] = [*older, (start, until)]
        return True

    # Conclusions

    def own_ack(self, gate: int, now: int) -> int:
        """The stamp that we acknowledge, having delivered everything up to `gate`."""
        if not self._holds:
            return gate
        open_holds = {joiner: [hold for hold in holds if hold[1] > now] for joiner, holds in self._holds.items()}
        self._holds = {joiner: holds for joiner, holds in open_holds.items() if holds}
        return min([gate, *(start for holds in self._holds.values() for start, _ in holds)])

    def slowest(self) -> ProcessId | None:
        """The other member that acknowledges least; None if we are alone."""
        return min(self._members, key=lambda member: (self._members[member], member), default=None)

    def conclude(self, own_ack: int, now: int, leaver_ns: int = 0) -> bool:
        """Update `stable`; True if it has risen. `leaver_ns`: how long a silent leaver counts.

        This runs after every frame. So it compares all receivers, perhaps thousands, only if nothing else blocks.
        """
        if min([own_ack, *self._members.values()]) <= self.stable or self._is_blocked(now):
            return False
        stall_ns = self._stall_ns
        acks = {receiver: each.ack for receiver, each in self._receivers.items() if now - each.rose < stall_ns}
        self._slowest_receiver = min(acks, key=acks.__getitem__, default=self._slowest_receiver)
        counting = [*acks.values()]
        if self._leavers:
            self._leavers = {
                leaver: each
                for leaver, each in self._leavers.items()
                if each.ack < each.upto and now - each.heard < leaver_ns
            }
            counting += [each.ack for each in self._leavers.values()]
        stable = min([own_ack, *self._members.values(), *counting])
        if stable <= self.stable:
            return False
        self.stable = stable
        return True

    def _is_blocked(self, now: int) -> bool:
        """True if the receiver that was slowest when all were compared still counts and has not moved on."""
        known = self._receivers.get(self._slowest_receiver)
        return known is not None and known.ack <= self.stable and now - known.rose < self._stall_ns
