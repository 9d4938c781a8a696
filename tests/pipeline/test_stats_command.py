"""`antiphon stats`: one directory in full, several side by side."""

import json
from pathlib import Path

import pytest

from antiphon.cli.output import out
from tests.commands.console import Console
from tests.pipeline.traces import of_run, row, two_members, write

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def antiphon(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Console:
    monkeypatch.setattr(out, "width", 120)
    return Console(monkeypatch, capsys)


@pytest.fixture
def directories(tmp_path: Path) -> tuple[Path, Path]:
    """The second holds two runs; in one of them a waits to send."""
    waits = [row("a", 10, 300, "block"), row("a", 11, 300 + 2 * 10**9, "unblock")]
    quick, slow = tmp_path / "quick", tmp_path / "slow"
    write(quick, two_members())
    write(slow, [*two_members(), *of_run([*two_members(), *waits], "r2")])
    return quick, slow


def test_several_directories_have_a_row_each(antiphon: Console, directories: tuple[Path, Path]) -> None:
    result = antiphon("stats", *directories)
    assert result.code == 0
    assert "stamp bytes per data frame" in result.out
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
    assert "│ blocked by flow control           │ 1 times, 2,000.000 ms over all members │" in lines
