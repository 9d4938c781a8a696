"""D(p,V) and D*(p,V): what a process delivered in a view, as set and as sequence, as fingerprints (properties.md 7.2).

A fingerprint is a count and two sums modulo 2^64 of independent hashes. For a set the hashes are of each message, so
the order does not matter; for a sequence they are of each message with its position. Rows are fetched only if two
fingerprints differ.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from antiphon.properties.tables.columns import IntArray
from antiphon.properties.tables.history import History

_Words = npt.NDArray[np.uint64]

_SEEDS: Final = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)


class Delivered:
    """The first deliveries of a run, by stay."""

    def __init__(self, history: History) -> None:
        first = history.first
        stay = history.first_stay
        order = np.argsort(stay, kind="stable")
        every = np.arange(len(history.stays.row))
        self._row, self._message = first.row[order], first.message[order]
        self._begin = np.searchsorted(stay[order], every)
        self._end = np.searchsorted(stay[order], every, side="right")
        self.count: IntArray = self._end - self._begin
        """The number of messages, by stay."""
        mixed = [_mixed(self._message, seed) for seed in _SEEDS]
        self._sums = [self._sum(words) for words in mixed]
        place = np.arange(len(self._message)) - np.repeat(self._begin, self.count)
        chained = [_mixed(words ^ _mixed(place, seed), seed) for words, seed in zip(mixed, _SEEDS, strict=True)]
        self._chains = [_running(words) for words in chained]

    def messages(self, stay: int) -> IntArray:
        """The messages delivered during the stay, in order of delivery."""
        return self._message[self._begin[stay] : self._end[stay]]

    def fingerprint(self, stay: int) -> tuple[int, int, int]:
        """Equal for equal sets; different for different ones, except with probability 2^-128."""
        return int(self.count[stay]), int(self._sums[0][stay]), int(self._sums[1][stay])

    def sequence(self, stay: int) -> tuple[int, int, int]:
        """Equal for equal sequences; different for different ones, except with probability 2^-128."""
        return self.opening(stay, int(self.count[stay]))

    def opening(self, stay: int, count: int) -> tuple[int, int, int]:
        """The fingerprint of the sequence of the first `count` messages of the stay."""
        begin = int(self._begin[stay])
        one, other = ((int(chain[begin + count]) - int(chain[begin])) % 2**64 for chain in self._chains)
        return count, one, other

    def rows(self, stay: int) -> IntArray:
        """The rows of the deliveries during the stay."""
        return self._row[self._begin[stay] : self._end[stay]]

    def rows_without(self, has: int, lacks: int) -> IntArray:
        """The rows of the deliveries of one stay whose messages the other does not have."""
        surplus = ~np.isin(self.messages(has), self.messages(lacks))
        return self.rows(has)[surplus]

    def _sum(self, words: _Words) -> _Words:
        running = _running(words)
        sums: _Words = running[self._end] - running[self._begin]
        return sums


def _running(words: _Words) -> _Words:
    """Prefix sums. A difference of two is right modulo 2^64, and 0 for an empty stay."""
    return np.concatenate([np.zeros(1, np.uint64), np.cumsum(words, dtype=np.uint64)])


def _mixed(codes: IntArray | _Words, seed: int) -> _Words:
    """The finalizer of splitmix64 over seeded codes."""
    word = (codes.astype(np.uint64) + np.uint64(1)) * np.uint64(seed)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
