import json
import os
import random
import shlex
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from antiphon.campaign import run as campaign_run
from antiphon.campaign.families import FAMILIES
from antiphon.scenario.model import Scenario
from antiphon.scenario.read import run_id
from antiphon.scenario.units import Duration
from antiphon.sim.run import Run, simulate
from antiphon.trace.recorder import Recorder
from antiphon.trace.table import events_table
from tests.support.console import Console
from tests.support.patience import until
from tests.support.scripts import contents
from tests.support.traces.mutations import MUTATIONS

pytestmark = pytest.mark.usefixtures("spark")

FAMILY = "fixed-group"
"""Quick, and as good as any for the command itself."""
FILES = ["campaign.json", "findings.parquet", "outcomes.parquet", "runs.parquet"]
"""What a campaign without traces writes."""


def plant(patch: pytest.MonkeyPatch) -> None:
    """Plant a bug: every trace of this Python process contains a double delivery. So use `--runs 1`."""
    twice = next(each for each in MUTATIONS if each.name.startswith("deliver twice"))

    def mutated(run: str, histories: tuple[Recorder, ...]) -> pa.Table:
        return twice(events_table(run, histories), random.Random(1))

    patch.setattr("antiphon.campaign.run.events_table", mutated)
    patch.setattr("antiphon.cli.commands.simulate.events_table", mutated)


def test_a_good_campaign_passes_and_keeps_every_scenario(antiphon: Console, tmp_path: Path) -> None:
    result = antiphon("campaign", FAMILY, "--runs", 12, "--first", 5, "--out", tmp_path / "runs")
    assert result.code == 0
    assert "12 of 12 runs of fixed-group" in result.out
    assert "D1  delivery integrity" in result.out
    assert "pass: every run settled" in result.out
    assert sorted(contents(tmp_path / "runs")) == FILES
    index = pq.read_table(tmp_path / "runs/runs.parquet").to_pylist()
    assert [row["run"] for row in index] == [run_id(FAMILIES[FAMILY].draw(seed)) for seed in range(5, 17)]
    assert all(row["finished"] for row in index)
    assert antiphon("simulate", "--from", tmp_path / "runs", "--run", index[3]["run"], "--check").code == 0


def test_the_document_tells_properties_kinds_and_runs(antiphon: Console, tmp_path: Path) -> None:
    result = antiphon("campaign", FAMILY, "--runs", 3, "--out", tmp_path / "runs", "--traces", "all", "--json")
    document = json.loads(result.out)
    assert (tmp_path / "runs/campaign.json").read_text() == result.out
    assert (document["verdict"], document["runs"], document["objections"]) == ("pass", 3, [])
    assert sum(kind["runs"] for kind in document["kinds"]) == 3
    assert {"shape", "service", "flow_control", "transport", "view_change", "runs"} == set(document["kinds"][0])
    entry = document["properties"][0]
    assert (entry["property"], entry["runs"], entry["runs_with_opportunities"]) == ("W", 3, 3)
    assert sorted(document["traces"]) == sorted(path.stem for path in (tmp_path / "runs/events").iterdir())
    assert len(document["traces"]) == 3


def test_the_same_campaign_again_gives_the_same_bytes(antiphon: Console, tmp_path: Path) -> None:
    for place in ("one", "other"):
        antiphon("campaign", FAMILY, "--runs", 3, "--out", tmp_path / place, "--traces", "all")
    assert contents(tmp_path / "one") == contents(tmp_path / "other")
    assert antiphon("campaign", FAMILY, "--runs", 3, "--out", tmp_path / "one").code == 0
    assert "holds other runs" in antiphon.refused("campaign", FAMILY, "--runs", 4, "--out", tmp_path / "one")
    assert antiphon("campaign", FAMILY, "--runs", 4, "--out", tmp_path / "one", "--force").code == 0


