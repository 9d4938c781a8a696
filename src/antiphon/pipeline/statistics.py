"""Figures of a dataset: latency, throughput, overhead, null messages, buffers; per run and over all runs.

Two Spark jobs give everything: one adds up whatever can be added, per run, group, process and frame type, and
the rest of the adding is done here; the other takes the latency percentiles, which cannot be added up.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

from antiphon.pipeline.read import count_events, events, find_event_files
from antiphon.pipeline.session import as_trace_error
from antiphon.pipeline.tables import deliveries, detail, detail_number
from antiphon.types import WORLD

EXACT_EVENTS_MAX: Final = 2_000_000
"""Up to this many events the percentiles are exact (interpolated); above, their ranks are good to 0.01 %."""

_TALLIED: Final = "run group process kind time requested payload_bytes header_bytes unstable".split()

_Row = Mapping[str, Any]
_Latencies = Mapping[tuple[str | None, str | None, str | None], "Latency"]
"""By run, group and delivering process, None standing for all."""


@dataclass(frozen=True, slots=True)
class Latency:
    """From the application's request to send until delivery, over `count` deliveries."""

    count: int
    mean_ns: float
    p50_ns: float
    p90_ns: float
    p99_ns: float
    max_ns: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """What was sent, delivered and transmitted; a ratio is None where its divisor is zero."""

    sent: int
    """Application messages sent."""
    delivered: int
    """Deliveries, added up over the members."""
    frames: dict[str, int]
    """Frames transmitted by type, each counted once whatever the fan-out."""
    null_share: float | None
    """Null frames in all frames."""
    nulls_per_message: float | None
    header_bytes_per_message: float | None
    """Protocol bytes of all frames, nulls included, per application message."""
    header_ratio: float | None
    """Protocol bytes in all bytes transmitted."""
    stamp_bytes_per_message: float | None
    """Ordering information of all frames, nulls included, per application message."""
    messages_per_data_frame: float | None
    """How well packing did."""


@dataclass(frozen=True, slots=True)
class MemberStatistics:
    """One process in one group, all its incarnations together."""

    process: str
    delivered: int
    per_second: float | None
    """Messages delivered per second, from the group's first request to this member's last delivery."""
    latency: Latency | None
    unstable_max: int | None
    """The most frames it held as unstable at once."""


@dataclass(frozen=True, slots=True)
class GroupStatistics:
    """One group of one run, or of all runs; then `members` is empty."""

    group: str
    per_second: float | None
    """The rate of the slowest member that neither crashed nor left; over all runs, the mean of the runs."""
    latency: Latency | None
    traffic: Traffic
    unstable_max: int | None
    members: tuple[MemberStatistics, ...]


