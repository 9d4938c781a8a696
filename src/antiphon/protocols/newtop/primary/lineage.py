"""Dynamic voting: whether a view may become primary after the ones before it (docs/spec/newtop.md 15).

A view becomes primary when all its members have attempted it. A member remembers the last primary view that it knows to
have been formed, and all later ones that it attempted: these may have been formed elsewhere. A new view may try only if
it has enough voters of each of them. So of two views that follow the same one, at most one is formed.

`decide` is a function of the claims alone. All members of a view have the same claims, so they decide the same.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from antiphon.types import ProcessId, ViewId, split_process_id

NAMES_MAX: Final = 4_096
"""How many members a view has at most, and how many names or attempts a claim."""

Rule = Literal["founded", "majority", "everybody", "lost", "static"]
"""Why a view may try: a member may found a lineage; enough voters; every voter is back; every voter is back, but none
has kept the state; most of a configured size."""


class PrimaryView(NamedTuple):
    """A view that was attempted, and perhaps formed."""

    number: int
    """Numbers rise from each primary view to the next."""
    view: ViewId
    voters: frozenset[ProcessId]
    """Its members."""
    left: frozenset[ProcessId] = frozenset()
    """Voters that have left gracefully since: they have passed their votes on."""


class Claim(NamedTuple):
    """What a member knows about primary views when it enters a view."""

    last: PrimaryView | None = None
    """The last one that it knows to have been formed."""
    attempts: tuple[PrimaryView, ...] = ()
    """Later ones that it attempted or heard of, and that may have been formed; by number."""
    met: frozenset[str] = frozenset()
    """Names of the processes that it has been in a view with since `last`."""
    entitled: bool = False
    """Whether it may found a lineage."""
    lapsed: bool = False
    """Whether its application has left the group, and its state of the primary views that it voted in is gone."""


class ClaimWord(NamedTuple):
    """The sender is in this view, has the group's state, and knows this about primary views."""

    view: ViewId
    claim: Claim


class AttemptWord(NamedTuple):
    """The sender has recorded that this view may be primary, with this number."""

    view: ViewId
    number: int


Word = ClaimWord | AttemptWord


class Outcome(NamedTuple):
    """What follows from the claims of all members of a view."""

    latest: PrimaryView | None
    """The last primary view that is known to have been formed."""
    open: tuple[PrimaryView, ...]
    """Later attempts that may have been formed."""
    number: int
    """The number of the view, if it becomes primary."""
    rule: Rule | None
    """Why it may try; None: it may not."""

    @property
    def after(self) -> tuple[ViewId, ...]:
        """The primary views that it follows."""
        latest = () if self.latest is None else (self.latest.view,)
        return (*latest, *(attempt.view for attempt in self.open))


def decide(claims: Mapping[ProcessId, Claim], size: int | None = None) -> Outcome:
    """May the view of these members try to become primary? `size`: the configured size; a majority of it decides."""
    known = _united(claims.values())
    lasts = [known[claim.last.view] for claim in claims.values() if claim.last is not None]
    latest = max(lasts, key=_age, default=None)
    passed = 0 if latest is None else latest.number
    later = (each for each in known.values() if each.number > passed and not _is_refuted(each, claims))
    possible = tuple(sorted(later, key=_age))
    number = 1 + max((each.number for each in known.values()), default=0)
    return Outcome(latest, possible, number, _vote(claims, latest, possible, size))


def _vote(
    claims: Mapping[ProcessId, Claim], latest: PrimaryView | None, possible: tuple[PrimaryView, ...], size: int | None
) -> Rule | None:
    """Why a view with these claims may follow these primary views."""
    if size is not None:
        return "static" if 2 * len(claims) > size else None
    members, met = frozenset(claims), frozenset[str]().union(*(claim.met for claim in claims.values()))
    lapsed = frozenset(process for process, claim in claims.items() if claim.lapsed)
    followed = possible if latest is None else (latest, *possible)
    rules = {enough(members, each, met, lapsed) for each in followed}
    if None in rules:
        return None
    if latest is None and not _may_found(claims, met):
        return None
    if "lost" in rules:
        return "lost"
    if latest is None:
        return "founded"
    return "everybody" if "everybody" in rules else "majority"


def _may_found(claims: Mapping[ProcessId, Claim], met: frozenset[str]) -> bool:
    """Whether these members may found a lineage. `met`: names that they know.

    Attempts alone show nothing: a process that may found the lineage may have done so elsewhere. Several may be
    entitled. If we have been in a view with one that is not here, it may found the lineage without us.
    """
    everybody = met <= {split_process_id(member)[0] for member in claims}
    return everybody and any(claim.entitled for claim in claims.values())


