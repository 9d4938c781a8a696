from pathlib import Path

from pyspark.sql import SparkSession

from antiphon.pipeline.dataset import events
from antiphon.pipeline.tables.silver import blocked, deliveries, messages, stability, views
from tests.support.datasets import Row, row, two_members, write


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
            "requested_ns": requested,
            "sent_ns": 200,
            "payload_bytes": 100,
            "service": None,
            "view": None,
        }
        for number, requested in ((0, 0), (1, 100))
    ]


def test_deliveries_know_their_latency(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path, two_members())
    rows = deliveries(events(spark, tmp_path)).orderBy("process", "number").collect()
    assert [(each["process"], each["number"], each["requested_ns"], each["latency_ns"]) for each in rows] == [
        ("a", 0, 0, 1000),
        ("a", 1, 100, 900),
        ("b", 0, 0, 1100),
        ("b", 1, 100, 1200),
    ]


def test_delay_overhead_is_from_the_first_receipt_and_of_an_own_message_from_its_transmission(
    tmp_path: Path, spark: SparkSession
) -> None:
    first = {"sender": "a", "sender_incarnation": 0, "number": 0}
    receipts = [
        row("b", 9, 650, "receive", **first),
        row("b", 10, 690, "receive", **first),
        row("c", 9, 10, "receive", **first),
    ]
    write(tmp_path, [*two_members(), *receipts, row("b", 11, 1400, "deliver", **first)])
    rows = deliveries(events(spark, tmp_path)).orderBy("process", "number", "delivered_ns").collect()
    columns = ("process", "number", "delivered_ns", "received_ns", "overhead_ns")
    assert [tuple(each[name] for name in columns) for each in rows] == [
        ("a", 0, 1000, 200, 800),
        ("a", 1, 1000, 200, 800),
        ("b", 0, 1100, 650, 450),
        ("b", 0, 1400, 650, 750),
        ("b", 1, 1300, None, None),
    ]


def test_a_delivery_without_its_send_stays_without_latency(tmp_path: Path, spark: SparkSession) -> None:
    lost = row("b", 0, 50, "deliver", sender="a", sender_incarnation=1, number=0)
    write(tmp_path, [lost, *two_members()[:3]])
    rows = deliveries(events(spark, tmp_path)).collect()
    assert [(each["sender_incarnation"], each["latency_ns"]) for each in rows] == [(1, None)]


def sent(index: int, number: int, requested: int, incarnation: int = 0) -> Row:
    mid = {"sender": "a", "sender_incarnation": incarnation, "number": number}
    return row("a", index, requested + 1, "send", requested=requested, **mid) | {"incarnation": incarnation}


def told(index: int, time: int, incarnation: int = 0, **upto: int) -> Row:
    return row("a", index, time, "stable", upto=upto) | {"incarnation": incarnation}


def test_the_first_report_that_covers_a_message_counts(tmp_path: Path, spark: SparkSession) -> None:
    """Message 0 by the report of its own, 1 and 2 by that of 2, though one of 1 comes later; 3 by none."""
    sends = [sent(index, index, 100 * index) for index in range(4)]
    reports = [told(4, 500, a=0, b=7), told(5, 600, b=9), told(6, 900, a=2), told(7, 950, a=1)]
    another = row("b", 0, 300, "stable", upto={"a": 3})
    write(tmp_path, [*sends, *reports, another])
    rows = stability(events(spark, tmp_path)).orderBy("number").collect()
    columns = ("sender", "sender_incarnation", "number", "requested_ns", "stable_ns", "latency_ns")
    assert [tuple(each[name] for name in columns) for each in rows] == [
        ("a", 0, 0, 0, 500, 500),
        ("a", 0, 1, 100, 900, 800),
        ("a", 0, 2, 200, 900, 700),
    ]


def test_a_restarted_sender_is_told_apart_from_what_it_was(tmp_path: Path, spark: SparkSession) -> None:
    reborn = [sent(0, 0, 2000, 1), sent(1, 1, 2100, 1), told(2, 2500, 1, a=1), told(3, 2600, 1, **{"a#1": 0})]
    write(tmp_path, [sent(0, 0, 0), *reborn])
    rows = stability(events(spark, tmp_path)).collect()
    assert [(each["sender_incarnation"], each["number"], each["latency_ns"]) for each in rows] == [(1, 0, 600)]


