import json
from dataclasses import asdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from antiphon.errors import TraceError
from antiphon.pipeline.figures.histograms import (
    LatencyHistogram,
    MessagesOverTime,
    latency_histogram,
    messages_over_time,
)
from antiphon.pipeline.figures.measures import Costs, Flow, GroupStatistics, Latency, Statistics, Traffic
from antiphon.pipeline.figures.statistics import statistics, statistics_of_parts
from tests.support.datasets import Row, of_run, row, two_members, write


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Statistics:
    directory = tmp_path_factory.mktemp("two-members")
    write(directory, two_members())
    return statistics(spark, directory)


def spread(latency: Latency | None) -> tuple[float, ...]:
    assert latency is not None
    return tuple(asdict(latency).values())


def only_group(figures: Statistics) -> GroupStatistics:
    [run] = figures.runs
    [group] = run.groups
    return group


def test_latency_per_member_and_over_all(figures: Statistics) -> None:
    group = only_group(figures)
    assert figures.percentiles == "exact"
    assert spread(group.members[0].latency) == pytest.approx((2, 950, 950, 990, 999, 1000))
    assert spread(group.members[1].latency) == pytest.approx((2, 1150, 1150, 1190, 1199, 1200))
    assert spread(group.latency) == pytest.approx((4, 1050, 1050, 1170, 1197, 1200))
    assert figures.runs[0].latency == group.latency == figures.overall.latency


def test_traffic(figures: Statistics) -> None:
    assert figures.runs[0].traffic == Traffic(
        sent=2,
        delivered=4,
        frames={"data": 1, "null": 1},
        null_share=0.5,
        nulls_per_message=0.5,
        header_bytes_per_message=25.0,
        header_ratio=0.2,
        stamp_bytes_per_message=8.0,
        stamp_bytes_per_data_frame=8.0,
        announcements_per_message=0.0,
        repairs_per_message=0.0,
        messages_per_data_frame=2.0,
        copies_per_message=None,
        wire_bytes_per_message=None,
        acknowledgments_per_message=0.0,
    )
    assert only_group(figures).traffic == figures.overall.traffic == figures.runs[0].traffic


EPOCH_NS = 1_800_000_000 * 10**9
"""A wall clock shows times like this one: the sum of a few does not fit in 64 bits."""


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Statistics:
    """The two members with frames of every type, waits and gauges; b crashes while it waits, and comes back."""
    kinds = ("alive", "status", "ack", "request", "repair", "null")
    frames = [frame("b", 10 + at, kind) for at, kind in enumerate(kinds)] + [frame("a", 10, "fragment")]
    waits = [("block", 300), ("unblock", 340), ("block", 400), ("unblock", 405), ("block", 1900)]
    blocked = [row("a", 20 + at, time, kind) for at, (kind, time) in enumerate(waits)]
    killed = [row("b", 20, 1400, "block"), row("b", 21, 1450, "crash", group=None)]
    reborn = [{**each, "incarnation": 1} for each in (row("b", 0, 1900, "block"), row("b", 1, 1910, "unblock"))]
    readings = [
        ("a", "unstable_blocks", 4),
        ("a", "buffers", 9),
        ("a", "unstable_blocks", 7),
        ("b", "unstable_blocks", 5),
    ]
    gauges = [
        row(process, 30 + at, 300, "gauge", detail={"name": name, "value": value})
        for at, (process, name, value) in enumerate([*readings, ("a", "own_unstable_bytes", 999)])
    ]
    members = [
        each for each in two_members() if (each["process"], each["kind"]) not in {("b", "stop"), ("world", "end")}
    ]
    rows = [*members, *frames, *blocked, *killed, *reborn, *gauges]
    directory = tmp_path_factory.mktemp("busy")
    write(directory, [{**each, "time": each["time"] + EPOCH_NS} for each in rows])
    return statistics(spark, directory)


def frame(process: str, index: int, kind: str) -> Row:
    detail = {"type": kind, "stamp_bytes": {"null": 8, "fragment": 40}.get(kind, 0), "count": 0}
    return row(process, index, 900, "transmit", payload_bytes=0, header_bytes=10, detail=detail)


