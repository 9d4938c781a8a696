"""The types that all packages share: identities of processes and groups, and views.

The identity of a process is a name plus an incarnation: 0, then one more at each restart; on sockets a time with random
bits (`started_id`). It is one string: `name` for incarnation 0, `name#2` for a later one, also in traces. Such a string
hashes fast, prints well, and two incarnations of one name never compare equal. The identity of a group is its name plus
the number of its formation (0 for a configured group): `name` or `name@7`; an application and a trace see only the
name. No name contains '#' or '@'.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple, NewType

ProcessId = NewType("ProcessId", str)
"""`name` or `name#incarnation`. Protocols break ties in the order of these strings."""

GroupId = NewType("GroupId", str)
"""`name` or `name@formation`: a group that changes other than by losing members becomes a new group."""
ViewId = NewType("ViewId", str)
WORLD: Final = ProcessId("world")
"""The simulator and the supervisor write their own rows under this name; no process may have it."""


RANDOM_BITS: Final = 16
_SHORT_MS: Final = 250
_SHORT_MAX: Final = 1 << 31


def process_id(name: str, incarnation: int = 0) -> ProcessId:
    """The identity of one incarnation of a named process."""
    return ProcessId(f"{name}#{incarnation}" if incarnation else name)


def split_process_id(process: ProcessId) -> tuple[str, int]:
    name, _, incarnation = process.partition("#")
    return name, int(incarnation or 0)


def started_id(name: str, started_ms: int, chance: int) -> ProcessId:
    """The identity of a process that starts at this time: a later start has a larger number.

    The random bits distinguish processes of one name that start in the same millisecond, perhaps on two machines.
    """
    return process_id(name, started_ms << RANDOM_BITS | chance)


@lru_cache(maxsize=4_096)
def short_id(process: ProcessId) -> ProcessId:
    """The same identity in 31 bits, as traces write it: of a number that `started_id` made, the quarter of a second."""
    name, incarnation = split_process_id(process)
    if incarnation < _SHORT_MAX:
        return process
    return process_id(name, (incarnation >> RANDOM_BITS) // _SHORT_MS)


def group_id(name: str, formation: int = 0) -> GroupId:
    """The identity of a group: its name and the number of its formation."""
    return GroupId(f"{name}@{formation}" if formation else name)


def split_group_id(group: GroupId) -> tuple[str, int]:
    name, _, formation = group.partition("@")
    return name, int(formation or 0)


@lru_cache(maxsize=4_096)
def name_of(group: GroupId) -> GroupId:
    """The group without its formation: what its application calls it."""
    return GroupId(group.partition("@")[0])


_TOKEN_BITS: Final = 40
EPOCH_MAX: Final = (1 << 64 - _TOKEN_BITS) - 1
"""The largest epoch that fits into the number of a formation, which has 64 bits on the wire."""


def formed_group(name: str, epoch: int, initiator: ProcessId, attempt: int) -> GroupId:
    """The identity of a group that a process tries to form; unique to the process and to the attempt."""
    token = hashlib.blake2b(f"{initiator}/{attempt}".encode(), digest_size=_TOKEN_BITS // 8).digest()
    return group_id(name, epoch << _TOKEN_BITS | int.from_bytes(token))


def dice(text: str, sides: int) -> int:
    """A number below `sides` that looks random and is the same for the same text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) % sides


def epoch_of(group: GroupId) -> int:
    """Number of formations on the longest line of its history; 0 for a configured group."""
    return split_group_id(group)[1] >> _TOKEN_BITS


