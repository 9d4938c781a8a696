"""The tables of directories: of campaigns, sweeps, members and single runs, with traces and without."""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from antiphon.campaign.families import FAMILIES
from antiphon.errors import TraceError
from antiphon.pipeline.tables.catalog import TablesOfRuns, catalog
from antiphon.pipeline.tables.columns import Table, meaning
from antiphon.pipeline.tables.schemas import TABLES
from antiphon.scenario.read import run_id, scenario_toml
from antiphon.sim.run import simulate
from antiphon.trace.directory import RunRecord, write_events, write_index
from antiphon.trace.table import events_table
from tests.support.console import Console
from tests.support.datasets import row, two_members, write
from tests.support.traces.mutations import MUTATIONS

FAMILY = "fixed-group"
SWEEP = """
name = "small"
[[group]]
name = "orders"
members = 2
[[workload]]
group = "orders"
messages = 3
[sweep]
"options.time_silence" = ["0ms", "20ms"]
"workload.w1.interval" = ["1ms", "2ms"]
"group.orders.members" = [2, 3]
"""


@pytest.fixture
def antiphon(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Console:
    return Console(monkeypatch, capsys)


def rows(spark: SparkSession, directory: Path, name: str) -> list[dict[str, Any]]:
    found = catalog(directory)
    rows: list[dict[str, Any]] = found.frame(spark, found.tables[name]).toArrow().to_pylist()
    return rows


def in_order(verdicts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(verdicts, key=lambda each: (each["run"], each["property"], each["group"] or ""))


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs with traces, one of them with a message that is delivered twice."""
    directory = tmp_path_factory.mktemp("traced")
    twice = next(each for each in MUTATIONS if each.name.startswith("deliver twice"))
    index = []
    for seed in (1, 2, 3):
        scenario = FAMILIES[FAMILY].draw(seed)
        run = simulate(scenario)
        events = events_table(run.id, run.histories)
        write_events(twice(events, random.Random(1)) if seed == 3 else events, directory, run.id)
        record = RunRecord(run.id, scenario.name, seed, "0", clock="virtual", finished=True)
        index.append((record, scenario_toml(scenario)))
    write_index(directory, index)
    return directory


@pytest.fixture(scope="module")
def tables(traced: Path) -> TablesOfRuns:
    return TablesOfRuns(traced)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_table_has_the_declared_columns_and_comments(
    table: Table, tables: TablesOfRuns, spark: SparkSession
) -> None:
    found = tables.frame(spark, table).schema
    assert found.simpleString() == from_arrow_schema(table.columns).simpleString()
    assert [field.metadata["comment"] for field in found] == [meaning(field) for field in table.columns]
    assert all(map(meaning, table.columns))


def test_a_campaign_has_the_same_verdicts_with_traces_and_without(
    antiphon: Console, tmp_path: Path, traced: Path, spark: SparkSession
) -> None:
    antiphon("campaign", FAMILY, "--runs", 2, "--out", tmp_path / "runs")
    kept = rows(spark, tmp_path / "runs", "verdicts")
    judged = rows(spark, traced, "verdicts")
    bad = run_id(FAMILIES[FAMILY].draw(3))
    assert in_order(kept) == in_order([each for each in judged if each["run"] != bad])
    assert {each["outcome"] for each in kept} == {"pass", "vacuous"}
    (violated,) = (each for each in judged if each["outcome"] == "violated" and each["property"] == "D2")
    assert (violated["run"], violated["violations"]) == (bad, 1)
    assert violated["witness_messages"][0] in violated["witness"]
    assert violated["witness_processes"]


def test_the_kept_findings_of_a_campaign_name_their_witness(
    antiphon: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    twice = next(each for each in MUTATIONS if each.name.startswith("deliver twice"))
    monkeypatch.setattr("antiphon.campaign.run.events_table", lambda *run: twice(events_table(*run), random.Random(1)))
    antiphon("campaign", FAMILY, "--first", 3, "--runs", 1, "--out", tmp_path)
    kept = rows(spark, tmp_path, "verdicts")
    judged = in_order(
        TablesOfRuns(tmp_path).frame(spark, TablesOfRuns(tmp_path).tables["verdicts"]).toArrow().to_pylist()
    )
    assert judged == in_order(kept)
    (tmp_path / "findings.parquet").unlink()
    assert in_order(rows(spark, tmp_path, "verdicts")) == judged
    assert any(each["witness"] for each in judged)


def test_the_runs_of_a_campaign_tell_how_they_went(
    antiphon: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    antiphon("campaign", FAMILY, "--runs", 2, "--out", tmp_path / "good")
    first, second = rows(spark, tmp_path / "good", "runs")
    assert (first["seed"], second["seed"], first["scenario"], first["clock"]) == (1, 2, FAMILY, "virtual")
    assert (first["finished"], first["settled"], first["error"], first["faults_begun"]) == (True, True, None, None)
    assert first["events"] > 0
    assert [*catalog(tmp_path / "good").tables] == ["runs", "verdicts"]

    def fail(_: object) -> None:
        raise AssertionError("a block is not complete")

    monkeypatch.setattr("antiphon.campaign.run.simulate", fail)
    antiphon("campaign", FAMILY, "--runs", 1, "--out", tmp_path / "bad")
    (failed,) = rows(spark, tmp_path / "bad", "runs")
    assert (failed["finished"], failed["settled"], failed["events"]) == (False, False, 0)
    assert failed["error"].startswith("AssertionError: a block is not complete")
    assert rows(spark, tmp_path / "bad", "verdicts") == []


def test_what_traces_show_of_runs(traced: Path, spark: SparkSession) -> None:
    found = rows(spark, traced, "runs")
    for each, path in zip(found, sorted((traced / "events").iterdir()), strict=True):
        assert (each["run"], each["events"]) == (path.stem, pq.read_metadata(path).num_rows)
        assert each["settled"] is True
        assert each["faults_begun"] == each["faults"] == sum(each[key] for key in each if key.startswith("fault_"))


def test_a_sweep_has_its_figures_and_varied_values(antiphon: Console, tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "small.toml").write_text(SWEEP)
    antiphon("sweep", tmp_path / "small.toml", "--out", tmp_path / "out")
    assert [*catalog(tmp_path / "out").tables] == ["runs", "figures"]
    runs = rows(spark, tmp_path / "out", "runs")
    keys = ("option_time_silence_ns", "workload_w1_interval_ns", "group_orders_members", "members", "messages")
    assert [tuple(each[key] for key in keys) for each in runs] == [
        (silence, interval, members, members, 3 * members)
        for silence in (0, 20_000_000)
        for interval in (1_000_000, 2_000_000)
        for members in (2, 3)
    ]
    assert {each["settled"] for each in runs} == {True}
    figures = rows(spark, tmp_path / "out", "figures")
    assert {each["run"] for each in figures} == {each["run"] for each in runs}
    assert all(each["latency_mean_ns"] > 0 for each in figures)
    antiphon("sweep", tmp_path / "small.toml", "--out", tmp_path / "traced", "--traces")
    (tmp_path / "traced/figures.parquet").unlink()
    measured = rows(spark, tmp_path / "traced", "figures")
    assert {each["run"]: each["latency_mean_ns"] for each in measured} == pytest.approx(
        {each["run"]: each["latency_mean_ns"] for each in figures}
    )


def test_a_trace_without_a_scenario_is_a_run_too(tmp_path: Path, spark: SparkSession) -> None:
    cut = row("world", 1, 2300, "fault", group=None, detail={"kind": "cut", "begins": True})
    end = row("world", 2, 2500, "end", group=None, detail={"quiet": False})
    write(tmp_path, [*two_members(), cut, end])
    (run,) = rows(spark, tmp_path, "runs")
    assert (run["run"], run["events"], run["settled"], run["scenario"]) == ("r1", 15, False, None)
    assert (run["faults"], run["fault_cut"], run["fault_crash"], run["faults_begun"]) == (1, 1, 0, 1)


def test_written_tables_are_the_same_again_with_their_comments(
    antiphon: Console, traced: Path, tmp_path: Path, spark: SparkSession
) -> None:
    assert antiphon("tables", traced, "--out", tmp_path / "tables").code == 0
    written = catalog(tmp_path / "tables")
    source = catalog(traced)
    assert [*written.tables] == [*source.tables]
    assert written.frame(spark, written.tables["events"]).count() > 0
    for name, table in [*written.tables.items()][1:]:
        again = written.frame(spark, table)
        assert [field.metadata["comment"] for field in again.schema] == [meaning(field) for field in table.columns]
        folder = tmp_path / "tables" / table.layer / name
        comments = pq.read_schema(folder / "_common_metadata")
        assert comments.metadata[b"comment"].decode() == source.tables[name].comment
        plain = spark.read.parquet(str(folder))
        assert [field.metadata["comment"] for field in plain.schema] == [meaning(field) for field in comments]
        assert pq.read_table(folder).num_rows == plain.count()
    assert in_order(rows(spark, tmp_path / "tables", "verdicts")) == in_order(rows(spark, traced, "verdicts"))


def test_a_campaign_without_traces_is_written_as_far_as_it_goes(antiphon: Console, tmp_path: Path) -> None:
    antiphon("campaign", FAMILY, "--runs", 2, "--out", tmp_path / "runs")
    result = antiphon("tables", tmp_path / "runs", "--out", tmp_path / "tables", "--json")
    told = json.loads(result.out)["tables"]
    assert [(each["name"], each["rows"] > 0) for each in told] == [("runs", True), ("verdicts", True)]


def test_damaged_directories_are_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="does not exist"):
        catalog(tmp_path / "nowhere")
    with pytest.raises(TraceError, match="no folder `events`"):
        catalog(tmp_path)
    (tmp_path / "tables.json").write_text('{"tables": [{"layer": "gold", "name": "runs", "row": "run"}]}')
    with pytest.raises(TraceError, match="cannot read the tables in"):
        catalog(tmp_path)


def test_a_scenario_that_is_no_toml_names_its_run(tmp_path: Path, spark: SparkSession) -> None:
    write_index(tmp_path, [(RunRecord("r1", "s", 1, "0", clock="virtual", finished=True), "name = ")])
    with pytest.raises(TraceError, match="the scenario of run r1 cannot be read"):
        rows(spark, tmp_path, "runs")


def test_kept_files_that_are_no_parquet_are_named(tmp_path: Path, spark: SparkSession) -> None:
    write_index(tmp_path, [])
    (tmp_path / "outcomes.parquet").write_bytes(b"PAR")
    with pytest.raises(TraceError, match=r"outcomes\.parquet cannot be read"):
        rows(spark, tmp_path, "runs")


def test_nothing_kept_means_an_empty_table(tmp_path: Path, spark: SparkSession) -> None:
    write_index(tmp_path, [])
    assert rows(spark, tmp_path, "runs") == []
    assert pa.types.is_int64(catalog(tmp_path).tables["runs"].columns.field("events").type)
