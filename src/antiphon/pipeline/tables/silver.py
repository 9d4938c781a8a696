"""Silver tables: messages, deliveries, views, stability and waits from the events, typed and joined once.

Each function takes the events of any number of runs. A `select` at its entry states what it reads; `shaped` at its exit
ensures that the result has the columns that `schemas.py` declares.
"""

from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it
from pyspark.sql.pandas.types import from_arrow_type

from antiphon.pipeline.tables.columns import Table, meaning
from antiphon.pipeline.tables.schemas import BLOCKED, DELIVERIES, MESSAGES, STABILITY, VIEWS

MESSAGE_KEY: Final = ("run", "group", "sender", "sender_incarnation", "number")
"""The key of a message; a well-formed trace has at most one `send` for each (docs/spec/properties.md, W3)."""

INCARNATION: Final = ("run", "process", "incarnation")
"""The key of the rows of one process incarnation."""
HISTORY: Final = ("run", "group", "process", "incarnation")
"""The key of the rows of one process incarnation in one group."""
_STAY: Final = (*HISTORY, "view")
"""The key of the stay of a process in one view."""


def shaped(rows: DataFrame, table: Table) -> DataFrame:
    """Select exactly the declared columns, with their types and meanings."""
    return rows.select(
        *(
            F.col(field.name).cast(from_arrow_type(field.type)).alias(field.name, metadata={"comment": meaning(field)})
            for field in table.columns
        )
    )


def messages(events: DataFrame) -> DataFrame:
    """One row for each message sent: its sender, when it was requested, and when a frame took it."""
    sends = events.filter(F.col("kind") == "send").select(
        *HISTORY, "number", "requested", "time", "payload_bytes", "service", "view"
    )
    names = {
        "process": "sender",
        "incarnation": "sender_incarnation",
        "requested": "requested_ns",
        "time": "sent_ns",
    }
    return shaped(sends.withColumnsRenamed(names), MESSAGES)


def deliveries(events: DataFrame) -> DataFrame:
    """One row for each delivery: how long after the request, and how long after the message had arrived.

    `received_ns` is when it arrived; for an own message, when it left. Values from other logs are null if they are not
    in the trace: the log of a killed sender may be cut short.
    """
    here = (*MESSAGE_KEY, "process", "incarnation")
    rows = events.filter("kind = 'deliver' OR (kind = 'receive' AND number IS NOT NULL)").select(*here, "kind", "time")
    met = rows.groupBy(*here).agg(
        F.min(F.when(F.col("kind") == "receive", F.col("time"))).alias("arrived"),
        F.collect_list(F.when(F.col("kind") == "deliver", F.col("time"))).alias("times"),
    )
    delivers = met.select(*here, "arrived", F.explode("times").alias("delivered_ns"))
    requests = messages(events).select(*MESSAGE_KEY, "requested_ns", "sent_ns")
    joined = delivers.join(requests, on=list(MESSAGE_KEY), how="left")
    is_own = (F.col("process") == F.col("sender")) & (F.col("incarnation") == F.col("sender_incarnation"))
    received = F.when(is_own, F.col("sent_ns")).otherwise(F.col("arrived"))
    timed = joined.withColumns(
        {
            "received_ns": received,
            "latency_ns": F.col("delivered_ns") - F.col("requested_ns"),
            "overhead_ns": F.col("delivered_ns") - received,
        }
    )
    return shaped(timed, DELIVERIES)


def views(events: DataFrame) -> DataFrame:
    """One row for each view that a process installed: its members, the reason, and how long it was in force there."""
    rows = events.filter(F.col("kind").isin("view", "leave")).select(
        *_STAY, "index", "time", "kind", "previous", "members", "transitional", "detail"
    )
    timed = rows.withColumn("next", _next_time()).join(F.broadcast(lives(events)), on=list(INCARNATION), how="inner")
    reasons = F.from_json(detail("left"), "array<struct<reason:string>>").getField("reason")
    why = F.array_join(F.array_sort(F.array_distinct(reasons)), ", ")
    installed = timed.filter(F.col("kind") == "view").withColumns(
        {
            "installed_ns": F.col("time"),
            "in_force_ns": F.coalesce("next", "ended") - F.col("time"),
            "reason": F.when(detail("epoch").isNotNull(), "formed")
            .when(F.col("previous").isNull(), "start")
            .when(why != "", why),
        }
    )
    return shaped(installed, VIEWS)


