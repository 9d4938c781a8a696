import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from antiphon.errors import ConfigurationError, TraceError
from antiphon.pipeline.dataset import events
from antiphon.pipeline.figures.measures import Statistics
from antiphon.pipeline.figures.statistics import statistics
from antiphon.pipeline.jobs.verify import verify
from antiphon.properties.verdicts.verdict import Verdict
from antiphon.report.collect import _diagram, collect
from antiphon.report.page import render
from antiphon.report.window import cast
from antiphon.scenario.read import parse_scenario, scenario_toml, with_seed
from antiphon.sim.run import simulate
from antiphon.trace.directory import RunRecord, write_events, write_index
from antiphon.trace.schema import EVENTS
from antiphon.trace.table import events_table

SCENARIO = """
name = "orders"
duration = "2s"
quiet = "100ms"
[options]
time_silence = "5ms"
suspect_after = "0s"
[[group]]
name = "orders"
members = 3
[[workload]]
group = "orders"
senders = ["p1", "p2"]
messages = 30
interval = "4ms"
jitter = 0.3
[[fault]]
at = "20ms"
until = "30ms"
kind = "pause"
process = "p3"
"""

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Rows]]:
    """Two runs; in the second, p3 delivers two messages of different senders the wrong way round."""
    directory = tmp_path_factory.mktemp("runs")
    tables, index = {}, []
    for seed in (1, 2):
        run = simulate(with_seed(parse_scenario(SCENARIO), seed))
        rows: Rows = events_table(run.id, run.histories).to_pylist()
        if seed == 2:
            _swap(rows)
        write_events(pa.Table.from_pylist(rows, schema=EVENTS), directory, run.id)
        index.append((RunRecord(run.id, "orders", seed, "0.1.0", "virtual", True), scenario_toml(run.scenario)))
        tables[run.id] = rows
    write_index(directory, index)
    return directory, tables


def _swap(rows: Rows) -> None:
    deliveries = [row for row in rows if row["process"] == "p3" and row["kind"] == "deliver"]
    before, after = next(pair for pair in pairwise(deliveries) if pair[0]["sender"] != pair[1]["sender"])
    for column in ("sender", "number", "clock", "digest"):
        before[column], after[column] = after[column], before[column]


@pytest.fixture(scope="module")
def known(spark: SparkSession, runs: tuple[Path, dict[str, Rows]]) -> tuple[list[Verdict], Statistics]:
    return verify(spark, runs[0]), statistics(spark, runs[0])


def _under_way(rows: Rows, begin: int, end: int) -> set[tuple[str, str]]:
    """Frame and receiver of each frame in transit in a window."""
    numbered = [row for row in rows if '"frame":"' in (row["detail"] or "")]  # control frames have no name
    sent = {_frame(row): row["time"] for row in numbered if row["kind"] == "transmit"}
    received = {(_frame(row), row["process"]): row["time"] for row in numbered if row["kind"] == "receive"}
    return {key for key, time in received.items() if time >= begin and sent[key[0]] <= end}


def _frame(row: dict[str, Any]) -> str:
    found = re.search(r'"frame":"([^"]+)"', row["detail"])
    assert found is not None
    return found[1]


