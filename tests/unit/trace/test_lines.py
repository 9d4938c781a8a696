"""Traces in lines, typed by hand: what is filled in, and what is refused with one sentence."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from antiphon.errors import TraceError
from antiphon.trace.line_runs import EVENT_FILE, collect_lines, line_files
from antiphon.trace.schema import EVENTS
from tests.support.traces.in_lines import written

Row = dict[str, Any]
GROUPS = {"log": {"promises": ["reliable", "total"], "members": ["a", "b"]}}
QUIET = {"kind": "stop", "quiet": True}


def header(process: str, **more: Any) -> Row:
    return {"antiphon_trace": 1, "process": process, "groups": GROUPS, **more}


def send(**more: Any) -> Row:
    return {"kind": "send", "group": "log", **more}


def deliver(sender: str, number: int, **more: Any) -> Row:
    return {"kind": "deliver", "group": "log", "sender": sender, "number": number, **more}


A = [header("a"), send(), deliver("a", 0), deliver("b", 0), QUIET]
B = [header("b"), send(), deliver("a", 0), deliver("b", 0), QUIET]


def rows(directory: Path) -> list[Row]:
    """All rows, without the columns that have no value."""
    collect_lines(directory)
    table = pq.read_table(directory / "events" / EVENT_FILE)
    assert table.schema.equals(EVENTS)
    return [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]


def of_process(directory: Path, process: str) -> list[Row]:
    return [row for row in rows(directory) if row["process"] == process]


# -------------------------------------------------------------------------------- what is filled in


def test_the_smallest_trace(tmp_path: Path) -> None:
    found = of_process(written(tmp_path / "my run", a=A, b=B), "a")
    assert [row["kind"] for row in found] == ["start", "view", "send", "deliver", "deliver", "stop"]
    assert [row["index"] for row in found] == [*range(6)]
    assert {(row["run"], row["incarnation"], row["time"]) for row in found} == {("my run", 0, 0)}
    assert json.loads(found[0]["detail"]) == {
        "protocol": "other",
        "options": {},
        "groups": {"log": {"service": "reliable+total", "members": ["a", "b"]}},
    }
    assert (found[1]["view"], found[1]["members"]) == ("initial", ["a", "b"])
    of_message = {"group": "log", "view": "initial", "service": "reliable+total", "number": 0, "sender_incarnation": 0}
    assert found[2].items() >= {**of_message, "sender": "a"}.items()
    assert found[4].items() >= {**of_message, "sender": "b"}.items()


def test_the_user_keeps_the_files_and_a_changed_one_is_read_again(tmp_path: Path) -> None:
    written(tmp_path, a=A, b=B[:2])
    assert of_process(tmp_path, "b")[-1]["kind"] == "crash"
    first = (tmp_path / "events" / EVENT_FILE).stat().st_mtime_ns
    collect_lines(tmp_path)
    assert (tmp_path / "events" / EVENT_FILE).stat().st_mtime_ns == first
    written(tmp_path, b=B)
    assert of_process(tmp_path, "b")[-1]["kind"] == "stop"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "b.jsonl", "events"]
    assert [path.name for path in (tmp_path / "events").iterdir()] == [EVENT_FILE]


def test_time_begins_with_the_first_line_and_never_goes_back(tmp_path: Path) -> None:
    lines = [header("a", time=1_000), send(time=1_500), deliver("a", 0), deliver("b", 0, time=1_200), QUIET]
    written(tmp_path, a=lines, b=[header("b", time=1_100), *B[1:]])
    assert [row["time"] for row in of_process(tmp_path, "a")] == [0, 0, 500, 500, 500, 500]
    assert {row["time"] for row in of_process(tmp_path, "b")} == {100}


def test_a_first_line_without_time_is_as_early_as_the_next_one(tmp_path: Path) -> None:
    written(tmp_path, a=[header("a"), send(time=10**18), QUIET], b=B)
    assert [row["time"] for row in of_process(tmp_path, "a")] == [0, 0, 0, 0]


def test_a_restarted_process_is_in_the_group_under_its_new_identity(tmp_path: Path) -> None:
    again = [header("a#1"), send(), deliver("a#1", 0), QUIET]
    found = [row for row in of_process(written(tmp_path, a=A[:3], b=B, again=again), "a") if row["incarnation"] == 1]
    assert (found[1]["view"], found[1]["members"]) == ("initial of a#1", ["a#1", "b"])
    assert (found[3]["sender"], found[3]["sender_incarnation"]) == ("a", 1)


def test_views_follow_each_other_and_a_leave_begins_again(tmp_path: Path) -> None:
    groups = {"log": {"promises": ["views"]}}
    views: list[Row] = [
        {"kind": "view", "group": "log", "view": "1", "members": ["b", "a"]},
        {"kind": "view", "group": "log", "view": "2", "members": ["a"]},
        {"kind": "leave", "group": "log"},
        {"kind": "view", "group": "log", "view": "3", "members": ["a"]},
    ]
    found = of_process(written(tmp_path, a=[{**header("a"), "groups": groups}, *views, QUIET]), "a")
    assert [(row["view"], row.get("previous")) for row in found if row["kind"] == "view"] == [
        ("1", None),
        ("2", "1"),
        ("3", None),
    ]
    assert found[1]["members"] == ["a", "b"]
    assert found[3]["view"] == "2"


def test_a_process_outside_a_group_only_sends(tmp_path: Path) -> None:
    lines = [header("x"), send(), QUIET]
    strange = [{**header("y"), "groups": {}}, send(), QUIET]
    written(tmp_path, a=A, b=B, x=lines, y=strange)
    assert json.loads(of_process(tmp_path, "x")[0]["detail"])["groups"]["log"]["service"] == "sending"
    assert [(row["kind"], row.get("view"), row.get("members")) for row in of_process(tmp_path, "y")[1:3]] == [
        ("view", "outside", []),
        ("send", "outside", None),
    ]


@pytest.mark.parametrize(
    ("ends", "detail"),
    [
        ([QUIET, QUIET], {"quiet": True}),
        ([QUIET, {"kind": "stop"}], {"quiet": False, "reason": "the stop row of b does not say `quiet`"}),
        ([QUIET, None], {"quiet": True}),
        ([None, None], {"quiet": False, "reason": "no process stopped"}),
    ],
)
def test_the_run_ended_quiet_if_each_process_that_stopped_says_so(
    ends: list[Row | None], detail: Row, tmp_path: Path
) -> None:
    for process, end in zip("ab", ends, strict=True):
        written(tmp_path, **{process: [header(process), *([] if end is None else [end])]})
    (end_row,) = of_process(tmp_path, "world")
    assert (end_row["kind"], json.loads(end_row["detail"])) == ("end", detail)


def test_a_file_of_the_world_tells_the_end_alone(tmp_path: Path) -> None:
    world: list[Row] = [
        {"antiphon_trace": 1, "process": "world"},
        {"kind": "faults_end", "detail": {"components": [["a"], ["b"]]}},
        {"kind": "end", "detail": {"quiet": False}},
    ]
    found = of_process(written(tmp_path, a=A, b=B, world=world), "world")
    assert [row["kind"] for row in found] == ["faults_end", "end"]
    assert [row["index"] for row in found] == [0, 1]


def test_digests_are_numbers_or_texts(tmp_path: Path) -> None:
    lines = [header("a"), send(digest="f00d"), send(digest=-7), deliver("a", 0, digest="f00d"), QUIET]
    found = [
        row["digest"] for row in of_process(written(tmp_path, a=lines, b=[header("b"), QUIET]), "a") if "digest" in row
    ]
    assert found[0] == found[2] != found[1] == -7


def test_many_rows_come_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.trace.lines._ROWS", 7)
    monkeypatch.setattr("antiphon.trace.line_runs._ROWS", 20)
    lines = [header("a"), *(send() for _ in range(100)), QUIET]
    found = of_process(written(tmp_path, a=lines, b=[header("b"), QUIET]), "a")
    assert [row["index"] for row in found] == [*range(103)]
    assert [row["number"] for row in found if row["kind"] == "send"] == [*range(100)]
    assert pq.read_metadata(tmp_path / "events" / EVENT_FILE).num_row_groups > 3


# -------------------------------------------------------------------------------- ends of files


def text(lines: list[Any]) -> str:
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def test_a_torn_last_line_is_ignored(tmp_path: Path) -> None:
    whole = text(A[:4])
    for cut in range(len(text(A[:3])) + 1, len(whole) - 1):
        (tmp_path / "a.jsonl").write_text(whole[:cut], encoding="utf-8")
        found = of_process(written(tmp_path, b=B), "a")
        assert [row["kind"] for row in found] == ["start", "view", "send", "deliver", "crash"]


def test_a_last_line_that_lacks_only_its_end_counts(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(text(A).rstrip("\n"), encoding="utf-8")
    assert of_process(written(tmp_path, b=B), "a")[-1]["kind"] == "stop"


def test_empty_lines_and_marks_of_windows_are_ignored(tmp_path: Path) -> None:
    content = "\ufeff" + text(A).replace("\n", "\r\n\r\n")
    (tmp_path / "a.jsonl").write_bytes(content.encode())
    assert len(of_process(written(tmp_path, b=B), "a")) == 6


# -------------------------------------------------------------------------------- what is refused

WRONG: list[tuple[str, list[Any], str]] = [
    ("not JSON", [*A[:2], "{oops}"], "line 3: JSON is malformed"),
    ("torn in the middle", [*A[:2], '{"kind": "se', QUIET], "line 3: JSON is malformed"),
    ("no object", [*A[:2], "[1]"], "line 3: Expected `object`, got `array`"),
    ("unknown kind", [A[0], {"kind": "yodel"}], "line 2: unknown kind 'yodel'"),
    ("second start", [A[0], {"kind": "start"}], "line 2: unknown kind 'start': only the first line starts a process"),
    ("no kind", [A[0], {"group": "log"}], "line 2: Object missing required field `kind`"),
    ("unknown key", [A[0], send(numbr=0)], "line 2: Object contains unknown field `numbr`"),
    ("send without group", [A[0], {"kind": "send"}], "line 2: a send row without `group`"),
    ("deliver without sender", [A[0], {**deliver("b", 0), "sender": None}], "line 2: a deliver row without `sender`"),
    ("deliver without number", [A[0], {**deliver("b", 0), "number": None}], "line 2: a deliver row without `number`"),
    ("view without members", [A[0], {"kind": "view", "group": "log", "view": "1"}], "without `members`"),
    ("suspect without group", [A[0], {"kind": "suspect", "peer": "b"}], "line 2: a suspect row without `group`"),
    ("number is a text", [A[0], deliver("b", 0) | {"number": "0"}], "Expected `int`, got `str` in `number`"),
    ("number below 0", [A[0], deliver("b", -1)], "line 2: Expected `int` >= 0 in `number`"),
    ("number too large", [A[0], deliver("b", 2**63)], "in `number`"),
    ("number too large by far", [A[0], deliver("b", 2**80)], "in `number`"),
    ("time too large", [A[0], send(time=2**64)], "in `time`"),
    ("time is a fraction", [A[0], send(time=0.5)], "Expected `int`, got `float` in `time`"),
    ("size too large", [A[0], send(payload_bytes=2**31)], "in `payload_bytes`"),
    ("number out of sequence", [A[0], send(), send(number=2)], "line 3: number 2 where 1 should follow"),
    ("number repeated", [A[0], send(), send(number=0)], "line 3: number 0 where 1 should follow"),
    ("in another name", [A[0], send(sender="b")], "line 2: a sends in the name of b"),
    ("sender is no process", [A[0], deliver("b#0", 0)], "'b#0' is no process"),
    ("member is no process", [{**A[0], "groups": {"log": {"promises": [], "members": ["a", "b@1"]}}}], "'b@1' is no"),
    ("after the stop", [*A, send()], "line 6: a send row after the stop row of the process"),
    ("two stops", [*A, QUIET], "line 6: a stop row after the stop row"),
    ("quiet elsewhere", [A[0], send(quiet=True)], "line 2: `quiet` in a send row"),
    ("row of the world", [A[0], {"kind": "end"}], "line 2: an end row belongs in the file of the process `world`"),
    ("no view", [{**A[0], "groups": {"log": {"promises": ["total"]}}}, send()], "before any view of group 'log'"),
    ("version 2", [{**A[0], "antiphon_trace": 2}], "line 1: version 2 of the format is unknown; this antiphon reads 1"),
    ("no version", [{"process": "a"}], "line 1: Object missing required field `antiphon_trace`"),
    ("header is torn", ['{"antiphon_trace": 1, "proc'], "line 1: JSON is malformed"),
    ("no groups", [{"antiphon_trace": 1, "process": "a"}], "line 1: it must have `groups`"),
    ("no promises", [{**A[0], "groups": {"log": {"members": ["a"]}}}], "line 1: group 'log' has no `promises`: name"),
    (
        "unknown promise",
        [{**A[0], "groups": {"log": {"promises": ["fast"]}}}],
        "'fast' is no promise; the promises are",
    ),
    ("name with #", [header("a#x")], "line 1: 'a#x' is no process"),
    ("no name", [header("")], "line 1: Expected `str` of length >= 1 in `process`"),
    ("world in a group", [header("world")], "line 1: the process `world` is in no group"),
    ("bad text", [A[0], b'{"kind": "\xff"}'.decode("latin-1")], "line 2: unknown kind"),
]


@pytest.mark.parametrize(("lines", "sentence"), [wrong[1:] for wrong in WRONG], ids=[wrong[0] for wrong in WRONG])
def test_damage_is_one_sentence_with_file_and_line(lines: list[Any], sentence: str, tmp_path: Path) -> None:
    written(tmp_path, a=lines, b=B)
    with pytest.raises(TraceError) as error:
        collect_lines(tmp_path)
    assert sentence in str(error.value)
    assert str(error.value).startswith(f"{tmp_path / 'a.jsonl'} line ")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "events").exists()


def test_an_earlier_event_file_stays_when_a_file_is_damaged(tmp_path: Path) -> None:
    written(tmp_path, a=A, b=B)
    collect_lines(tmp_path)
    before = (tmp_path / "events" / EVENT_FILE).read_bytes()
    written(tmp_path, a=[*A, "oops"])
    with pytest.raises(TraceError, match=r"line 6: "):
        collect_lines(tmp_path)
    assert (tmp_path / "events" / EVENT_FILE).read_bytes() == before
    assert len([*(tmp_path / "events").iterdir()]) == 1


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe{\x00"])
def test_a_file_without_a_first_line_is_refused(content: bytes, tmp_path: Path) -> None:
    written(tmp_path, b=B)
    (tmp_path / "a.jsonl").write_bytes(content)
    with pytest.raises(TraceError, match=r"a\.jsonl (is empty: its first line must name the format|line 1: )"):
        collect_lines(tmp_path)


def refused(directory: Path, **files: list[Any]) -> str:
    with pytest.raises(TraceError) as error:
        collect_lines(written(directory, **files))
    assert not (directory / "events").exists()
    return str(error.value)


def test_files_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    assert "b.jsonl line 1: a.jsonl is a trace of a too" in refused(tmp_path / "1", a=A, b=A)
    one, other = [header("a", run="x"), QUIET], [header("b", run="y"), QUIET]
    assert "b.jsonl line 1: it is of run y, but a.jsonl is of run x" in refused(tmp_path / "2", a=one, b=other)
    less = [{**header("b"), "groups": {"log": {"promises": [], "members": ["b"]}}}, QUIET]
    assert "b.jsonl line 1: other members of group 'log' than in a.jsonl" in refused(tmp_path / "3", a=A, b=less)
    world = [{"antiphon_trace": 1, "process": "world"}]
    assert "holds a trace of `world` and of no process" in refused(tmp_path / "4", world=world)


def test_digests_are_for_all_messages_of_a_group_or_for_none(tmp_path: Path) -> None:
    marked = [header("a"), send(digest="x"), QUIET]
    sentence = refused(tmp_path, a=marked, b=[header("b"), deliver("a", 0), QUIET])
    assert "b.jsonl line 2: a message of group 'log' without `digest`, but the one in" in sentence
    assert "a.jsonl line 2 has it" in sentence


@pytest.mark.parametrize("own", ["members.json", "run.json", "runs.parquet", "journals", "events/p1.parquet"])
def test_traces_of_antiphon_are_not_mixed_with_others(own: str, tmp_path: Path) -> None:
    (tmp_path / own).parent.mkdir(exist_ok=True)
    (tmp_path / own).touch()
    (tmp_path / "notes.jsonl").write_text('{"note": "not a trace"}\n', encoding="utf-8")
    assert line_files(tmp_path) == []  # a file that is not meant
    written(tmp_path, a=A)
    with pytest.raises(TraceError, match=r"holds traces of antiphon itself \(.+\) beside a\.jsonl: put the files"):
        collect_lines(tmp_path)


def test_other_directories_are_left_alone(tmp_path: Path) -> None:
    assert collect_lines(tmp_path) == ()
    assert collect_lines(tmp_path / "missing") == ()
    (tmp_path / ".hidden.jsonl").write_text("oops", encoding="utf-8")
    assert collect_lines(tmp_path) == ()
    assert not (tmp_path / "events").exists()


# -------------------------------------------------------------------------------- notes


def test_what_is_not_judged_is_told(tmp_path: Path) -> None:
    silent = {"log": {"promises": [], "members": ["a", "b"]}}
    written(tmp_path, a=[header("a"), deliver("x", 0)], b=[{**header("b"), "groups": silent}, {"kind": "stop"}])
    notes = collect_lines(tmp_path)
    assert notes == (
        "a counts as crashed: a.jsonl ends without a stop row",
        "nothing is promised in log by some processes: only --require judges them",
        "whether everything arrived in the end (D13, L2, L3) is not judged: the stop row of b does not say `quiet`",
        "there is no trace of x, whose messages were delivered",
    )
    assert collect_lines(tmp_path) == notes  # told again from the event file
    assert collect_lines(written(tmp_path / "good", a=A, b=B)) == ()
