"""The figures of many runs together. Totals of different runs can be added up, so no process ever needs all runs."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from antiphon.pipeline.figures.kernel import Scope
from antiphon.pipeline.figures.measures import Experiment, GroupStatistics, Latency, RunStatistics
from antiphon.pipeline.figures.spreads import Spread
from antiphon.pipeline.figures.summing import (
    Measure,
    Row,
    costs_of,
    count_of,
    flow_of,
    idle_copies,
    largest,
    lasted_ns,
    ratio,
    tells_copies,
    traffic_of,
)

_ADDED: Final = (
    "sent delivered frames payload_bytes header_bytes stamp_bytes packed frames_with_copies copies wire_bytes "
    "sender_work receiver_work blocks blocked_ns"
).split()
_HIGHEST: Final = ("unstable_max", "unstable_blocks_max", "buffers_max")

_Key = tuple[str | None, str | None, bool]
"""Group, type of frame, and whether all useful work was done."""


@dataclass(slots=True)
class Mean:
    """The mean of the known values."""

    total: float = 0.0
    count: int = 0

    def add(self, value: float | None) -> None:
        """Count one value; None is unknown."""
        if value is not None:
            self.total, self.count = self.total + value, self.count + 1

    def merge(self, other: "Mean") -> None:
        """Count the values of the other too."""
        self.total, self.count = self.total + other.total, self.count + other.count

    @property
    def value(self) -> float | None:
        """None without values."""
        return ratio(self.total, self.count)


@dataclass(slots=True)
class Experiments:
    """Means over runs of what the experiments of the papers measure; nulls are added up."""

    delay_overhead_ns: Mean = field(default_factory=Mean)
    nulls: int = 0
    nulls_per_inactive_member: Mean = field(default_factory=Mean)
    first_sender_per_second: Mean = field(default_factory=Mean)
    per_second: Mean = field(default_factory=Mean)

    def add(self, run: Experiment, per_second: float | None = None) -> None:
        """Count one run."""
        self.delay_overhead_ns.add(run.delay_overhead_ns)
        self.nulls += run.nulls
        self.nulls_per_inactive_member.add(run.nulls_per_inactive_member)
        self.first_sender_per_second.add(run.first_sender_per_second)
        self.per_second.add(per_second)

    def merge(self, other: "Experiments") -> None:
        """Count the runs of the other too."""
        self.delay_overhead_ns.merge(other.delay_overhead_ns)
        self.nulls += other.nulls
        self.nulls_per_inactive_member.merge(other.nulls_per_inactive_member)
        self.first_sender_per_second.merge(other.first_sender_per_second)
        self.per_second.merge(other.per_second)

    @property
    def value(self) -> Experiment:
        """The means."""
        return Experiment(
            delay_overhead_ns=self.delay_overhead_ns.value,
            nulls=self.nulls,
            nulls_per_inactive_member=self.nulls_per_inactive_member.value,
            first_sender_per_second=self.first_sender_per_second.value,
        )


class _Course(msgspec.Struct):
    """What is added up once for each run."""

    lasted_ns: int = 0
    view_changes: int = 0
    idle_ns: int = 0
    idle_copies: int = 0
    tells_idle_copies: bool = True

    def merge(self, other: "_Course") -> None:
        self.lasted_ns += other.lasted_ns
        self.view_changes += other.view_changes
        self.idle_ns += other.idle_ns
        self.idle_copies += other.idle_copies
        self.tells_idle_copies &= other.tells_idle_copies


class _Packed(msgspec.Struct):
    """Totals in a form that can be sent to another process."""

    rows: list[tuple[_Key, dict[str, int | None]]]
    spreads: list[tuple[tuple[Measure, str | None], list[Any]]]
    course: _Course
    experiments: list[tuple[str | None, Experiments]]


class Totals:
    """Some runs together, and each group of theirs by its name."""

    def __init__(self, *, exact: bool) -> None:
        self._exact = exact
        self._rows: dict[_Key, dict[str, int | None]] = {}
        self._spreads: dict[tuple[Measure, str | None], Spread] = defaultdict(lambda: Spread(exact=exact))
        self._course = _Course()
        self._experiments: dict[str | None, Experiments] = defaultdict(Experiments)
        """By group; None stands for whole runs."""

    def add(self, run: RunStatistics, rows: Sequence[Row], spreads: Mapping[Scope, Spread]) -> None:
        """Count one run: its statistics, and what they were made of."""
        for row in rows:
            self._count((row["group"], row["type"], row["idle"]), row)
        for (measure, group, process), spread in spreads.items():
            if process is None:
                self._spreads[measure, group].merge(spread)
        idle_ns = max(largest(rows, "idle_ns") or 0, 0)
        copies = idle_copies(rows) if idle_ns else 0
        tells = not idle_ns or tells_copies(rows)
        self._course.merge(_Course(lasted_ns(rows), run.view_changes, idle_ns, copies, tells))
        self._experiments[None].add(run.experiment)
        for group_figures in run.groups:
            self._experiments[group_figures.group].add(group_figures.experiment, group_figures.per_second)

    def merge(self, other: "Totals") -> None:
        """Count the runs of other totals too."""
        for key, row in other._rows.items():
            self._count(key, row)
        for scope, spread in other._spreads.items():
            self._spreads[scope].merge(spread)
        self._course.merge(other._course)
        for group, experiments in other._experiments.items():
            self._experiments[group].merge(experiments)

    def _count(self, key: _Key, row: Row) -> None:
        known = self._rows.setdefault(key, dict.fromkeys((*_ADDED, *_HIGHEST)))
        for name in _ADDED:
            if row[name] is not None:
                known[name] = (known[name] or 0) + row[name]
        for name in _HIGHEST:
            if row[name] is not None:
                known[name] = max(known[name] or 0, row[name])

    def packed(self) -> bytes:
        """In a form that can be sent to another process."""
        spreads = [(scope, spread.packed()) for scope, spread in self._spreads.items()]
        return msgspec.msgpack.encode(
            _Packed([*self._rows.items()], spreads, self._course, [*self._experiments.items()])
        )

    @classmethod
    def unpacked(cls, packed: bytes, *, exact: bool) -> "Totals":
        """The inverse of `packed`."""
        found = msgspec.msgpack.decode(packed, type=_Packed)
        totals = cls(exact=exact)
        totals._rows = dict(found.rows)
        totals._spreads.update({scope: Spread.unpacked(spread) for scope, spread in found.spreads})
        totals._course = found.course
        totals._experiments.update(found.experiments)
        return totals

    def statistics(self) -> RunStatistics:
        """The figures of all runs together."""
        rows = self._named_rows()
        course, busy = self._course, [row for row in rows if not row["idle"]]
        names = sorted({row["group"] for row in rows if row["group"] is not None})
        copies_per_second = ratio(course.idle_copies * 1e9, course.idle_ns) if course.tells_idle_copies else None
        return RunStatistics(
            run=None,
            seconds=course.lasted_ns / 1e9,
            view_changes=course.view_changes,
            latency=self._latency("delivery"),
            stability_latency=self._latency("stability"),
            sent_to_nobody=count_of(self._latency("to nobody")),
            request_latency=self._latency("request"),
            traffic=traffic_of(rows),
            busy_traffic=traffic_of(busy),
            idle_copies_per_second=copies_per_second,
            unstable_max=largest(rows, "unstable_max"),
            flow=flow_of(rows),
            costs=costs_of(rows),
            experiment=self._experiments[None].value,
            groups=tuple(self._group(name, [row for row in rows if row["group"] == name]) for name in names),
        )

    def _group(self, name: str, rows: Sequence[Row]) -> GroupStatistics:
        experiments = self._experiments[name]
        return GroupStatistics(
            group=name,
            per_second=experiments.per_second.value,
            latency=self._latency("delivery", name),
            stability_latency=self._latency("stability", name),
            sent_to_nobody=count_of(self._latency("to nobody", name)),
            request_latency=self._latency("request", name),
            traffic=traffic_of(rows),
            busy_traffic=traffic_of([row for row in rows if not row["idle"]]),
            unstable_max=largest(rows, "unstable_max"),
            flow=flow_of(rows),
            experiment=experiments.value,
            members=(),
        )

    def _named_rows(self) -> list[Row]:
        ordered = sorted(self._rows.items(), key=lambda item: [part or "" for part in item[0][:2]])
        return [{"group": group, "type": kind, "idle": idle, **row} for (group, kind, idle), row in ordered]

    def _latency(self, measure: Measure, group: str | None = None) -> Latency | None:
        spread = self._spreads.get((measure, group))
        return None if spread is None else spread.latency()
