"""Gold tables: the figures of a run. Most are the measures of `measures.py` as rows; the others are computed here.

View changes and recovery are counted from the faults that the world recorded: a trace of real processes without faults
has none.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

from antiphon.pipeline.figures.measures import GroupStatistics, Latency, MemberStatistics, Statistics
from antiphon.pipeline.figures.one_run import figures_of
from antiphon.pipeline.tables.columns import Table
from antiphon.pipeline.tables.schemas import FIGURES_BY_RUN, GROUP_FIGURES, MEMBER_FIGURES, RECOVERY, VIEW_CHANGES
from antiphon.pipeline.tables.silver import HISTORY, INCARNATION, detail, lives, shaped, views
from antiphon.types import WORLD

BREAKING: Final = ("crash", "partition", "cut", "pause", "stall")
"""Kinds of faults from which a group has to recover."""

_Row = dict[str, Any]


def measured(statistics: Statistics) -> dict[Table, pa.Table]:
    """The gold tables that are measures of runs, groups and members."""
    rows: dict[Table, Iterator[_Row]] = {
        FIGURES_BY_RUN: ({"run": run.run, **figures_of(run)} for run in statistics.runs),
        GROUP_FIGURES: ({"run": run.run, **_of_group(group)} for run in statistics.runs for group in run.groups),
        MEMBER_FIGURES: (
            {"run": run.run, "group": group.group, **_of_member(member)}
            for run in statistics.runs
            for group in run.groups
            for member in group.members
        ),
    }
    return {table: pa.Table.from_pylist(list(own), schema=table.columns) for table, own in rows.items()}


def _of_group(group: GroupStatistics) -> _Row:
    """The figures of a group, by column; those of its traffic, buffers and experiment have their own names."""
    return {
        "group": group.group,
        **asdict(group.traffic),
        **asdict(group.flow),
        **asdict(group.experiment),
        "per_second": group.per_second,
        **_spread("latency", group.latency),
        **_spread("stability", group.stability_latency),
        "sent_to_nobody": group.sent_to_nobody,
        **_spread("request", group.request_latency),
        "frames": sum(group.traffic.frames.values()),
        "unstable_max": group.unstable_max,
    }


def _of_member(member: MemberStatistics) -> _Row:
    return {
        "process": member.process,
        "sent": member.sent,
        "delivered": member.delivered,
        "per_second": member.per_second,
        **_spread("latency", member.latency),
        "delay_overhead_ns": member.delay_overhead_ns,
        "nulls": member.nulls,
        "unstable_max": member.unstable_max,
        **asdict(member.flow),
    }


def _spread(name: str, latency: Latency | None) -> _Row:
    return {} if latency is None else {f"{name}_{key}": value for key, value in asdict(latency).items()}


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
            F.min("installed_ns").alias("installed_first_ns"),
            F.max("installed_ns").alias("installed_last_ns"),
            F.min(is_lost).alias("suspected_ns"),
        )
    )
    caused = changes.join(F.broadcast(_faults(events)), on="run", how="left").withColumn(
        "is_before", (F.size("lost") > 0) & (F.col("fault_time") <= F.coalesce("suspected_ns", "installed_first_ns"))
    )
    named = [name for name in VIEW_CHANGES.columns.names if name in changes.columns]
    last = F.max(F.when(F.col("is_before"), F.struct("fault_time", "faults")))
    timed = (
        caused.groupBy(*named)
        .agg(last.alias("fault"))
        .withColumns({"faulted_ns": F.col("fault.fault_time"), "faults": F.col("fault.faults")})
    )
    since = {
        "since_suspicion_ns": F.col("installed_last_ns") - F.col("suspected_ns"),
        "since_fault_ns": F.col("installed_last_ns") - F.col("faulted_ns"),
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
    return shaped(together.withColumnRenamed("fault_time", "faulted_ns"), RECOVERY)


def _faults(events: DataFrame) -> DataFrame:
    """The times of faults from which a group has to recover, and the kinds of faults, each time once."""
    rows = events.filter((F.col("process") == WORLD) & (F.col("kind") == "fault")).select("run", "time", "detail")
    begun = rows.filter((detail("begins") == "true") & detail("kind").isin(*BREAKING))
    return begun.groupBy("run", F.col("time").alias("fault_time")).agg(
        F.array_sort(F.collect_set(detail("kind"))).alias("faults")
    )
