"""Journals become event files once their processes have ended: nothing is lost, and nothing is there twice."""

from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from antiphon.errors import TraceError
from antiphon.pipeline.dataset import find_event_files
from antiphon.trace import collect as module
from antiphon.trace.collect import collect
from antiphon.trace.follow import Follower
from antiphon.trace.journal import JournalRecorder
from antiphon.trace.members import create_journal, events_path, journal_path, read_identity
from antiphon.trace.schema import EVENTS
from antiphon.types import GroupId, ProcessId

P1, P2 = ProcessId("p1#7"), ProcessId("p2")
G = GroupId("orders")


def recorder(directory: Path, process: ProcessId) -> JournalRecorder:
    made = JournalRecorder(process, lambda: create_journal(directory, process, "total", "virtual"))
    made.open()
    made.note("start", 10, "{}")
    return made


def stop(made: JournalRecorder, now: int = 30) -> None:
    made.stopped(now, {}, {})
    made.close()


def kinds(directory: Path, process: ProcessId) -> list[str]:
    table = pq.read_table(events_path(directory, process))
    assert table.schema.equals(EVENTS)
    assert table["index"].to_pylist() == [*range(table.num_rows)]
    found: list[str] = table["kind"].to_pylist()
    return found


def test_a_stopped_process_and_a_killed_one_are_told_apart(tmp_path: Path) -> None:
    stop(recorder(tmp_path, P1))
    killed = recorder(tmp_path, P2)
    killed.moved("join", G, 20)
    killed.close()  # all that a kill leaves
    collect(tmp_path)
    assert kinds(tmp_path, P1) == ["start", "stop"]
    assert kinds(tmp_path, P2) == ["start", "join", "crash"]
    table = pq.read_table(events_path(tmp_path, P2))
    assert table["time"].to_pylist() == [10, 20, 20]
    assert [*(tmp_path / "journals").iterdir()] == []
    before = events_path(tmp_path, P1).read_bytes()
    collect(tmp_path)
    assert events_path(tmp_path, P1).read_bytes() == before


def test_a_process_that_still_writes_is_named_and_the_others_are_collected(tmp_path: Path) -> None:
    stop(recorder(tmp_path, P1))
    running = recorder(tmp_path, P2)
    running.write()
    with pytest.raises(TraceError, match=r"p2 still write to .*: use `antiphon watch`"):
        collect(tmp_path)
    assert kinds(tmp_path, P1) == ["start", "stop"]
    with pytest.raises(TraceError, match="has journals that are not in its events yet"):
        find_event_files(tmp_path)
    stop(running)
    collect(tmp_path)
    assert kinds(tmp_path, P2) == ["start", "stop"]
    assert len(find_event_files(tmp_path)) == 2


class Interrupted(BaseException):
    pass


@pytest.mark.parametrize("step", ["write", "rename", "unlink"])
def test_an_interrupted_collection_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    stop(recorder(tmp_path, P1))

    def interrupt(*_: object) -> None:
        raise Interrupted

    target, name = (module, "event_writer") if step == "write" else (Path, step)
    monkeypatch.setattr(target, name, interrupt)
    with pytest.raises(Interrupted):
        collect(tmp_path)
    monkeypatch.undo()
    collect(tmp_path)
    assert kinds(tmp_path, P1) == ["start", "stop"]
    assert [*(tmp_path / "journals").iterdir()] == []
    assert [path.name for path in (tmp_path / "events").iterdir()] == [events_path(tmp_path, P1).name]


def test_two_commands_may_collect_at_once(tmp_path: Path) -> None:
    for number in range(20):
        stop(recorder(tmp_path, ProcessId(f"p{number}")))
    failed: list[BaseException] = []

    def attempt() -> None:
        try:
            collect(tmp_path)
        except BaseException as error:
            failed.append(error)

    threads = [Thread(target=attempt) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert {tuple(kinds(tmp_path, ProcessId(f"p{number}"))) for number in range(20)} == {("start", "stop")}


def test_a_large_journal_is_collected_in_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROWS", 10)
    made = recorder(tmp_path, P1)
    for now in range(50):
        made.moved("join", G, 20 + now)
        made.write()
    stop(made, 90)
    collect(tmp_path)
    assert kinds(tmp_path, P1) == ["start", *["join"] * 50, "stop"]
    assert pq.read_metadata(events_path(tmp_path, P1)).num_row_groups > 3


def test_a_journal_whose_head_was_never_whole_tells_nothing(tmp_path: Path) -> None:
    stop(recorder(tmp_path, P1))
    journal_path(tmp_path, P2).write_bytes(b"antiphon jou")
    collect(tmp_path)
    assert not journal_path(tmp_path, P2).exists()
    assert not events_path(tmp_path, P2).exists()


def test_a_damaged_journal_stays_and_is_named(tmp_path: Path) -> None:
    stop(recorder(tmp_path, P1))
    path = journal_path(tmp_path, P1)
    damaged = bytearray(path.read_bytes())
    damaged[-2] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(TraceError, match="is damaged at byte"):
        collect(tmp_path)
    assert path.exists()
    assert not events_path(tmp_path, P1).exists()


def test_other_directories_are_left_alone(tmp_path: Path) -> None:
    collect(tmp_path)
    collect(tmp_path / "none")
    assert [*tmp_path.iterdir()] == []


# Following


def follower(directory: Path, folder: Path) -> Follower:
    identity = read_identity(directory)
    assert identity is not None
    return Follower(directory, identity, folder)


def followed(folder: Path) -> dict[str, list[Any]]:
    paths = sorted((folder / "live/events").glob("*.parquet"))
    table = pa.concat_tables([pq.read_table(path) for path in paths]) if paths else EVENTS.empty_table()
    rows = table.sort_by([("process", "ascending"), ("index", "ascending")]).to_pylist()
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row["process"], []).append((row["index"], row["kind"]))
    return found


def test_members_are_followed_while_they_write_and_until_all_have_ended(tmp_path: Path) -> None:
    first = recorder(tmp_path / "run", P1)
    follows = follower(tmp_path / "run", tmp_path)
    assert follows.step()
    assert followed(tmp_path) == {}
    first.write()
    assert follows.step()
    assert followed(tmp_path) == {"p1": [(0, "start")]}
    second = recorder(tmp_path / "run", P2)
    second.write()
    stop(first)
    assert follows.step()
    second.close()
    assert not follows.step()
    assert followed(tmp_path) == {"p1": [(0, "start"), (1, "stop")], "p2": [(0, "start"), (1, "crash")]}


@pytest.mark.parametrize("collected", [True, False])
def test_rows_are_followed_once_whether_or_not_a_command_collects_meanwhile(tmp_path: Path, collected: bool) -> None:
    made = recorder(tmp_path / "run", P1)
    made.write()
    follows = follower(tmp_path / "run", tmp_path)
    follows.step()
    made.moved("join", G, 20)
    stop(made)
    if collected:
        collect(tmp_path / "run")
    assert not follows.step()
    assert followed(tmp_path) == {"p1": [(0, "start"), (1, "join"), (2, "stop")]}


def test_a_backlog_is_followed_in_several_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.trace.follow._ROWS", 5)
    made = recorder(tmp_path / "run", P1)
    for now in range(20):
        made.moved("join", G, 20 + now)
        made.write()
    stop(made, 50)
    follows = follower(tmp_path / "run", tmp_path)
    steps: Callable[[], bool] = follows.step
    assert steps()
    while steps():
        pass
    assert [index for index, _ in followed(tmp_path)["p1"]] == [*range(22)]