@dataclass(frozen=True, slots=True)
class RunStatistics:
    """One run, or all runs together."""

    run: str | None
    """None: all runs."""
    latency: Latency | None
    traffic: Traffic
    groups: tuple[GroupStatistics, ...]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Figures of a dataset; `dataclasses.asdict` gives its JSON."""

    percentiles: Literal["exact", "approximate"]
    overall: RunStatistics
    runs: tuple[RunStatistics, ...]


@dataclass(frozen=True, slots=True)
class LatencyHistogram:
    """Deliveries of one group by latency, in bins of equal width."""

    group: str
    edges_ns: list[int]
    """One more than there are bins; a bin holds its lower edge and not its upper."""
    counts: list[int]


@dataclass(frozen=True, slots=True)
class MessagesOverTime:
    """How many sends, deliveries and null frames fell into each bin of time."""

    edges_ns: list[int]
    """One more than there are bins; a bin holds its lower edge and not its upper."""
    sends: list[int]
    deliveries: list[int]
    nulls: list[int]


def statistics(spark: SparkSession, directory: Path, *, exact_events_max: int = EXACT_EVENTS_MAX) -> Statistics:
    """All figures of a run directory or of a directory of many runs."""
    exact = count_events(find_event_files(directory)) <= exact_events_max
    source = events(spark, directory)
    with as_trace_error(directory):
        rows = _rows(tallies(source))
        taken = _by_scope(_rows(latencies(source, exact=exact)))
    runs = tuple(_run(run, own, taken) for run, own in _parted(rows, "run").items())
    return Statistics("exact" if exact else "approximate", _overall(rows, runs, taken), runs)


def tallies(events: DataFrame) -> DataFrame:
    """Everything that can be added up, for each run, group, process and frame type; the world left out."""
    rows = events.filter(F.col("process") != WORLD).select(
        *_TALLIED,
        F.when(F.col("kind") == "transmit", detail("type")).alias("type"),
        detail_number("stamp_bytes").alias("stamp_bytes"),
        detail_number("count").alias("count"),
    )
    return rows.groupBy("run", "group", "process", "type").agg(
        _count("send").alias("sent"),
        _count("deliver").alias("delivered"),
        _count("transmit").alias("frames"),
        _count("crash", "leave").alias("departures"),
        F.sum(_only("transmit", "payload_bytes")).alias("payload_bytes"),
        F.sum(_only("transmit", "header_bytes")).alias("header_bytes"),
        F.sum(_only("transmit", "stamp_bytes")).alias("stamp_bytes"),
        F.sum(_only("transmit", "count")).alias("packed"),
        F.min(_only("send", "requested")).alias("first_request_ns"),
        F.max(_only("deliver", "time")).alias("last_delivery_ns"),
        F.max("unstable").alias("unstable_max"),
    )


def latencies(events: DataFrame, *, exact: bool) -> DataFrame:
    """Latency per member, group and run, per group over all runs, and over all: null stands for all."""
    row = deliveries(events).select("run", "group", "process", "latency_ns").filter("latency_ns IS NOT NULL")
    sets = [["run", "group", "process"], ["run", "group"], ["run"], ["group"], []]
    shares = F.array(F.lit(0.5), F.lit(0.9), F.lit(0.99))
    quantiles = F.percentile if exact else F.percentile_approx
    figures = row.groupingSets(sets, "run", "group", "process").agg(
        F.count("latency_ns").alias("count"),
        F.mean("latency_ns").alias("mean_ns"),
        quantiles("latency_ns", shares).cast("array<double>").alias("shares"),
        F.max("latency_ns").alias("max_ns"),
    )
    p50, p90, p99 = (F.col("shares")[i].alias(name) for i, name in enumerate(("p50_ns", "p90_ns", "p99_ns")))
    return figures.select("run", "group", "process", "count", "mean_ns", p50, p90, p99, "max_ns")


def latency_histogram(
    spark: SparkSession, directory: Path, *, run: str | None = None, bins: int = 40
) -> list[LatencyHistogram]:
    """For each group, its deliveries by latency in at most `bins` bins from the least to the largest."""
    rows = deliveries(_of_run(events(spark, directory), run)).select("group", "latency_ns").dropna()
    bounds = rows.groupBy("group").agg(F.min("latency_ns").alias("low"), F.max("latency_ns").alias("high"))
    binned = _binned(rows.join(F.broadcast(bounds), on="group", how="inner"), "latency_ns", bins)
    with as_trace_error(directory):
        counted = _rows(binned.groupBy("group", "low", "high", "bin").agg(F.count("*").alias("count")))
    return [
        LatencyHistogram(group, _edges(own[0], bins), _filled(own, "count", bins))
        for group, own in sorted(_parted(counted, "group").items())
    ]


def messages_over_time(
    spark: SparkSession, directory: Path, *, run: str | None = None, bins: int = 60
) -> MessagesOverTime:
    """Sends, deliveries and null frames in at most `bins` bins of time, from the first event to the last."""
    source = _of_run(events(spark, directory), run)
    bounds = source.agg(F.min("time").alias("low"), F.max("time").alias("high"))
    is_null_frame = (F.col("kind") == "transmit") & (detail("type") == "null")
    rows = source.select("time", "kind", is_null_frame.alias("is_null_frame"))
    binned = _binned(rows.crossJoin(F.broadcast(bounds)), "time", bins)
    with as_trace_error(directory):
        counted = _rows(
            binned.groupBy("low", "high", "bin").agg(
                _count("send").alias("sends"),
                _count("deliver").alias("deliveries"),
                F.count_if("is_null_frame").alias("nulls"),
            )
        )
    if not counted:
        return MessagesOverTime([], [], [], [])
    kinds = ("sends", "deliveries", "nulls")
    return MessagesOverTime(_edges(counted[0], bins), *(_filled(counted, kind, bins) for kind in kinds))


def _count(*kinds: str) -> Column:
    return F.count_if(F.col("kind").isin(*kinds))


def _only(kind: str, column: str) -> Column:
    return F.when(F.col("kind") == kind, F.col(column))


def _of_run(events: DataFrame, run: str | None) -> DataFrame:
    return events if run is None else events.filter(F.col("run") == run)


def _binned(rows: DataFrame, column: str, bins: int) -> DataFrame:
    """Adds the number of the bin in which a value lies between the row's `low` and `high`."""
    return rows.withColumn("bin", F.expr(f"({column} - low) div ((high - low) div {bins} + 1)"))


