"""The command: figures of every combination, in spite of failures and interrupts."""

import json
import re
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from antiphon.pipeline.figures.one_run import figures
from antiphon.pipeline.tables.schemas import FIGURES
from antiphon.scenario.model import Scenario
from antiphon.scenario.read import parse_scenario
from antiphon.sim.run import Run, simulate
from antiphon.sweep import run as sweep_run
from antiphon.sweep.plan import read_sweep
from antiphon.trace.table import events_table
from tests.support.console import Console
from tests.support.patience import SECONDS_MAX, until
from tests.support.scripts import contents, script

pytestmark = pytest.mark.usefixtures("spark")

SMALL = """
name = "small"
[options]
suspect_after = "100ms"
[[group]]
name = "orders"
members = 2
[[workload]]
group = "orders"
messages = 3
[sweep]
"""


def write(directory: Path, lines: str) -> Path:
    path = directory / "sweep.toml"
    path.write_text(SMALL + lines)
    return path


def test_figures_scenarios_and_a_table(antiphon: Console, tmp_path: Path) -> None:
    path = write(tmp_path, '"group.orders.members" = [2, 3]\n"options.time_silence" = ["0ms", "20ms"]\nseeds = 2')
    result = antiphon("sweep", path, "--out", tmp_path / "out")
    assert (result.code, result.err) == (0, "")
    assert "small: 4 combinations with 2 seeds, 8 runs" in result.out
    assert f"figures and scenarios of 8 runs in {tmp_path / 'out'}" in result.out
    assert sorted(contents(tmp_path / "out")) == ["figures.parquet", "runs.parquet", "sweep.json"]
    table = pq.read_table(tmp_path / "out/figures.parquet")
    keys = ["group.orders.members", "options.time_silence"]
    assert table.column_names == ["run", "combination", "seed", *keys, "settled", "error", *FIGURES.names]
    rows = table.to_pylist()
    assert [tuple(row[key] for key in ("combination", "seed", *keys)) for row in rows[:3]] == [
        (0, 1, 2, "0ms"),
        (0, 2, 2, "0ms"),
        (1, 1, 2, "20ms"),
    ]
    assert all(row["settled"] and row["error"] is None for row in rows)
    index = pq.read_table(tmp_path / "out/runs.parquet").to_pylist()
    assert [row["run"] for row in index] == [row["run"] for row in rows]
    assert antiphon("simulate", "--from", tmp_path / "out", "--run", index[5]["run"], "--check").code == 0
    again = simulate(parse_scenario(index[5]["scenario_toml"]))
    assert {name: rows[5][name] for name in FIGURES.names} == figures(events_table(again.id, again.histories))


def test_the_same_sweep_again_gives_the_same_bytes_and_traces_on_request(antiphon: Console, tmp_path: Path) -> None:
    path = write(tmp_path, '"options.window" = [2, 8]')
    results = [
        antiphon("sweep", path, "--out", tmp_path / name, "--traces", "--json") for name in ("one", "two", "one")
    ]
    assert [result.code for result in results] == [0, 0, 0]
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert results[0].out == (tmp_path / "two/sweep.json").read_text()
    document = json.loads(results[0].out)
    assert (document["runs"], document["failed"], document["keys"]) == (2, 0, ["options.window"])
    assert [each["values"] for each in document["combinations"]] == [{"options.window": 2}, {"options.window": 8}]
    assert document["combinations"][0]["figures"]["sent"] == {
        "count": 1,
        "mean": 6.0,
        "half_width": None,
        "least": 6,
        "most": 6,
    }
    assert sorted(document["traces"]) == sorted(path.stem for path in (tmp_path / "one/events").iterdir())
    assert antiphon("check", tmp_path / "one").code == 0
    assert "holds other runs" in antiphon.refused("sweep", path, "--out", tmp_path / "one", "--seeds", 3)


def test_a_combination_that_cannot_run_is_a_row_with_its_error(antiphon: Console, tmp_path: Path) -> None:
    path = write(tmp_path, '"options.time_silence" = ["0ms", "90ms"]\nseeds = 2')
    result = antiphon("sweep", path, "--out", tmp_path / "out")
    assert result.code == 1
    assert "options.time_silence = 90ms: 2 of 2 runs failed: options.suspect_after: must be more than" in result.out
    rows = pq.read_table(tmp_path / "out/figures.parquet").to_pylist()
    assert [row["error"] is None for row in rows] == [True, True, False, False]
    assert [row["run"] is None for row in rows] == [False, False, True, True]
    assert rows[2]["options.time_silence"] == "90ms"
    assert len(pq.read_table(tmp_path / "out/runs.parquet")) == 2


def test_a_run_that_takes_too_long_is_a_row_with_its_error(antiphon: Console, tmp_path: Path) -> None:
    path = write(tmp_path, "seeds = 2")
    result = antiphon("sweep", path, "--out", tmp_path / "out", "--limit", "1e-6", "--json", "--traces")
    document = json.loads(result.out)
    assert (result.code, document["failed"], document["traces"]) == (1, 2, [])
    assert document["combinations"][0]["error"].startswith("TimeoutError: not finished after 1e-06 s of CPU time (")
    index = pq.read_table(tmp_path / "out/runs.parquet").to_pylist()
    assert [row["finished"] for row in index] == [False, False]


