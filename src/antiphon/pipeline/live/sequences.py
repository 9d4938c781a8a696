"""Incremental fingerprints of the deliveries in one view: of the set and of the sequence (properties.md 7.2)."""

import hashlib
from functools import cache
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from antiphon.pipeline.live.rows import IntArray

_Words = npt.NDArray[np.uint64]

MARK_EVERY: Final = 64
"""The sequence is marked after every this many deliveries, to compare members that are still in the view."""
_MARKS_KEPT: Final = 64


class Stay(msgspec.Struct):
    """The time that a process spends in one view of one group."""

    count: int = 0
    set: int = 0
    sequence: int = 0
    marks: list[tuple[int, int]] = msgspec.field(default_factory=list)
    """The latest marks: the number of deliveries, and the fingerprint of their sequence."""

    def take(self, streams: _Words, numbers: IntArray) -> None:
        """Take more messages, each delivered for the first time, in order."""
        messages = _mixed(streams ^ _mixed(numbers.astype(np.uint64)))
        places = np.arange(self.count, self.count + len(messages), dtype=np.uint64)
        running = np.cumsum(_mixed(messages ^ _mixed(places)), dtype=np.uint64) + np.uint64(self.sequence)
        reached = self.count + 1 + np.arange(len(messages))
        marked = np.flatnonzero(reached % MARK_EVERY == 0)
        self.marks += zip(reached[marked].tolist(), running[marked].tolist(), strict=True)
        del self.marks[:-_MARKS_KEPT]
        self.set = (self.set + int(messages.sum(dtype=np.uint64))) % 2**64
        self.sequence = int(running[-1])
        self.count += len(messages)


@cache
def stream_word(group: str, sender: str) -> int:
    """A 64-bit hash for the stream of a sender in a group."""
    return int.from_bytes(hashlib.blake2b(f"{group}/{sender}".encode(), digest_size=8).digest())


def _mixed(word: _Words) -> _Words:
    """The finalizer of splitmix64."""
    word = (word + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xD1B54A32D192ED03)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
