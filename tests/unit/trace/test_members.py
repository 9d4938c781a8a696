"""Directories that members share: the first member identifies the run, and unusable directories are refused."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from antiphon import Member
from antiphon.errors import ConfigurationError, TraceError
from antiphon.trace.journal import JournalReader
from antiphon.trace.members import (
    IDENTITY,
    Identity,
    create_journal,
    events_path,
    journal_path,
    read_identity,
    require_usable,
)
from antiphon.types import ProcessId

P1, P2 = ProcessId("p1#7"), ProcessId("p2#7")


def identity(directory: Path) -> Identity:
    found = read_identity(directory)
    assert found is not None
    return found


def test_members_of_one_directory_have_one_run_and_one_clock(tmp_path: Path) -> None:
    directory = tmp_path / "deep/run"
    files = [create_journal(directory, process, "total") for process in (P1, P2)]
    told = identity(directory)
    heads = [JournalReader(journal_path(directory, process)).head for process in (P1, P2)]
    assert {(head.run, head.epoch_ns) for head in heads} == {(told.run, told.epoch_ns)}
    assert [head.process for head in heads] == [P1, P2]
    assert sorted(path.name for path in directory.iterdir()) == ["journals", IDENTITY]
    for file in files:
        file.close()


def test_two_members_that_are_the_first_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def late(source: Path, target: Path) -> None:
        monkeypatch.undo()
        create_journal(tmp_path, P2, "total").close()  # just before we give ours
        link(source, target)

    monkeypatch.setattr("antiphon.trace.members.os.link", late)
    create_journal(tmp_path, P1, "total").close()
    assert len({JournalReader(journal_path(tmp_path, each)).head.run for each in (P1, P2)}) == 1


def other_clock(directory: Path) -> None:
    create_journal(directory, P2, "total", "virtual").close()


def other_start(directory: Path) -> None:
    create_journal(directory, P2, "total").close()
    changed = msgspec.structs.replace(identity(directory), machine="before")
    (directory / IDENTITY).write_bytes(msgspec.json.encode(changed))


def own_journal(directory: Path) -> None:
    create_journal(directory, P1, "total").close()


def own_events(directory: Path) -> None:
    create_journal(directory, P2, "total").close()
    events_path(directory, P1).parent.mkdir()
    events_path(directory, P1).touch()


def something_else(directory: Path) -> None:
    directory.mkdir()
    (directory / "run.json").write_text("{}")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (Path.touch, "is a file; name a directory"),
        (something_else, "holds something other than traces of members"),
        (other_clock, "was started with another clock, or before this machine was booted"),
        (other_start, "was started with another clock, or before this machine was booted"),
        (own_journal, "already holds a trace of p1#7"),
        (own_events, "already holds a trace of p1#7"),
    ],
)
def test_an_unusable_directory_is_refused_in_a_sentence(
    tmp_path: Path, make: Callable[[Path], object], sentence: str
) -> None:
    make(tmp_path / "run")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ConfigurationError, match=sentence):
        require_usable(tmp_path / "run", P1)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_directory_that_is_not_writable_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.trace.members.os.access", lambda path, _: path != tmp_path)  # root may write anywhere
    with pytest.raises(ConfigurationError, match=f"trace: {tmp_path} is not writable"):
        require_usable(tmp_path / "new/run", P1)
    assert [*tmp_path.iterdir()] == []


def test_a_member_refuses_when_it_is_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="is a file"):
        Member(trace=tmp_path / "file")
    (tmp_path / IDENTITY).write_text("{")
    with pytest.raises(TraceError, match="does not identify the run"):
        Member(trace=tmp_path)


def test_a_directory_that_becomes_unusable_is_refused_when_the_journal_is_created(tmp_path: Path) -> None:
    own_journal(tmp_path)
    with pytest.raises(ConfigurationError, match="already holds a trace of p1#7"):
        create_journal(tmp_path, P1, "total")
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="cannot write to"):
        create_journal(tmp_path / "file/run", P1, "total")


def test_file_names_of_two_processes_differ(tmp_path: Path) -> None:
    paths = {events_path(tmp_path, ProcessId(each)) for each in ("p", "p#1", "p.1", "p.1#2", "_p", ".p")}
    assert len(paths) == 6
    assert not any(path.name.startswith((".", "_")) for path in paths)
