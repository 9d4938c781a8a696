"""A barrier: members wait until all members of the view have arrived, or a number of them.

Arrivals are messages in the group's order, and views have their place in it. So all members of a view pass a round at
the same place. A member that fails or leaves is not waited for; a member that joins is, if all must arrive. Each side
of a partition passes by itself: ask `group.primary` if only one may go on.
"""

import json
from typing import Final

from antiphon.api.events import Event, Message, Reset, View
from antiphon.api.group import Group
from antiphon.errors import ConfigurationError
from antiphon.recipes.marks import body_of
from antiphon.recipes.order import require_total
from antiphon.recipes.waiting import Waiting

_MARK: Final = b"\0barrier "
_AHEAD_MAX: Final = 1_024
"""Rounds after the last one that was passed; arrivals at later rounds are ignored. All members ignore the same ones."""
_DIGITS_MAX: Final = 18


class Barrier:
    """Rounds 1, 2, 3 … of one group. Invariant: arrivals are kept only for rounds that are not passed."""

    def __init__(self, group: Group, parties: int | None = None) -> None:
        """`parties`: how many members must arrive; None: all members of the view. It is the same at all members."""
        require_total(group, "Barrier")
        if parties is not None and (not isinstance(parties, int) or isinstance(parties, bool) or parties < 1):
            raise ConfigurationError(f"parties must be a whole number from 1, or None, not {parties!r}")
        self._group = group
        self._parties = parties
        self._waiting = Waiting(group)
        self._members = frozenset[str](() if group.view is None else group.view.members)
        self._arrived: dict[int, set[str]] = {}
        self.passed = 0
        """The last round that was passed."""

    async def wait(self, number: int | None = None) -> int:
        """Arrive at a round, by default the next one, and wait until it is passed; returns its number.

        A round that is passed already does not wait. If cancelled, the arrival stands.
        """
        current = self.passed + 1 if number is None else number
        if current > self.passed + _AHEAD_MAX:
            raise ConfigurationError(f"round {current} is more than {_AHEAD_MAX:,} after round {self.passed}")
        if current > self.passed:
            await self._group.send(_MARK + b"%d" % current)
            await self._waiting.until(lambda: self.passed >= current)
        return current

    def take(self, event: Event) -> bool:
        """Feed every event of the group; True if it was an arrival, readable or not. `Reset` needs `restore`."""
        body = body_of(event, _MARK)
        if isinstance(event, View):
            self._members = frozenset(event.members)
        elif isinstance(event, Message) and body is not None:
            current = _number(body)
            if self.passed < current <= self.passed + _AHEAD_MAX:
                self._arrived.setdefault(current, set()).add(event.sender)
        self._pass()
        return body is not None

    def state(self) -> bytes:
        """For `snapshot`, or a part of it."""
        arrived = [[number, sorted(processes)] for number, processes in sorted(self._arrived.items())]
        return json.dumps({"passed": self.passed, "arrived": arrived}).encode()

    def restore(self, reset: Reset, states: tuple[bytes, ...] | None = None) -> None:
        """Take over states at a `Reset`: what one side has passed is passed."""
        parts = [json.loads(part) for part in (reset.states if states is None else states)]
        self.passed = max([0, *(part["passed"] for part in parts)])
        self._arrived = {}
        for part in parts:
            for number, processes in part["arrived"]:
                if number > self.passed:
                    self._arrived.setdefault(number, set()).update(processes)
        self._pass()

    def _pass(self) -> None:
        """Rounds are passed in their order: a later round that is full passes the earlier ones too."""
        full = [number for number, processes in self._arrived.items() if self._is_full(processes)]
        if full:
            self.passed = max(full)
            self._arrived = {number: each for number, each in self._arrived.items() if number > self.passed}
        self._waiting.step()

    def _is_full(self, arrived: set[str]) -> bool:
        if self._parties is not None:
            return len(arrived) >= self._parties
        return bool(self._members) and self._members <= arrived


def _number(body: bytes) -> int:
    """Of a round; 0 if it cannot be read."""
    return int(body) if body.isdigit() and len(body) <= _DIGITS_MAX else 0
