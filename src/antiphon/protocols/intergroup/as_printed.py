"""The printed rules that are wrong, each in a class of its own: evidence, for the simulator only.

Nothing else in the product knows of them. Numbers are those of docs/spec/errata-intergroup.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from antiphon.core.clocks import TimestampClock
from antiphon.protocols.intergroup.requests import BASE, Pending, Requests, Ticket
from antiphon.protocols.intergroup.rules import ADOPTED, Rules
from antiphon.protocols.intergroup.stability import Stability
from antiphon.protocols.intergroup.stream import Message, Stream
from antiphon.types import ProcessId


class EveryRequestCounts(Requests):
    """R1, §3.3: each request that is heard makes one wait three times as long, and nothing bounds that."""

    def heard(self, ticket: Ticket, now: int) -> None:
        """Those of one round arrive together."""
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
    """R2, Fig. 3.1: with its request the processing of a loss ends."""

    def _asked(self, ticket: Ticket, pending: Pending, now: int) -> None:
        """It is not missed again."""


class NoHold(Stability):
    """T5, §4.7.1: only the newcomer itself freezes what it reports, and that takes its time to get about."""

    def hold(self, joiner: ProcessId, start: int, until: int) -> None:
        """Nothing."""


class WallClock(TimestampClock):
    """T6: the reading of the clock is the stamp, if it is not below the last one."""

    __slots__ = ()

    def stamp(self, now: int) -> int:
        """Two messages at one reading have one stamp."""
        self.value = max(self.value, now)
        return self.value


class AfterTheFirst(Stream[Message]):
    """D1, Figs 4.2 and 4.3: the activation point is the first message to be delivered, and counts as delivered."""

    __slots__ = ()

    def __init__(self, first: int, horizon: int) -> None:
        super().__init__(first + 1, horizon)


class HastyKeepAlive(Stream[Message]):
    """D5, Fig. 4.3: a keep-alive counts at once, whatever is missing before it."""

    __slots__ = ()

    def keep_alive(self, seq: int, clock: int) -> None:
        """As if nothing were."""
        if seq >= self.last:
            self.horizon = max(self.horizon, clock)


_PRINTED: Final[Mapping[str, Mapping[str, Any]]] = {
    "R1": {"requests": EveryRequestCounts},
    "R2": {"requests": AskedOnce},
    "T5": {"stability": NoHold},
    "T6": {"clock": WallClock},
    "D1": {"stream": AfterTheFirst},
    "D5": {"stream": HastyKeepAlive},
}
ERRATA: Final = tuple(_PRINTED)
"""Those whose printed rule can be followed."""


def printed(errata: Iterable[str]) -> Rules:
    """The adopted rules, with these printed ones in their place."""
    rules = ADOPTED
    for erratum in errata:
        rules = replace(rules, **_PRINTED[erratum])
    return rules
