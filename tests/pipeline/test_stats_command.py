"""`antiphon stats`: one directory in full, several side by side."""

import json
import shutil
from functools import cache
from pathlib import Path

import pytest

from antiphon.cli.shared.output import out
from antiphon.pipeline.figures.statistics import statistics
from antiphon.trace.directory import RunRecord, write_index
from tests.support.console import Console
from tests.support.datasets import of_run, row, two_members, write

pytestmark = pytest.mark.usefixtures("spark")
measured_once = cache(statistics)


@pytest.fixture
def antiphon(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Console:
    monkeypatch.setattr(out, "width", 120)
    monkeypatch.setattr("antiphon.pipeline.figures.statistics.statistics", measured_once)
    return Console(monkeypatch, capsys)


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The second holds two runs that differ in their seed alone; in one of them a waits to send."""
    waits = [row("a", 10, 300, "block"), row("a", 11, 300 + 2 * 10**9, "unblock")]
    quick, slow = tmp_path_factory.mktemp("quick"), tmp_path_factory.mktemp("slow")
    write(quick, two_members())
    write(slow, [*two_members(), *of_run([*two_members(), *waits], "r2")])
    records = [RunRecord(f"r{seed}", "waiting", seed, "0", "virtual", finished=True) for seed in (1, 2)]
    write_index(slow, [(record, f'name = "waiting"\nseed = {record.seed}\n') for record in records])
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


def test_rows_that_are_there_twice_are_not_counted(
    antiphon: Console, directories: tuple[Path, Path], tmp_path: Path
) -> None:
    directory = tmp_path / "copied"
    shutil.copytree(directories[0], directory)
    (file,) = (directory / "events").iterdir()
    shutil.copy(file, file.with_name("copy.parquet"))
    for command in (["stats", directory], ["tables", directory, "--out", tmp_path / "tables"]):
        assert "some rows occur more than once" in antiphon.refused(*command)
    assert [path.name for path in tmp_path.iterdir()] == ["copied"]
    assert antiphon("report", directory).code == 0
    assert "has two rows with index 0" in (directory / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def costly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Frames tell their copies, a's messages become stable, a request is answered, and work was counted."""
    frame = {"type": "acknowledgment", "copies": 4, "stamp_bytes": 0, "count": 0}
    rows = [each for each in two_members() if each["kind"] not in ("transmit", "stop")]
    rows += [
        row("a", 10, 900, "transmit", payload_bytes=0, header_bytes=25, detail=frame),
        row("a", 11, 7 * 10**6, "stable", upto={"a": 0}),
        row("a", 12, 9 * 10**6, "answer", requested=10**6),
        row("a", 13, 10**7, "stop", group=None, detail={"costs": {"sender_work": 1234, "receiver_work": 56}}),
    ]
    directory = tmp_path_factory.mktemp("costly")
    write(directory, rows)
    return directory


def figure(out: str, name: str) -> str:
    [line] = [line for line in out.splitlines() if line.startswith(f"│ {name} ")]
    return line.split("│")[2].strip()


def test_figures_of_some_traces_are_shown_where_they_exist(
    antiphon: Console, costly: Path, directories: tuple[Path, Path]
) -> None:
    shown = antiphon("stats", costly).out
    assert figure(shown, "copies (point-to-point messages) per message") == "2"
    assert figure(shown, "bytes on the wire per message, all copies") == "50"
    assert figure(shown, "acknowledgment frames per message") == "0.5"
    assert figure(shown, "mean time until stable at the sender (ms)") == "7.000"
    assert figure(shown, "mean time until a request is answered (ms)") == "8.000"
    assert "protocol work: senders 1,234 steps, receivers 56" in shown
    silent = antiphon("stats", directories[0]).out
    assert not any(word in silent for word in ("copies", "wire", "acknowledgment", "until", "work"))


def test_messages_without_receivers_and_idle_traffic_are_shown(antiphon: Console, costly: Path, tmp_path: Path) -> None:
    detail = {"type": "null", "copies": 6}
    write(
        tmp_path,
        [
            row("a", 0, 0, "start", group=None, detail={"options": {"send_every": "50ms"}}),
            row("a", 1, 0, "view", view="1", detail={"receivers": [], "senders": []}),
            row("a", 2, 9, "send", view="1", requested=9, sender="a", sender_incarnation=0, number=0),
            row("a", 3, 10, "stable", view="1", upto={"a": 0}),
            row("a", 4, 900, "transmit", payload_bytes=0, header_bytes=25, detail=detail),
            row("world", 0, 10 + 2 * 10**9, "end", group=None, detail={"quiet": True, "reason": "quiet"}),
        ],
    )
    shown = antiphon("stats", tmp_path).out
    assert figure(shown, "messages sent without receivers, not counted as stable") == "1"
    assert "mean time until stable" not in shown
    assert "copies per second when idle, all members: 3" in shown
    beside = antiphon("stats", tmp_path, costly).out
    assert all(word in beside for word in ("without", "idle"))
    assert not any(word in antiphon("stats", costly).out for word in ("without receivers", "idle"))


def test_beside_others_it_has_a_table_of_its_own(
    antiphon: Console, costly: Path, directories: tuple[Path, Path]
) -> None:
    assert "Further" not in antiphon("stats", *directories).out
    shown = antiphon("stats", costly, directories[0]).out
    further = shown[shown.index("Further") :]
    assert all(word in further for word in ("copies", "wire", "acks", "stable", "answered", "sender", "1,234"))


def test_json_has_null_for_missing_figures(antiphon: Console, costly: Path, directories: tuple[Path, Path]) -> None:
    figures = json.loads(antiphon("stats", costly, "--json").out)["overall"]
    assert (figures["traffic"]["copies_per_message"], figures["stability_latency"]["mean_ns"]) == (2.0, 7e6)
    assert (figures["request_latency"]["count"], figures["costs"]["sender_work"]) == (1, 1234)
    silent = json.loads(antiphon("stats", directories[0], "--json").out)["overall"]
    assert (silent["traffic"]["copies_per_message"], silent["stability_latency"], silent["costs"]) == (None, None, None)


def test_the_runs_of_one_directory_have_a_row_each(antiphon: Console, directories: tuple[Path, Path]) -> None:
    lines = antiphon("stats", directories[1]).out.splitlines()
    rows = {name: line for line in lines for name in ("r1", "r2", "all") if line.startswith(f"│ {name} ")}
    assert set(rows) == {"r1", "r2", "all"}
    assert ("2.000" in rows["r2"], "2.000" in rows["r1"]) == (True, False)
    [blocked] = [line for line in lines if line.startswith("│ blocked, all members (ms)")]
    assert "2,000.000" in blocked


def test_runs_that_differ_in_their_seed_alone_have_a_mean(antiphon: Console, directories: tuple[Path, Path]) -> None:
    lines = antiphon("stats", directories[1]).out.splitlines()
    [at] = [at for at, line in enumerate(lines) if line.startswith("│ waiting ")]
    assert [line.split("│")[-2].strip() for line in lines[at : at + 2]] == ["1,000", "± 12,706"]
    [told] = json.loads(antiphon("stats", directories[1], "--json").out)["configurations"]
    assert (told["scenario"], told["settings"], told["runs"]) == ("waiting", {}, ["r1", "r2"])
    assert (told["figures"]["blocked_ns"]["least"], told["figures"]["blocked_ns"]["most"]) == (0, 2 * 10**9)
    assert "± " not in antiphon("stats", directories[0]).out


def test_quick_measures_in_this_process_and_says_so(antiphon: Console, directories: tuple[Path, Path]) -> None:
    for chosen in ([directories[1]], directories):
        quick, usual = antiphon("stats", *chosen, "--quick"), antiphon("stats", *chosen)
        assert quick.out.splitlines() == [*usual.out.splitlines(), "measured in this process, without Spark"]
        assert antiphon("stats", *chosen, "--quick", "--json").out == antiphon("stats", *chosen, "--json").out
    refused = antiphon.refused("stats", directories[0], "--quick", "--driver-memory", "4g")
    assert "--master, --conf, --driver-memory and --ship-packages need PySpark and go without --quick" in refused
