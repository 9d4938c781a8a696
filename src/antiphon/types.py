"""The nouns every room shares: who, where, in which view.

An identity is a name plus an incarnation (0, then +1 at each restart). Inside the product it is one string,
`name` for incarnation 0 and `name#2` for a later one, as it stands in traces: it hashes fast, prints well, and
two incarnations of one name never compare equal.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NewType

ProcessId = NewType("ProcessId", str)
"""`name` or `name#incarnation`; totally ordered as a string, which is the tie order of the protocols."""

GroupId = NewType("GroupId", str)
ViewId = NewType("ViewId", str)
WORLD: Final = ProcessId("world")
"""Under this name the simulator or the supervisor writes its own rows; no process may bear it."""


def process_id(name: str, incarnation: int = 0) -> ProcessId:
    """The identity of one incarnation of a named process."""
    return ProcessId(f"{name}#{incarnation}" if incarnation else name)


def split_process_id(process: ProcessId) -> tuple[str, int]:
    """The name and the incarnation behind an identity."""
    name, _, incarnation = process.partition("#")
    return name, int(incarnation or 0)


@dataclass(frozen=True, slots=True)
class View:
    """Who is in a group, as agreed by everyone who installs this view."""

    group: GroupId
    id: ViewId
    """Zero-padded epoch and count, then a digest of the history: ids of one process sort by installation."""
    members: tuple[ProcessId, ...]
    """Sorted; never empty."""
    previous: ViewId | None = None
    """The view it replaces at this process; None for the first."""
    transitional: tuple[ProcessId, ...] = ()
    """The members that came along from this process's previous view."""
    ranks: Mapping[ProcessId, int] = field(init=False, repr=False, compare=False)
    """Place of each member in `members`, made once and shared by all who install the view in one simulation."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ranks", {member: rank for rank, member in enumerate(self.members)})


def first_view(group: GroupId, members: frozenset[ProcessId]) -> View:
    """The configured view V0 of a static group, identical at all its members."""
    ordered = tuple(sorted(members))
    history = "\n".join((group, *ordered)).encode()
    digest = hashlib.blake2b(history, digest_size=8).hexdigest()
    return View(group, ViewId(f"0000.000000.{digest}"), ordered)
