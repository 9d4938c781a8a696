"""Distinct values, sorting and bisection over whole columns of codes, by counting if the values are dense.

Codes and numbers of a run are small and dense. A table over their range does in one pass what a sort or a search does
in many. Values that are sparse or negative are sorted and searched as usual, with equal results.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


_SPREAD: Final = 4
"""A dense table has at most this many cells per value."""
_FREE: Final = 1_000
"""A table up to this size is always cheap."""
_RADIX: Final = 2**16
"""Below this value numpy uses radix sort, in linear time."""


def distinct(values: IntArray) -> IntArray:
    """The values that occur, sorted, each once."""
    return np.flatnonzero(_seen(values)) if _dense(values) else np.unique(values)


def coded(values: IntArray) -> tuple[IntArray, IntArray]:
    """The values that occur, sorted, each once; and for each value its position among them."""
    if not _dense(values):
        found, places = np.unique(values, return_inverse=True)
        return found, places.astype(np.int64, copy=False)
    seen = _seen(values)
    return np.flatnonzero(seen), (np.cumsum(seen) - 1).take(values)


def firsts(values: IntArray) -> IntArray:
    """The first position of each value that occurs, in the order of values."""
    if not _dense(values):
        return np.unique(values, return_index=True)[1]
    first: IntArray = np.full(_top(values), -1, np.int64)
    first[values[::-1]] = np.arange(len(values))[::-1]  # backwards, so that the first wins
    return first[first >= 0]


def sorting(codes: IntArray) -> IntArray:
    """The stable sorting order of the codes."""
    small = len(codes) and int(codes.min()) >= 0 and int(codes.max()) < _RADIX
    return np.argsort(codes.astype(np.uint16) if small else codes, kind="stable")


def parts(codes: IntArray) -> list[tuple[int, IntArray]]:
    """Each code that occurs, with its positions."""
    order = sorting(codes)
    ordered = codes[order]
    begin = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    return list(zip(ordered[begin].tolist(), np.split(order, begin[1:]), strict=True)) if len(codes) else []


class Ranks:
    """Counts how many of some sorted values are below, or not above, the values asked for."""

    def __init__(self, values: IntArray) -> None:
        self._values = values
        self._table = np.searchsorted(values, np.arange(_top(values) + 1)) if _dense(values) else None

    def below(self, asked: IntArray) -> IntArray:
        """How many are smaller."""
        if self._table is None:
            return np.searchsorted(self._values, asked)
        return self._table.take(np.clip(asked, 0, len(self._table) - 1))

    def upto(self, asked: IntArray) -> IntArray:
        """How many are not larger."""
        if self._table is None:
            return np.searchsorted(self._values, asked, side="right")
        return self._table.take(np.clip(asked, -1, len(self._table) - 2) + 1)


def _dense(values: IntArray) -> bool:
    return bool(len(values)) and int(values.min()) >= 0 and int(values.max()) < max(_SPREAD * len(values), _FREE)


def _top(values: IntArray) -> int:
    return int(values.max()) + 1


def _seen(values: IntArray) -> npt.NDArray[np.bool_]:
    seen = np.zeros(_top(values), np.bool_)
    seen[values] = True
    return seen