def test_a_stamp_is_paid_by_whatever_carries_messages_and_by_no_null(busy: Statistics) -> None:
    traffic = only_group(busy).traffic
    assert traffic.stamp_bytes_per_data_frame == (8 + 40) / 2
    assert traffic.stamp_bytes_per_message == (8 + 8 + 8 + 40) / 2


def test_announcements_and_repairs_are_counted_by_message(busy: Statistics) -> None:
    traffic = only_group(busy).traffic
    assert (traffic.announcements_per_message, traffic.repairs_per_message) == (1 / 2, 4 / 2)


def test_blocked_time_is_added_up_and_an_open_wait_lasts_to_the_end(busy: Statistics) -> None:
    first, second = (member.flow for member in only_group(busy).members)
    assert (first.blocked_times, first.blocked_ns) == (3, 40 + 5 + (2000 - 1900))
    assert (second.blocked_times, second.blocked_ns) == (2, (1450 - 1400) + 10)
    assert only_group(busy).flow.blocked_ns == first.blocked_ns + second.blocked_ns


def test_the_highest_gauges_are_kept(busy: Statistics) -> None:
    members = [member.flow for member in only_group(busy).members]
    assert [(flow.unstable_blocks_max, flow.buffers_max) for flow in members] == [(7, 9), (5, None)]
    assert only_group(busy).flow == busy.runs[0].flow == busy.overall.flow == Flow(5, 205, 7, 9)


