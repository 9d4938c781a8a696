"""The nouns every room shares: who, where, in which view.

An identity is a name plus an incarnation (0, then +1 at each restart). Inside the product it is one string,
`name` for incarnation 0 and `name#2` for a later one, as it stands in traces: it hashes fast, prints well, and
two incarnations of one name never compare equal. A group is likewise its name and the number of its formation (0 for
a configured group): `name`, or `name@7`; an application and a trace know it by its name. No name contains '#' or '@'.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple, NewType

ProcessId = NewType("ProcessId", str)
"""`name` or `name#incarnation`; totally ordered as a string, which is the tie order of the protocols."""

GroupId = NewType("GroupId", str)
"""`name` or `name@formation`: a group that changes otherwise than by losing members becomes another one."""
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


def group_id(name: str, formation: int = 0) -> GroupId:
    """The identity of a named group as formed once."""
    return GroupId(f"{name}@{formation}" if formation else name)


def split_group_id(group: GroupId) -> tuple[str, int]:
    """The name and the number of the formation behind the identity of a group."""
    name, _, formation = group.partition("@")
    return name, int(formation or 0)


@lru_cache(maxsize=4_096)
def name_of(group: GroupId) -> GroupId:
    """The group as its application knows it, whatever has become of it: the identity of the configured one."""
    return GroupId(group.partition("@")[0])


_TOKEN_BITS: Final = 40
EPOCH_MAX: Final = (1 << 64 - _TOKEN_BITS) - 1
"""What the number of a formation, which has 64 bits on the wire, has room for."""


def formed_group(name: str, epoch: int, initiator: ProcessId, attempt: int) -> GroupId:
    """The identity of what a process tries to form: nobody else, and no other attempt of it, forms the same."""
    token = hashlib.blake2b(f"{initiator}/{attempt}".encode(), digest_size=_TOKEN_BITS // 8).digest()
    return group_id(name, epoch << _TOKEN_BITS | int.from_bytes(token))


def dice(text: str, sides: int) -> int:
    """A number below `sides` that looks as if chance had drawn it, and is the same for the same text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) % sides


def epoch_of(group: GroupId) -> int:
    """How many formations lie behind it, on its longest line; 0 for a configured group."""
    return split_group_id(group)[1] >> _TOKEN_BITS


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
    classes: tuple[tuple[ProcessId, ...], ...] = ()
    """Of the first view of a formed group: who came along with whom, sorted; those from nowhere are alone."""
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
        _view_id(_count(view) + 1, *history, epoch=epoch_of(view.group)),
        members,
        previous=view.id,
        transitional=members,
        excluded=tuple(sorted({*view.excluded, *gone})),
        primary=view.primary and not skips and 2 * len(members) > len(view.members),
    )


class Company(NamedTuple):
    """Who goes over to a formed group together: all members of it that come from one view (newtop.md: a class)."""

    members: tuple[ProcessId, ...]
    """Sorted."""
    view: ViewId | None
    """None: from nowhere, alone, and without a state."""
    size: int
    """Of that view."""
    primary: bool
    """Whether it was."""


def formed_view(group: GroupId, base: int, companies: tuple[Company, ...], me: ProcessId) -> View:
    """The first view of a formed group, as `me` sees it; all who install it agree on its id.

    It is primary if it holds a majority of a primary view that some come from, or if all come from nowhere.
    """
    own = next(company for company in companies if me in company.members)
    history = [f"{','.join(company.members)} {company.view or ''}" for company in companies]
    origins = [company for company in companies if company.view is not None]
    return View(
        group,
        _view_id(0, group, str(base), *history, epoch=epoch_of(group)),
        tuple(sorted(member for company in companies for member in company.members)),
        previous=own.view,
        transitional=own.members if own.view is not None else (),
        primary=not origins or any(each.primary and 2 * len(each.members) > each.size for each in origins),
        classes=tuple(company.members for company in companies),
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


def onlooker_view(
    process: ProcessId, group: GroupId, count: int, members: Iterable[ProcessId], previous: View | None
) -> View:
    """What a process that only receives, and is in no view, sees of a group; its id is nobody else's.

    `count`: how many it had before. Where it follows nobody it is alone.
    """
    there = tuple(sorted(members)) or (process,)
    before = previous.members if previous is not None else ()
    return View(
        group,
        _view_id(count, process, group, *there),
        there,
        previous=previous.id if previous is not None else None,
        transitional=tuple(member for member in there if member in before),
    )


def _view_id(count: int, *history: str, epoch: int = 0) -> ViewId:
    """Zero-padded epoch and count, then a digest of the history: ids of one process sort by installation."""
    digest = hashlib.blake2b("\n".join(history).encode(), digest_size=8).hexdigest()
    return ViewId(f"{epoch:04d}.{count:06d}.{digest}")


def _count(view: View) -> int:
    return int(view.id.split(".")[1])
