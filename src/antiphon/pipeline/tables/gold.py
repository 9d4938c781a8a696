"""Gold tables: the figures of a run. Most are the measures of `measures.py` as rows; the others are computed here.

View changes and recovery are counted from the faults that the world recorded: a trace of real processes without faults
has none.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

from antiphon.pipeline.figures.measures import GroupStatistics, Latency, Statistics
from antiphon.pipeline.figures.one_run import figures_of
from antiphon.pipeline.tables.schemas import (
    BUFFERS,
    FIGURES_BY_RUN,
    LATENCY,
    NULLS,
    OVERHEAD,
    RECOVERY,
    THROUGHPUT,
    VIEW_CHANGES,
    Table,
)
from antiphon.pipeline.tables.silver import HISTORY, INCARNATION, detail, lives, shaped, views
from antiphon.types import WORLD

BREAKING: Final = ("crash", "partition", "cut", "pause", "stall")
"""Kinds of faults from which a group has to recover."""

_Rows = Iterator[dict[str, Any]]


def measured(statistics: Statistics) -> dict[Table, pa.Table]:
    """The gold tables that are measures of runs, groups and members."""
    rows = {
        LATENCY: _each_group(statistics, _latency),
        THROUGHPUT: _each_group(statistics, _throughput),
        OVERHEAD: _each_group(statistics, _overhead),
        BUFFERS: _each_group(statistics, _buffers),
        NULLS: _each_group(statistics, _nulls),
        FIGURES_BY_RUN: ({"run": run.run, **figures_of(run)} for run in statistics.runs),
    }
    return {table: pa.Table.from_pylist(list(own), schema=table.columns) for table, own in rows.items()}


def _each_group(statistics: Statistics, rows: Callable[[GroupStatistics], _Rows]) -> _Rows:
    for run in statistics.runs:
        for group in run.groups:
            yield from ({"run": run.run, "group": group.group, **row} for row in rows(group))


def _latency(group: GroupStatistics) -> _Rows:
    yield from _spread(None, "delivery", group.latency, group.experiment.delay_overhead_ns)
    yield from _spread(None, "stability", group.stability_latency)
    yield from _spread(None, "request", group.request_latency)
    for member in group.members:
        yield from _spread(member.process, "delivery", member.latency, member.delay_overhead_ns)


def _spread(process: str | None, measure: str, latency: Latency | None, overhead_ns: float | None = None) -> _Rows:
    if latency is not None:
        yield {"process": process, "measure": measure, **asdict(latency), "overhead_mean_ns": overhead_ns}


def _throughput(group: GroupStatistics) -> _Rows:
    yield {
        "sent": group.traffic.sent,
        "delivered": group.traffic.delivered,
        "per_second": group.per_second,
        "first_sender_per_second": group.experiment.first_sender_per_second,
    }
    for member in group.members:
        yield {
            "process": member.process,
            "sent": member.sent,
            "delivered": member.delivered,
            "per_second": member.per_second,
        }


def _overhead(group: GroupStatistics) -> _Rows:
    figures = asdict(group.traffic) | {"frames": sum(group.traffic.frames.values())}
    delay_overhead_ns = group.experiment.delay_overhead_ns
    yield {name: figures[name] for name in OVERHEAD.columns.names if name in figures} | {
        "delay_overhead_ns": delay_overhead_ns
    }


def _buffers(group: GroupStatistics) -> _Rows:
    yield {"unstable_max": group.unstable_max, **asdict(group.flow)}
    for member in group.members:
        yield {"process": member.process, "unstable_max": member.unstable_max, **asdict(member.flow)}


def _nulls(group: GroupStatistics) -> _Rows:
    yield {
        "sent": group.traffic.sent,
        "nulls": group.experiment.nulls,
        "nulls_per_message": group.traffic.nulls_per_message,
        "nulls_per_inactive_member": group.experiment.nulls_per_inactive_member,
    }
    for member in group.members:
        yield {"process": member.process, "sent": member.sent, "nulls": member.nulls}


def view_changes(events: DataFrame) -> DataFrame:
    """One row for each view that replaced another: members lost and gained, when, and how long after the cause."""
    installed = views(events)
    before = installed.select(*HISTORY, F.col("view").alias("previous"), F.col("members").alias("before"))
    moves = installed.join(before, on=[*HISTORY, "previous"], how="inner").withColumns(
        {"lost": F.array_except("before", "members"), "gained": F.array_except("members", "before")}
    )
    suspicions = events.filter(F.col("kind") == "suspect").select(
        *HISTORY, F.col("view").alias("previous"), "peer", F.col("time").alias("suspected")
    )
    is_lost = F.when(F.expr("array_contains(lost, peer)"), F.col("suspected"))
    changes = (
        moves.join(suspicions, on=[*HISTORY, "previous"], how="left")
        .groupBy("run", "group", "view")
        .agg(
            F.first("members").alias("members"),
            F.array_sort(F.array_distinct(F.flatten(F.collect_set("lost")))).alias("lost"),
            F.array_sort(F.array_distinct(F.flatten(F.collect_set("gained")))).alias("gained"),
            F.max("reason").alias("reason"),
            F.min("installed").alias("installed_first"),
            F.max("installed").alias("installed_last"),
            F.min(is_lost).alias("suspected"),
        )
    )
    caused = changes.join(F.broadcast(_faults(events)), on="run", how="left").withColumn(
        "is_before", (F.size("lost") > 0) & (F.col("fault_time") <= F.coalesce("suspected", "installed_first"))
    )
    named = [name for name in VIEW_CHANGES.columns.names if name in changes.columns]
    timed = caused.groupBy(*named).agg(F.max(F.when(F.col("is_before"), F.col("fault_time"))).alias("faulted"))
    since = {
        "since_suspicion_ns": F.col("installed_last") - F.col("suspected"),
        "since_fault_ns": F.col("installed_last") - F.col("faulted"),
    }
    return shaped(timed.withColumns(since), VIEW_CHANGES)


def recovery(events: DataFrame) -> DataFrame:
    """One row for each fault and each group that delivered afterwards: how long the group stood still.

    Survivors are the processes that were already there. Their waiting time is counted up to the next fault, and only if
    a delivery came: a group that is silent because no process sends does not stand still.
    """
    faults = _faults(events).withColumn(
        "next_fault", F.lead("fault_time").over(Window.partitionBy("run").orderBy("fault_time"))
    )
    delivers = events.filter(F.col("kind") == "deliver").select(*HISTORY, "index", "time")
    there = delivers.join(F.broadcast(lives(events)), on=list(INCARNATION), how="inner")
    is_since = (F.col("time") >= F.col("fault_time")) & (F.col("started") <= F.col("fault_time"))
    is_its_own = F.col("next_fault").isNull() | (F.col("time") < F.col("next_fault"))
    after = there.join(F.broadcast(faults), on="run", how="inner").filter(is_since & is_its_own)
    last = F.lag("time").over(Window.partitionBy(*HISTORY, "fault_time").orderBy("index"))
    waits = after.withColumn("waited", F.col("time") - F.coalesce(last, F.col("fault_time")))
    each = waits.groupBy(*HISTORY, "fault_time", "faults").agg(
        (F.min("time") - F.col("fault_time")).alias("first_delivery_ns"), F.max("waited").alias("stood_still_ns")
    )
    together = each.groupBy("run", "group", "fault_time", "faults").agg(
        F.count("*").alias("survivors"),
        F.max("first_delivery_ns").alias("first_delivery_ns"),
        F.max("stood_still_ns").alias("stood_still_ns"),
    )
    return shaped(together.withColumnRenamed("fault_time", "faulted"), RECOVERY)


def _faults(events: DataFrame) -> DataFrame:
    """The times of faults from which a group has to recover, and the kinds of faults, each time once."""
    rows = events.filter((F.col("process") == WORLD) & (F.col("kind") == "fault")).select("run", "time", "detail")
    begun = rows.filter((detail("begins") == "true") & detail("kind").isin(*BREAKING))
    return begun.groupBy("run", F.col("time").alias("fault_time")).agg(
        F.array_sort(F.collect_set(detail("kind"))).alias("faults")
    )