def test_a_run_that_breaks_is_told_with_its_reason(
    antiphon: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Scenario) -> Run:
        raise AssertionError("no block is\ncomplete")

    monkeypatch.setattr(sweep_run, "simulate", fail)
    result = antiphon("sweep", write(tmp_path, "seeds = 1"), "--out", tmp_path / "out")
    assert result.code == 1
    assert "1 of 1 runs failed: AssertionError: no block is complete (test_sweep.py:" in result.out


def test_values_of_different_types_are_written_as_json(antiphon: Console, tmp_path: Path) -> None:
    path = write(tmp_path, '"group.orders.members" = [2, ["a", "b"]]\n"network.reorder" = [0, 0.0]')
    assert "make the same scenario" in antiphon.refused("sweep", path, "--out", tmp_path / "out")
    path = write(tmp_path, '"group.orders.members" = [2, ["a", "b"]]\n"workload.w1.jitter" = [0, 0.5]')
    assert antiphon("sweep", path, "--out", tmp_path / "out").code == 0
    table = pq.read_table(tmp_path / "out/figures.parquet")
    assert table.column("group.orders.members").to_pylist() == ["2", "2", '["a", "b"]', '["a", "b"]']
    assert table.schema.field("workload.w1.jitter").type == pa.float64()


def test_whole_numbers_of_any_size_are_kept(antiphon: Console, tmp_path: Path) -> None:
    path = write(tmp_path, f'"options.window" = [{2**70}]')
    assert antiphon("sweep", path, "--out", tmp_path / "out", "--seeds", 1).code == 0
    assert pq.read_table(tmp_path / "out/figures.parquet").column("options.window").to_pylist() == [str(2**70)]


@pytest.mark.parametrize(
    ("lines", "options", "words"),
    [
        ('"options.windows" = [1]', [], "unknown key `windows`"),
        ("seeds = 2", ["--seeds", 0], "sweep.seeds"),
        ("seeds = 2", ["--limit", 0], "--limit 0"),
        ("seeds = 2", ["--limit", "nan"], "--limit nan"),
    ],
)
def test_a_wrong_question_is_refused_before_anything_starts(
    antiphon: Console, tmp_path: Path, lines: str, options: list[object], words: str
) -> None:
    path = write(tmp_path, lines)
    assert words in antiphon.refused("sweep", path, "--out", tmp_path / "out", *options)
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.toml"]


def test_other_commands_say_where_a_sweep_belongs(antiphon: Console, tmp_path: Path) -> None:
    assert "use `antiphon sweep`" in antiphon.refused("simulate", write(tmp_path, "seeds = 2"))


def test_an_interrupted_sweep_keeps_its_results_and_continues_with_the_rest(antiphon: Console, tmp_path: Path) -> None:
    path = write(tmp_path, "seeds = 200")
    arguments = ("sweep", path, "--out", tmp_path / "out", "--traces")
    process = script(*arguments)
    parts = tmp_path / "out.unfinished/parts"
    until(lambda: process.poll() is not None or len([*parts.glob("*.parquet")]) >= 3, "the third result")
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 130
    done = [run for part in parts.glob("*.parquet") for run in pq.read_table(part).column("run").to_pylist()]
    kept = re.fullmatch(
        rf"antiphon: interrupted; (\d+) of 200 runs are kept in {parts.parent}; "
        r"run the same command again to do the rest\n",
        err,
    )
    assert kept is not None
    assert 3 <= int(kept[1]) <= len(done)  # a worker may finish a part while it is told to end
    assert not (tmp_path / "out").exists()
    before = {run: (tmp_path / f"out.unfinished/events/{run}.parquet").stat().st_mtime_ns for run in done}
    assert antiphon(*arguments).code == 0
    assert {run: (tmp_path / f"out/events/{run}.parquet").stat().st_mtime_ns for run in done} == before
    rows = pq.read_table(tmp_path / "out/figures.parquet").to_pylist()
    assert [row["seed"] for row in rows] == [*range(1, 201)]
    assert all(row["error"] is None for row in rows)
    assert len({row["run"] for row in rows}) == len([*(tmp_path / "out/events").iterdir()]) == 200
    assert not (tmp_path / "out.unfinished").exists()


def test_an_interrupt_after_the_last_run_keeps_all(
    antiphon: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("sweep", write(tmp_path, "seeds = 2"), "--out", tmp_path / "out")
    with monkeypatch.context() as interrupted:
        interrupted.setattr("antiphon.cli.commands.sweep.write_index", lambda *_: signal.raise_signal(signal.SIGINT))
        result = antiphon(*arguments)
    assert result.code == 130
    (told,) = result.err.splitlines()
    assert told.startswith("antiphon: interrupted; 2 of 2 runs are kept in ")
    assert antiphon(*arguments).code == 0


def test_the_plan_of_the_example_is_read() -> None:
    for path in (Path(__file__).parents[2] / "scenarios/sweep").glob("*.toml"):
        assert all(combination.scenario for combination in read_sweep(path).combinations)
