"""Figures of a dataset: latency, throughput, overhead, flow control, buffers; per run, and over all or some runs.

Two Spark jobs give everything: one adds up whatever can be added, per run, group, process and frame type, and
the rest of the adding is done here; the other takes the latency percentiles, which cannot be added up.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import reduce
from pathlib import Path
from statistics import fmean
from typing import Final, Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

from antiphon.pipeline.measures import (
    Costs,
    Flow,
    GroupStatistics,
    Latency,
    MemberStatistics,
    RunStatistics,
    Statistics,
    Traffic,
)
from antiphon.pipeline.read import count_events, events, find_event_files
from antiphon.pipeline.session import as_trace_error
from antiphon.pipeline.tables import (
    Row,
    answers,
    count_kinds,
    deliveries,
    detail,
    detail_number,
    fetched,
    parted,
    stabilities,
)
from antiphon.types import WORLD

EXACT_EVENTS_MAX: Final = 2_000_000
"""Up to this many events the percentiles are exact (interpolated); above, their ranks are good to 0.01 %."""

_TALLIED: Final = "run group process incarnation kind time requested payload_bytes header_bytes unstable".split()
_USEFUL: Final = ("send", "deliver", "stable", "answer")
"""While such rows are still to come, a run is busy; afterwards it only sends what it sends at all times."""
_SPEAKS_ALWAYS: Final = "options.send_every"
"""What the `start` of a process tells where it speaks at regular times, so that a run is ended and does not end."""
_DATA: Final = frozenset({"data", "fragment"})
_REPAIRS: Final = frozenset({"status", "ack", "request", "repair"})

_Measure = Literal["delivery", "stability", "to nobody", "request"]
_Latencies = Mapping[tuple[_Measure, str | None, str | None, str | None], "Latency"]
"""By what is measured, run, group and process, None standing for all."""
_Ends = Mapping[tuple[str, str, int], int]
"""By run, process and incarnation."""


def statistics(spark: SparkSession, directory: Path, *, exact_events_max: int = EXACT_EVENTS_MAX) -> Statistics:
    """All figures of a run directory or of a directory of many runs."""
    source, exact = _source(spark, directory, exact_events_max)
    with as_trace_error(directory):
        rows = fetched(tallies(source))
        taken = fetched(latencies(waits(source).withColumn("part", F.lit("all")), exact=exact))
    return _statistics(rows, taken, exact=exact)


def statistics_of_parts(
    spark: SparkSession,
    directory: Path,
    parts: Mapping[str, Iterable[str]],
    *,
    exact_events_max: int = EXACT_EVENTS_MAX,
) -> dict[str, Statistics]:
    """All figures of each part of a directory of many runs; a part is some of its runs, and no run is in two."""
    source, exact = _source(spark, directory, exact_events_max)
    part_of = {run: part for part, runs in parts.items() for run in runs}
    pairs = spark.createDataFrame(list(part_of.items()), "run string, part string")
    with as_trace_error(directory):
        rows = fetched(tallies(source))
        placed = waits(source).join(F.broadcast(pairs), on="run", how="inner")
        taken = parted(fetched(latencies(placed, exact=exact)), "part")
    return {
        part: _statistics([row for row in rows if part_of.get(row["run"]) == part], taken.get(part, ()), exact=exact)
        for part in parts
    }


def _source(spark: SparkSession, directory: Path, exact_events_max: int) -> tuple[DataFrame, bool]:
    """The events, and whether they are few enough for exact percentiles."""
    return events(spark, directory), count_events(find_event_files(directory)) <= exact_events_max


def _statistics(rows: Sequence[Row], latencies: Iterable[Row], *, exact: bool) -> Statistics:
    taken = _by_scope(latencies)
    runs = tuple(_run(run, own, taken) for run, own in parted(rows, "run").items())
    return Statistics("exact" if exact else "approximate", _overall(rows, runs, taken), runs)


def tallies(events: DataFrame) -> DataFrame:
    """Everything that can be added up, for each run, group, process incarnation and frame type; the world left out.

    What happened after the last useful row of its run is added up apart, as `idle`.
    """
    timed = events.join(F.broadcast(phases(events)), on="run", how="left")
    rows = timed.filter(F.col("process") != WORLD).select(
        *_TALLIED,
        "idle_ns",
        F.coalesce(F.col("time") > F.col("done_ns"), F.lit(False)).alias("idle"),
        _when("transmit", detail("type")).alias("type"),
        _when("transmit", detail_number("stamp_bytes")).alias("stamp_bytes"),
        _when("transmit", detail_number("count")).alias("count"),
        _when("transmit", detail_number("copies")).alias("copies"),
        _when("stop", detail_number("costs.sender_work")).alias("sender_work"),
        _when("stop", detail_number("costs.receiver_work")).alias("receiver_work"),
        _when("gauge", detail("name")).alias("gauge"),
        _when("gauge", detail_number("value")).alias("value"),
    )
    frame_bytes = F.coalesce("payload_bytes", F.lit(0)) + F.coalesce("header_bytes", F.lit(0))
    waits_ns = F.when(F.col("kind") == "unblock", F.col("time")).when(F.col("kind") == "block", -F.col("time"))
    return rows.groupBy("run", "group", "process", "incarnation", "type", "idle").agg(
        count_kinds("send").alias("sent"),
        count_kinds("deliver").alias("delivered"),
        count_kinds("transmit").alias("frames"),
        count_kinds("crash", "leave", "join").alias("moves"),
        F.sum(_only("transmit", "payload_bytes")).alias("payload_bytes"),
        F.sum(_only("transmit", "header_bytes")).alias("header_bytes"),
        F.sum("stamp_bytes").alias("stamp_bytes"),
        F.sum("count").alias("packed"),
        F.count("copies").alias("frames_with_copies"),
        F.sum("copies").alias("copies"),
        F.sum(F.col("copies") * frame_bytes).alias("wire_bytes"),
        F.sum("sender_work").alias("sender_work"),
        F.sum("receiver_work").alias("receiver_work"),
        F.min(_only("send", "requested")).alias("first_request_ns"),
        F.max(_only("deliver", "time")).alias("last_delivery_ns"),
        F.max("unstable").alias("unstable_max"),
        count_kinds("block").alias("blocks"),
        count_kinds("unblock").alias("unblocks"),
        F.sum(waits_ns.cast("decimal(20,0)")).alias("waits_ns"),  # of times since 1970 a bigint holds the sum of four
        F.max("time").alias("last_ns"),
        F.max("idle_ns").alias("idle_ns"),
        _highest("unstable_blocks").alias("unstable_blocks_max"),
        _highest("buffers").alias("buffers_max"),
    )


def phases(events: DataFrame) -> DataFrame:
    """One row for each run: when all was done, and for how long it was idle then, in a run that was waited out.

    A run that ends when it falls silent has no idle time, and neither has one that was cut off while it was busy.
    """
    rows = events.filter(F.col("kind").isin("start", "end", *_USEFUL)).select(
        "run",
        _when("end", F.when(detail("quiet") == "true", F.col("time"))).alias("quiet_ns"),
        (_when("end", detail("reason")) == "duration").alias("is_cut_off"),
        _when("start", detail(_SPEAKS_ALWAYS)).isNotNull().alias("speaks_always"),
        F.when(F.col("kind").isin(*_USEFUL), F.col("time")).alias("useful_ns"),
    )
    runs = rows.groupBy("run").agg(
        F.max("useful_ns").alias("done_ns"),
        F.max("quiet_ns").alias("quiet_ns"),
        F.coalesce(F.bool_or("is_cut_off"), F.lit(False)).alias("is_cut_off"),
        F.bool_or("speaks_always").alias("speaks_always"),
    )
    is_waited_out = F.col("is_cut_off") | F.col("speaks_always")
    return runs.select("run", "done_ns", F.when(is_waited_out, F.col("quiet_ns") - F.col("done_ns")).alias("idle_ns"))


def waits(events: DataFrame) -> DataFrame:
    """One row for each time that a request led to something: what that is, where it came about, how long it took."""
    stable = stabilities(events).withColumn("measure", F.when(F.col("to_nobody"), "to nobody").otherwise("stability"))
    told = (
        deliveries(events).withColumn("measure", F.lit("delivery")),
        stable.withColumnRenamed("sender", "process"),
        answers(events).withColumn("measure", F.lit("request")),
    )
    alike = [rows.select("run", "group", "process", "measure", "latency_ns") for rows in told]
    return reduce(DataFrame.unionByName, alike).filter("latency_ns IS NOT NULL")


def latencies(waits: DataFrame, *, exact: bool) -> DataFrame:
    """Each measure per member, group and run, and per part of the runs and its groups: null stands for all."""
    within = ("measure", "part")
    sets = [["run", "group", "process"], ["run", "group"], ["run"], ["group"], []]
    shares = F.array(F.lit(0.5), F.lit(0.9), F.lit(0.99))
    quantiles = F.percentile if exact else F.percentile_approx
    figures = waits.groupingSets([[*within, *each] for each in sets], *within, "run", "group", "process").agg(
        F.count("latency_ns").alias("count"),
        F.mean("latency_ns").alias("mean_ns"),
        quantiles("latency_ns", shares).cast("array<double>").alias("shares"),
        F.max("latency_ns").alias("max_ns"),
    )
    p50, p90, p99 = (F.col("shares")[i].alias(name) for i, name in enumerate(("p50_ns", "p90_ns", "p99_ns")))
    return figures.select(*within, "run", "group", "process", "count", "mean_ns", p50, p90, p99, "max_ns")


def _only(kind: str, column: str) -> Column:
    return _when(kind, F.col(column))


def _when(kind: str, value: Column) -> Column:
    return F.when(F.col("kind") == kind, value)


def _highest(gauge: str) -> Column:
    return F.max(F.when(F.col("gauge") == gauge, F.col("value")))


def _by_scope(rows: Iterable[Row]) -> _Latencies:
    figures = ("count", "mean_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns")
    return {
        (row["measure"], row["run"], row["group"], row["process"]): Latency(**{name: row[name] for name in figures})
        for row in rows
    }


def _run(run: str, rows: Sequence[Row], latencies: _Latencies) -> RunStatistics:
    moved = {row["process"] for row in rows if row["moves"]}
    ends_ns = _ends(rows)
    groups = tuple(_group(run, group, own, moved, ends_ns, latencies) for group, own in parted(rows, "group").items())
    return _together(run, rows, groups, ends_ns, latencies)


def _together(
    run: str | None, rows: Sequence[Row], groups: tuple[GroupStatistics, ...], ends_ns: _Ends, latencies: _Latencies
) -> RunStatistics:
    """The figures of all groups of a run, or of several runs."""
    return RunStatistics(
        run=run,
        latency=latencies.get(("delivery", run, None, None)),
        stability_latency=latencies.get(("stability", run, None, None)),
        sent_to_nobody=_count(latencies.get(("to nobody", run, None, None))),
        request_latency=latencies.get(("request", run, None, None)),
        traffic=_traffic(rows),
        busy_traffic=_traffic([row for row in rows if not row["idle"]]),
        idle_copies_per_second=_idle_copies_per_second(rows),
        unstable_max=_largest(rows, "unstable_max"),
        flow=_flow(rows, ends_ns),
        costs=_costs(rows),
        groups=groups,
    )


def _group(
    run: str, group: str, rows: Sequence[Row], moved: AbstractSet[str], ends_ns: _Ends, latencies: _Latencies
) -> GroupStatistics:
    first_request_ns = _least(rows, "first_request_ns")
    members = tuple(
        _member(process, own, first_request_ns, ends_ns, latencies.get(("delivery", run, group, process)))
        for process, own in parted(rows, "process").items()
    )
    rates = [member.per_second for member in members if member.process not in moved]
    return GroupStatistics(
        group=group,
        per_second=min((rate for rate in rates if rate is not None), default=None),
        latency=latencies.get(("delivery", run, group, None)),
        stability_latency=latencies.get(("stability", run, group, None)),
        sent_to_nobody=_count(latencies.get(("to nobody", run, group, None))),
        request_latency=latencies.get(("request", run, group, None)),
        traffic=_traffic(rows),
        busy_traffic=_traffic([row for row in rows if not row["idle"]]),
        unstable_max=_largest(rows, "unstable_max"),
        flow=_flow(rows, ends_ns),
        members=members,
    )


def _member(
    process: str, rows: Sequence[Row], first_request_ns: int | None, ends_ns: _Ends, latency: Latency | None
) -> MemberStatistics:
    delivered = _total(rows, "delivered")
    return MemberStatistics(
        process=process,
        delivered=delivered,
        per_second=_per_second(delivered, first_request_ns, _largest(rows, "last_delivery_ns")),
        latency=latency,
        unstable_max=_largest(rows, "unstable_max"),
        flow=_flow(rows, ends_ns),
    )


def _per_second(delivered: int, first_request_ns: int | None, last_delivery_ns: int | None) -> float | None:
    """Zero for a member that had something to deliver and delivered nothing."""
    if first_request_ns is None:
        return None
    if last_delivery_ns is None:
        return 0.0
    return _ratio(delivered * 1e9, last_delivery_ns - first_request_ns)


def _overall(rows: Sequence[Row], runs: Sequence[RunStatistics], latencies: _Latencies) -> RunStatistics:
    ends_ns = _ends(rows)
    parts = [part for run in runs for part in run.groups]
    groups = tuple(
        _group_overall(group, own, [part for part in parts if part.group == group], ends_ns, latencies)
        for group, own in parted(rows, "group").items()
    )
    return _together(None, rows, groups, ends_ns, latencies)


def _group_overall(
    group: str, rows: Sequence[Row], parts: Iterable[GroupStatistics], ends_ns: _Ends, latencies: _Latencies
) -> GroupStatistics:
    rates = [part.per_second for part in parts if part.per_second is not None]
    return GroupStatistics(
        group=group,
        per_second=fmean(rates) if rates else None,
        latency=latencies.get(("delivery", None, group, None)),
        stability_latency=latencies.get(("stability", None, group, None)),
        sent_to_nobody=_count(latencies.get(("to nobody", None, group, None))),
        request_latency=latencies.get(("request", None, group, None)),
        traffic=_traffic(rows),
        busy_traffic=_traffic([row for row in rows if not row["idle"]]),
        unstable_max=_largest(rows, "unstable_max"),
        flow=_flow(rows, ends_ns),
        members=(),
    )


def _traffic(rows: Sequence[Row]) -> Traffic:
    frames = {kind: _total(own, "frames") for kind, own in parted(rows, "type").items()}
    sent, header_bytes = _total(rows, "sent"), _total(rows, "header_bytes")
    nulls, data = frames.get("null", 0), frames.get("data", 0)
    packed = _total((row for row in rows if row["type"] == "data"), "packed")
    carrying = [row for row in rows if row["type"] in _DATA]
    tells_copies = _tells_copies(rows)
    return Traffic(
        sent=sent,
        delivered=_total(rows, "delivered"),
        frames=frames,
        null_share=_ratio(nulls, sum(frames.values())),
        nulls_per_message=_ratio(nulls, sent),
        header_bytes_per_message=_ratio(header_bytes, sent),
        header_ratio=_ratio(header_bytes, header_bytes + _total(rows, "payload_bytes")),
        stamp_bytes_per_message=_ratio(_total(rows, "stamp_bytes"), sent),
        stamp_bytes_per_data_frame=_ratio(_total(carrying, "stamp_bytes"), _total(carrying, "frames")),
        announcements_per_message=_ratio(frames.get("alive", 0), sent),
        repairs_per_message=_ratio(sum(frames.get(kind, 0) for kind in _REPAIRS), sent),
        messages_per_data_frame=_ratio(packed, data),
        copies_per_message=_ratio(_total(rows, "copies"), sent) if tells_copies else None,
        wire_bytes_per_message=_ratio(_total(rows, "wire_bytes"), sent) if tells_copies else None,
        acknowledgments_per_message=_ratio(frames.get("acknowledgment", 0), sent),
    )


def _idle_copies_per_second(rows: Sequence[Row]) -> float | None:
    """Over all runs that were idle for a time: those of a run, added up over its members, in the time that it was."""
    runs = [own for own in parted(rows, "run").values() if (_largest(own, "idle_ns") or 0) > 0]
    if not all(map(_tells_copies, runs)):
        return None
    copies = sum(_total((row for row in own if row["idle"]), "copies") for own in runs)
    return _ratio(copies * 1e9, sum(_largest(own, "idle_ns") or 0 for own in runs))


def _tells_copies(rows: Sequence[Row]) -> bool:
    return _total(rows, "frames_with_copies") == _total(rows, "frames")


def _costs(rows: Sequence[Row]) -> Costs | None:
    if all(row["sender_work"] is None and row["receiver_work"] is None for row in rows):
        return None
    return Costs(_total(rows, "sender_work"), _total(rows, "receiver_work"))


def _ends(rows: Iterable[Row]) -> _Ends:
    """When the trace of each process incarnation ends; its last row belongs to no group."""
    ends_ns: dict[tuple[str, str, int], int] = {}
    for row in rows:
        ends_ns[_who(row)] = max(row["last_ns"], ends_ns.get(_who(row), row["last_ns"]))
    return ends_ns


def _flow(rows: Sequence[Row], ends_ns: _Ends) -> Flow:
    return Flow(
        blocked_times=_total(rows, "blocks"),
        blocked_ns=sum(_blocked_ns(row, ends_ns[_who(row)]) for row in rows),
        unstable_blocks_max=_largest(rows, "unstable_blocks_max"),
        buffers_max=_largest(rows, "buffers_max"),
    )


def _blocked_ns(row: Row, end_ns: int) -> int:
    """The ends of all waits less their beginnings; the last may lack its end."""
    open_waits: int = row["blocks"] - row["unblocks"]
    return int(row["waits_ns"] or 0) + open_waits * end_ns


def _who(row: Row) -> tuple[str, str, int]:
    return row["run"], row["process"], row["incarnation"]


def _total(rows: Iterable[Row], column: str) -> int:
    return sum(row[column] or 0 for row in rows)


def _least(rows: Iterable[Row], column: str) -> int | None:
    return min((row[column] for row in rows if row[column] is not None), default=None)


def _largest(rows: Iterable[Row], column: str) -> int | None:
    return max((row[column] for row in rows if row[column] is not None), default=None)


def _count(latency: Latency | None) -> int:
    return 0 if latency is None else latency.count


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None
