"""A run with real processes, watched live: the delay of the table, and the cost of a killed watch.

Two runs of the same scenario. The first is watched from its beginning: measured is the time from an event to the
figures that count it. In the second the watch is killed (SIGKILL) in the middle and started again with its checkpoint.
Checked: in both the watch ends with the run, its figures are those of the finished directory, read anew, and its counts
of properties are those of the checkers. Run from the root:

    python -m benchmarks.watching [--seconds 60] [--members 4] [--rate 100] [--json FILE]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from antiphon.pipeline.live.figures import PROPERTIES
from antiphon.properties.judge import judge

_WAIT_S: Final = 180.0
_SCENARIO: Final = """
name = "watched"
duration = "600s"
quiet = "4s"
options = {{ suspect_after = "500ms", idle_probe = "0s" }}
group = [{{ name = "orders", members = {members} }}]
workload = [{{ group = "orders", messages = {messages}, interval = "{interval_us}us", jitter = 0.5 }}]
fault = [{{ kind = "crash", process = "p{members}", at = "{crash_ms}ms" }}]
"""


def _antiphon(*arguments: object, **how: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "antiphon.cli.main", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)


def _document(process: subprocess.Popen[str], wait_s: float = _WAIT_S) -> Any:
    out, err = process.communicate(timeout=wait_s)
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}: {err.strip()}")
    return json.loads(out)


def _ready(watch: subprocess.Popen[str]) -> None:
    """True if the watch has started Spark, and waits."""
    assert watch.stderr is not None
    line = watch.stderr.readline()
    assert line.startswith("waiting for a run"), line


def _kill_in_the_middle(watch: subprocess.Popen[str], state: Path, run: subprocess.Popen[str]) -> None:
    """Once it has counted something."""
    while not state.is_file():
        time.sleep(0.1)
    time.sleep(3.0)
    watch.kill()
    watch.communicate()
    assert run.poll() is None, "the run was over before the watch could be killed: let it run for longer"


def _play(scenario: Path, directory: Path, wait_s: float, *, kill: bool) -> dict[str, Any]:
    checkpoint = directory.with_name(f"{directory.name}-checkpoint")
    watch = _antiphon("watch", directory, "--json", "--checkpoint", checkpoint)
    _ready(watch)
    run = _antiphon("run", scenario, "--out", directory, "--json")
    if kill:
        _kill_in_the_middle(watch, checkpoint / "state.msgpack", run)
        watch = _antiphon("watch", directory, "--json", "--checkpoint", checkpoint)
    played = _document(run, wait_s)
    ended = time.monotonic()
    watched = _document(watch, wait_s)
    figures = {
        "run_seconds": played["runs"][0]["virtual_seconds"],
        "events": watched["runs"][0]["events"],
        "watch_ends_after_seconds": time.monotonic() - ended,
        "delay": watched["delay"],
    }
    again = _document(_antiphon("watch", directory, "--once", "--json"), wait_s)
    same = {key: watched[key] == again[key] for key in ("runs", "properties")}
    return {**figures, "as_the_finished_run": all(same.values()), "as_the_checkers": _as_judged(directory, watched)}


def _as_judged(directory: Path, watched: dict[str, Any]) -> bool:
    (events,) = (directory / "events").iterdir()
    expected = {
        (verdict.property, verdict.group): (verdict.opportunities, verdict.violations)
        for verdict in judge(pq.read_table(events))
        if verdict.property in PROPERTIES
    }
    told = {(each["property"], each["group"]): each for each in watched["properties"]}
    return expected == {place: (each["opportunities"], each["violations"]) for place, each in told.items()}


def main() -> None:
    """Play, print, and tell by the exit code."""
    parser = argparse.ArgumentParser(description="Delay and restarts of `antiphon watch`.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--rate", type=float, default=100.0, help="messages a second of each member")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="antiphon-watching-") as folder:
        scenario = Path(folder, "watched.toml")
        messages, crash_ms = int(options.seconds * options.rate), int(options.seconds * 600)
        text = _SCENARIO.format(
            members=options.members, messages=messages, interval_us=int(1e6 / options.rate), crash_ms=crash_ms
        )
        scenario.write_text(text)
        wait_s = _WAIT_S + 4 * options.seconds
        told = {
            "followed": _play(scenario, Path(folder, "followed"), wait_s, kill=False),
            "killed": _play(scenario, Path(folder, "killed"), wait_s, kill=True),
        }
    text = json.dumps(told, indent=2)
    print(text)
    if options.json is not None:
        options.json.write_text(text + "\n")
    if not all(each["as_the_finished_run"] and each["as_the_checkers"] for each in told.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
