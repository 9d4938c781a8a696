"""Whether two sides of a split have delivered the same (docs/spec/newtop.md 11.2 rule 7).

A digest of all that was delivered in a formed group, in its order: messages, and states of its classes. Sides that come
from the same formation and have the same digest have equal states, so a merge transfers none between them.
"""

import hashlib
from typing import Final

from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.types import GroupId, ProcessId

_MASK: Final = (1 << 62) - 1
"""Numbers of frames are not larger."""
_FACTOR: Final = 0x2545F4914F6CDD1D
_BLOCK: Final = 0x1B873593CC9E2D51
_PLACE: Final = 0x27D4EB2F165667C5
"""Odd numbers that spread the bits of small ones."""


class Histories:
    """The digests of one process. Invariant: each step is taken at its place in the order, so at all members alike.

    A digest begins with the identity of the formed group. A message is told by its author and its number; where a
    sequencer gives the number, also by its place among the author's messages: two sides may use a number twice.
    """

    __slots__ = ("_digests", "_salts")

    def __init__(self) -> None:
        self._digests: dict[GroupId, int] = {}
        self._salts: dict[ProcessId, int] = {}

    def begin(self, group: GroupId) -> None:
        """We are in that formed group, and have delivered nothing in it."""
        self._digests[group] = _digest(group)

    def delivered(self, frame: BlockFrame) -> None:
        """A whole message, in a formed group."""
        digests, author = self._digests, frame.author
        if frame.group not in digests:
            return  # configured: its members have not begun at one place
        salt = self._salts.get(author)
        if salt is None:
            salt = self._salts[author] = _digest(author)
        number = (
            frame.block * _BLOCK if frame.ordering is None else frame.block * _BLOCK + frame.ordering.place * _PLACE
        )
        digests[frame.group] = (digests[frame.group] * _FACTOR + number + salt) & _MASK

    def told(self, group: GroupId, place: int) -> None:
        """The state of a class; a member that has not received it continues with another digest."""
        if group in self._digests:
            self._digests[group] = (self._digests[group] * _FACTOR + ~place) & _MASK

    def digest(self, group: GroupId) -> int:
        """0 if it is not known."""
        found = self._digests.get(group)
        return 0 if found is None else found or 1

    def forget(self, group: GroupId) -> None:
        """We are not in that group any more."""
        self._digests.pop(group, None)


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) & _MASK
