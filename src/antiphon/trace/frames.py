"""What a trace tells of frames and payloads."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from antiphon.types import GroupId, ProcessId, View

CARRIES = frozenset({"data", "submit"})
"""Kinds that bring whole messages of the application: to all, or to the sequencer that numbers them for all."""


class Traced(Protocol):
    """What a row tells of a frame: a `Frame` has it, and so has the note of one in a journal."""

    @property
    def group(self) -> GroupId: ...
    @property
    def sender(self) -> ProcessId: ...
    @property
    def author(self) -> ProcessId: ...
    @property
    def payloads(self) -> Sequence[object]:
        """Only how many there are matters."""

    @property
    def label(self) -> int: ...
    @property
    def clock(self) -> int: ...
    @property
    def orderer(self) -> ProcessId | None: ...
    @property
    def kind(self) -> str: ...
    @property
    def serial(self) -> int | None: ...


class Mark(NamedTuple):
    """What a row tells of a payload."""

    size_bytes: int
    digest: int


def own_class(view: View, process: ProcessId) -> int:
    """The class of a process in the first view of a formation, by its place."""
    return next(place for place, members in enumerate(view.classes) if process in members)