def enough(
    members: frozenset[ProcessId], before: PrimaryView, met: frozenset[str], lapsed: frozenset[ProcessId] = frozenset()
) -> Rule | None:
    """Does a view of these members have enough voters of a primary view? `met`: names that its members know.

    A restarted voter counts in two cases only. If exactly half of the voters are here, it breaks the tie: the other
    half cannot go on without it. And if every voter is here, restarted or not, no other side can go on.

    A lapsed voter remembers its attempts, so it votes. But its state is gone. One voter that has kept the state must be
    here too, unless every voter is here: then no voter elsewhere has it.
    """
    voters = before.voters - before.left
    same = voters & members
    if not same:
        return None
    kept = same - lapsed
    restarted = [voter for voter in voters - same if _is_restarted(voter, members)]
    if kept and (2 * len(same) > len(voters) or (2 * len(same) == len(voters) and restarted)):
        return "majority"
    names = {split_process_id(member)[0] for member in members}
    if len(same) + len(restarted) == len(voters) and met <= names:
        return "everybody" if kept else "lost"
    return None


def _united(claims: Iterable[Claim]) -> dict[ViewId, PrimaryView]:
    """All primary views in these claims, each with all leaves known to any claim."""
    known: dict[ViewId, PrimaryView] = {}
    for claim in claims:
        for each in (*claim.attempts, *(() if claim.last is None else (claim.last,))):
            other = known.get(each.view)
            known[each.view] = each if other is None else each._replace(left=each.left | other.left)
    return known


def _is_refuted(attempt: PrimaryView, claims: Mapping[ProcessId, Claim]) -> bool:
    """Whether a voter is here that never attempted it: then it was never formed."""
    return any(
        process in attempt.voters
        and (claim.last is None or claim.last.number < attempt.number)
        and all(each.view != attempt.view for each in claim.attempts)
        for process, claim in claims.items()
    )


def _age(primary: PrimaryView) -> tuple[int, ViewId]:
    return primary.number, primary.view


def _is_restarted(voter: ProcessId, members: frozenset[ProcessId]) -> bool:
    name, incarnation = split_process_id(voter)
    return any(
        other == name and later > incarnation for other, later in (split_process_id(member) for member in members)
    )


@dataclass(slots=True)
class Lineage:
    """What one process knows about the primary views of one group name.

    It lasts as long as the process, even if its application leaves the group and joins again: a voter that has
    forgotten its attempts must not vote.
    """

    last: PrimaryView | None = None
    attempts: dict[ViewId, PrimaryView] = field(default_factory=dict)
    """All have a higher number than `last`."""
    met: set[str] = field(default_factory=set)
    entitled: bool = False
    held: int = 0
    """The number of the last primary view that the application's state comes from; we may know of later ones."""
    lapsed: bool = False
    """Whether the application has left, so its state is gone; our memory of attempts is not.

    It ends when we decide with a member that has kept the state, or when a view is formed. A state transfer alone does
    not end it: the other side may have an older state.
    """

    @property
    def claim(self) -> Claim:
        """The claim for the other members."""
        attempts = tuple(sorted(self.attempts.values(), key=_age))
        return Claim(self.last, attempts, frozenset(self.met), self.entitled, self.lapsed)

    def meet(self, members: Iterable[ProcessId]) -> None:
        """We are in a view with these.

        A claim has room for `NAMES_MAX` names. If we have met more, the ones kept are still too many for any view.
        """
        for name in sorted({split_process_id(member)[0] for member in members} - self.met):
            if len(self.met) < NAMES_MAX:
                self.met.add(name)

    def pass_on(self, process: ProcessId) -> None:
        """That process has left gracefully: the votes of the others decide."""
        self.met.discard(split_process_id(process)[0])
        if self.last is not None:
            self.last = _without(self.last, process)
        self.attempts = {view: _without(attempt, process) for view, attempt in self.attempts.items()}

    def lapse(self) -> None:
        """Our application has left the group for good: its state is gone."""
        self.lapsed = True
        self.held = 0

    def learn(self, outcome: Outcome) -> None:
        """The members of our view know this together."""
        if outcome.latest is not None:
            self.last = outcome.latest
        # Also views that we did not attempt: a voter that passes its vote on also passes on its attempts.
        self.attempts = {attempt.view: attempt for attempt in outcome.open}
        if outcome.rule not in (None, "lost"):
            self.lapsed = False  # a member has kept the state of all these, and we have got it before our claim

    def attempt(self, primary: PrimaryView) -> None:
        """Record an attempt, before any other process can hear of it."""
        self.attempts[primary.view] = primary

    def form(self, primary: PrimaryView) -> None:
        """All members have attempted it."""
        self.last = primary
        self.held = primary.number
        self.lapsed = False
        self.attempts.clear()
        self.met = {split_process_id(voter)[0] for voter in primary.voters}


def _without(primary: PrimaryView, process: ProcessId) -> PrimaryView:
    """A copy without the vote of this process; the last voter keeps its vote, because no other voter is left."""
    left = primary.left | {process}
    return primary._replace(left=left) if left < primary.voters else primary
