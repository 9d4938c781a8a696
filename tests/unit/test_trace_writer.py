"""The writer of traces for other projects: what it writes is what the reader reads, whatever happens to its process."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon import trace_writer
from antiphon.trace.lines import VERSION
from antiphon.trace.promise_words import WORDS
from antiphon.trace_writer import PROMISES, TraceWriter
from tests.support.traces.handmade import verdicts
from tests.support.traces.in_lines import events_of

GROUPS = {"log": {"promises": ["reliable", "total"], "members": ["a", "b"]}}
ALONE = {"log": {"promises": ["reliable", "total"], "members": ["a"]}}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def rows(directory: Path, process: str = "a") -> list[dict[str, Any]]:
    return [row for row in events_of(directory).to_pylist() if row["process"] == process]


def test_the_writer_and_the_reader_agree_on_the_format() -> None:
    assert trace_writer.VERSION == VERSION
    assert PROMISES == WORDS


def test_what_is_written_is_read(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, "a", GROUPS, run="mine") as a, TraceWriter(tmp_path, "b", GROUPS) as b:
        number = a.sent("log", b"payload")
        for trace in (a, b):
            trace.delivered("log", a.process, number, b"payload", clock=17)
            trace.stopped(quiet=True)
    found = rows(tmp_path)
    assert [row["kind"] for row in found] == ["start", "view", "send", "deliver", "stop"]
    assert {row["run"] for row in found} == {"mine"}
    assert found[3].items() >= {"sender": "a", "number": 0, "clock": 17, "group": "log"}.items()
    assert found[2]["digest"] == found[3]["digest"] is not None
    told = verdicts(events_of(tmp_path))
    assert {told[place].outcome for place in (("W", None), ("D1", "log"), ("L2", "log"), ("D13", "log"))} == {"pass"}


def test_views_leaves_and_other_rows(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, "a", {"log": {"promises": ["views"]}}) as trace:
        trace.view("log", "1", ("a", "b"))
        trace.row("suspect", group="log", peer="b", detail={"reason": "silent"})
        trace.view("log", "2", ["a"])
        trace.left("log")
    found = rows(tmp_path)
    assert [row["kind"] for row in found] == ["start", "view", "suspect", "view", "leave", "stop"]
    assert found[2]["peer"] == "b"


def test_a_second_start_is_another_incarnation(tmp_path: Path) -> None:
    names = [TraceWriter(tmp_path, "a", ALONE).process for _ in range(3)]
    assert names == ["a", "a#1", "a#2"]
    assert TraceWriter(tmp_path, "a", ALONE, incarnation=7).process == "a#7"
    with pytest.raises(FileExistsError):
        TraceWriter(tmp_path, "a", ALONE, incarnation=1)
    assert {row["incarnation"] for row in rows(tmp_path)} == {0, 1, 2, 7}


@pytest.mark.parametrize("name", ["a/b", "..", ".hidden", "ä ö", "CON", "100%", "a" * 60])
def test_any_name_has_a_file(name: str, tmp_path: Path) -> None:
    TraceWriter(tmp_path / "traces", name, {"log": {"promises": ["total"], "members": [name]}}).stopped()
    assert len(rows(tmp_path / "traces", name)) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["traces"]


def test_wrong_arguments_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'exactly-once' is no promise; the promises are reliable"):
        TraceWriter(tmp_path / "x", "a", {"log": {"promises": ["exactly-once"]}})
    for name in ("", "a#1", "a@b", "world"):
        with pytest.raises(ValueError, match="cannot be a name"):
            TraceWriter(tmp_path / "x", name, GROUPS)
    with pytest.raises(ValueError, match="flush: 'never' is none of line, block, disk"):
        TraceWriter(tmp_path / "x", "a", GROUPS, flush="never")
    with pytest.raises(TypeError):
        TraceWriter(tmp_path, "a", {"log": {"promises": [], "members": {"a"}}})
    assert [*tmp_path.iterdir()] == []


def test_a_closed_trace_takes_no_more_lines(tmp_path: Path) -> None:
    trace = TraceWriter(tmp_path, "a", ALONE)
    trace.stopped()
    trace.close()
    with pytest.raises(ValueError, match="the trace of a is closed"):
        trace.sent("log")
    assert len(lines(tmp_path / "a.jsonl")) == 2


def test_an_error_in_the_block_makes_it_a_crash(tmp_path: Path) -> None:
    trace = TraceWriter(tmp_path, "a", ALONE, flush="block")
    with pytest.raises(ZeroDivisionError), trace:
        trace.row("suspect", group="log", peer=str(1 // (trace.sent("log"))))
    assert [row["kind"] for row in rows(tmp_path)] == ["start", "view", "send", "crash"]


@pytest.mark.parametrize("flush", ["line", "block", "disk"])
def test_threads_share_a_writer(flush: str, tmp_path: Path) -> None:
    trace = TraceWriter(tmp_path, "a", ALONE, flush=flush)
    numbers: list[int] = []
    each = 5 if flush == "disk" else 200

    def work() -> None:
        for _ in range(each):
            number = trace.sent("log", b"x")
            numbers.append(number)
            trace.delivered("log", "a", number, b"x")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trace.stopped(quiet=True)
    assert sorted(numbers) == [*range(8 * each)]
    told = verdicts(events_of(tmp_path))
    assert (told["W", None].outcome, told["D2", "log"].opportunities) == ("pass", 8 * each)


def test_lines_leave_when_they_are_told_to(tmp_path: Path) -> None:
    eager, lazy = (TraceWriter(tmp_path, name, ALONE, flush=how) for name, how in (("a", "line"), ("b", "block")))
    for trace in (eager, lazy):
        trace.sent("log")
    assert (len(lines(tmp_path / "a.jsonl")), len(lines(tmp_path / "b.jsonl"))) == (2, 1)
    lazy.flush()
    assert len(lines(tmp_path / "b.jsonl")) == 2
    for _ in range(2_000):
        lazy.sent("log")
    assert (tmp_path / "b.jsonl").stat().st_size > 65_536
    eager.close()
    lazy.close()
    assert len(lines(tmp_path / "b.jsonl")) == 2_002


_KILLED = """
import sys
from antiphon.trace_writer import TraceWriter
trace = TraceWriter(sys.argv[1], "a", {"log": {"promises": ["total"], "members": ["a"]}}, flush=sys.argv[2])
while True:
    print(trace.sent("log", b"x" * 100), flush=True)
