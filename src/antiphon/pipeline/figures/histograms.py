"""Distributions of a dataset: deliveries by latency, messages over time; in bins of equal width, one query each."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

from antiphon.pipeline.dataset import Dataset, Source, events
from antiphon.pipeline.figures.summing import Row, parted
from antiphon.pipeline.spark.session import as_trace_error
from antiphon.pipeline.tables.silver import count_kinds, deliveries, detail, fetched


@dataclass(frozen=True, slots=True)
class LatencyHistogram:
    """Deliveries of one group by latency, in bins of equal width."""

    group: str
    edges_ns: list[int]
    """One more than there are bins; a bin includes its lower edge and excludes its upper edge."""
    counts: list[int]


@dataclass(frozen=True, slots=True)
class MessagesOverTime:
    """The numbers of sends, deliveries and null frames in each bin of time."""

    edges_ns: list[int]
    """One more than there are bins; a bin includes its lower edge and excludes its upper edge."""
    sends: list[int]
    deliveries: list[int]
    nulls: list[int]


def latency_histogram(
    spark: SparkSession, source: Source, *, run: str | None = None, bins: int = 40
) -> list[LatencyHistogram]:
    """For each group, its deliveries by latency, in at most `bins` bins from the smallest to the largest."""
    source = Dataset.of(source)
    rows = deliveries(_of_run(events(spark, source), run)).select("group", "latency_ns").dropna()
    bounds = rows.groupBy("group").agg(F.min("latency_ns").alias("low"), F.max("latency_ns").alias("high"))
    binned = _binned(rows.join(F.broadcast(bounds), on="group", how="inner"), "latency_ns", bins)
    with as_trace_error(source.directory):
        counted = fetched(binned.groupBy("group", "low", "high", "bin").agg(F.count("*").alias("count")))
    return [
        LatencyHistogram(group, _edges(own[0], bins), _filled(own, "count", bins))
        for group, own in sorted(parted(counted, "group").items())
    ]


def messages_over_time(
    spark: SparkSession, source: Source, *, run: str | None = None, bins: int = 60
) -> MessagesOverTime:
    """Sends, deliveries and null frames in at most `bins` bins of time, from the first event to the last."""
    source = Dataset.of(source)
    own = _of_run(events(spark, source), run)
    bounds = own.agg(F.min("time").alias("low"), F.max("time").alias("high"))
    is_null_frame = (F.col("kind") == "transmit") & (detail("type") == "null")
    rows = own.select("time", "kind", is_null_frame.alias("is_null_frame"))
    binned = _binned(rows.crossJoin(F.broadcast(bounds)), "time", bins)
    with as_trace_error(source.directory):
        counted = fetched(
            binned.groupBy("low", "high", "bin").agg(
                count_kinds("send").alias("sends"),
                count_kinds("deliver").alias("deliveries"),
                F.count_if("is_null_frame").alias("nulls"),
            )
        )
    if not counted:
        return MessagesOverTime([], [], [], [])
    kinds = ("sends", "deliveries", "nulls")
    return MessagesOverTime(_edges(counted[0], bins), *(_filled(counted, kind, bins) for kind in kinds))


def _of_run(events: DataFrame, run: str | None) -> DataFrame:
    return events if run is None else events.filter(F.col("run") == run)


def _binned(rows: DataFrame, column: str, bins: int) -> DataFrame:
    """Add the number of the bin of a value between the row's `low` and `high`."""
    return rows.withColumn("bin", F.expr(f"({column} - low) div ((high - low) div {bins} + 1)"))


def _width(row: Row, bins: int) -> int:
    return int((row["high"] - row["low"]) // bins + 1)


def _edges(row: Row, bins: int) -> list[int]:
    width = _width(row, bins)
    return [row["low"] + width * i for i in range((row["high"] - row["low"]) // width + 2)]


def _filled(rows: Sequence[Row], column: str, bins: int) -> list[int]:
    """The counts of all bins, including empty ones."""
    counts = {row["bin"]: row[column] for row in rows}
    return [counts.get(i, 0) for i in range(len(_edges(rows[0], bins)) - 1)]
