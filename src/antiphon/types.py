"""The nouns every room shares: who, where, in which view.

An identity is a name plus an incarnation (0, then +1 at each restart). Inside the product it is one string,
`name` for incarnation 0 and `name#2` for a later one, as it stands in traces: it hashes fast, prints well, and
two incarnations of one name never compare equal. A group is likewise its name and the epoch of its formation (0 for
a configured group): `name`, or `name@7`. No name contains '#' or '@'.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NewType

ProcessId = NewType("ProcessId", str)
"""`name` or `name#incarnation`; totally ordered as a string, which is the tie order of the protocols."""

GroupId = NewType("GroupId", str)
"""`name` or `name@epoch`."""
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


def group_id(name: str, epoch: int = 0) -> GroupId:
    """The identity of a named group as formed in one epoch."""
    return GroupId(f"{name}@{epoch}" if epoch else name)


def split_group_id(group: GroupId) -> tuple[str, int]:
    """The name and the epoch behind the identity of a group."""
    name, _, epoch = group.partition("@")
    return name, int(epoch or 0)


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
    receivers: tuple[ProcessId, ...] | None = None
    """Of a private view: to whom this process sends; None: all members."""
    senders: tuple[ProcessId, ...] | None = None
    """Of a private view: from whom it receives; None: all members."""
    excluded: tuple[ProcessId, ...] = ()
    """Who was removed on the way from the first view to this one, sorted."""
    primary: bool = True
    """Whether it holds a majority of the primary view before it; the first view is primary."""
    ranks: Mapping[ProcessId, int] = field(init=False, repr=False, compare=False)
    """Place of each member in `members`, made once and shared by all who install the view in one simulation."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ranks", {member: rank for rank, member in enumerate(self.members)})


def first_view(group: GroupId, members: frozenset[ProcessId]) -> View:
    """The configured view V0 of a static group, identical at all its members."""
    ordered = tuple(sorted(members))
    return View(group, _view_id(0, group, *ordered), ordered)


def next_view(view: View, lost: ProcessId) -> View:
    """The view after the loss of a member: all who were told of the same losses in the same order agree on its id."""
    members = tuple(member for member in view.members if member != lost)
    count = _count(view) + 1
    return View(view.group, _view_id(count, view.id, *members), members, previous=view.id, transitional=members)


def shrunk_view(view: View, failed: Iterable[tuple[ProcessId, int]], *, skips: bool = False) -> View:
    """The view without these, each with its agreed last number: whoever comes from `view` and agrees gets the same.

    One that skips a view in between is not primary: others may have installed that one, and it may be.
    """
    agreed = sorted(failed)
    gone = {process for process, _ in agreed}
    members = tuple(member for member in view.members if member not in gone)
    history = (view.id, *members, "", *(f"{process} {last}" for process, last in agreed))
    return View(
        view.group,
        _view_id(_count(view) + 1, *history),
        members,
        previous=view.id,
        transitional=members,
        excluded=tuple(sorted({*view.excluded, *gone})),
        primary=view.primary and not skips and 2 * len(members) > len(view.members),
    )


def signature(view: View) -> str:
    """What a member adds to its name in a view: a digest of whom it has excluded (Macedo94 §6.4).

    The thesis adds how many they are; but two sides of a split may have excluded equally many (E-29).
    """
    return hashlib.blake2b("\n".join(view.excluded).encode(), digest_size=8).hexdigest()


def private_view(
    process: ProcessId,
    group: GroupId,
    receivers: Iterable[ProcessId],
    senders: Iterable[ProcessId],
    previous: View | None,
) -> View:
    """Whom a process is connected with, as it alone sees it; its id is nobody else's."""
    to, of = tuple(sorted(receivers)), tuple(sorted(senders))
    members = tuple(sorted({*to, *of, process}))
    before = previous.members if previous is not None else ()
    name = _view_id(0 if previous is None else _count(previous) + 1, process, group, *to, "", *of)
    return View(
        group,
        name,
        members,
        previous=previous.id if previous is not None else None,
        transitional=tuple(member for member in members if member in before),
        receivers=to,
        senders=of,
    )


def _view_id(count: int, *history: str) -> ViewId:
    """Zero-padded epoch and count, then a digest of the history: ids of one process sort by installation."""
    digest = hashlib.blake2b("\n".join(history).encode(), digest_size=8).hexdigest()
    return ViewId(f"0000.{count:06d}.{digest}")


def _count(view: View) -> int:
    return int(view.id.split(".")[1])
