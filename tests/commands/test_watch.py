"""`antiphon watch`: what it shows, and its error messages."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from antiphon.trace.directory import write_events
from tests.support.console import Console
from tests.support.watching import add_part, call_whole, cut, events_of

pytestmark = pytest.mark.usefixtures("spark")
EVENTS = events_of("merge")


def test_the_command_shows_a_finished_run(antiphon: Console, tmp_path: Path) -> None:
    write_events(EVENTS, tmp_path, "merge")
    call_whole(tmp_path)
    table = antiphon("watch", tmp_path)
    assert table.code == 0
    assert "5,041 events, ended quiet" in table.out
    assert "`antiphon check` judges all at the end" in table.out
    result = antiphon("watch", tmp_path, "--once", "--json", "--checkpoint", tmp_path / "checkpoint")
    told = json.loads(result.out)
    assert (result.code, told["violated"], told["waiting"]) == (0, False, 0)
    assert told["runs"][0]["events"] == EVENTS.num_rows
    again = antiphon("watch", tmp_path, "--json", "--checkpoint", tmp_path / "checkpoint")
    assert json.loads(again.out)["runs"] == told["runs"]


def test_a_violation_is_reported_with_exit_code_1(antiphon: Console, tmp_path: Path) -> None:
    rows = EVENTS.to_pylist()
    delivered = [each for each in rows if (each["kind"], each["process"], each["group"]) == ("deliver", "p2", "orders")]
    delivered[1]["sender"], delivered[1]["number"] = delivered[0]["sender"], delivered[0]["number"]
    write_events(pa.Table.from_pylist(rows, schema=EVENTS.schema), tmp_path, "merge")
    call_whole(tmp_path)
    result = antiphon("watch", tmp_path, "--once")
    assert result.code == 1
    assert f"p2 delivered orders/{delivered[0]['sender']}:0 twice" in " ".join(result.out.split())


def test_directories_that_cannot_be_watched_are_refused(antiphon: Console, tmp_path: Path) -> None:
    assert "has no run, and none" in antiphon.refused("watch", tmp_path / "none", "--once")
    assert "--every 0 is not between" in antiphon.refused("watch", tmp_path, "--every", "0")
    (tmp_path / "file").write_text("")
    add_part(tmp_path, 1, EVENTS)
    assert "file is a file" in antiphon.refused("watch", tmp_path, "--once", "--checkpoint", tmp_path / "file")
    held = antiphon.refused("watch", tmp_path, "--once", "--checkpoint", tmp_path / "events")
    assert "is not the checkpoint of a watch" in held
    (tmp_path / "events/part-0002.parquet").write_bytes(b"PAR1 not at all PAR1")
    assert "part-0002.parquet is truncated, damaged or not Parquet" in antiphon.refused("watch", tmp_path, "--once")


def test_a_run_with_a_gap_is_not_passed_over(antiphon: Console, tmp_path: Path) -> None:
    for number, part in enumerate(cut(EVENTS, 3, per_member=False)):
        if number != 1:
            add_part(tmp_path, number, part)
    call_whole(tmp_path)
    assert "events are missing in" in antiphon.refused("watch", tmp_path)
