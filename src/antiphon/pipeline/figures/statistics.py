"""Statistics of a dataset: latency, throughput, overhead, flow control, buffers; per run, and over all or some runs.

Two Spark jobs compute everything. One adds up whatever can be added, per run, group, process and frame type; the rest
of the adding is done here. The other computes latency percentiles, which cannot be added up.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

from antiphon.errors import TraceError
from antiphon.pipeline.dataset import count_events, events, find_event_files
from antiphon.pipeline.figures.configurations import configurations
from antiphon.pipeline.figures.measures import Statistics
from antiphon.pipeline.figures.summing import SPEAKS_ALWAYS, USEFUL, Row, parted, summed
from antiphon.pipeline.spark.session import as_trace_error
from antiphon.pipeline.tables.silver import answers, count_kinds, deliveries, detail, detail_number, fetched, stability
from antiphon.types import WORLD, process_id

EXACT_EVENTS_MAX: Final = 2_000_000
"""Up to this many events percentiles are exact (interpolated); above, their ranks are accurate to 0.01 %."""

_TALLIED: Final = "run group process incarnation index kind time requested payload_bytes header_bytes unstable".split()


def statistics(
    spark: SparkSession, directory: Path, *, exact_events_max: int = EXACT_EVENTS_MAX, once: bool = True
) -> Statistics:
    """Compute all figures of a run directory or of a directory of many runs.

    Raises TraceError if rows occur more than once, unless `once` is False.
    """
    source, exact = _source(spark, directory, exact_events_max)
    with as_trace_error(directory):
        rows = fetched(tallies(source))
        if once:
            _require_each_once(directory, rows)
        taken = fetched(latencies(waits(source).withColumn("part", F.lit("all")), exact=exact))
    figures = summed(rows, taken, exact=exact)
    return replace(figures, configurations=configurations(directory, figures.runs))


def statistics_of_parts(
    spark: SparkSession,
    directory: Path,
    parts: Mapping[str, Iterable[str]],
    *,
    exact_events_max: int = EXACT_EVENTS_MAX,
) -> dict[str, Statistics]:
    """Compute all figures of each part of a directory; a part is a set of runs, and no run is in two parts."""
    source, exact = _source(spark, directory, exact_events_max)
    part_of = {run: part for part, runs in parts.items() for run in runs}
    pairs = spark.createDataFrame(list(part_of.items()), "run string, part string")
    with as_trace_error(directory):
        rows = fetched(tallies(source))
        _require_each_once(directory, rows)
        placed = waits(source).join(F.broadcast(pairs), on="run", how="inner")
        taken = parted(fetched(latencies(placed, exact=exact)), "part")
    return {
        part: summed([row for row in rows if part_of.get(row["run"]) == part], taken.get(part, ()), exact=exact)
        for part in parts
    }


def _source(spark: SparkSession, directory: Path, exact_events_max: int) -> tuple[DataFrame, bool]:
    """The events, and whether they are few enough for exact percentiles."""
    return events(spark, directory), count_events(find_event_files(directory)) <= exact_events_max


def _require_each_once(directory: Path, rows: Iterable[Row]) -> None:
    """Reject a history with more rows than indexes: a duplicated file would count four times in a join."""
    count: Counter[tuple[str, str, int]] = Counter()
    last: Counter[tuple[str, str, int]] = Counter()
    for row in rows:
        log = row["run"], row["process"], row["incarnation"]
        count[log] += row["rows"]
        last[log] = max(last[log], row["last_index"])
    for log, number in sorted(count.items()):
        if number > last[log] + 1:
            run, who = log[0], process_id(*log[1:])
            raise TraceError(
                f"{directory}: {who} has {number:,} rows in {run}, but their last index is {last[log]:,}: "
                "some rows occur more than once"
            )


def tallies(events: DataFrame) -> DataFrame:
    """Everything that can be added up, for each run, group, process incarnation and frame type; without the world.

    What happened after the last useful row of its run is added up separately, as `idle`.
    """
    timed = events.join(F.broadcast(phases(events)), on="run", how="left")
    rows = timed.filter(F.col("process") != WORLD).select(
        *_TALLIED,
        "idle_ns",
        "view_changes",
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
        F.sum(waits_ns.cast("decimal(20,0)")).alias("waits_ns"),  # times since 1970: a bigint holds the sum of four
        F.count("index").alias("rows"),
        F.max("index").alias("last_index"),
        F.min("time").alias("first_ns"),
        F.max("time").alias("last_ns"),
        F.max("idle_ns").alias("idle_ns"),
        F.max("view_changes").alias("view_changes"),
        _highest("unstable_blocks").alias("unstable_blocks_max"),
        _highest("buffers").alias("buffers_max"),
    )


def phases(events: DataFrame) -> DataFrame:
    """One row for each run: when all useful work was done, how long it was idle after that, and its view changes.

    A run that ends when it is silent has no idle time, and neither has a run that was cut off while it was busy.
    """
    rows = events.filter(F.col("kind").isin("start", "end", *USEFUL)).select(
        "run",
        _when("end", F.when(detail("quiet") == "true", F.col("time"))).alias("quiet_ns"),
        (_when("end", detail("reason")) == "duration").alias("is_cut_off"),
        _when("start", detail(SPEAKS_ALWAYS)).isNotNull().alias("speaks_always"),
        F.when(F.col("kind").isin(*USEFUL), F.col("time")).alias("useful_ns"),
    )
    runs = rows.groupBy("run").agg(
        F.max("useful_ns").alias("done_ns"),
        F.max("quiet_ns").alias("quiet_ns"),
        F.coalesce(F.bool_or("is_cut_off"), F.lit(False)).alias("is_cut_off"),
        F.bool_or("speaks_always").alias("speaks_always"),
    )
    is_waited_out = F.col("is_cut_off") | F.col("speaks_always")
    known = runs.join(F.broadcast(_view_changes(events)), on="run", how="left")
    idle_ns = F.when(is_waited_out, F.col("quiet_ns") - F.col("done_ns"))
    return known.select(
        "run", "done_ns", idle_ns.alias("idle_ns"), F.coalesce("changes", F.lit(0)).alias("view_changes")
    )


def _view_changes(events: DataFrame) -> DataFrame:
    """The number of views of a run that replaced another."""
    later = events.filter("kind = 'view' AND previous IS NOT NULL").select("run", "group", "view").distinct()
    return later.groupBy("run").agg(F.count("*").alias("changes"))


def waits(events: DataFrame) -> DataFrame:
    """One row for each result of a request: what it is, where it happened, and how long it took."""
    stable = stability(events).withColumn("measure", F.when(F.col("to_nobody"), "to nobody").otherwise("stability"))
    results = (
        deliveries(events).withColumn("measure", F.lit("delivery")),
        stable.withColumns({"process": F.col("sender"), "overhead_ns": F.lit(None)}),
        answers(events).withColumns({"measure": F.lit("request"), "overhead_ns": F.lit(None)}),
    )
    alike = [rows.select("run", "group", "process", "measure", "latency_ns", "overhead_ns") for rows in results]
    return reduce(DataFrame.unionByName, alike).filter("latency_ns IS NOT NULL OR overhead_ns IS NOT NULL")


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
        F.mean("overhead_ns").alias("overhead_mean_ns"),
    )
    p50, p90, p99 = (F.col("shares")[i].alias(name) for i, name in enumerate(("p50_ns", "p90_ns", "p99_ns")))
    return figures.select(
        *within, "run", "group", "process", "count", "mean_ns", p50, p90, p99, "max_ns", "overhead_mean_ns"
    )


def _only(kind: str, column: str) -> Column:
    return _when(kind, F.col(column))


def _when(kind: str, value: Column) -> Column:
    return F.when(F.col("kind") == kind, value)


def _highest(gauge: str) -> Column:
    return F.max(F.when(F.col("gauge") == gauge, F.col("value")))