def test_a_report_may_name_numbers_beyond_all_bounds(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path, [sent(0, 0, 0), told(1, 700, a=2**62)])
    assert [each["latency_ns"] for each in stability(events(spark, tmp_path)).collect()] == [700]


def test_groups_and_runs_are_stable_by_themselves(tmp_path: Path, spark: SparkSession) -> None:
    elsewhere = [told(1, 400, a=5) | {"group": "h"}, told(1, 300, a=5) | {"run": "r2"}]
    write(tmp_path, [sent(0, 0, 0), *elsewhere])
    assert stability(events(spark, tmp_path)).collect() == []


def test_messages_without_receivers_are_marked(tmp_path: Path, spark: SparkSession) -> None:
    """View 1 of a has no receivers; view 2 of a and view 1 of b have some. A report counts in any view."""
    views = [
        row("a", 0, 0, "view", view="1", members=["a", "b"], detail={"receivers": [], "senders": []}),
        row("a", 3, 250, "view", view="2", members=["a", "b"], detail={"receivers": ["b"], "senders": []}),
        row("a", 9, 990, "view", view="3", members=["a", "b"], detail={"receivers": [], "senders": ["b"]}),
        row("b", 0, 0, "view", view="1", members=["a", "b"]),
    ]
    sends = [sent(number + 1, number, 100 * number) | {"view": view} for number, view in enumerate("1122")]
    reports = [told(6, 500, a=1) | {"view": "1"}, told(10, 995, a=3) | {"view": "3"}]
    other = sent(1, 0, 0) | {"process": "b", "sender": "b", "view": "1"}
    write(tmp_path, [*views, *sends, *reports, other, row("b", 2, 600, "stable", upto={"b": 0})])
    rows = stability(events(spark, tmp_path)).orderBy("sender", "number").collect()
    assert [(each["sender"], each["number"], each["latency_ns"], each["to_nobody"]) for each in rows] == [
        ("a", 0, 500, True),
        ("a", 1, 400, True),
        ("a", 2, 795, False),
        ("a", 3, 695, False),
        ("b", 0, 600, False),
    ]


def test_a_view_is_in_force_until_the_next_the_leaving_or_the_end(tmp_path: Path, spark: SparkSession) -> None:
    left = [{"process": "c", "reason": "silent"}, {"process": "d", "reason": "left"}]
    write(
        tmp_path,
        [
            row("a", 0, 10, "view", view="1", members=["a", "b", "c", "d"], transitional=[]),
            row("a", 1, 30, "view", view="2", previous="1", members=["a", "b"], detail={"left": left}),
            row("a", 2, 50, "leave", view="2"),
            row("a", 3, 90, "view", view="5", members=["a", "b"], detail={"left": [], "epoch": 1}),
            row("a", 4, 95, "view", view="6", previous="5", members=["a"], detail={"receivers": [], "senders": []}),
            row("a", 5, 120, "stop", group=None),
        ],
    )
    rows = views(events(spark, tmp_path)).orderBy("installed_ns").collect()
    assert [(each["view"], each["in_force_ns"], each["reason"]) for each in rows] == [
        ("1", 20, "start"),
        ("2", 20, "left, silent"),
        ("5", 5, "formed"),
        ("6", 25, None),
    ]


def test_each_wait_has_its_end_and_the_last_that_of_the_trace(tmp_path: Path, spark: SparkSession) -> None:
    marks = [(300, "block"), (340, "unblock"), (400, "block")]
    waits = [row("a", 20 + at, time, kind, peer="b") for at, (time, kind) in enumerate(marks)]
    elsewhere = row("a", 23, 350, "block") | {"group": "h"}
    write(tmp_path, [*two_members(), *waits, elsewhere])
    rows = blocked(events(spark, tmp_path)).orderBy("began_ns").collect()
    assert [(each["group"], each["began_ns"], each["ended_ns"], each["blocked_ns"], each["peer"]) for each in rows] == [
        ("g", 300, 340, 40, "b"),
        ("h", 350, None, 2000 - 350, None),
        ("g", 400, None, 2000 - 400, "b"),
    ]
