import json
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from antiphon.properties.promises import JUDGED
from antiphon.trace.schema import EVENTS
from tests.support.console import Console
from tests.support.patience import SECONDS_MAX, until
from tests.support.scripts import contents, script

SCENARIOS = Path(__file__).parents[2] / "scenarios"
FIRST = SCENARIOS / "first.toml"


def test_a_run_directory_holds_events_scenario_and_run(antiphon: Console, tmp_path: Path) -> None:
    result = antiphon("simulate", FIRST, "--out", tmp_path / "run")
    assert result.code == 0
    assert "300 messages, 900 deliveries" in result.out
    run = json.loads((tmp_path / "run/run.json").read_text())
    assert {key: run[key] for key in ("scenario", "seed", "clock", "finished")} == {
        "scenario": "first",
        "seed": 1,
        "clock": "virtual",
        "finished": True,
    }
    (path,) = (tmp_path / "run/events").glob("*.parquet")
    table = pq.read_table(path)
    assert table.schema.equals(EVENTS)
    assert set(table.column("run").to_pylist()) == {run["run"]}
    assert (tmp_path / "run/scenario.toml").read_text().startswith('name = "first"')


@pytest.mark.parametrize("name", ["troubled", "overlapping"])
def test_the_hash_seed_changes_nothing(name: str, tmp_path: Path) -> None:
    scenario = SCENARIOS / f"{name}.toml"
    for number in ("1", "2", "77"):
        with script("simulate", scenario, "--out", tmp_path / number, PYTHONHASHSEED=number) as process:
            process.communicate(timeout=SECONDS_MAX)
        assert process.returncode == 0
    first, second, third = (contents(tmp_path / number) for number in ("1", "2", "77"))
    assert first == second == third


def test_check_judges_at_once(antiphon: Console) -> None:
    result = antiphon("simulate", FIRST, "--check", "--json")
    document = json.loads(result.out)
    assert result.code == 0
    assert document["check"]["verdict"] == "hold"
    opportunities = {entry["property"]: entry["opportunities"] for entry in document["check"]["properties"]}
    assert set(opportunities) == set(JUDGED)
    assert all(opportunities[name] for name in "W D1 D2 D8 O1 O3 O6 L2 L3".split())


def test_many_seeds_make_a_directory_of_runs_each_of_which_can_be_replayed(antiphon: Console, tmp_path: Path) -> None:
    assert antiphon("simulate", FIRST, "--seeds", "3..5", "--out", tmp_path / "many", "--check").code == 0
    index = pq.read_table(tmp_path / "many/runs.parquet").to_pylist()
    assert [row["seed"] for row in index] == [3, 4, 5]
    run = index[1]["run"]
    assert antiphon("simulate", "--from", tmp_path / "many", "--run", run, "--out", tmp_path / "one").code == 0
    name = f"events/{run}.parquet"
    assert contents(tmp_path / "one")[name] == contents(tmp_path / "many")[name]
    assert antiphon("simulate", "--from", tmp_path / "one").code == 0  # a single run needs no --run
    assert "--run" in antiphon.refused("simulate", "--from", tmp_path / "many")


def test_the_same_run_may_be_written_again_and_another_may_not(antiphon: Console, tmp_path: Path) -> None:
    target = tmp_path / "run"
    assert antiphon("simulate", FIRST, "--out", target).code == 0
    before = contents(target)
    assert antiphon("simulate", FIRST, "--out", target).code == 0
    assert "holds other runs" in antiphon.refused("simulate", FIRST, "--seed", "2", "--out", target)
    assert contents(target) == before
    assert antiphon("simulate", FIRST, "--seed", "2", "--out", target, "--force").code == 0
    assert contents(target) != before


