"""What a watch shows: figures and verdicts so far, from its state; `dataclasses.asdict` gives its JSON."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Final

from antiphon.pipeline.live.latencies import RECENT_S, SECOND_NS, Spread, together
from antiphon.pipeline.live.logs import Count, Log, Passage, Seat
from antiphon.pipeline.live.sequences import Stay
from antiphon.pipeline.live.state import GroupLatencies, Run, State
from antiphon.types import ProcessId, split_process_id

PROPERTIES: Final = ("M2", "D2", "D8", "O1", "O5")
"""What is judged on the way; all else, and what takes a whole run, `check` judges."""


@dataclass(frozen=True, slots=True)
class Latency:
    """From the request to the delivery. Percentiles are 2 % off at most; None where nothing was delivered."""

    count: int
    mean_ns: float | None
    p50_ns: float | None
    p99_ns: float | None
    max_ns: int


@dataclass(frozen=True, slots=True)
class Member:
    """A process incarnation in a group; rates are of the last ten seconds of the run."""

    process: str
    state: str
    """`up`, `left` the group, `stopped` or `crashed`."""
    sent: int
    delivered: int
    sent_per_second: float
    delivered_per_second: float
    view: str | None
    members: tuple[str, ...]
    view_changes: int
    suspicions: int
    refutations: int
    confirmations: int
    blocked: bool


@dataclass(frozen=True, slots=True)
class Group:
    """One group of a run."""

    group: str
    sent: int
    delivered: int
    views: int
    """How many views there were, each counted once."""
    latency: Latency
    recent_latency: Latency
    alike: int | None
    """Members of the last view delivered the same sequence up to here; None where nothing can be compared."""
    differ: bool
    """They do not: a violation, unless their ways part with this view."""
    members: list[Member]


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """One run, up to its last event so far."""

    run: str
    seconds: float
    events: int
    ended: bool
    quiet: bool | None
    groups: list[Group]


@dataclass(frozen=True, slots=True)
class Property:
    """A property over all runs, as far as a stream can judge it."""

    property: str
    group: str
    opportunities: int
    violations: int
    first: str | None


@dataclass(frozen=True, slots=True)
class Figures:
    """All of it."""

    runs: list[WatchedRun]
    properties: list[Property]
    waiting: int
    """Rows that are not counted, since some before them are missing."""
    unmatched: int
    """Deliveries whose request is not on record."""

    @property
    def violated(self) -> bool:
        """Whether a property that was judged on the way does not hold."""
        return any(each.violations for each in self.properties)

    @property
    def over(self) -> bool:
        """Whether every run has ended."""
        return bool(self.runs) and not self.waiting and all(run.ended for run in self.runs)


def figures(state: State) -> Figures:
    """As of now."""
    runs = [_run(name, run) for name, run in sorted(state.runs.items())]
    return Figures(runs, _properties(state.runs.values()), state.waiting, state.unmatched)


def _run(name: str, run: Run) -> WatchedRun:
    groups = sorted({group for log in run.members.values() for group in log.seats})
    return WatchedRun(
        run=name,
        seconds=run.now_ns / SECOND_NS,
        events=sum(log.rows for log in run.logs.values()),
        ended=run.over,
        quiet=run.quiet,
        groups=[_group(run, group) for group in groups],
    )


def _seats(run: Run, group: str) -> list[tuple[str, Log, Seat]]:
    return [(who, log, log.seats[group]) for who, log in sorted(run.members.items()) if group in log.seats]


def _group(run: Run, group: str) -> Group:
    seats = _seats(run, group)
    views = {passage.view for _, _, seat in seats for passage in seat.passages} | {seat.view for _, _, seat in seats}
    latencies = run.latencies.get(group, GroupLatencies())
    since = run.now_ns // SECOND_NS - RECENT_S
    alike, differ = _alike([seat for _, _, seat in seats])
    return Group(
        group=group,
        sent=sum(seat.sent for _, _, seat in seats),
        delivered=sum(seat.delivered for _, _, seat in seats),
        views=len(views - {None}),
        latency=_latency(latencies.all),
        recent_latency=_latency(together(each for second, each in latencies.recent.items() if second > since)),
        alike=alike,
        differ=differ,
        members=[_member(who, log, seat, run.now_ns) for who, log, seat in seats],
    )


def _latency(spread: Spread) -> Latency:
    mean = spread.sum / spread.count if spread.count else None
    return Latency(spread.count, mean, spread.percentile(0.5), spread.percentile(0.99), spread.max)


def _member(who: str, log: Log, seat: Seat, now_ns: int) -> Member:
    recent = [counts for second, counts in seat.recent.items() if second > now_ns // SECOND_NS - RECENT_S]
    span_s = min(RECENT_S - 1 + now_ns % SECOND_NS / SECOND_NS, now_ns / SECOND_NS) or 1.0
    return Member(
        process=who,
        state="left" if seat.left and log.state == "up" else log.state,
        sent=seat.sent,
        delivered=seat.delivered,
        sent_per_second=sum(sent for sent, _ in recent) / span_s,
        delivered_per_second=sum(delivered for _, delivered in recent) / span_s,
        view=seat.view,
        members=seat.members,
        view_changes=max(seat.views - 1, 0),
        suspicions=seat.suspicions,
        refutations=seat.refutations,
        confirmations=seat.confirmations,
        blocked=seat.blocked,
    )


def _alike(seats: Iterable[Seat]) -> tuple[int | None, bool]:
    """Up to where the members of the latest view agree, by the marks that two or more of them have passed."""
    present = [seat for seat in seats if seat.view is not None and not seat.private and not seat.left]
    latest = max((seat.view or "" for seat in present), default="")
    found: dict[int, set[int]] = defaultdict(set)
    passed = Counter[int]()
    for seat in present:
        for count, sequence in seat.stay.marks if seat.view == latest else ():
            found[count].add(sequence)
            passed[count] += 1
    shared = [count for count, times in passed.items() if times > 1]
    return max((count for count in shared if len(found[count]) == 1), default=None), any(
        len(found[count]) > 1 for count in shared
    )


# -------------------------------------------------------------------------------- verdicts so far


def _properties(runs: Iterable[Run]) -> list[Property]:
    counts: dict[tuple[str, str], Count] = {}
    for run in runs:
        for (property_id, group), count in _judged(run):
            whole = counts.setdefault((property_id, group), Count())
            whole.opportunities += count.opportunities
            whole.violations += count.violations
            whole.first = whole.first or count.first
    return [
        Property(property_id, group, count.opportunities, count.violations, count.first)
        for (property_id, group), count in sorted(counts.items())
    ]


def _judged(run: Run) -> Iterator[tuple[tuple[str, str], Count]]:
    for log in run.members.values():
        yield from log.counts.items()
    for group in sorted({group for log in run.members.values() for group in log.seats}):
        yield ("M2", group), _over_incarnations(run, group)
        yield ("D8", group), _same_sets(group, _companies(run, group, "D8"))
        yield ("O5", group), _same_sequences(group, _companies(run, group, "O5"))


def _over_incarnations(run: Run, group: str) -> Count:
    """M2 from the last view of a process to the first one of its next incarnation that has any.

    One that is taken into a formed group has forgotten how often it was formed.
    """
    count = Count()
    lives: dict[str, list[tuple[int, str, Log, Seat]]] = defaultdict(list)
    for who, log, seat in _seats(run, group):
        name, incarnation = split_process_id(ProcessId(who))
        if seat.view is not None and not seat.private and log.promises("M2", group):
            lives[name].append((incarnation, who, log, seat))
    for own in lives.values():
        for (_, _, _, before), (_, who, _, after) in pairwise(sorted(own, key=lambda life: life[0])):
            if not after.joined_formed:
                count.opportunities += 1
                if (after.first_view or "") <= (before.view or ""):
                    count.violated(f"{who} installed view {after.first_view} after view {before.view}")
    return count


_Gone = tuple[str, Passage]
"""Who, and its stay."""


def _companies(run: Run, group: str, property_id: str) -> list[list[_Gone]]:
    """Those who left the same view for the same next one; a quiet end is one too for those who are connected."""
    found: dict[tuple[str, str], list[_Gone]] = defaultdict(list)
    for who, log, seat in _seats(run, group):
        if not log.promises(property_id, group):
            continue
        for passage in seat.passages:
            if passage.onward is not None:
                found[passage.view, passage.onward].append((who, passage))
        component = _component(run, who, log)
        if run.quiet and component is not None and seat.view is not None and not seat.left and who in seat.members:
            found[seat.view, f"end {component}"].append((who, Passage(seat.view, None, seat.stay)))
    return [company for company in found.values() if len(company) > 1]


def _component(run: Run, who: str, log: Log) -> int | None:
    if log.state != "stopped":
        return None
    if run.components is None:
        return 0
    names = {who, split_process_id(ProcessId(who))[0]}  # who recovered goes by its name too
    return next((number for number, each in enumerate(run.components) if names & {*each}), None)


def _same_sets(group: str, companies: Iterable[list[_Gone]]) -> Count:
    """D8: they delivered the same messages. Each is held against the largest camp that agrees."""
    count = Count()
    for company in companies:
        camps = _camps(company)
        if any(stay.count for stay in _stays(company)):
            count.opportunities += len(company) * (len(company) - 1) // 2
        largest = max(camps, key=lambda camp: (len(camp), camp[0][1].stay.count))
        for camp in camps:
            for who, passage in camp if camp is not largest else ():
                count.violated(_told(who, largest[0][0], passage, group, "other messages"))
    return count


def _same_sequences(group: str, companies: Iterable[list[_Gone]]) -> Count:
    """O5, of those who delivered the same messages: in the same order. Of others `check` looks at what they share."""
    count = Count()
    for company in companies:
        comparable = [gone for gone in company if gone[1].stay.count > 1]
        count.opportunities += len(comparable) * (len(comparable) - 1) // 2
        for camp in _camps(comparable):
            for (one, passage), (other, _) in _disagreeing(camp):
                count.violated(_told(one, other, passage, group, "the same messages in another order"))
    return count


def _camps(company: Iterable[_Gone]) -> list[list[_Gone]]:
    """Those who delivered the same messages, together."""
    camps: dict[tuple[int, int], list[_Gone]] = defaultdict(list)
    for gone in company:
        camps[gone[1].stay.count, gone[1].stay.set].append(gone)
    return [*camps.values()]


def _stays(company: Iterable[_Gone]) -> Iterator[Stay]:
    return (passage.stay for _, passage in company)


def _disagreeing(camp: list[_Gone]) -> Iterator[tuple[_Gone, _Gone]]:
    """Pairs, if there is any disagreement at all."""
    if len({stay.sequence for stay in _stays(camp)}) > 1:
        for one, other in combinations(camp, 2):
            if one[1].stay.sequence != other[1].stay.sequence:
                yield one, other


def _told(who: str, other: str, passage: Passage, group: str, what: str) -> str:
    onward = f"to {passage.onward}" if passage.onward else "to the end"
    return f"{who} delivered {what} than {other} in view {passage.view} of {group}, and both went on {onward}"
