"""A directory that is interrupted is continued by the same plan, and by no other."""

import json
from contextlib import suppress
from pathlib import Path

import pytest

from antiphon.errors import TraceError
from antiphon.trace import unfinished
from antiphon.trace.directory import PARTS
from antiphon.trace.unfinished import continued

PLAN = {"what": "this"}


def begin(directory: Path, plan: dict[str, str] = PLAN, *, force: bool = False) -> None:
    """Write something, and be interrupted."""
    with suppress(KeyboardInterrupt), continued(directory, plan, force=force) as place:
        (place / PARTS).mkdir(exist_ok=True)
        (place / PARTS / f"{plan['what']}.parquet").touch()
        raise KeyboardInterrupt


def test_an_interrupted_directory_is_continued_until_it_takes_its_place(tmp_path: Path) -> None:
    begin(tmp_path / "runs")
    assert [path.name for path in tmp_path.iterdir()] == ["runs.unfinished"]
    with continued(tmp_path / "runs", PLAN, force=False) as place:
        assert (place / PARTS / "this.parquet").exists()
        (place / "result").touch()
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["result"]


def test_a_directory_without_results_is_removed(tmp_path: Path) -> None:
    with suppress(KeyboardInterrupt), continued(tmp_path / "runs", PLAN, force=False):
        raise KeyboardInterrupt
    assert not [*tmp_path.iterdir()]


def test_the_old_directory_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/old").touch()
    begin(tmp_path / "runs")
    assert (tmp_path / "runs/old").exists()
    with continued(tmp_path / "runs", PLAN, force=False):
        pass
    assert [path.name for path in tmp_path.rglob("*")] == ["runs"]


def test_another_plan_is_refused_and_with_force_begins_anew(tmp_path: Path) -> None:
    begin(tmp_path / "runs")
    with (
        pytest.raises(TraceError, match="started with other arguments"),
        continued(tmp_path / "runs", {"what": "that"}, force=False),
    ):
        pass
    begin(tmp_path / "runs", {"what": "that"}, force=True)
    assert [path.name for path in (tmp_path / "runs.unfinished/parts").iterdir()] == ["that.parquet"]


def test_other_code_is_another_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(tmp_path / "runs")
    assert len(json.loads((tmp_path / "runs.unfinished/plan.json").read_text())["code"]) == 16
    monkeypatch.setattr(unfinished, "_code", lambda: "changed")
    with pytest.raises(TraceError, match="another version"), continued(tmp_path / "runs", PLAN, force=False):
        pass


def test_only_one_command_at_a_time(tmp_path: Path) -> None:
    second = continued(tmp_path / "runs", PLAN, force=False)
    with continued(tmp_path / "runs", PLAN, force=False), pytest.raises(TraceError, match="another command is writing"):
        second.__enter__()


def test_force_does_not_remove_a_directory_that_another_command_uses(tmp_path: Path) -> None:
    second = continued(tmp_path / "runs", {"what": "that"}, force=True)
    with continued(tmp_path / "runs", PLAN, force=False) as place:
        with pytest.raises(TraceError, match="another command is writing"):
            second.__enter__()
        (place / "result").touch()
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["result"]


def test_a_directory_of_another_origin_is_never_removed(tmp_path: Path) -> None:
    (tmp_path / "runs.unfinished").mkdir()
    (tmp_path / "runs.unfinished/letters").touch()
    with (
        pytest.raises(TraceError, match="an interrupted command did not write it"),
        continued(tmp_path / "runs", PLAN, force=True),
    ):
        pass
    assert (tmp_path / "runs.unfinished/letters").exists()