def _width(row: _Row, bins: int) -> int:
    return int((row["high"] - row["low"]) // bins + 1)


def _edges(row: _Row, bins: int) -> list[int]:
    width = _width(row, bins)
    return [row["low"] + width * i for i in range((row["high"] - row["low"]) // width + 2)]


def _filled(rows: Sequence[_Row], column: str, bins: int) -> list[int]:
    """The counts of all bins, those without rows included."""
    counts = {row["bin"]: row[column] for row in rows}
    return [counts.get(i, 0) for i in range(len(_edges(rows[0], bins)) - 1)]


def _by_scope(rows: Iterable[_Row]) -> _Latencies:
    figures = ("count", "mean_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns")
    return {
        (row["run"], row["group"], row["process"]): Latency(**{name: row[name] for name in figures}) for row in rows
    }


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return rows


def _parted(rows: Iterable[_Row], column: str) -> dict[str, list[_Row]]:
    """Rows by the value of a column, in its order; rows without a value are left out."""
    parts = defaultdict(list)
    for row in rows:
        if row[column] is not None:
            parts[row[column]].append(row)
    return dict(sorted(parts.items()))


def _run(run: str, rows: Sequence[_Row], latencies: _Latencies) -> RunStatistics:
    departed = {row["process"] for row in rows if row["departures"]}
    groups = tuple(_group(run, group, own, departed, latencies) for group, own in _parted(rows, "group").items())
    return RunStatistics(run, latencies.get((run, None, None)), _traffic(rows), groups)


def _group(
    run: str, group: str, rows: Sequence[_Row], departed: AbstractSet[str], latencies: _Latencies
) -> GroupStatistics:
    first_request_ns = _least(rows, "first_request_ns")
    members = tuple(
        _member(process, own, first_request_ns, latencies.get((run, group, process)))
        for process, own in _parted(rows, "process").items()
    )
    rates = [member.per_second for member in members if member.process not in departed]
    return GroupStatistics(
        group=group,
        per_second=min((rate for rate in rates if rate is not None), default=None),
        latency=latencies.get((run, group, None)),
        traffic=_traffic(rows),
        unstable_max=_largest(rows, "unstable_max"),
        members=members,
    )


def _member(
    process: str, rows: Sequence[_Row], first_request_ns: int | None, latency: Latency | None
) -> MemberStatistics:
    delivered = _total(rows, "delivered")
    return MemberStatistics(
        process=process,
        delivered=delivered,
        per_second=_per_second(delivered, first_request_ns, _largest(rows, "last_delivery_ns")),
        latency=latency,
        unstable_max=_largest(rows, "unstable_max"),
    )


def _per_second(delivered: int, first_request_ns: int | None, last_delivery_ns: int | None) -> float | None:
    """Zero for a member that had something to deliver and delivered nothing."""
    if first_request_ns is None:
        return None
    if last_delivery_ns is None:
        return 0.0
    return _ratio(delivered * 1e9, last_delivery_ns - first_request_ns)


def _overall(rows: Sequence[_Row], runs: Sequence[RunStatistics], latencies: _Latencies) -> RunStatistics:
    groups = tuple(
        _group_overall(group, own, [part for run in runs for part in run.groups if part.group == group], latencies)
        for group, own in _parted(rows, "group").items()
    )
    return RunStatistics(None, latencies.get((None, None, None)), _traffic(rows), groups)


def _group_overall(
    group: str, rows: Sequence[_Row], parts: Iterable[GroupStatistics], latencies: _Latencies
) -> GroupStatistics:
    rates = [part.per_second for part in parts if part.per_second is not None]
    return GroupStatistics(
        group=group,
        per_second=fmean(rates) if rates else None,
        latency=latencies.get((None, group, None)),
        traffic=_traffic(rows),
        unstable_max=_largest(rows, "unstable_max"),
        members=(),
    )


def _traffic(rows: Sequence[_Row]) -> Traffic:
    frames = {kind: _total(own, "frames") for kind, own in _parted(rows, "type").items()}
    sent, header_bytes = _total(rows, "sent"), _total(rows, "header_bytes")
    nulls, data = frames.get("null", 0), frames.get("data", 0)
    packed = _total((row for row in rows if row["type"] == "data"), "packed")
    return Traffic(
        sent=sent,
        delivered=_total(rows, "delivered"),
        frames=frames,
        null_share=_ratio(nulls, sum(frames.values())),
        nulls_per_message=_ratio(nulls, sent),
        header_bytes_per_message=_ratio(header_bytes, sent),
        header_ratio=_ratio(header_bytes, header_bytes + _total(rows, "payload_bytes")),
        stamp_bytes_per_message=_ratio(_total(rows, "stamp_bytes"), sent),
        messages_per_data_frame=_ratio(packed, data),
    )


def _total(rows: Iterable[_Row], column: str) -> int:
    return sum(row[column] or 0 for row in rows)


def _least(rows: Iterable[_Row], column: str) -> int | None:
    return min((row[column] for row in rows if row[column] is not None), default=None)


def _largest(rows: Iterable[_Row], column: str) -> int | None:
    return max((row[column] for row in rows if row[column] is not None), default=None)


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None
