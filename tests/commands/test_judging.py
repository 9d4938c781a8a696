"""`check`, `stats` and `report` on real traces of the simulator, under the one Spark session of the tests."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from antiphon.trace.directory import write_events
from tests.support.console import Console
from tests.support.patience import SECONDS_MAX, until
from tests.support.traces.handmade import trio
from tests.support.traces.mutations import MUTATIONS, Mutation
from tests.support.traces.stability_mutations import STABILITY_MUTATIONS

SCENARIOS = Path(__file__).parents[2] / "scenarios"
pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    from antiphon.cli.commands.simulate import simulate_one  # noqa: PLC0415
    from antiphon.scenario.read import read_scenario, with_seed  # noqa: PLC0415
    from antiphon.trace.directory import appearing, write_run  # noqa: PLC0415

    assert spark is not None
    directory = tmp_path_factory.mktemp("runs") / "run"
    scenario = with_seed(read_scenario(SCENARIOS / "troubled.toml"), 4)  # offers a place for every mutation
    with appearing(directory) as aside:
        outcome = simulate_one(scenario, "bytes", check=False, directory=aside)
        write_run(aside, outcome.record, outcome.scenario_toml)
    return directory


def test_a_good_run_holds(antiphon: Console, run_directory: Path) -> None:
    result = antiphon("check", run_directory)
    assert result.code == 0
    assert "hold: every judged property holds" in result.out
    document = json.loads(antiphon("check", run_directory, "--json").out)
    assert document["verdict"] == "hold"
    assert set(document["properties"][0]) >= {"property", "group", "opportunities", "violations", "example"}


@pytest.mark.parametrize(
    "mutation",
    [next(each for each in some if each.one_of) for some in (MUTATIONS, STABILITY_MUTATIONS)],  # test_mutants: all
    ids=lambda mutation: mutation.name.replace(" ", "-"),
)
def test_a_mutated_run_is_violated_under_the_right_name(
    antiphon: Console, run_directory: Path, tmp_path: Path, mutation: Mutation
) -> None:
    (path,) = (run_directory / "events").glob("*.parquet")
    mutant = mutation(pq.read_table(path), random.Random(4))
    if mutant is None:
        pytest.fail("the trace offers no place for this mutation")
    write_events(mutant, tmp_path, path.stem)
    result = antiphon("check", tmp_path, "--json")
    properties = json.loads(result.out)["properties"]
    violated = {entry["property"] for entry in properties if entry["violations"]}
    assert result.code == 1
    assert mutation.is_caught(violated)
    sentences = [entry["example"]["sentence"] for entry in properties if entry["violations"]]
    assert all(sentence.strip() for sentence in sentences)


def fifo_run(directory: Path) -> None:
    """A run of FIFO multicast in which an answer overtakes its question."""
    trace = trio(protocol="classic", service="fifo")
    question = trace.send("p1")
    trace.deliver("p1", question)
    trace.deliver("p2", question)
    answer = trace.send("p2")
    trace.deliver("p2", answer)
    trace.deliver("p1", answer)
    trace.deliver("p3", answer, question)
    write_events(trace.end(settled=False), directory, "run-1")


def test_more_can_be_required_than_is_promised(antiphon: Console, tmp_path: Path) -> None:
    fifo_run(tmp_path)
    assert antiphon("check", tmp_path).code == 0
    result = antiphon("check", tmp_path, "--require", "O3,D13", "--require", "O1")
    assert result.code == 1
    assert "but orders/p1:0 happened before orders/p2:0: p2 delivered orders/p1:0" in result.out
    assert "required of every service: D13, O1, O3" in result.out
    document = json.loads(antiphon("check", tmp_path, "--require", "O3", "--json").out)
    assert document["required"] == ["O3"]
    assert {entry["property"] for entry in document["properties"] if entry["violations"]} == {"O3"}


@pytest.mark.parametrize("names", [["O3,O99"], ["O3", "--require", "o6"], [""]])
def test_a_property_without_a_checker_cannot_be_required(antiphon: Console, tmp_path: Path, names: list[str]) -> None:
    fifo_run(tmp_path)
    assert "there is no checker for a property" in antiphon.refused("check", tmp_path, "--require", *names)


def test_an_ill_formed_trace_cannot_be_judged(antiphon: Console, run_directory: Path, tmp_path: Path) -> None:
    (path,) = (run_directory / "events").glob("*.parquet")
    table = pq.read_table(path)
    write_events(table.slice(0, 100), tmp_path, path.stem)
    result = antiphon("check", tmp_path)
    assert result.code == 3
    assert "W7" in result.out


def test_an_unreadable_run_does_not_hide_what_another_violates(
    antiphon: Console, run_directory: Path, tmp_path: Path
) -> None:
    (path,) = (run_directory / "events").glob("*.parquet")
    table = pq.read_table(path)
    twice = next(each for each in MUTATIONS if each.name.startswith("deliver twice"))(table, random.Random(1))
    write_events(twice, tmp_path, path.stem)
    at = table.schema.get_field_index("run")
    other = table.set_column(at, table.schema.field("run"), pa.array(["other"] * len(table)))
    details = pa.array([None] * len(table), pa.string())
    write_events(other.set_column(table.schema.get_field_index("detail"), "detail", details), tmp_path, "other")
    result = antiphon("check", tmp_path, "--json")
    outcomes = {(entry["property"], entry["outcome"]) for entry in json.loads(result.out)["properties"]}
    assert result.code == 1
    assert ("D2", "violated") in outcomes
    assert ("W", "harness error") in outcomes


def test_a_run_whose_events_are_gone_is_missed(antiphon: Console, tmp_path: Path) -> None:
    many = tmp_path / "many"
    assert antiphon("simulate", SCENARIOS / "first.toml", "--seeds", "1..3", "--out", many).code == 0
    lost = next((many / "events").glob("first-2-*.parquet"))
    lost.unlink()
    result = antiphon("check", many)
    assert result.code == 3
    assert "runs.parquet names this run, and no file in events that can be read holds it" in result.out


def test_an_interrupt_while_spark_starts_ends_quietly(run_directory: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "antiphon.cli.main", "report", str(run_directory)]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        until(lambda: process.poll() is not None or any(tmp_path.glob("antiphon-spark-*")), "the start of Spark")
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SECONDS_MAX)  # also waits until no Java holds the pipes
    assert (process.returncode, out) == (130, "")
    assert err == "antiphon: interrupted; no unfinished files were left\n"


def test_figures_of_a_run(antiphon: Console, run_directory: Path) -> None:
    figures = json.loads(antiphon("stats", run_directory, "--json").out)
    (group,) = figures["runs"][0]["groups"]
    assert group["traffic"]["delivered"] == 9030
    assert [member["process"] for member in group["members"]] == ["p1", "p2", "p3", "p4", "p5", "p6"]
    assert all(0 < member["latency"]["p50_ns"] <= member["latency"]["p99_ns"] for member in group["members"])
    assert max(member["unstable_max"] for member in group["members"]) == group["unstable_max"]
    table = antiphon("stats", run_directory)
    assert table.code == 0
    assert "p99 ms" in table.out


def test_a_page(antiphon: Console, run_directory: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = antiphon("report", run_directory, "--out", page, "--from", "500ms", "--to", "520ms")
    assert result.code == 0
    text = page.read_text()
    assert "troubled" in text
    assert "<svg" in text
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize("command", ["check", "stats", "report"])
def test_a_wrong_directory_is_named(antiphon: Console, tmp_path: Path, command: str) -> None:
    assert "nowhere does not exist" in antiphon.refused(command, tmp_path / "nowhere")
    assert "events" in antiphon.refused(command, tmp_path)


@pytest.mark.parametrize("window", [["--from", "1s"], ["--from", "2s", "--to", "1s"], ["--from", "x", "--to", "1s"]])
def test_a_wrong_window_is_refused(antiphon: Console, run_directory: Path, window: list[str]) -> None:
    assert "--from" in antiphon.refused("report", run_directory, *window)
