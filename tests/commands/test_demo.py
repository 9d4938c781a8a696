"""`antiphon demo` tells what happened, gives a verdict and names the report; an interrupt ends it cleanly."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.cli.shared.story import agreement, story
from antiphon.scenario.read import parse_scenario
from antiphon.sim.run import Run, simulate
from tests.support.console import Console
from tests.support.patience import SECONDS_MAX, until


@pytest.fixture(scope="module")
def simulated() -> Run:
    return simulate(
        parse_scenario("""
            name = "small"
            quiet = "1500ms"
            options = { suspect_after = "100ms", idle_probe = "300ms" }
            group = [{ name = "orders", members = 4 }]
            workload = [{ group = "orders", messages = 60, interval = "10ms" }]
            fault = [
                { kind = "pause", process = "p2", at = "100ms", until = "150ms" },
                { kind = "crash", process = "p4", at = "300ms" },
            ]
        """)
    )


def test_the_story_tells_each_fault_and_how_long_agreement_took(simulated: Run) -> None:
    steps = story(simulated)
    assert [step.time_ns for step in steps] == sorted(step.time_ns for step in steps)
    texts = [step.text for step in steps]
    assert texts[:4] == [
        "p1 p2 p3 p4 have started and agree on the first view of orders",
        "p2 is paused (SIGSTOP)",
        "p2 continues (SIGCONT) after 0.050 s; the others waited, and it stays a member",
        "p4 is killed (SIGKILL) while it sends",
    ]
    agreed = re.fullmatch(
        r"p1 p2 p3 agree that p4 has failed, (0\.\d+) s after the kill, and continue without it", texts[4]
    )
    assert agreed is not None
    assert float(agreed[1]) == pytest.approx((steps[4].time_ns - steps[3].time_ns) / 1e9, abs=0.001)
    assert texts[5:] == ["the last message is delivered"]


def test_members_that_ran_to_the_end_delivered_the_same(simulated: Run) -> None:
    same, first = agreement(simulated)
    told = re.fullmatch(
        r"p1 p2 p3 delivered the same ([\d,]+) messages in the same order \(SHA-256 [0-9a-f]{12}\)", same
    )
    assert told is not None
    assert 180 < int(told[1]) < 240
    assert re.fullmatch(r"p4 delivered the first [\d,]+ of them before it was killed", first)


def test_members_that_delivered_different_messages_are_told_apart(simulated: Run) -> None:
    history = next(history for history in simulated.histories if history.process == "p3")
    at = next(place for place, row in enumerate(history.rows) if row["kind"] == "deliver")
    kept = history.rows[at]
    history.rows[at] = {**kept, "number": kept["number"] + 1}
    try:
        lines = agreement(simulated)
    finally:
        history.rows[at] = kept
    assert [line.partition(" delivered")[0] for line in lines] == ["p1 p2", "p3", "p4"]


@pytest.mark.usefixtures("spark")
def test_the_demo_narrates_judges_and_draws(antiphon: Console, tmp_path: Path) -> None:
    directory = tmp_path / "my demo"
    result = antiphon("demo", "--out", directory)
    assert result.code == 0, result.out + result.err
    lines = result.out.splitlines()
    for words in ("p3 is paused (SIGSTOP)", "p5 is killed (SIGKILL)", "p1 p2 p3 p4 agree that p5 has failed"):
        assert any(words in line and re.match(r" *\d+\.\d{3} s  ", line) for line in lines), (words, result.out)
    if not any("agree that" in line and "p5 has failed" not in line for line in lines):  # a busy machine stops others
        assert "p1 p2 p3 p4 delivered the same " in result.out
    assert " delivered the same " in result.out
    assert "hold: every judged property holds (" in result.out
    assert f"page: {directory}/report.html" in lines
    assert f"antiphon check '{directory}' --all" in result.out
    assert "opportunities" not in result.out.partition("next:")[0], "the table of all properties is for --all"
    page = (directory / "report.html").read_text()
    assert "around the crash of p5 and the view that answers it" in page


def test_an_interrupted_demo_leaves_no_process_and_no_directory(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "antiphon.cli.main", "demo", "--out", str(tmp_path / "demo")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        until(lambda: process.poll() is not None or len(children.read_text().split()) == 5, "the fifth process")
        assert process.poll() is None
        members = children.read_text().split()
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS_MAX)
    assert (process.returncode, err) == (130, "antiphon: interrupted; no unfinished files were left\n")
    assert [*tmp_path.iterdir()] == []
    assert not any(Path(f"/proc/{member}").exists() for member in members)


def test_a_directory_that_holds_something_else_is_refused_at_once(antiphon: Console, tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    assert "not a run directory" in antiphon.refused("demo", "--out", tmp_path, "--force")


def test_the_table_is_there_on_request(antiphon: Console) -> None:
    scenario = Path(__file__).parents[2] / "scenarios/errata/E-13.toml"
    short, whole = (antiphon("simulate", scenario, "--check", *more).out for more in ((), ("--all",)))
    assert "opportunities" not in short
    assert "D8 virtual synchrony: k delivered g1/k:0" in short
    assert "opportunities" in whole
    judged = json.loads(antiphon("simulate", scenario, "--check", "--json").out)["check"]["properties"]
    assert all(f"{entry['property']} " in whole for entry in judged)
    assert short.splitlines()[-1] == whole.splitlines()[-1]
