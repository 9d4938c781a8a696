"""A stand-in for a frame of InterGroup, for tests of its parts."""

from typing import NamedTuple


class Said(NamedTuple):
    seq: int
    clock: int
    is_leave: bool = False