def test_a_violated_run_is_told_kept_and_replayed(
    antiphon: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    place = tmp_path / "my runs"
    result = antiphon("campaign", FAMILY, "--first", 3, "--runs", 1, "--out", place)
    assert result.code == 1
    assert "fail: 1 of 1 runs violated a promised property" in result.out
    document = json.loads((place / "campaign.json").read_text())
    (told,) = (each for each in document["violated"] if each["property"] == "D2")
    assert told["sentence"] in result.out
    assert told["replay"] in result.out
    assert document["traces"] == [told["run"]] == [path.stem for path in (place / "events").iterdir()]
    replayed = antiphon(*shlex.split(told["replay"])[1:])
    assert (replayed.code, told["sentence"] in replayed.out) == (1, True)


def test_without_a_directory_the_seed_replays_a_run(antiphon: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    result = antiphon("campaign", FAMILY, "--first", 3, "--runs", 1)
    assert result.code == 1
    assert f"antiphon campaign {FAMILY} --first 3 --runs 1" in result.out


def test_no_traces_are_kept_if_none_are_wanted(
    antiphon: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert antiphon("campaign", FAMILY, "--runs", 1, "--first", 3, "--out", tmp_path, "--traces", "none").code == 1
    assert sorted(contents(tmp_path)) == FILES


def test_a_run_that_breaks_is_told_with_its_reason_and_its_scenario_is_kept(
    antiphon: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(scenario: Scenario) -> Run:
        raise AssertionError(f"block {scenario.seed}\nis not complete")

    monkeypatch.setattr(campaign_run, "simulate", fail)
    result = antiphon("campaign", FAMILY, "--runs", 1, "--first", 8, "--out", tmp_path, "--json")
    document = json.loads(result.out)
    (told,) = document["failed"]
    assert result.code == 1
    assert document["objections"] == ["1 of 1 runs failed"]
    assert told["sentence"].startswith("AssertionError: block 8 is not complete (test_campaign.py:")
    (row,) = pq.read_table(tmp_path / "runs.parquet").to_pylist()
    assert (row["run"], row["finished"]) == (told["run"], False)
    assert 'name = "fixed-group"' in row["scenario_toml"]


def test_a_run_that_never_advances_virtual_time_has_failed(antiphon: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    def spin(_: Scenario) -> Run:
        while True:
            pass

    monkeypatch.setattr(campaign_run, "simulate", spin)
    monkeypatch.setattr(campaign_run, "CPU_SECONDS_MAX", 0.01)
    result = antiphon("campaign", FAMILY, "--runs", 1)
    assert result.code == 1
    assert "TimeoutError: not finished after 0.01 s of CPU time" in result.out
    assert "spin)" in result.out


def test_a_run_that_never_settles_is_a_failure_of_its_own(
    antiphon: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_off(scenario: Scenario) -> Run:
        return simulate(replace(scenario, duration=Duration(1_000_000)))

    monkeypatch.setattr(campaign_run, "simulate", cut_off)
    result = antiphon("campaign", FAMILY, "--runs", 1, "--first", 3, "--out", tmp_path, "--json")
    document = json.loads(result.out)
    assert result.code == 1
    assert document["objections"] == ["1 of 1 runs never settled"]
    assert document["not_settled"][0]["run"] == document["traces"][0]


def test_families_are_listed(antiphon: Console) -> None:
    result = antiphon("campaign", "--list")
    assert result.code == 0
    assert [line.split()[0] for line in result.out.splitlines()] == list(FAMILIES)
    listed = json.loads(antiphon("campaign", "--list", "--json").out)["families"]
    assert [family["name"] for family in listed] == list(FAMILIES)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["elsewhere"], f"the families are {', '.join(FAMILIES)}"),
        ([], "name a scenario family"),
        ([FAMILY, "--runs", "0"], "--runs 0"),
        ([FAMILY, "--runs", "100001"], "split"),
        ([FAMILY, "--first", "-1"], "--first -1"),
        ([FAMILY, "--first", str(2**63)], "--first"),
        ([FAMILY, "--traces", "all"], "--out"),
    ],
)
def test_a_wrong_question_is_refused(antiphon: Console, arguments: list[str], word: str) -> None:
    assert word in antiphon.refused("campaign", *arguments)


def test_only_run_directories_are_replaced(antiphon: Console, tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    assert "not a run directory" in antiphon.refused("campaign", FAMILY, "--runs", 1, "--out", tmp_path, "--force")
    assert contents(tmp_path) == {"letters.txt": b"dear"}


@pytest.fixture
def interrupt(tmp_path: Path) -> Iterator[None]:
    """Ctrl-C as soon as some runs are judged."""

    def watch() -> None:
        until(lambda: [*tmp_path.rglob("parts/*.parquet")], "the first result")
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    yield
    thread.join()


def test_an_interrupted_campaign_tells_what_it_has_and_goes_on_from_there(
    antiphon: Console, tmp_path: Path, interrupt: None
) -> None:
    arguments = ("campaign", FAMILY, "--runs", 90, "--out", tmp_path / "runs", "--json")
    result = antiphon(*arguments)
    document = json.loads(result.out)
    assert result.code == 130
    kept = f"{document['runs']} of 90 runs are kept in {tmp_path / 'runs.unfinished'}"
    kept += "; run the same command again to do the rest"
    assert result.err == f"antiphon: interrupted; {kept}\n"
    assert 0 < document["runs"] < document["asked"] == 90
    assert document["verdict"] == "interrupted"
    assert [path.name for path in tmp_path.iterdir()] == ["runs.unfinished"]
    assert "started with other arguments" in antiphon.refused(*arguments, "--traces", "all")
    result = antiphon(*arguments)
    assert (result.code, json.loads(result.out)["runs"]) == (0, 90)
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


@pytest.mark.parametrize("command", ["check", "stats", "report"])
def test_a_campaign_without_traces_is_told_from_a_wrong_directory(
    antiphon: Console, tmp_path: Path, command: str
) -> None:
    antiphon("campaign", FAMILY, "--runs", 2, "--out", tmp_path)
    assert f"{tmp_path} holds the scenarios of 2 runs but no trace" in antiphon.refused(command, tmp_path)


def test_traces_that_a_campaign_did_not_keep_are_not_missed_and_those_it_kept_are(
    antiphon: Console, tmp_path: Path
) -> None:
    antiphon("campaign", FAMILY, "--runs", 3, "--out", tmp_path, "--traces", "all")
    document = json.loads((tmp_path / "campaign.json").read_text())
    first, second, third = document["traces"]
    (tmp_path / f"events/{third}.parquet").unlink()
    (tmp_path / "campaign.json").write_text(json.dumps(document | {"traces": [first, second]}))
    assert antiphon("check", tmp_path).code == 0
    assert antiphon("stats", tmp_path).code == 0
    assert antiphon("report", tmp_path).code == 0
    (tmp_path / f"events/{second}.parquet").unlink()
    result = antiphon("check", tmp_path)
    assert result.code == 3
    assert (
        f"run {second} could not be judged: runs.parquet names this run, "
        "and no file in events that can be read holds it" in result.out
    )
