"""Whether two sides of a split have delivered the same (docs/spec/newtop.md 11.2 rule 7).

A digest of all that was delivered in a formed group, in its order: messages, and states of its classes. Sides that come
from the same formation and have the same digest have equal states, so a merge transfers none between them. This holds
only for applications whose state does not follow from views: each side has had its own.
"""

import hashlib
from functools import lru_cache
from typing import Final

from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.types import GroupId

_MASK: Final = (1 << 62) - 1
"""Numbers of frames are not larger."""
_FACTOR: Final = 0x2545F4914F6CDD1D
_BLOCK: Final = 0x1B873593CC9E2D51
_PLACE: Final = 0x27D4EB2F165667C5
"""Odd numbers that spread the bits of small ones."""
_HALF: Final = 31


class Histories:
    """The digests of one process. Invariant: each step is taken at its place in the order, so at all members alike.

    A digest begins with the identity of the formed group. A message is told by its author and its number; where a
    sequencer gives the number, also by its place among the author's messages: two sides may use a number twice.
    """

    __slots__ = ("_digests", "_ordered", "on")

    def __init__(self, *, on: bool, ordered: bool = True) -> None:
        self._ordered = ordered  # if members may deliver in different orders, their order does not count
        self.on = on
        """Whether the application's state follows from messages alone. If not, no digest is known."""
        self._digests: dict[GroupId, int] = {}

    def begin(self, group: GroupId) -> None:
        """We are in that formed group, and have delivered nothing in it."""
        if self.on:
            self._digests[group] = _digest(group)

    def delivered(self, frame: BlockFrame) -> None:
        """The application gets this message next."""
        digests = self._digests
        if frame.group not in digests:
            return  # configured: its members have not begun at one place
        number = frame.block * _BLOCK + _digest(frame.author)
        if frame.ordering is not None:
            number += frame.ordering.place * _PLACE
        self._add(frame.group, number)

    def told(self, group: GroupId, place: int) -> None:
        """The state of a class; a member that has not received it continues with another digest."""
        if group in self._digests:
            self._add(group, ~place)

    def digest(self, group: GroupId) -> int:
        """0 if it is not known."""
        found = self._digests.get(group)
        return 0 if found is None else found or 1

    def _add(self, group: GroupId, number: int) -> None:
        before = self._digests[group]
        after = before * _FACTOR + number if self._ordered else before + _spread(number)
        self._digests[group] = after & _MASK

    def forget(self, group: GroupId) -> None:
        """We are not in that group any more."""
        self._digests.pop(group, None)


def _spread(number: int) -> int:
    """Mix the bits, or sums of different messages would be equal."""
    for factor in (_FACTOR, _PLACE):
        number = (number & _MASK) * factor & _MASK
        number ^= number >> _HALF
    return number


@lru_cache(maxsize=4096)
def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) & _MASK
