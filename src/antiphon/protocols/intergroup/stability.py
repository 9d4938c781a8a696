"""What everybody has: the flat form of stability (intergroup.md 4.5; stability.md 2; errata T3, T5, J0, J9, J16).

Whoever acknowledges a stamp has delivered everything up to it. Members of the view count always, a receiver while its
acknowledgment rises: one that hears nothing must not hold up everybody for ever.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from antiphon.protocols.intergroup.settings import ASK_EVERY_NS, HOLD_NS
from antiphon.types import ProcessId


@dataclass(slots=True)
class _Receiver:
    ack: int
    rose: int


class Stability:
    """Of one group, as one process knows it."""

    def __init__(self, me: ProcessId, members: Iterable[ProcessId], start: int, stall_ns: int) -> None:
        self._me, self._stall_ns = me, stall_ns
        self._members = dict.fromkeys((member for member in members if member != me), 0)
        self._receivers: dict[ProcessId, _Receiver] = {}
        self._holds: dict[ProcessId, list[tuple[int, int]]] = {}
        """By whom we let in: up to where, and until when, for each answer it has of us."""
        self.stable = start
        """Everything stamped up to here is held by everybody who counts."""

    @property
    def receivers(self) -> int:
        """How many are known that do not send."""
        return len(self._receivers)

    def told(self, member: ProcessId, ack: int) -> None:
        """A member of the view acknowledges; what comes late says nothing new."""
        if ack > self._members.get(member, ack):
            self._members[member] = ack

    def reported(self, receiver: ProcessId, ack: int, now: int) -> None:
        """Somebody who does not send does."""
        known = self._receivers.get(receiver)
        if known is None:
            self._forget_the_lost(now)
            self._receivers[receiver] = _Receiver(ack, now)
        elif ack > known.ack:
            known.ack, known.rose = ack, now

    def _forget_the_lost(self, now: int) -> None:
        """Who has not counted for long is no longer known: receivers that crash must not add up."""
        lost = [each for each, known in self._receivers.items() if now - known.rose >= 2 * self._stall_ns]
        for receiver in lost:
            del self._receivers[receiver]

    def begun(self, receiver: ProcessId) -> None:
        """Its report names us: it has begun with what we told it (J9)."""
        self._holds.pop(receiver, None)

    def left(self, receiver: ProcessId) -> None:
        """It reports no more."""
        self._receivers.pop(receiver, None)
        self._holds.pop(receiver, None)

    def hold(self, joiner: ProcessId, start: int, until: int) -> None:
        """Somebody was told to begin above that stamp: until it has, nothing above it may become stable (T5).

        Where its question came twice, it has two answers and may begin with either. But whoever asks again and again
        and never begins must not hold up everybody: an older answer counts for two questions more. Who has it has begun
        long before, and said so.
        """
        soon = until - HOLD_NS + 2 * ASK_EVERY_NS
        older = [(place, min(end, soon)) for place, end in self._holds.get(joiner, ()) if place < start]
        self._holds[joiner] = [*older, (start, until)]

    def own_ack(self, gate: int, now: int) -> int:
        """What we acknowledge, having delivered so much."""
        if not self._holds:
            return gate
        open_holds = {joiner: [hold for hold in holds if hold[1] > now] for joiner, holds in self._holds.items()}
        self._holds = {joiner: holds for joiner, holds in open_holds.items() if holds}
        return min([gate, *(start for holds in self._holds.values() for start, _ in holds)])

    def slowest(self) -> ProcessId | None:
        """The member that acknowledges least; None where there is no other."""
        return min(self._members, key=lambda member: (self._members[member], member), default=None)

    def conclude(self, own_ack: int, now: int) -> bool:
        """Whether more is stable than before."""
        counting = (each.ack for each in self._receivers.values() if now - each.rose < self._stall_ns)
        stable = min([own_ack, *self._members.values(), *counting])
        if stable <= self.stable:
            return False
        self.stable = stable
        return True
