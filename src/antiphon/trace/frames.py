"""The fields of frames and payloads that a trace records."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from antiphon.types import GroupId, ProcessId, View

CARRIES = frozenset({"data", "submit"})
"""Kinds that carry whole messages of the application: to all members, or to the sequencer."""


class Traced(Protocol):
    """The fields of a frame that a row records: a `Frame` has them, and so has its record in a journal."""

    @property
    def group(self) -> GroupId: ...
    @property
    def sender(self) -> ProcessId: ...
    @property
    def author(self) -> ProcessId: ...
    @property
    def payloads(self) -> Sequence[object]:
        """Only their number matters."""

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
    """The fields of a payload that a row records."""

    size_bytes: int
    digest: int


def own_class(view: View, process: ProcessId) -> int:
    """The class of a process in the first view of a formation, by its place."""
    return next(place for place, members in enumerate(view.classes) if process in members)
