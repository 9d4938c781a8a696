"""Silver tables: what the events say of messages, deliveries, stability and transmissions, typed and joined once.

Each function takes the events of any number of runs. A `select` at its entry and at its exit states what it
reads and what it gives; times are in nanoseconds.
"""

from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

MESSAGE_KEY: Final = ("run", "group", "sender", "sender_incarnation", "number")
"""What names a message; a well-formed trace has at most one `send` for each (properties.md, W3)."""

_STAY: Final = ("run", "group", "process", "incarnation", "view")
"""What names the time that a process spends in one view."""


def messages(events: DataFrame) -> DataFrame:
    """One row for each message sent: who sent it, when it was requested, when it was taken into a frame."""
    sends = events.filter(F.col("kind") == "send").select(
        "run", "group", "process", "incarnation", "number", "requested", "time", "payload_bytes"
    )
    return sends.select(
        "run",
        "group",
        F.col("process").alias("sender"),
        F.col("incarnation").alias("sender_incarnation"),
        "number",
        "requested",
        F.col("time").alias("sent"),
        "payload_bytes",
    )


def deliveries(events: DataFrame) -> DataFrame:
    """One row for each delivery: how long after the request, and how long after the message had arrived.

    `received` is when it arrived, of an own message when it left. What is told elsewhere is null where that is
    not in the trace: the log of a killed sender may be cut short.
    """
    delivers = events.filter(F.col("kind") == "deliver").select(*MESSAGE_KEY, "process", "incarnation", "time")
    requests = messages(events).select(*MESSAGE_KEY, "requested", "sent")
    known = delivers.join(requests, on=list(MESSAGE_KEY), how="left")
    joined = known.join(_arrivals(events), on=[*MESSAGE_KEY, "process", "incarnation"], how="left")
    is_own = (F.col("process") == F.col("sender")) & (F.col("incarnation") == F.col("sender_incarnation"))
    received = F.when(is_own, F.col("sent")).otherwise(F.col("arrived"))
    return joined.select(
        *MESSAGE_KEY,
        "process",
        "incarnation",
        "time",
        "requested",
        received.alias("received"),
        (F.col("time") - F.col("requested")).alias("latency_ns"),
        (F.col("time") - received).alias("overhead_ns"),
    )


def _arrivals(events: DataFrame) -> DataFrame:
    """When each message first reached each process."""
    receives = events.filter("kind = 'receive' AND number IS NOT NULL")
    return receives.groupBy(*MESSAGE_KEY, "process", "incarnation").agg(F.min("time").alias("arrived"))


def stabilities(events: DataFrame) -> DataFrame:
    """One row for each message that its own sender called stable: when it first did, and how long after the request.

    A report covers all numbers up to its own, so the first that covers a message is the earliest of all that reach its
    number or beyond: a running minimum from the highest number down. Nothing is unfolded that a damaged report
    could make endless.

    `to_nobody` marks what was sent in a view of its sender's own that has no receivers: it is stable at once, and says
    nothing of how long stability takes.
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
    told = known.join(_without_receivers(events), on=list(_STAY), how="left")
    return told.select(
        "run",
        "group",
        F.col("process").alias("sender"),
        F.col("incarnation").alias("sender_incarnation"),
        "number",
        F.col("first.time").alias("time"),
        "requested",
        (F.col("first.time") - F.col("requested")).alias("latency_ns"),
        F.col("deserted").isNotNull().alias("to_nobody"),
    )


def _without_receivers(events: DataFrame) -> DataFrame:
    """The private views in which a process had nobody to send to, each once."""
    views = events.filter(F.col("kind") == "view").select(*_STAY, detail("receivers").alias("receivers"))
    return views.filter(F.col("receivers") == "[]").select(*_STAY, F.lit(True).alias("deserted")).distinct()


def answers(events: DataFrame) -> DataFrame:
    """One row for each request to a group that has its answers: who asked, when, and how long it took."""
    rows = events.filter(F.col("kind") == "answer").select(
        "run", "group", "process", "incarnation", "time", "requested"
    )
    return rows.select("*", (F.col("time") - F.col("requested")).alias("latency_ns"))


def transmits(events: DataFrame) -> DataFrame:
    """One row for each frame that left a process, counted once whatever the fan-out.

    `copies` is that fan-out, null in traces that do not tell it.
    """
    frames = events.filter(F.col("kind") == "transmit").select(
        "run", "group", "process", "incarnation", "time", "payload_bytes", "header_bytes", "detail"
    )
    return frames.select(
        "run",
        "group",
        "process",
        "incarnation",
        "time",
        "payload_bytes",
        "header_bytes",
        detail("type").alias("type"),
        detail("frame").alias("frame"),
        detail_number("stamp_bytes").alias("stamp_bytes"),
        detail_number("count").alias("count"),
        detail_number("copies").alias("copies"),
    )


def detail(key: str) -> Column:
    """A value of the `detail` JSON as a string, null where the row has none."""
    return F.get_json_object(F.col("detail"), f"$.{key}")


def detail_number(key: str) -> Column:
    """A value of the `detail` JSON as a whole number, null where the row has none."""
    return detail(key).try_cast("bigint")


def _identity() -> Column:
    """What a process incarnation goes by in `upto` and `members`: its name, with a number once it has restarted."""
    incarnation = F.col("incarnation")
    return F.when(incarnation == 0, F.col("process")).otherwise(F.concat_ws("#", "process", incarnation))


def count_kinds(*kinds: str) -> Column:
    """How many rows are of these kinds."""
    return F.count_if(F.col("kind").isin(*kinds))


def fetched(frame: DataFrame) -> list[dict[str, Any]]:
    """Runs the query; its rows, here."""
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return rows
