"""Sums, groups and look-ups over whole columns of codes and numbers."""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

UNKNOWN: Final = int(np.iinfo(np.int64).min)
"""Stands for a null time or number."""
FOR_EVER: Final = int(np.iinfo(np.int64).max)


def looked_up(asked: IntArray, known: IntArray, values: Iterable[IntArray]) -> list[IntArray]:
    """The values of what was asked for among what is known, in ascending order; `UNKNOWN` for the rest."""
    place = np.searchsorted(known, asked)
    place[place == len(known)] = 0
    hit = known[place] == asked if len(known) else np.zeros(len(asked), np.bool_)
    return [np.where(hit, each[place], UNKNOWN) if len(known) else np.full(len(asked), UNKNOWN) for each in values]


def since(begin: IntArray, end: IntArray) -> IntArray:
    return np.where(begin == UNKNOWN, UNKNOWN, end - np.where(begin == UNKNOWN, 0, begin))


def parts(codes: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Each code that occurs, with its positions."""
    place, known = dense(codes)
    yield from zip(known.tolist(), positions(place, len(known)), strict=True)


def positions(codes: IntArray, size: int) -> list[IntArray]:
    """For each code its positions, in ascending order."""
    if size == 1:
        return [np.arange(len(codes))]
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.searchsorted(codes[order], np.arange(1, size))) if size else []


def counted(codes: IntArray, size: int) -> list[int]:
    counts: list[int] = np.bincount(codes, minlength=size).tolist()
    return counts


def added(codes: IntArray, values: IntArray, size: int) -> list[int]:
    """Sums of small numbers: a double holds them exactly."""
    sums: list[int] = np.bincount(codes, weights=values, minlength=size).astype(np.int64).tolist()
    return sums


def least(codes: IntArray, values: IntArray, at: IntArray, size: int) -> list[int | None]:
    found: IntArray = np.full(size, FOR_EVER, np.int64)
    np.minimum.at(found, codes[at], values[at])
    return [None if value == FOR_EVER else value for value in found.tolist()]


def largest(codes: IntArray, values: IntArray, at: IntArray, size: int) -> list[int | None]:
    found: IntArray = np.full(size, UNKNOWN, np.int64)
    np.maximum.at(found, codes[at], values[at])
    return [None if value == UNKNOWN else value for value in found.tolist()]


def dense(values: IntArray) -> tuple[IntArray, IntArray]:
    """For each value a code, from 0 on, in the order of first occurrence; and the value of each code."""
    encoded = pa.array(values).dictionary_encode()
    return np.asarray(encoded.indices.to_numpy(), np.int64), np.asarray(encoded.dictionary.to_numpy(), np.int64)
