"""The contents of a comparison of protocols: the figures of each, and which properties it keeps and breaks.

Every property is judged for every protocol, promised or not. If a protocol breaks a property that it does not promise,
this is not an error. It is the difference from a protocol that promises it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from antiphon.pipeline.figures.measures import Latency, RunStatistics
from antiphon.properties.promises import JUDGED
from antiphon.properties.verdicts.summary import Overall
from antiphon.properties.verdicts.verdict import Outcome, Verdict

Standing = Literal["kept", "broken", "no opportunity", "cannot tell"]
"""How a property fared under a protocol, over all runs and groups."""

_STANDINGS: Final[Mapping[Outcome, Standing]] = {
    "violated": "broken",
    "harness error": "cannot tell",
    "pass": "kept",
    "vacuous": "no opportunity",
}
"""From the worst outcome to the best; `not promised` is missing, because then nothing was judged."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One column in which protocols are compared."""

    name: str
    kind: Literal["time", "ratio", "count", "work"]
    """Nanoseconds, a quotient, a whole number, or steps that only some protocols count."""
    of: Callable[[RunStatistics], float | None]


def _mean(latency: Latency | None) -> float | None:
    return None if latency is None else latency.mean_ns


def _p99(latency: Latency | None) -> float | None:
    return None if latency is None else latency.p99_ns


FIGURES: Final = (
    Figure("delivery mean", "time", lambda run: _mean(run.latency)),
    Figure("delivery p99", "time", lambda run: _p99(run.latency)),
    Figure("stability mean", "time", lambda run: _mean(run.stability_latency)),
    Figure("stability p99", "time", lambda run: _p99(run.stability_latency)),
    Figure("answer mean", "time", lambda run: _mean(run.request_latency)),
    Figure("answer p99", "time", lambda run: _p99(run.request_latency)),
    Figure("messages", "ratio", lambda run: run.busy_traffic.copies_per_message),
    Figure("wire bytes", "ratio", lambda run: run.busy_traffic.wire_bytes_per_message),
    Figure("header bytes", "ratio", lambda run: run.busy_traffic.header_bytes_per_message),
    Figure("idle messages per second", "ratio", lambda run: run.idle_copies_per_second),
    Figure("storage peak", "count", lambda run: run.unstable_max),
    Figure("sender work", "work", lambda run: run.costs.sender_work if run.costs else None),
    Figure("receiver work", "work", lambda run: run.costs.receiver_work if run.costs else None),
)
"""In the order of the columns."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result for a property, over all runs and groups of one protocol."""

    standing: Standing
    opportunities: int
    violations: int
    sentence: str | None
    """The sentence of the first violation, with its witness."""
    run: str | None
    """The run of the first violation."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """One property under one protocol."""

    property_id: str
    promise: Finding | None
    """The result within the promise (often only for each group by itself, or without crashes); None: not promised."""
    worded: Finding
    """The result for the property exactly as stated: for all processes, over all groups."""

    @property
    def promised(self) -> bool:
        """True if a process promises it in some run."""
        return self.promise is not None

    @property
    def standing(self) -> Standing:
        """The standing of the promise; without a promise, of the property as stated."""
        return (self.promise or self.worded).standing

    @property
    def goes_no_further(self) -> bool:
        """True if the promise is kept, but the property is broken beyond the promise."""
        return self.standing == "kept" and self.broken_beyond

    @property
    def broken_beyond(self) -> bool:
        """True if the property is broken only beyond the promise; the promise itself may have had no opportunity."""
        return self.promised and self.standing in ("kept", "no opportunity") and self.worded.standing == "broken"


@dataclass(frozen=True, slots=True)
class Contender:
    """One protocol with its service, in all its runs."""

    name: str
    """Such as `newtop:total`."""
    runs: tuple[str, ...]
    notes: tuple[str, ...]
    """What a reader must know before comparing its figures with others: sentences without the full stop."""
    figures: RunStatistics
    judgements: tuple[Judgement, ...]
    """In the order in which properties are judged."""

    @property
    def broken_promises(self) -> tuple[Judgement, ...]:
        """The promises that it breaks."""
        return tuple(each for each in self.judgements if each.promised and each.standing == "broken")

    @property
    def findings(self) -> tuple[tuple[Judgement, Finding], ...]:
        """What it breaks, promised or not, and what could not be judged."""
        found = []
        for each in self.judgements:
            if each.standing in ("broken", "cannot tell"):
                found.append((each, each.promise or each.worded))
            elif each.broken_beyond:
                found.append((each, each.worded))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that the table and the page of a comparison need."""

    scenario: str
    """Name of the scenario of the workload."""
    scenario_toml: str
    seeds: tuple[int, ...]
    antiphon_version: str
    percentiles: Literal["exact", "approximate"]
    contenders: tuple[Contender, ...]
    skipped: tuple[tuple[str, str], ...]
    """Protocols that cannot run the scenario, each with the reason."""

    @property
    def overall(self) -> Overall:
        """Whether every protocol keeps its promises; a broken promise outweighs a run that could not be judged."""
        if any(contender.broken_promises for contender in self.contenders):
            return "violated"
        standings = {each.standing for contender in self.contenders for each in contender.judgements}
        return "unknown" if not standings or "cannot tell" in standings else "hold"

    @property
    def figures(self) -> tuple[Figure, ...]:
        """The columns for which some protocol has a value."""
        return tuple(
            figure for figure in FIGURES if any(figure.of(each.figures) is not None for each in self.contenders)
        )

    @property
    def properties(self) -> tuple[str, ...]:
        """The properties judged for some protocol, in the order in which they are judged."""
        found = {each.property_id for contender in self.contenders for each in contender.judgements}
        return tuple(sorted(found, key=_place))


def judgements(promised: Iterable[Verdict], required: Iterable[Verdict]) -> tuple[Judgement, ...]:
    """Summarise the verdicts on all runs of one protocol: one entry for each property.

    `promised` are the verdicts on its promises, `required` those on all properties, required of all processes.
    """
    promises, worded = _by_property(promised), _by_property(required)
    return tuple(
        Judgement(
            property_id=each,
            promise=_finding(promises[each]) if each in promises else None,
            worded=_finding(worded.get(each) or promises[each]),
        )
        for each in sorted(promises.keys() | worded.keys(), key=_place)
    )


def _by_property(verdicts: Iterable[Verdict]) -> dict[str, list[Verdict]]:
    found: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.outcome in _STANDINGS:
            found.setdefault(verdict.property, []).append(verdict)
    return found


def _finding(verdicts: Sequence[Verdict]) -> Finding:
    worst = min((verdict.outcome for verdict in verdicts), key=list(_STANDINGS).index)
    example = next((verdict for verdict in verdicts if verdict.outcome == worst and verdict.example), None)
    return Finding(
        standing=_STANDINGS[worst],
        opportunities=sum(verdict.opportunities for verdict in verdicts),
        violations=sum(verdict.violations for verdict in verdicts),
        sentence=example.example.sentence if example and example.example else None,
        run=example.run if example else None,
    )


def _place(property_id: str) -> tuple[int, str]:
    return (JUDGED.index(property_id) if property_id in JUDGED else len(JUDGED)), property_id
