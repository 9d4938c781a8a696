"""How long requests and repairs wait: bounds that adapt to what is observed.

Berket00 Figs 3.1, 3.2; errata R3, R4, R7. A timer is drawn from [low, low + high] distances. Too many duplicates widen
the range, long delays move it down. The figures compare delays with 1 and do not name the unit. In the default profile
it is a second; the SRM literature counts in round trips.
"""

from dataclasses import dataclass
from typing import Final, Literal

Profile = Literal["default", "intergroup", "srm", "distances", "round-trips"]
"""`intergroup`: repairs begin as slowly as printed. `srm`: requests adapt in the order of the SRM literature.

`distances`, `round-trips`: requests adapt in the printed order, and delays are counted in these units (R3).
"""

SECOND: Final = 1_000_000_000
_DISTANCES: Final[dict[Profile, int]] = {"distances": 1, "round-trips": 2, "srm": 2}
"""The unit of a request's delay, in distances; for other profiles it is a second."""
_EVERY_LOSS: Final[frozenset[Profile]] = frozenset(("distances", "round-trips"))
"""Profiles that time each loss until the first request by any process, as §3.2.2 says.

The others time every request of our own, as in Fig. 3.1.
"""
_GAIN: Final = 0.25
_SLACK: Final = 0.1
_TARGET: Final = 1.0
"""AVG_DUP_REQ, AVG_REQ_DELAY, AVG_RTX_DELAY."""


@dataclass(slots=True)
class Bounds:
    """The bounds of a timer, in distances; each stays within its own range."""

    low: float
    high: float
    low_range: tuple[float, float]
    high_range: tuple[float, float]

    def move(self, low: float = 0.0, high: float = 0.0) -> None:
        """Add to the bounds, and clamp them after each change (R4)."""
        self.low = min(max(self.low + low, self.low_range[0]), self.low_range[1])
        self.high = min(max(self.high + high, self.high_range[0]), self.high_range[1])

    def delay(self, distance: int, share: float) -> int:
        """The delay at that share of the range, 0 to 1."""
        return int((self.low + self.high * share) * distance)


def _averaged(average: float, observed: float) -> float:
    return (1 - _GAIN) * average + _GAIN * observed


class RequestBounds:
    """The bounds of the timers of requests."""

    def __init__(self, profile: Profile = "default") -> None:
        self.bounds = Bounds(2.0, 2.0, (0.5, 2.0), (1.0, 100.0))
        self._srm, self._every_loss = profile == "srm", profile in _EVERY_LOSS
        self._distances = _DISTANCES.get(profile)
        self._duplicates = self._delay = 0.0

    def asked(self, elapsed: int, distance: int, *, again: bool = False) -> None:
        """A request of ours left, `elapsed` after we noticed the loss; `again`: not the first one for it."""
        if not (again and self._every_loss):
            self._took(elapsed, distance)
        self.bounds.move(low=-0.05)

    def overheard(self, elapsed: int, distance: int) -> None:
        """The first request for a loss came from another process, `elapsed` after we noticed the loss."""
        if self._every_loss:
            self._took(elapsed, distance)

    def renew(self, duplicates: int) -> None:
        """Adapt before the timer of a new ticket starts; `duplicates`: requests heard twice since the last ticket."""
        self._duplicates = _averaged(self._duplicates, duplicates)
        if self._srm:
            self._as_srm()
        else:
            self._as_printed()

    def _took(self, elapsed: int, distance: int) -> None:
        unit = SECOND if self._distances is None else self._distances * distance
        self._delay = _averaged(self._delay, elapsed / unit)

    def _as_printed(self) -> None:
        """Fig. 3.1: delays are compared before duplicates."""
        few, quick = self._duplicates < _TARGET - _SLACK, self._delay < _TARGET - _SLACK
        if self._delay >= _TARGET:
            self.bounds.move(low=-0.05, high=-0.1 if few else 0.0)
        elif self._duplicates >= _TARGET:
            self.bounds.move(low=0.05 if quick else 0.0, high=0.5)
        elif few and quick:
            self.bounds.move(high=-0.1)

    def _as_srm(self) -> None:
        if self._duplicates >= _TARGET:
            self.bounds.move(low=0.1, high=0.5)
        elif self._duplicates < _TARGET - _SLACK:
            self.bounds.move(
                low=-0.05 if self._duplicates < _GAIN else 0.0, high=-0.1 if self._delay > _TARGET else 0.0
            )
        else:
            self.bounds.move(low=0.05)


class RepairBounds:
    """The bounds of the timers of repairs."""

    def __init__(self, profile: Profile = "default") -> None:
        first = 10.0 if profile == "intergroup" else 1.0  # R7: as printed, first repairs wait 10 to 20 distances
        self.bounds = Bounds(first, first, (0.5, 10.0), (1.0, 100.0))
        self._delay = 0.0

    def sent(self, elapsed: int) -> None:
        """A repair of ours left, `elapsed` after the request for it."""
        self._delay = _averaged(self._delay, elapsed / SECOND)
        self.bounds.move(low=-0.05)

    def cancelled(self, elapsed: int) -> None:
        """Another process was quicker with its repair."""
        self._delay = _averaged(self._delay, elapsed / SECOND)
        self.bounds.move(high=-0.05 if self._delay >= _TARGET else 0.1)

    def renew(self) -> None:
        """Adapt before the timer of a new repair starts."""
        if self._delay >= _TARGET:
            self.bounds.move(low=-0.05)
        elif self._delay < _TARGET - _SLACK:
            self.bounds.move(low=0.05)
