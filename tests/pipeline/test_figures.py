"""The figures of one run are the same in this process and under Spark among other runs."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from antiphon.errors import TraceError
from antiphon.pipeline.figures.measures import RunStatistics
from antiphon.pipeline.figures.one_run import figures, figures_of, run_statistics
from antiphon.pipeline.figures.statistics import statistics
from antiphon.pipeline.tables.schemas import FIGURES
from antiphon.scenario.read import read_scenario
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table
from tests.support.datasets import Row, of_run, row, table, two_members, write

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SIMULATED = ("first.toml", "overlapping.toml", "restart.toml", "ladder/total.toml")


def by_hand() -> list[Row]:
    """Two members with all kinds of rows: copies, work, waits, gauges, stability, idle frames."""
    told = {"type": "null", "copies": 4, "stamp_bytes": 3, "count": "none"}
    further = [
        row("a", 10, 1250, "transmit", payload_bytes=None, header_bytes=16, detail=told),
        row("a", 11, 1300, "block"),
        row("a", 12, 1310, "unblock"),
        row("a", 13, 1350, "gauge", detail={"name": "unstable_blocks", "value": 4}),
        row("a", 14, 1360, "stable", upto={"a": 0, "b": 5}),
        row("a", 15, 1380, "view", view="2", previous="1", members=["a"], detail={"receivers": [], "senders": []}),
        row("a", 16, 1390, "send", view="2", requested=1385, sender="a", sender_incarnation=0, number=2),
        row("a", 17, 1395, "stable", upto={"a": 2**60}),
        row("a", 18, 1400, "answer", requested=1200),
        row("a", 19, 1900, "transmit", header_bytes=16, detail=told),
        row("a", 20, 2000, "stop", group=None, detail={"costs": {"sender_work": 7, "receiver_work": 2}}),
        row("b", 9, 650, "receive", sender="a", sender_incarnation=0, number=0),
        row("b", 10, 690, "receive", sender="a", sender_incarnation=0, number=0),
        row("b", 11, 1400, "block"),
        row("world", 1, 2400, "end", group=None, detail={"quiet": True, "reason": "duration"}),
    ]
    return [*two_members(), *further]


@pytest.fixture(scope="module")
def traces() -> dict[str, pa.Table]:
    runs = [simulate(read_scenario(SCENARIOS / name)) for name in SIMULATED]
    simulated = {run.id: events_table(run.id, run.histories) for run in runs}
    silent = of_run([row("a", 0, 0, "start", group=None)], "silent")
    return {**simulated, "r1": table(by_hand()), "silent": table(silent)}


@pytest.fixture(scope="module")
def measured(
    traces: dict[str, pa.Table], tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> dict[str | None, RunStatistics]:
    directory = tmp_path_factory.mktemp("measured")
    for run, events in traces.items():
        write(directory, events, f"{run}.parquet")
    return {run.run: run for run in statistics(spark, directory).runs}


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """Every number of a document, by its path."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else None
    if items is None:
        return {path: value}
    return {key: each for name, part in items for key, each in flat(part, f"{path}/{name}").items()}


def test_one_run_in_this_process_and_many_under_spark_come_to_the_same(
    traces: dict[str, pa.Table], measured: dict[str | None, RunStatistics]
) -> None:
    assert set(measured) == set(traces)
    for run, events in traces.items():
        assert flat(asdict(run_statistics(events))) == pytest.approx(flat(asdict(measured[run]))), run
        assert figures(events) == pytest.approx(figures_of(measured[run])), run


def test_without_spark_and_part_by_part_they_are_the_same(
    traces: dict[str, pa.Table], tmp_path: Path, spark: SparkSession
) -> None:
    for run, events in traces.items():
        for number in range(3):  # each run in three files, with all processes in each
            rows = pa.array(range(number, len(events), 3), pa.int64())
            write(tmp_path, events.take(rows), f"{run}-{number}.parquet")
    whole = statistics(None, tmp_path)
    assert whole == statistics(spark, tmp_path)
    for rows_per_part in (1, 700):
        found = statistics(None, tmp_path, rows_per_part=rows_per_part)
        assert flat(asdict(found)) == pytest.approx(flat(asdict(whole))), rows_per_part


def test_of_many_runs_only_the_totals_are_told(traces: dict[str, pa.Table], tmp_path: Path) -> None:
    for run, events in traces.items():
        write(tmp_path, events, f"{run}.parquet")
    each, total = statistics(None, tmp_path), statistics(None, tmp_path, runs_max=2)
    assert (len(each.runs), total.runs) == (len(traces), ())
    assert (total.overall, total.number_of_runs) == (each.overall, len(traces))


def test_numbers_that_cannot_be_true_are_refused() -> None:
    huge = row("a", 0, 0, "send", requested=0, sender="a", sender_incarnation=0, number=2**62)
    with pytest.raises(TraceError, match="has number 4,611,686,018,427,387,904, which cannot be true"):
        figures(table([huge]))
    with pytest.raises(TraceError, match="negative incarnation"):
        figures(table([row("a", 0, 0, "start") | {"incarnation": -1}]))


def test_figures_are_as_declared(traces: dict[str, pa.Table]) -> None:
    rows = [figures(events) for events in traces.values()]
    assert all(list(each) == FIGURES.names for each in rows)
    kept = pa.Table.from_pylist(rows, schema=FIGURES)
    kept.validate(full=True)
    assert kept.to_pylist() == rows


def test_figures_of_a_trace_written_by_hand() -> None:
    told = figures(table(by_hand()))
    assert (told["sent"], told["delivered"], told["nulls"], told["view_changes"]) == (3, 4, 3, 1)
    assert told["seconds"] == 2000e-9
    assert told["blocked_ns"] == 10 + (2000 - 1400)
    # a delivers its two at 1000, sent at 200; b its first at 1100, received at 650; its second it never received.
    assert told["delay_overhead_ns"] == (800 + 450) / 2
    assert told["nulls_per_inactive_member"] == 1.0
    assert told["first_sender_per_second"] == 3e9 / 1000


def test_figures_are_of_one_run() -> None:
    with pytest.raises(TraceError, match="figures need a table with one run, but this table has 2"):
        figures(table([*two_members(), *of_run(two_members(), "r2")]))
    with pytest.raises(TraceError, match="a detail is not JSON"):
        figures(table([row("a", 0, 0, "transmit") | {"detail": "{"}]))
