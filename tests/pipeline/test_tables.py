from pathlib import Path

from pyspark.sql import SparkSession

from antiphon.pipeline.read import events
from antiphon.pipeline.tables import deliveries, messages, transmits
from tests.pipeline.traces import row, two_members, write


def test_messages_are_the_sends(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path, two_members())
    rows = messages(events(spark, tmp_path)).orderBy("number").collect()
    assert [each.asDict() for each in rows] == [
        {
            "run": "r1",
            "group": "g",
            "sender": "a",
            "sender_incarnation": 0,
            "number": number,
            "requested": requested,
            "sent": 200,
            "payload_bytes": 100,
        }
        for number, requested in ((0, 0), (1, 100))
    ]


def test_deliveries_know_their_latency(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path, two_members())
    rows = deliveries(events(spark, tmp_path)).orderBy("process", "number").collect()
    assert [(each["process"], each["number"], each["requested"], each["latency_ns"]) for each in rows] == [
        ("a", 0, 0, 1000),
        ("a", 1, 100, 900),
        ("b", 0, 0, 1100),
        ("b", 1, 100, 1200),
    ]


def test_a_delivery_without_its_send_stays_without_latency(tmp_path: Path, spark: SparkSession) -> None:
    lost = row("b", 0, 50, "deliver", sender="a", sender_incarnation=1, number=0)
    write(tmp_path, [lost, *two_members()[:3]])
    rows = deliveries(events(spark, tmp_path)).collect()
    assert [(each["sender_incarnation"], each["latency_ns"]) for each in rows] == [(1, None)]


def test_transmits_unfold_their_detail(tmp_path: Path, spark: SparkSession) -> None:
    bare = row("a", 7, 900, "transmit", header_bytes=4, detail={"type": "suspect", "count": "many"})
    write(tmp_path, [*two_members(), bare])
    rows = transmits(events(spark, tmp_path)).orderBy("time").collect()
    columns = ("process", "time", "type", "frame", "payload_bytes", "header_bytes", "stamp_bytes", "count")
    assert [tuple(each[name] for name in columns) for each in rows] == [
        ("a", 200, "data", "a:1", 200, 30, 8, 2),
        ("b", 700, "null", "b:1", 0, 20, 8, 0),
        ("a", 900, "suspect", None, None, 4, None, None),
    ]
