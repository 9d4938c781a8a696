"""Distributions of latencies that can be added up: a count for each value, or for each narrow bin of values."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from antiphon.pipeline.figures.measures import Latency

IntArray = npt.NDArray[np.int64]

_BITS: Final = 11
"""Values below 2¹¹ have a bin each. Above, bins are at most 1/1,024 wide: a percentile is off by 0.05 % at most."""
_SHARES: Final = (0.5, 0.9, 0.99)
_PARTS_MAX: Final = 64
"""So many parts are kept before they are added up."""


class Spread:
    """How often each value occurs; mean and maximum are always exact."""

    __slots__ = ("_exact", "_highest", "_parts", "_total", "count")

    def __init__(self, *, exact: bool) -> None:
        self._exact = exact
        self._parts: list[tuple[IntArray, IntArray]] = []
        """Values in ascending order, and how often each occurs."""
        self._total = 0
        self._highest = 0
        self.count = 0
        """The number of values."""

    def add(self, values: IntArray) -> None:
        """Count these values."""
        if not len(values):
            return
        highest = int(values.max())
        self._highest = max(self._highest, highest) if self.count else highest
        self._total += int(values.sum())
        self.count += len(values)
        self._keep(np.unique(values if self._exact else binned(values), return_counts=True))

    def merge(self, other: "Spread") -> None:
        """Count the values of another spread too; it must be at least as exact as this one."""
        assert other._exact or not self._exact
        if not other.count:
            return
        self._highest = max(self._highest, other._highest) if self.count else other._highest
        self._total += other._total
        self.count += other.count
        for values, counts in other._parts:
            self._keep((values, counts) if self._exact == other._exact else _united(binned(values), counts))

    def latency(self) -> Latency | None:
        """The figures of the values; None if there are none."""
        if not self.count:
            return None
        values, counts = self._counted()
        p50, p90, p99 = _quantiles(values, counts)
        return Latency(self.count, self._total / self.count, p50, p90, p99, self._highest)

    def packed(self) -> list[Any]:
        """In a form that can be sent to another process."""
        values, counts = self._counted()
        return [self._exact, self.count, self._total, self._highest, values.tobytes(), counts.tobytes()]

    @classmethod
    def unpacked(cls, packed: list[Any]) -> "Spread":
        """The inverse of `packed`."""
        exact, count, total, highest, values, counts = packed
        spread = cls(exact=exact)
        spread.count, spread._total, spread._highest = count, total, highest
        spread._parts = [(np.frombuffer(values, np.int64), np.frombuffer(counts, np.int64))]
        return spread

    def _keep(self, part: tuple[IntArray, IntArray]) -> None:
        self._parts.append(part)
        if len(self._parts) > _PARTS_MAX:
            self._parts = [self._counted()]

    def _counted(self) -> tuple[IntArray, IntArray]:
        """All parts together."""
        if len(self._parts) == 1:
            return self._parts[0]
        values = np.concatenate([np.empty(0, np.int64), *(values for values, _ in self._parts)])
        return _united(values, np.concatenate([np.empty(0, np.int64), *(counts for _, counts in self._parts)]))


def _united(values: IntArray, counts: IntArray) -> tuple[IntArray, IntArray]:
    """Each value once, in ascending order, with the sum of its counts."""
    found, place = np.unique(values, return_inverse=True)
    together: IntArray = np.bincount(place, weights=counts, minlength=len(found)).astype(np.int64)
    return found, together


def _quantiles(values: IntArray, counts: IntArray) -> list[float]:
    """The percentiles of values that occur so often, interpolated between ranks."""
    upto = np.cumsum(counts)
    rank = np.array(_SHARES) * (upto[-1] - 1)
    below = np.floor(rank)
    low, high = (values[np.searchsorted(upto, at, side="right")] for at in (below, np.ceil(rank)))
    quantiles: list[float] = (low + (high - low) * (rank - below)).tolist()
    return quantiles


def binned(values: IntArray) -> IntArray:
    """For each value the middle of its bin, in a logarithmic scale with 1,024 bins for each doubling."""
    size: IntArray = np.abs(values)
    _, exponent = np.frexp(size.astype(np.float64))
    shift = np.maximum(exponent.astype(np.int64) - _BITS, 0)
    lowest = size >> shift << shift
    return np.sign(values) * (lowest + ((1 << shift) >> 1))
