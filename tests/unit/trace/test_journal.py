"""A journal gives back all recorded rows, even if its process was killed."""

import errno
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from antiphon.core.effects import (
    Blocked,
    Confirmed,
    Departure,
    Discard,
    Gauge,
    InstallState,
    Left,
    Refuted,
    Stable,
    Suspected,
    Transitional,
    Unblocked,
)
from antiphon.errors import TraceError
from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.trace.journal import JournalFile, JournalReader, JournalRecorder, TornHead, digest_of_parts, is_locked
from antiphon.trace.recorder import Recorder
from antiphon.trace.records import VERSION, Digests, Head, digest, digests
from antiphon.trace.replay import Replay
from antiphon.types import GroupId, ProcessId, View, ViewId

G = GroupId("orders@5")
NAME = GroupId("orders")
P1, P2 = ProcessId("p1"), ProcessId("p2#3")
VIEW = View(G, ViewId("0001.000000.aa"), (P1, P2), classes=((P1,), (P2,)))
SIZES = {"payload_bytes": 3, "header_bytes": 20, "stamp_bytes": 8, "unstable": 1, "copies": 1}


def head(**changes: Any) -> Head:
    return Head(version=VERSION, process=P1, run="r", epoch_ns=100, service="total", **changes)


def frame(sender: ProcessId, *payloads: bytes, label: int = 0) -> BlockFrame:
    return BlockFrame(G, sender, 7, 6, 5, payloads, label)


def journal(path: Path) -> JournalRecorder:
    recorder = JournalRecorder(P1, lambda: JournalFile(path, head()))
    recorder.open()
    return recorder


def rows(path: Path) -> list[dict[str, Any]]:
    reader = JournalReader(path)
    replay = Replay(reader.head)
    for entry in reader.entries():
        replay.take(entry)
    return replay.history.rows


def play(recorder: Any, request: Any, merge: Any, offset: int) -> None:
    """Every call that a driver makes, once at least."""
    recorder.note("start", offset, "{}")
    recorder.moved("join", NAME, offset + 1, (P2,))
    recorder.installed(VIEW, offset + 2, (Departure(ProcessId("p9"), 3, "silent", (P2,), 5, 6),))
    recorder.handed_over(VIEW, b"state", offset + 2)
    merge(InstallState(G, ((1, b"other"),), 0), [b"state", b"other"], offset + 3)
    request(NAME, (b"one", b"three"), offset + 4)
    recorder.held_back(Blocked(G, P2), offset + 5)
    recorder.held_back(Unblocked(G), offset + 6)
    recorder.transmitted(frame(P1, b"one", b"three"), offset + 7, **SIZES, flow=(1, 2, 3, 4))
    recorder.received(frame(P2, b"a", b"b", label=4), offset + 8, unstable=2)
    recorder.received(frame(P2), offset + 8, unstable=2, relay=P2)
    recorder.delivered(frame(P2, b"a", b"b", label=4), offset + 9)
    recorder.prefix(Stable(G, ((P2, 5),)), offset + 10, unstable=0)
    recorder.prefix(Discard(G, ((P2, 5),), evicted=True), offset + 10, unstable=0)
    recorder.gauged(Gauge(G, "buffers", 9, P2), offset + 11)
    recorder.suspected(Suspected(G, P2, 4, "silent"), offset + 12)
    recorder.suspected(Refuted(G, P2), offset + 13)
    recorder.confirmed(Confirmed(G, ((P2, 4),), (P1,)), offset + 14)
    recorder.noticed(Transitional(G, (P1,)), offset + 15)
    recorder.parted(Left(G, graceful=True), offset + 16)
    recorder.left(Left(G, graceful=True), offset + 17)
    recorder.stopped(offset + 18, {NAME: 0}, {}, {"joining": [NAME]})