@pytest.fixture(scope="module")
def costly(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Statistics:
    """The two members again: frames tell their copies; a acknowledges, learns of stability, asks and is answered.

    a learns at 1500 that its message 0 is stable, and at 1900 that 1 is. Reports of b about a's messages do not count.
    """
    frames = [
        {**each, "detail": json.dumps(json.loads(each["detail"]) | {"copies": 3})}
        if each["kind"] == "transmit"
        else each
        for each in two_members()
        if each["kind"] != "stop"
    ]
    acknowledgment = {"type": "acknowledgment", "copies": 2, "stamp_bytes": 0, "count": 0}
    further = [
        row("a", 10, 1200, "transmit", header_bytes=16, payload_bytes=0, detail=acknowledgment),
        row("b", 10, 1200, "transmit", header_bytes=16, payload_bytes=0, detail=acknowledgment),
        row("b", 11, 1210, "stable", upto={"a": 1}),
        row("a", 11, 1500, "stable", upto={"a": 0, "b": 4}),
        row("a", 12, 1900, "stable", upto={"a": 1}),
        row("a", 13, 1950, "answer", requested=450, detail={"mode": "all", "request": 0, "by": ["b"]}),
        row("a", 14, 2000, "stop", group=None, detail={"costs": {"sender_work": 7, "receiver_work": 2}}),
        row("b", 14, 2000, "stop", group=None, detail={"costs": {"sender_work": 0, "receiver_work": 5}}),
    ]
    directory = tmp_path_factory.mktemp("costly")
    write(directory, [*frames, *further])
    return statistics(spark, directory)


def test_every_copy_of_every_frame_counts(costly: Statistics) -> None:
    traffic = only_group(costly).traffic
    assert traffic.copies_per_message == (3 + 3 + 2 + 2) / 2
    assert traffic.wire_bytes_per_message == (3 * (200 + 30) + 3 * (0 + 20) + 2 * 16 + 2 * 16) / 2
    assert traffic.acknowledgments_per_message == 2 / 2
    assert traffic.header_bytes_per_message == (30 + 20 + 16 + 16) / 2
    assert costly.overall.traffic == costly.overall.busy_traffic == traffic


def test_idle_traffic_is_counted_separately(tmp_path: Path, spark: SparkSession) -> None:
    """The last useful row is b's delivery at 1300: a frame that leaves then is still busy, a later one is not."""
    detail = {"type": "acknowledgment", "copies": 2, "stamp_bytes": 0, "count": 0}
    late = [row("a", 9 + at, time, "transmit", header_bytes=16, detail=detail) for at, time in enumerate((1300, 1301))]
    write(tmp_path, [*two_members(), *late])
    [run] = statistics(spark, tmp_path).runs
    assert (run.traffic.acknowledgments_per_message, run.busy_traffic.acknowledgments_per_message) == (2 / 2, 1 / 2)
    assert (run.traffic.header_bytes_per_message, run.busy_traffic.header_bytes_per_message) == (82 / 2, 66 / 2)
    assert (run.busy_traffic.sent, run.busy_traffic.delivered) == (run.traffic.sent, run.traffic.delivered) == (2, 4)
    assert run.groups[0].busy_traffic == run.busy_traffic


def test_a_frame_that_does_not_tell_its_copies_leaves_their_sum_unknown(tmp_path: Path, spark: SparkSession) -> None:
    told = row("b", 9, 900, "transmit", header_bytes=9, payload_bytes=0, detail={"type": "null", "copies": 1})
    write(tmp_path, [*two_members(), told])
    traffic = only_group(statistics(spark, tmp_path)).traffic
    assert (traffic.copies_per_message, traffic.wire_bytes_per_message) == (None, None)


def test_stability_latency_is_from_the_request_to_the_senders_own_first_report(costly: Statistics) -> None:
    group = only_group(costly)
    assert spread(group.stability_latency) == pytest.approx((2, 1650, 1650, 1770, 1797, 1800))  # 1500 - 0, 1900 - 100
    assert costly.runs[0].stability_latency == costly.overall.stability_latency == group.stability_latency


def test_messages_without_receivers_are_left_out_and_counted(tmp_path: Path, spark: SparkSession) -> None:
    alone = row("a", 9, 0, "view", view="1", members=["a", "b"], detail={"receivers": [], "senders": []})
    rows = [{**each, "view": "1"} if each["number"] == 0 else each for each in two_members() if each["kind"] == "send"]
    write(
        tmp_path, [alone, *rows, row("a", 10, 200, "stable", upto={"a": 0}), row("a", 11, 700, "stable", upto={"a": 1})]
    )
    figures = statistics(spark, tmp_path)
    group = only_group(figures)
    assert group.stability_latency == Latency(1, 600, 600, 600, 600, 600)
    assert group.sent_to_nobody == figures.runs[0].sent_to_nobody == figures.overall.sent_to_nobody == 1
    assert figures.overall.groups[0].sent_to_nobody == 1
    assert json.loads(json.dumps(asdict(figures)))["overall"]["sent_to_nobody"] == 1


def idling(run: str, *, quiet: bool = True, reason: str = "quiet", speaks: bool = True, copies: int = 3) -> list[Row]:
    """The two members, done at 1300; each sends one more frame before the run ends at 2300."""
    options = {"send_every": "50ms"} if speaks else {}
    changes = {"start": {"options": options}, "end": {"quiet": quiet, "reason": reason}}
    rows = [each for each in two_members() if each["kind"] != "transmit"]
    rows = [{**each, "detail": json.dumps(changes.get(each["kind"]))} for each in rows]
    rows = [{**each, "time": 2300} if each["kind"] in ("stop", "end") else each for each in rows]
    detail = {"type": "null", "copies": copies}
    frames = [
        row(process, 10 + at, time, "transmit", detail=detail) for at, process in enumerate("ab") for time in (900,)
    ]
    return of_run([*rows, *frames, *[{**each, "index": each["index"] + 5, "time": 1800} for each in frames]], run)


def test_idle_traffic_is_what_leaves_a_second_after_all_is_done(tmp_path: Path, spark: SparkSession) -> None:
    runs = {
        "speaks": idling("speaks"),
        "speaks more": idling("speaks more", copies=5),
        "falls silent": idling("falls silent", speaks=False),
        "waited out": idling("waited out", speaks=False, reason="duration"),
        "cut off": idling("cut off", quiet=False, reason="duration"),
    }
    for run, rows in runs.items():
        write(tmp_path, rows, f"{run}.parquet")
    figures = statistics(spark, tmp_path)
    assert {run.run: run.idle_copies_per_second for run in figures.runs} == {
        "speaks": 2 * 3 / 1000e-9,
        "speaks more": 2 * 5 / 1000e-9,
        "falls silent": None,
        "waited out": 2 * 3 / 1000e-9,
        "cut off": None,
    }
    assert figures.overall.idle_copies_per_second == pytest.approx((6 + 10 + 6) / 3000e-9)


def test_idle_traffic_is_not_told_where_copies_are_not(costly: Statistics, tmp_path: Path, spark: SparkSession) -> None:
    untold = row("a", 20, 900, "transmit", detail={"type": "null"})
    write(tmp_path, [*idling("r1"), untold])
    assert statistics(spark, tmp_path).overall.idle_copies_per_second is None
    assert costly.overall.idle_copies_per_second is None


def test_request_latency_is_from_the_request_to_its_answers(costly: Statistics) -> None:
    group = only_group(costly)
    assert group.request_latency == Latency(1, 1500, 1500, 1500, 1500, 1500)
    assert costly.runs[0].request_latency == costly.overall.request_latency == group.request_latency


def test_costs_are_added_up_over_the_processes(costly: Statistics) -> None:
    assert costly.runs[0].costs == costly.overall.costs == Costs(sender_work=7, receiver_work=7)


def test_a_run_has_the_peak_of_its_groups(costly: Statistics, busy: Statistics) -> None:
    assert costly.runs[0].unstable_max == costly.overall.unstable_max == only_group(costly).unstable_max == 3
    assert busy.runs[0].costs is None


def test_parts_of_a_directory_have_figures_of_their_own(tmp_path: Path, spark: SparkSession) -> None:
    for run, later in (("r1", 0), ("r2", 700), ("r3", 1000), ("r4", 5000)):
        write(
            tmp_path, [{**each, "time": each["time"] + later} for each in of_run(two_members(), run)], f"{run}.parquet"
        )
    parts = statistics_of_parts(spark, tmp_path, {"quick": ["r1", "r2"], "slow": ["r3"], "none": []})
    assert [[run.run for run in part.runs] for part in parts.values()] == [["r1", "r2"], ["r3"], []]
    assert spread(parts["quick"].overall.latency)[:3] == pytest.approx((8, 1400, 1400))
    assert spread(parts["slow"].overall.latency)[1] == 2050.0
    assert parts["slow"].overall.groups[0].latency == parts["slow"].runs[0].latency
    assert [part.overall.traffic.sent for part in parts.values()] == [4, 2, 0]
    assert parts["none"].overall.latency is None


def test_throughput_and_buffers_of_the_members(figures: Statistics) -> None:
    group = only_group(figures)
    assert [(member.process, member.delivered, member.unstable_max) for member in group.members] == [
        ("a", 2, 3),
        ("b", 2, 1),
    ]
    assert [member.per_second for member in group.members] == [2e9 / 1000, 2e9 / 1300]
    assert (group.per_second, group.unstable_max) == (2e9 / 1300, 3)


def test_a_member_that_delivers_nothing_is_the_slowest_unless_it_crashed(tmp_path: Path, spark: SparkSession) -> None:
    silent = row("c", 0, 5, "view", view="1", members=["a", "b", "c"])
    write(tmp_path / "alive", [*two_members(), silent])
    write(tmp_path / "crashed", [*two_members(), silent, row("c", 1, 6, "crash", group=None)])
    assert only_group(statistics(spark, tmp_path / "alive")).per_second == 0.0
    assert only_group(statistics(spark, tmp_path / "crashed")).per_second == 2e9 / 1300


def test_two_runs_are_told_apart_and_together(tmp_path: Path, spark: SparkSession) -> None:
    slower = [{**each, "time": each["time"] + 700} for each in of_run(two_members(), "r2")]
    write(tmp_path, [*two_members()[:7], *slower[:7]], "a.parquet")
    write(tmp_path, [*two_members()[7:], *slower[7:]], "b.parquet")
    figures = statistics(spark, tmp_path)
    assert [run.run for run in figures.runs] == ["r1", "r2"]
    assert [run.traffic.delivered for run in figures.runs] == [4, 4]
    assert [spread(run.latency)[1] for run in figures.runs] == [1050.0, 1750.0]
    [group] = figures.overall.groups
    assert figures.overall.run is None
    assert figures.overall.traffic.frames == {"data": 2, "null": 2}
    assert spread(figures.overall.latency)[:3] == pytest.approx((8, 1400, 1400))
    assert group.per_second == pytest.approx((2e9 / 1300 + 2e9 / 2000) / 2)
    assert group.members == ()


def test_groups_are_told_apart(tmp_path: Path, spark: SparkSession) -> None:
    other = [{**each, "group": "h", "index": each["index"] + 10} for each in two_members() if each["group"]]
    loose = row("a", 30, 900, "transmit", group=None, header_bytes=50, detail={"type": "hello"})
    write(tmp_path, [*two_members(), *other, loose])
    [run] = statistics(spark, tmp_path).runs
    assert [(group.group, group.traffic.sent) for group in run.groups] == [("g", 2), ("h", 2)]
    assert run.traffic.frames == {"data": 2, "hello": 1, "null": 2}
    assert run.traffic.header_bytes_per_message == (2 * 50 + 50) / 4


def test_a_run_without_messages_has_no_ratios(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path, [row("a", 0, 0, "start", group=None), row("a", 1, 5, "view", view="1", members=["a"])])
    figures = statistics(spark, tmp_path)
    group = only_group(figures)
    assert (group.latency, group.per_second, group.members[0].per_second) == (None, None, None)
    assert (group.stability_latency, group.request_latency, figures.overall.costs) == (None, None, None)
    assert (group.sent_to_nobody, figures.overall.idle_copies_per_second) == (0, None)
    assert group.traffic == Traffic(0, 0, {}, *[None] * 12)
    assert group.flow == Flow(0, 0, None, None)
    assert latency_histogram(spark, tmp_path) == []


def test_many_events_get_approximate_percentiles(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path, two_members())
    figures = statistics(spark, tmp_path, exact_events_max=12)
    assert figures.percentiles == "approximate"
    assert spread(figures.overall.latency) == pytest.approx((4, 1050, 1050, 1170, 1197, 1200))


def test_statistics_are_json(figures: Statistics) -> None:
    document = json.loads(json.dumps(asdict(figures)))
    assert document["runs"][0]["groups"][0]["members"][1]["latency"]["max_ns"] == 1200


def test_the_latency_histogram_covers_least_to_largest(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path, [*two_members(), *of_run(two_members(), "r2")])
    assert latency_histogram(spark, tmp_path, run="r2", bins=3) == [
        LatencyHistogram("g", [900, 1001, 1102, 1203], [2, 1, 1])
    ]
    [both] = latency_histogram(spark, tmp_path, bins=3)
    assert both.counts == [4, 2, 2]


def test_equal_latencies_fill_one_bin(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path, two_members()[:5])
    assert latency_histogram(spark, tmp_path) == [LatencyHistogram("g", [1000, 1001], [1])]


def test_messages_over_time(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path, two_members())
    assert messages_over_time(spark, tmp_path, bins=5) == MessagesOverTime(
        edges_ns=[0, 481, 962, 1443, 1924, 2405],
        sends=[2, 0, 0, 0, 0],
        deliveries=[0, 0, 4, 0, 0],
        nulls=[0, 1, 0, 0, 0],
    )
    assert messages_over_time(spark, tmp_path, run="no such run") == MessagesOverTime([], [], [], [])


def test_damaged_rows_come_back_as_one_line(tmp_path: Path, spark: SparkSession) -> None:
    path = write(tmp_path, two_members())
    content = bytearray(path.read_bytes())
    content[4:400] = bytes(396)
    path.write_bytes(bytes(content))
    with pytest.raises(TraceError) as caught:
        statistics(spark, tmp_path)
    assert "\n" not in str(caught.value)
    assert "part.parquet" in str(caught.value)