def blocked(events: DataFrame) -> DataFrame:
    """One row for each time that a sender was blocked; one that was never released waits until its trace ends."""
    rows = events.filter(F.col("kind").isin("block", "unblock")).select(*HISTORY, "index", "time", "kind", "peer")
    ends = lives(events).select(*INCARNATION, F.col("ended").alias("end"))
    waits = rows.withColumn("ended_ns", _next_time()).filter(F.col("kind") == "block")
    timed = waits.join(F.broadcast(ends), on=list(INCARNATION), how="inner")
    blocked_ns = F.coalesce("ended_ns", "end") - F.col("time")
    return shaped(timed.withColumns({"began_ns": F.col("time"), "blocked_ns": blocked_ns}), BLOCKED)


def lives(events: DataFrame) -> DataFrame:
    """One row for each process incarnation: when its trace begins, and when it ends."""
    rows = events.select(*INCARNATION, "time")
    return rows.groupBy(*INCARNATION).agg(F.min("time").alias("started"), F.max("time").alias("ended"))


def _next_time() -> Column:
    """The time of the next of these rows in the same history; null after the last."""
    return F.lead("time").over(Window.partitionBy(*HISTORY).orderBy("index"))


def stability(events: DataFrame) -> DataFrame:
    """One row for each message that its own sender called stable: when it first did, and how long after the request.

    A report covers all numbers up to its own. So the first report that covers a message is the earliest of those that
    reach its number or beyond: a running minimum from the highest number down. Reports are never expanded into single
    numbers, because a damaged report could make that endless.

    `to_nobody` marks messages sent in a private view without receivers: they are stable at once, and do not show how
    long stability takes.
    """
    rows = events.filter(F.col("kind").isin("send", "stable")).select(
        *_STAY, "index", "time", "kind", "number", "requested", "upto"
    )
    is_report = F.col("kind") == "stable"
    marks = rows.select(
        *_STAY,
        F.when(is_report, F.col("upto")[_identity()]).otherwise(F.col("number")).alias("number"),
        F.when(is_report, F.struct("index", "time")).alias("report"),
        "requested",
    )
    downward = (
        Window.partitionBy("run", "group", "process", "incarnation")
        .orderBy(F.col("number").desc())
        .rangeBetween(Window.unboundedPreceding, Window.currentRow)
    )
    first = F.min("report").over(downward)
    covered = marks.filter("number IS NOT NULL").withColumn("first", first)
    known = covered.filter("report IS NULL AND first IS NOT NULL")
    marked = known.join(_without_receivers(events), on=list(_STAY), how="left")
    timed = marked.withColumns(
        {
            "stable_ns": F.col("first.time"),
            "latency_ns": F.col("first.time") - F.col("requested"),
            "to_nobody": F.col("deserted").isNotNull(),
        }
    )
    names = {"process": "sender", "incarnation": "sender_incarnation", "requested": "requested_ns"}
    return shaped(timed.withColumnsRenamed(names), STABILITY)


def _without_receivers(events: DataFrame) -> DataFrame:
    """The private views in which a process had no receivers, each once."""
    views = events.filter(F.col("kind") == "view").select(*_STAY, detail("receivers").alias("receivers"))
    return views.filter(F.col("receivers") == "[]").select(*_STAY, F.lit(True).alias("deserted")).distinct()


def detail(key: str) -> Column:
    """A value of the `detail` JSON as a string, null if the row has none."""
    return F.get_json_object(F.col("detail"), f"$.{key}")


def _identity() -> Column:
    """The name of a process incarnation in `upto` and `members`: its name, with a number after a restart."""
    incarnation = F.col("incarnation")
    return F.when(incarnation == 0, F.col("process")).otherwise(F.concat_ws("#", "process", incarnation))


def count_kinds(*kinds: str) -> Column:
    """The number of rows of these kinds."""
    return F.count_if(F.col("kind").isin(*kinds))


def fetched(frame: DataFrame) -> list[dict[str, Any]]:
    """Run the query, and return its rows."""
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return rows
