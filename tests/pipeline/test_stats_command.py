"""`antiphon stats`: one directory in full, several side by side."""

import json
from functools import cache
from pathlib import Path

import pytest

from antiphon.cli.output import out
from antiphon.pipeline.statistics import statistics
from tests.commands.console import Console
from tests.pipeline.traces import of_run, row, two_members, write

pytestmark = pytest.mark.usefixtures("spark")
measured_once = cache(statistics)


@pytest.fixture
def antiphon(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Console:
    monkeypatch.setattr(out, "width", 120)
    monkeypatch.setattr("antiphon.pipeline.statistics.statistics", measured_once)
    return Console(monkeypatch, capsys)


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The second holds two runs; in one of them a waits to send."""
    waits = [row("a", 10, 300, "block"), row("a", 11, 300 + 2 * 10**9, "unblock")]
    quick, slow = tmp_path_factory.mktemp("quick"), tmp_path_factory.mktemp("slow")
    write(quick, two_members())
    write(slow, [*two_members(), *of_run([*two_members(), *waits], "r2")])
    return quick, slow


def test_several_directories_have_a_row_each(antiphon: Console, directories: tuple[Path, Path]) -> None:
    result = antiphon("stats", *directories)
    assert result.code == 0
    assert "stamp bytes a data frame" in result.out
    assert result.out.count("2.000") == 1
    assert "Group" not in result.out


def test_several_directories_are_one_document(antiphon: Console, directories: tuple[Path, Path]) -> None:
    document = json.loads(antiphon("stats", *directories, "--json").out)
    assert [each["directory"] for each in document["directories"]] == [str(directory) for directory in directories]
    assert [len(each["runs"]) for each in document["directories"]] == [1, 2]
    assert [each["overall"]["flow"]["blocked_ns"] for each in document["directories"]] == [0, 2 * 10**9]


def test_the_runs_of_one_directory_have_a_row_each(antiphon: Console, directories: tuple[Path, Path]) -> None:
    lines = antiphon("stats", directories[1]).out.splitlines()
    rows = {name: line for line in lines for name in ("r1", "r2", "all") if line.startswith(f"│ {name} ")}
    assert set(rows) == {"r1", "r2", "all"}
    assert ("2.000" in rows["r2"], "2.000" in rows["r1"]) == (True, False)
    [blocked] = [line for line in lines if line.startswith("│ blocked, all members (ms)")]
    assert "2,000.000" in blocked