def test_the_violated_run_is_shown_around_its_violation(
    spark: SparkSession, runs: tuple[Path, dict[str, Rows]], known: tuple[list[Verdict], Statistics]
) -> None:
    directory, tables = runs
    page = collect(spark, directory, verdicts=known[0], statistics=known[1])
    rows = tables[page.shown.run]
    begin, end = page.scene.window_ns
    swapped = {(row["process"], row["index"]) for row in rows} & page.scene.witness
    marks = {(mark.process, mark.index) for mark in page.scene.marks}

    assert (page.overall, page.shown.seed, page.shown.scenario) == ("violated", 2, "orders")
    assert [(run.overall, run.violated) for run in page.runs] == [("hold", ()), ("violated", ("O5", "O6", "O8"))]
    assert page.window_reason == "around the first violation of O5"
    assert swapped <= marks
    assert [line.process for line in page.scene.lifelines] == ["p1", "p2", "p3"]
    assert [happening.text for happening in page.happenings] == ["pause of p3 begins", "pause of p3 ends"]
    arrows = {(arrow.frame, arrow.target) for arrow in page.scene.arrows}
    assert arrows == _under_way(rows, begin, end)
    assert len(arrows) == len(page.scene.arrows) == page.scene.arrows_total
    assert {arrow.type for arrow in page.scene.arrows} == {"data", "null"}

    html = render(page)
    assert "Violated: weak total order (O5)" in html
    assert html.count('class="arrow ') == len(arrows)
    assert 'class="witness"' in html


def test_run_and_window_can_be_chosen(
    spark: SparkSession, runs: tuple[Path, dict[str, Rows]], known: tuple[list[Verdict], Statistics]
) -> None:
    directory, tables = runs
    first = min(tables)
    window = (0, 1_000_000_000)
    page = collect(spark, directory, run=first, window=window, verdicts=known[0], statistics=known[1])
    assert (page.shown.run, page.shown.seed, page.scene.window_ns) == (first, 1, window)
    assert page.scene.arrows_total == len(_under_way(tables[first], *window))
    sends = [mark for mark in page.scene.marks if mark.kind == "send"]
    assert len(sends) == 60
    assert {mark.name for mark in sends} >= {"p1:0", "p2:29"}
    assert page.scene.witness == frozenset()


CRASH = """
name = "crash"
quiet = "1200ms"
options = { suspect_after = "100ms", idle_probe = "300ms" }
group = [{ name = "orders", members = 3 }]
workload = [{ group = "orders", messages = 60, interval = "10ms" }]
fault = [
    { kind = "pause", process = "p2", at = "60ms", until = "90ms" },
    { kind = "crash", process = "p3", at = "200ms" },
]
"""


@pytest.mark.parametrize(
    ("without", "reason"),
    [
        ("", "around the crash of p3 and the view that answers it"),
        ("crash", "around the pause of p2"),
        ("fault", "its first messages"),
    ],
)
def test_where_all_holds_the_most_telling_moment_is_shown(
    spark: SparkSession, tmp_path: Path, without: str, reason: str
) -> None:
    scenario = parse_scenario(CRASH)
    kept = [fault for fault in scenario.fault if without != "fault" and type(fault).__name__.lower() != without]
    run = simulate(msgspec.structs.replace(scenario, fault=tuple(kept)))
    write_events(events_table(run.id, run.histories), tmp_path, run.id)
    rows = events(spark, tmp_path)
    players = cast(rows)
    drawn, why = _diagram(rows, players, [], None)
    assert why == reason
    begin, end = drawn.window_ns
    shown = [happening.text for happening in players.happenings if begin <= happening.time_ns <= end]
    if not without:
        assert shown == ["crash of p3"]
        assert {"crash", "view", "suspect"} <= {mark.kind for mark in drawn.marks}
        assert drawn.gap_ns is not None
        assert not any(drawn.gap_ns[0] < mark.time_ns < drawn.gap_ns[1] for mark in drawn.marks)
    elif without == "crash":
        assert shown == ["pause of p2 begins", "pause of p2 ends"]


def test_wrong_questions_are_refused(
    spark: SparkSession, runs: tuple[Path, dict[str, Rows]], known: tuple[list[Verdict], Statistics]
) -> None:
    with pytest.raises(TraceError, match="has no run `nobody`"):
        collect(spark, runs[0], run="nobody", verdicts=known[0], statistics=known[1])
    with pytest.raises(ConfigurationError, match=r"ends at 1.00 ms, not after 2.00 ms"):
        collect(spark, runs[0], window=(2_000_000, 1_000_000))
