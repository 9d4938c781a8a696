"""`check` and the others on traces of other systems, and the pages about them: their files, their output."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from antiphon.pipeline.figures.one_run import run_statistics
from antiphon.trace.line_runs import EVENT_FILE
from antiphon.trace_writer import PROMISES
from tests.support.console import Console
from tests.support.traces.in_lines import written

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guide/other-systems.md").read_text(encoding="utf-8")
FORMAT = (ROOT / "docs/reference/trace-lines.md").read_text(encoding="utf-8")
QUIET = {"kind": "stop", "quiet": True}


def log(process: str, promises: list[str], *order: str) -> list[dict[str, Any]]:
    """It sends a message, and delivers one of each of these processes in this order."""
    groups = {"log": {"promises": promises, "members": ["a", "b"]}}
    delivered = [
        {"kind": "deliver", "group": "log", "sender": sender, "number": 0, "time": 3_000_000 * (place + 1)}
        for place, sender in enumerate(order)
    ]
    first = {"antiphon_trace": 1, "process": process, "groups": groups, "time": 0}
    return [first, {"kind": "send", "group": "log", "payload_bytes": 10, "time": 1_000_000}, *delivered, QUIET]


@pytest.fixture
def good(tmp_path: Path) -> Path:
    promises = ["reliable", "fifo", "total", "uniform"]
    return written(tmp_path / "good", a=log("a", promises, "a", "b"), b=log("b", promises, "a", "b"))


def outcomes(document: dict[str, Any]) -> dict[str, str]:
    found = {each["property"]: each["outcome"] for each in document["properties"]}
    return {name: outcome for name, outcome in found.items() if outcome != "not promised"}


# -------------------------------------------------------------------------------- verdicts


def test_a_good_trace_holds(antiphon: Console, good: Path) -> None:
    result = antiphon("check", good, "--in-process", "--json")
    assert (result.code, result.err) == (0, "")
    found = outcomes(json.loads(result.out))
    assert {*found} == {*"W D1 D2 D3 D11 D13 O1 O2 O5 O6 O7 L2 L3".split()}
    assert {name for name, outcome in found.items() if outcome != "pass"} == {"D11", "O1", "O2"}  # one message each
    assert sorted(path.name for path in good.iterdir()) == ["a.jsonl", "b.jsonl", "events"]


@pytest.mark.usefixtures("spark")
def test_spark_gives_the_same_verdicts_in_parts(antiphon: Console, tmp_path: Path) -> None:
    promises = ["reliable", "total"]
    written(tmp_path, a=log("a", promises, "a", "b"), b=log("b", promises, "b", "a"), world2=log("zoe", [], "a"))
    alone = antiphon("check", tmp_path, "--in-process", "--json")
    assert alone.code == 1
    assert antiphon("check", tmp_path, "--json", "--rows-per-task", "3").out == alone.out


def test_a_violation_is_told_with_its_witness(antiphon: Console, tmp_path: Path) -> None:
    written(tmp_path / "bad", a=log("a", ["total"], "a", "b"), b=log("b", ["total"], "b", "a"))
    result = antiphon("check", tmp_path / "bad", "--in-process")
    assert result.code == 1
    expected = (
        "a delivered log/a:0 (index 3) before log/b:0 (index 4), but b delivered log/b:0 (index 3) before log/a:0"
    )
    assert f"O6 strong total order: {expected} (index 4), run bad\n" in result.out


def test_what_cannot_be_judged_is_noted_every_time(antiphon: Console, tmp_path: Path) -> None:
    written(tmp_path, a=log("a", ["reliable"], "a", "b"), b=log("b", ["reliable"], "a")[:-1])
    for _ in range(2):
        result = antiphon("check", tmp_path, "--in-process")
        assert result.err == "note: b counts as crashed: b.jsonl ends without a stop row\n"
        assert result.code == 0


def test_a_system_that_promises_nothing_is_not_fine(antiphon: Console, tmp_path: Path) -> None:
    written(tmp_path, a=log("a", [], "a", "b"), b=log("b", [], "b", "a", "a"))
    result = antiphon("check", tmp_path, "--in-process")
    assert result.code == 3
    assert result.out.startswith("unknown: not judged: the processes promise nothing; their traces must name promises")
    assert result.err == "note: nothing is promised in log by some processes: only --require judges them\n"
    assert json.loads(antiphon("check", tmp_path, "--in-process", "--json").out)["verdict"] == "unknown"
    required = json.loads(antiphon("check", tmp_path, "--in-process", "--json", "--require", "O6,D2").out)
    assert outcomes(required) == {"W": "pass", "O6": "violated", "D2": "violated"}


def test_the_figures_of_another_system(antiphon: Console, good: Path) -> None:
    """As `stats` tells them; tests/pipeline keeps these equal to those under Spark."""
    antiphon("check", good, "--in-process")
    figures = run_statistics(pq.read_table(good / "events" / EVENT_FILE))
    (group,) = figures.groups
    assert (group.traffic.sent, group.traffic.delivered) == (2, 4)
    assert group.latency is not None
    assert group.latency.max_ns == 5_000_000


# -------------------------------------------------------------------------------- what is refused


def test_damage_is_refused_with_one_sentence(antiphon: Console, good: Path) -> None:
    with (good / "b.jsonl").open("a", encoding="utf-8") as file:
        file.write("oops\n")
    for command in (["check"], ["stats"], ["tables", "--out", good / "new"], ["report"]):
        sentence = antiphon.refused(command[0], good, *command[1:])
        assert f"{good / 'b.jsonl'} line 6: JSON is malformed" in sentence
    assert not (good / "events").exists()


def test_a_directory_that_cannot_be_written_is_refused(antiphon: Console, good: Path) -> None:
    (good / "events").write_text("in the way", encoding="utf-8")
    assert "cannot make the event file of the traces in" in antiphon.refused("check", good, "--in-process")


def test_such_a_run_cannot_be_watched(antiphon: Console, good: Path) -> None:
    assert "holds traces of another system, which cannot be followed" in antiphon.refused("watch", good)


def test_traces_of_antiphon_are_not_mixed_with_others(antiphon: Console, good: Path) -> None:
    antiphon("check", good, "--in-process")
    (good / "events" / EVENT_FILE).rename(good / "events" / "p1.parquet")
    assert "holds traces of antiphon itself (p1.parquet) beside a.jsonl" in antiphon.refused("check", good)


# -------------------------------------------------------------------------------- the pages


def console(page: str) -> list[tuple[str, str]]:
    """The commands of the page, each with what it prints."""
    shown = "\n".join(re.findall(r"```console\n(.*?)```", page, re.DOTALL))
    return [(command, output) for command, output in re.findall(r"^\$ (.*)\n((?:[^$\n].*\n)*)", shown, re.MULTILINE)]


def test_the_trace_that_is_typed_by_hand(antiphon: Console, tmp_path: Path) -> None:
    files = re.findall(r"^`(\w+\.jsonl)`\n\n```json\n(.*?)```", FORMAT, re.MULTILINE | re.DOTALL)
    assert len(files) == 3
    directory = tmp_path / "DIR"
    directory.mkdir()
    for name, content in files:
        (directory / name).write_text(content, encoding="utf-8")
    ((command, output),) = console(FORMAT)
    _, verb, _, *options = command.split()
    assert antiphon(verb, directory, *options).out == output


def steady(output: str) -> str:
    """Which of two members is named with a is a matter of time."""
    return re.sub(r"\b[bc] delivered (log/\w:\d) \(index \d\) before (log/\w:\d) \(index \d\)", r"x: \1, \2", output)


def test_the_example_shows_the_mistake_and_its_correction(antiphon: Console, tmp_path: Path) -> None:
    example, *checks = console(GUIDE)
    program, out = example[0].split()[1:]
    subprocess.run([sys.executable, "-W", "error", ROOT / program, tmp_path / out], check=True, timeout=300)
    assert len(checks) == 2
    for command, output in checks:
        _, verb, directory, *options = command.split()
        result = antiphon(verb, tmp_path / directory, *options)
        assert steady(result.out) == steady(output)
        assert (result.code, result.err) == (0 if "hold:" in output else 1, "")


def test_the_example_is_short() -> None:
    assert len((ROOT / "examples/other_system.py").read_text(encoding="utf-8").splitlines()) < 80


def test_the_page_of_the_format_has_every_promise() -> None:
    table = FORMAT.partition("## Promises")[2].partition("## The world")[0]
    assert {*re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE)} == {*PROMISES}