"""


@pytest.mark.parametrize("flush", ["line", "block"])
def test_a_killed_process_leaves_a_trace_that_can_be_judged(flush: str, tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", _KILLED, str(tmp_path), flush], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = [int(process.stdout.readline()) for _ in range(1_000)]
    process.send_signal(signal.SIGKILL)
    process.wait()
    told += [int(line) for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    process.stdout.close()
    found = rows(tmp_path)
    sent = sum(row["kind"] == "send" for row in found)
    assert found[-1]["kind"] == "crash"
    assert sent >= len(told) if flush == "line" else sent > 0
    assert verdicts(events_of(tmp_path))["W", None].outcome == "pass"


def test_a_forked_process_cannot_write_into_the_trace(tmp_path: Path) -> None:
    trace = TraceWriter(tmp_path, "a", ALONE)
    child = os.fork()
    if child == 0:
        try:
            trace.sent("log")
        except RuntimeError as error:
            os._exit(0 if "belongs to another process" in str(error) else 1)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    trace.stopped()
    assert len(lines(tmp_path / "a.jsonl")) == 2


def test_a_write_that_fails_ends_the_trace(tmp_path: Path) -> None:
    code = f"""
import resource, signal
from antiphon.trace_writer import TraceWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))
trace = TraceWriter({str(tmp_path)!r}, "a", {{"log": {{"promises": ["total"], "members": ["a"]}}}})
failed = 0
for _ in range(100):
    try:
        trace.sent("log")
    except OSError:
        failed += 1
assert failed > 50, failed
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "a.jsonl").stat().st_size == 1_000
    assert rows(tmp_path)[-1]["kind"] == "crash"


def test_the_file_alone_is_enough(tmp_path: Path) -> None:
    """Another project copies it; nothing of antiphon is installed there."""
    shutil.copy(trace_writer.__file__, tmp_path / "trace_writer.py")
    code = "import sys; sys.path = [p for p in sys.path if 'site-packages' not in p] + ['.']; import trace_writer\n"
    code += f"trace_writer.TraceWriter('out', 'a', {ALONE!r}).stopped()"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], cwd=tmp_path, check=True)
    assert [row["kind"] for row in rows(tmp_path / "out")] == ["start", "view", "stop"]


NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="#@"), min_size=1, max_size=8).filter(
    lambda name: name != "world" and name.isprintable()
)


@given(
    group=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
    name=NAMES,
    steps=st.lists(
        st.tuples(st.sampled_from(["send", "deliver"]), NAMES, st.integers(0, 2**63 - 1), st.binary(max_size=9))
    ),
)
def test_every_message_survives_the_round_trip(group: str, name: str, steps: list[tuple[str, str, int, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        trace = TraceWriter(folder, name, {group: {"promises": ["fifo"], "members": [name]}})
        expected = []
        for kind, sender, number, payload in steps:
            if kind == "send":
                expected.append(("send", group, name, trace.sent(group, payload)))
            else:
                trace.delivered(group, sender, number, payload)
                expected.append(("deliver", group, sender, number))
        trace.stopped()
        found = [row for row in rows(Path(folder), name) if row["kind"] in ("send", "deliver")]
        assert [(row["kind"], row["group"], row["sender"], row["number"]) for row in found] == expected
        assert len({row["digest"] for row in found}) == len({payload for *_, payload in steps})
