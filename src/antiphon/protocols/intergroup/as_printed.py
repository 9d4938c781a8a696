"""The printed rules that are wrong, each in a class of its own: evidence, for the simulator only.

Nothing else in the product knows of them. The numbers are those of docs/spec/errata-intergroup.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from antiphon.core.clocks import TimestampClock
from antiphon.protocols.intergroup import as_printed_membership as membership
from antiphon.protocols.intergroup.delivery.stream import Message, Stream
from antiphon.protocols.intergroup.repair.requests import BASE, Pending, Requests
from antiphon.protocols.intergroup.rules import ADOPTED, Rules
from antiphon.protocols.intergroup.stability.stability import Stability
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId


class EveryRequestCounts(Requests):
    """R1, §3.3: each request that a process hears triples its delay, and nothing bounds the delay.

    The requests of one round arrive together, so they multiply it several times at once.
    """

    def heard(self, ticket: Ticket, now: int) -> None:
        pending = self._pending.get(ticket)
        if pending is not None:
            self._duplicates += pending.backoffs > 0
            self._overhear(pending, now)
            self._back_off(ticket, pending, now)

    def _back_off(self, ticket: Ticket, pending: Pending, now: int) -> None:
        pending.backoffs += 1
        self._arm(ticket, pending, now)

    def _delay(self, pending: Pending) -> int:
        return int(BASE**pending.backoffs) * self.bounds.bounds.delay(pending.distance, self._draw())


class AskedOnce(Requests):
    """R2, Fig. 3.1: the request ends the processing of a loss; it is never repeated."""

    def _asked(self, ticket: Ticket, pending: Pending, now: int) -> None: ...


class NoHold(Stability):
    """T5, §4.7.1: only the joiner itself freezes what it reports, and the others learn that too late."""

    def hold(self, joiner: ProcessId, start: int, until: int, now: int) -> bool:  # noqa: ARG002
        return True


class WallClock(TimestampClock):
    """T6: the reading of the clock is the stamp, if it is not below the last one; two messages may have one stamp."""

    __slots__ = ()

    def stamp(self, now: int) -> int:
        self.value = max(self.value, now)
        return self.value


class AfterTheFirst(Stream[Message]):
    """D1, Figs 4.2 and 4.3: the activation point is the first message to be delivered, and counts as delivered."""

    __slots__ = ()

    def __init__(self, first: int, horizon: int) -> None:
        super().__init__(first + 1, horizon)


class HastyKeepAlive(Stream[Message]):
    """D5, Fig. 4.3: a keep-alive counts at once, even if messages before it are missing."""

    __slots__ = ()

    def keep_alive(self, seq: int, clock: int) -> None:
        if seq >= self.last:
            self.horizon = max(self.horizon, clock)


# T3, §3.5: a process reports the stamp of the last message that it has delivered. Of a receiver in source order that is
# the largest stamp of any source, so it acknowledges what it lacks of the others. There is no class: `max` is the rule.
_PRINTED: Final[Mapping[str, Mapping[str, Any]]] = {
    "R1": {"requests": EveryRequestCounts},
    "R2": {"requests": AskedOnce},
    "T3": {"relevant": max},
    "T5": {"stability": NoHold},
    "T6": {"clock": WallClock},
    "D1": {"stream": AfterTheFirst},
    "D5": {"stream": HastyKeepAlive},
    "D9": {"participant": membership.MuteLeaver},
    "T4": {"buffer": membership.OthersUntilDelivered, "log": membership.NoRepairsOfOthers},
    "M4": {"repair": membership.AnnouncedOnce},
    "M8": {"participant": membership.AnyEpoch},
    "M11": {"participant": membership.AllAreForeign},
    "M14": {"seat": membership.CutAtStamp},
    "M15": {"ends": membership.longest_prefixes},
    "M16": {"seat": membership.SilentReset},
    "M19": {"participant": membership.SendsMeanwhile},
    "M27": {"joined_id": membership.same_id},
    "M29": {"senders": membership.NoBackOff},
    "J1": {"seat": membership.ChangesToTheEnd},
    "J2": {"seat": membership.LeaversForgotten, "stream": membership.LeaverHoldsBack},
    "J3": {"senders": membership.LeftAtOnce, "stability": membership.LeaversDoNotCount},
    "J4": {"participant": membership.AllFramesCount},
    "J8": {"senders": membership.LeaversUntold},
    "J10": {"joined_id": membership.later_id},
    "J12": {"senders": membership.Unprobed},
    "J13": {"receivers": membership.WaitsForAll},
    "J14": {"receivers": membership.PatientAsker},
    "J16": {"stability": membership.CountsForEver},
}
ERRATA: Final = tuple(_PRINTED)
"""The errata whose printed rule can be run."""


def printed(errata: Iterable[str]) -> Rules:
    """The adopted rules, except that these errata follow the printed rule."""
    rules = ADOPTED
    for erratum in errata:
        rules = replace(rules, **_PRINTED[erratum])
    return rules