def test_a_journal_tells_the_same_rows_as_a_recorder_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.trace.recorder.digest", digest)
    history = Recorder(P1, {NAME: "total"}, signed=True)

    def request(group: GroupId, payloads: Sequence[bytes], now: int) -> None:
        for payload in payloads:
            history.requested(group, payload, now)

    play(history, request, history.merged, 0)
    written = journal(tmp_path / "j")
    play(written, written.requested, written.merged, 100)
    written.close()
    assert rows(tmp_path / "j") == history.rows
    assert {row["kind"] for row in history.rows} >= {"send", "deliver", "state", "view", "stop", "leave"}


def test_a_journal_can_be_read_while_it_grows_and_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written = journal(path)
    written.note("start", 100)
    assert rows(path) == []  # nothing is written between two turns
    written.write()
    reader = JournalReader(path)
    assert len([*reader.entries()]) == 1
    assert [*reader.entries()] == []
    written.note("stop", 101)
    written.write()
    assert len([*reader.entries()]) == 1
    whole = path.read_bytes()
    path.write_bytes(whole + whole[-20:-3])  # a torn entry: the process was killed while it wrote
    assert [row["kind"] for row in rows(path)] == ["start", "stop"]


def test_memory_is_bounded_even_if_no_turn_comes(tmp_path: Path) -> None:
    written = journal(tmp_path / "j")
    for number in range(40):
        written.delivered(frame(P2, *[b"x"] * 1000, label=1000 * number), 100)
    assert len(rows(tmp_path / "j")) >= 16_000
    written.close()
    assert len(rows(tmp_path / "j")) == 40_000


def test_a_lock_tells_whether_the_writer_is_there(tmp_path: Path) -> None:
    written = journal(tmp_path / "j")
    assert is_locked(tmp_path / "j")
    written.close()
    assert not is_locked(tmp_path / "j")
    assert not is_locked(tmp_path / "gone")
    with pytest.raises(FileExistsError):
        journal(tmp_path / "j")


def test_a_damaged_journal_is_not_read_as_if_it_were_whole(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written = journal(path)
    written.note("start", 100)
    written.write()
    written.note("stop", 101)
    written.close()
    whole = bytearray(path.read_bytes())
    whole[-30] ^= 1
    path.write_bytes(whole)
    with pytest.raises(TraceError, match="is damaged at byte"):
        rows(path)
    path.write_bytes(b"something else entirely")
    with pytest.raises(TraceError, match="is not a journal"):
        rows(path)
    path.write_bytes(bytes(whole[:30]))
    with pytest.raises(TornHead):
        rows(path)


def test_a_journal_of_another_version_is_refused(tmp_path: Path) -> None:
    JournalFile(tmp_path / "j", Head(version=99, process=P1, run="r", epoch_ns=0)).close()
    with pytest.raises(TraceError, match=f"version 99; this antiphon reads version {VERSION}"):
        JournalReader(tmp_path / "j")


def test_a_full_disk_ends_the_trace_and_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "j"
    written = journal(path)
    written.note("start", 100)
    written.write()
    write = os.write

    def full(file: int, packed: bytes) -> int:
        if len(packed) > 5:
            return write(file, packed[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("antiphon.trace.journal.os.write", full)
    with caplog.at_level(logging.ERROR, "antiphon"):
        for moment in range(3):
            written.note("stop", 101 + moment)
            written.write()
    monkeypatch.undo()
    written.note("stop", 105)
    written.close()
    assert [row["kind"] for row in rows(path)] == ["start"]
    assert written.error is not None
    assert [record.getMessage() for record in caplog.records] == [
        f"the trace of p1 in {path} ends here: No space left on device"
    ]


@pytest.mark.parametrize("payloads", [[b"abc"] * 3, [b"", b"a", b"bc"], [b""], []])
def test_digests_of_many_are_those_of_each(payloads: list[bytes]) -> None:
    found = digests(payloads)
    assert isinstance(found, Digests)
    assert [(mark.size_bytes, mark.digest) for mark in found.marks()] == [
        (len(payload), digest(payload)) for payload in payloads
    ]
    assert digest_of_parts(payloads) == digest(b"".join(payloads))
