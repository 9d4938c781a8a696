"""What a watch shows: figures and verdicts so far, from its state; `dataclasses.asdict` gives the JSON."""

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
"""The properties that are judged while a run goes on; `check` judges all of them at the end."""


@dataclass(frozen=True, slots=True)
class Latency:
    """From the request to the delivery. Percentiles are accurate to 2 %; None if nothing was delivered."""

    count: int
    mean_ns: float | None
    p50_ns: float | None
    p99_ns: float | None
    max_ns: int


@dataclass(frozen=True, slots=True)
class Member:
    """A process incarnation in a group; rates are those of the last ten seconds of the run."""

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
    """The number of views, each counted once."""
    latency: Latency
    recent_latency: Latency
    alike: int | None
    """How many messages the members of the last view delivered in the same sequence; None if not comparable."""
    differ: bool
    """True if their sequences differ: a violation, unless they part after this view."""
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
    """Everything that a watch shows."""

    runs: list[WatchedRun]
    properties: list[Property]
    waiting: int
    """Rows that are not counted yet, because earlier ones are missing."""
    unmatched: int
    """Deliveries whose request is not known."""

    @property
    def violated(self) -> bool:
        """True if a property that was judged so far is violated."""
        return any(each.violations for each in self.properties)

    @property
    def over(self) -> bool:
        """True if every run has ended."""
        return bool(self.runs) and not self.waiting and all(run.ended for run in self.runs)


def figures(state: State) -> Figures:
    """The figures of the current state."""
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
    """How far the members of the latest view agree, by the marks that at least two of them have passed."""
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
        yield ("D8", group), _same_sets(group, _surviving_together(run, group, "D8"))
        yield ("O5", group), _same_sequences(group, _surviving_together(run, group, "O5"))


def _over_incarnations(run: Run, group: str) -> Count:
    """M2 from the last view of a process to the first one of its next incarnation that has any.

    Exception: an incarnation that enters a formed group has forgotten how often the group was formed.
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


_Survivor = tuple[str, Passage]
"""A process and its stay."""


def _surviving_together(run: Run, group: str, property_id: str) -> list[list[_Survivor]]:
    """Processes that left the same view for the same next one; connected processes also share a quiet end."""
    found: dict[tuple[str, str], list[_Survivor]] = defaultdict(list)
    for who, log, seat in _seats(run, group):
        if not log.promises(property_id, group):
            continue
        for passage in seat.passages:
            if passage.onward is not None:
                found[passage.view, passage.onward].append((who, passage))
        component = _component(run, who, log)
        if run.quiet and component is not None and seat.view is not None and not seat.left and who in seat.members:
            found[seat.view, f"end {component}"].append((who, Passage(seat.view, None, seat.stay)))
    return [survivors for survivors in found.values() if len(survivors) > 1]


def _component(run: Run, who: str, log: Log) -> int | None:
    if log.state != "stopped":
        return None
    if run.components is None:
        return 0
    names = {who, split_process_id(ProcessId(who))[0]}  # a recovered process is also found by its plain name
    return next((number for number, each in enumerate(run.components) if names & {*each}), None)


def _same_sets(group: str, together: Iterable[list[_Survivor]]) -> Count:
    """D8: they delivered the same messages. Each is compared with the largest camp that agrees."""
    count = Count()
    for survivors in together:
        camps = _camps(survivors)
        if any(stay.count for stay in _stays(survivors)):
            count.opportunities += len(survivors) * (len(survivors) - 1) // 2
        largest = max(camps, key=lambda camp: (len(camp), camp[0][1].stay.count))
        for camp in camps:
            for who, passage in camp if camp is not largest else ():
                count.violated(_described(who, largest[0][0], passage, group, "different messages"))
    return count


def _same_sequences(group: str, together: Iterable[list[_Survivor]]) -> Count:
    """O5 for processes that delivered the same messages: the same order. `check` compares the others."""
    count = Count()
    for survivors in together:
        comparable = [survivor for survivor in survivors if survivor[1].stay.count > 1]
        count.opportunities += len(comparable) * (len(comparable) - 1) // 2
        for camp in _camps(comparable):
            for (one, passage), (other, _) in _disagreeing(camp):
                count.violated(_described(one, other, passage, group, "the same messages in a different order"))
    return count


def _camps(survivors: Iterable[_Survivor]) -> list[list[_Survivor]]:
    """Group the processes by the messages that they delivered."""
    camps: dict[tuple[int, int], list[_Survivor]] = defaultdict(list)
    for survivor in survivors:
        camps[survivor[1].stay.count, survivor[1].stay.set].append(survivor)
    return [*camps.values()]


def _stays(survivors: Iterable[_Survivor]) -> Iterator[Stay]:
    return (passage.stay for _, passage in survivors)


def _disagreeing(camp: list[_Survivor]) -> Iterator[tuple[_Survivor, _Survivor]]:
    """All pairs that disagree."""
    if len({stay.sequence for stay in _stays(camp)}) > 1:
        for one, other in combinations(camp, 2):
            if one[1].stay.sequence != other[1].stay.sequence:
                yield one, other


def _described(who: str, other: str, passage: Passage, group: str, what: str) -> str:
    onward = f"to {passage.onward}" if passage.onward else "to the end"
    return f"{who} delivered {what} than {other} in view {passage.view} of {group}, and both went on {onward}"