def test_only_run_directories_are_replaced(antiphon: Console, tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    sentence = antiphon.refused("simulate", FIRST, "--out", tmp_path, "--force")
    assert "not a run directory" in sentence
    assert contents(tmp_path) == {"letters.txt": b"dear"}
    assert "is a file" in antiphon.refused("simulate", FIRST, "--out", tmp_path / "letters.txt")
    assert "cannot write" in antiphon.refused("simulate", FIRST, "--out", tmp_path / "letters.txt/run")


def test_the_current_directory_is_never_replaced(
    antiphon: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for place in (".", "..", tmp_path):
        assert "name a new directory" in antiphon.refused("simulate", FIRST, "--out", place)


GOOD = FIRST.read_text()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (GOOD + "\ncolour = 3\n", "colour"),
        (GOOD.replace('"10ms"', '"10 parsecs"'), "workload[0].interval"),
        (GOOD + '\n[[fault]]\nat = "1s"\nkind = "pause"\nprocess = "p9"\n', "p9"),
        ("name = [", "TOML"),
    ],
    ids=["unknown key", "bad duration", "unknown process", "not TOML"],
)
def test_a_bad_scenario_is_refused_and_nothing_is_written(
    antiphon: Console, tmp_path: Path, text: str, word: str
) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    assert word in antiphon.refused("simulate", path, "--out", tmp_path / "run")
    assert [entry.name for entry in tmp_path.iterdir()] == ["bad.toml"]


def test_a_missing_scenario_is_refused_and_nothing_is_written(antiphon: Console, tmp_path: Path) -> None:
    sentence = antiphon.refused("simulate", tmp_path / "none.toml", "--out", tmp_path / "run")
    assert "No such file" in sentence
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [
        ["--seeds", "5"],
        ["--seeds", "9..3"],
        ["--seeds", "1..1000000000000"],
        ["--seeds", "a..b"],
        ["--seeds", "1..2", "--seed", "3"],
        ["--seed", "-4"],
        ["--from", "elsewhere"],
    ],
)
def test_bad_arguments_are_refused(antiphon: Console, arguments: list[str]) -> None:
    assert antiphon.refused("simulate", FIRST, *arguments)


def test_checking_without_a_trace_is_refused(antiphon: Console, tmp_path: Path) -> None:
    path = tmp_path / "untraced.toml"
    path.write_text('trace = "off"\n' + GOOD)
    assert "trace" in antiphon.refused("simulate", path, "--check")
    assert antiphon("simulate", path).code == 0


def test_an_interrupted_run_leaves_no_files(tmp_path: Path) -> None:
    process = script("simulate", SCENARIOS / "troubled.toml", "--seeds", "1..5000", "--out", tmp_path / "run")
    until(lambda: process.poll() is not None or any(tmp_path.rglob("*.parquet")), "the first trace")
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 130
    assert "interrupted" in err
    assert not list(tmp_path.iterdir())


def test_a_reader_that_leaves_is_not_a_no() -> None:
    with script("simulate", FIRST, "--check") as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(timeout=SECONDS_MAX) == 141


def test_changes_of_views_are_shown_with_the_members_that_left_and_why(antiphon: Console, tmp_path: Path) -> None:
    scenario = tmp_path / "crash.toml"
    scenario.write_text(
        """
        name = "crash"
        quiet = "1200ms"
        options = { suspect_after = "100ms", idle_probe = "300ms" }
        group = [{ name = "g", members = 3 }]
        workload = [{ group = "g", messages = 20, interval = "10ms" }]
        fault = [{ kind = "crash", process = "p2", at = "95ms" }]
        """
    )
    told = antiphon("simulate", scenario)
    assert told.code == 0
    assert "g: p2 is out after number" in told.out
    assert "(silent, not heard for 0." in told.out
    assert "by p1 p3) → p1 p3" in told.out
    (run,) = json.loads(antiphon("simulate", scenario, "--json").out)["runs"]
    (view,) = run["views"]
    assert view["members"] == sorted(view["installed_by"]) == ["p1", "p3"]
    assert view["primary"] is True
    assert [left["process"] for left in view["left"]] == ["p2"]