@dataclass(frozen=True, slots=True)
class View:
    """The members of a group, as agreed by all processes that install this view."""

    group: GroupId
    id: ViewId
    """Zero-padded epoch and count, then a digest of the history: the ids of one process sort by installation."""
    members: tuple[ProcessId, ...]
    """Sorted; empty only in InterGroup, if all senders have left."""
    previous: ViewId | None = None
    """The view that it replaces at this process; None for the first."""
    transitional: tuple[ProcessId, ...] = ()
    """The members that were also in this process's previous view, and come from it directly."""
    receivers: tuple[ProcessId, ...] | None = None
    """In a private view, the processes that this one sends to; None: all members."""
    senders: tuple[ProcessId, ...] | None = None
    """In a private view, the processes that this one receives from; None: all members."""
    excluded: tuple[ProcessId, ...] = ()
    """The processes removed since the first view, sorted."""
    primary: bool = True
    """True if it holds a majority of the primary view before it; the first view is primary."""
    classes: tuple[tuple[ProcessId, ...], ...] = ()
    """In the first view of a formed group: sets of members that come from one view; new ones are alone. Sorted."""
    alike: tuple[tuple[int, ...], ...] = ()
    """There too: places of classes whose members have delivered the same, so that they have one state."""
    receives: bool = False
    """True if the process that installs it only receives: it is not one of the members (InterGroup)."""
    ranks: Mapping[ProcessId, int] = field(init=False, repr=False, compare=False)
    """Place of each member in `members`; computed once, because a simulation shares a view between processes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ranks", {member: rank for rank, member in enumerate(self.members)})


def first_view(group: GroupId, members: frozenset[ProcessId]) -> View:
    """The configured view V0 of a static group, identical at all its members."""
    ordered = tuple(sorted(members))
    return View(group, _view_id(0, group, *ordered), ordered)


def next_view(view: View, lost: ProcessId) -> View:
    """The view after the loss of a member. Processes told of the same losses in the same order agree on its id."""
    members = tuple(member for member in view.members if member != lost)
    count = _count(view) + 1
    return View(view.group, _view_id(count, view.id, *members), members, previous=view.id, transitional=members)


def shrunk_view(view: View, failed: Iterable[tuple[ProcessId, int]], *, skips: bool = False) -> View:
    """The view without the failed processes, each with its agreed last number.

    All processes that come from `view` and agree on these get the same view. A view that `skips` one in between is not
    primary: other processes may have installed the skipped one, and it may be primary.
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
    """The members of a formed group that come from one view (a class in docs/spec/newtop.md)."""

    members: tuple[ProcessId, ...]
    """Sorted."""
    view: ViewId | None
    """The view that they come from; None: a single new process without a state."""
    size: int
    """Number of members of that view."""
    primary: bool
    """Whether that view was primary."""
    last: int = 0
    """Where views are voted on: the highest number of a primary view that the state of one of them comes from."""
    history: int = 0
    """Equal if they have delivered the same in the same formation; 0: not known."""


def formed_view(group: GroupId, base: int, companies: tuple[Company, ...], me: ProcessId) -> View:
    """The first view of a formed group, as `me` sees it; all processes that install it agree on its id.

    It is primary if it holds a majority of a primary view that members come from, or if all members are new.
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
        alike=_alike(companies),
    )


def _alike(companies: tuple[Company, ...]) -> tuple[tuple[int, ...], ...]:
    """The places of companies with equal histories, if there are several."""
    places: dict[int, list[int]] = {}
    for place, company in enumerate(companies):
        if company.history and company.view is not None:
            places.setdefault(company.history, []).append(place)
    return tuple(tuple(same) for same in places.values() if len(same) > 1)


def signature(view: View) -> str:
    """What a member adds to its name in a view: a digest of the processes that it has excluded (Macedo94 §6.4).

    The thesis adds their number, but two sides of a split may have excluded the same number (E-29).
    """
    return hashlib.blake2b("\n".join(view.excluded).encode(), digest_size=8).hexdigest()


def private_view(
    process: ProcessId,
    group: GroupId,
    receivers: Iterable[ProcessId],
    senders: Iterable[ProcessId],
    previous: View | None,
) -> View:
    """The processes that a process is connected with. Only this process has the view."""
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


def receiver_view(
    process: ProcessId, group: GroupId, name: ViewId, members: Iterable[ProcessId], previous: View | None
) -> View:
    """The view of a process that only receives: the senders that it hears, or itself if there are none.

    Only this process has the view.
    """
    there = tuple(sorted(members)) or (process,)
    before = previous.members if previous is not None else ()
    return View(
        group,
        name,
        there,
        previous=previous.id if previous is not None else None,
        transitional=tuple(member for member in there if member in before),
        receives=True,
    )


def _view_id(count: int, *history: str, epoch: int = 0) -> ViewId:
    """An id as `View.id` describes it."""
    digest = hashlib.blake2b("\n".join(history).encode(), digest_size=8).hexdigest()
    return ViewId(f"{epoch:04d}.{count:06d}.{digest}")


def _count(view: View) -> int:
    return int(view.id.split(".")[1])
