"""Many small runs in one directory: `antiphon check` and `stats`; their time, and the memory of the driver.

A few short runs of three members are simulated and written again under other run ids, one file each, with an index as a
campaign writes it. Each command runs in a process of its own, with Spark on two cores. Memory is that of the driver's
Python process, and of the driver's Java, at their peaks. Run from the root of the repository:

    python -m benchmarks.many_runs [--runs 10000 --runs 100000] [--directory out/many-runs] [--json FILE]
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa

from antiphon.scenario.read import parse_scenario, run_id, scenario_toml, with_seed
from antiphon.sim.run import simulate
from antiphon.trace.directory import RunRecord, write_events, write_index
from antiphon.trace.table import events_table

SCENARIO: Final = """
name = "small"
options = { suspect_after = "0s" }
[[group]]
name = "orders"
members = 3
[[workload]]
group = "orders"
messages = 3
interval = "5ms"
jitter = 0.5
"""
KINDS: Final = 10
COMMANDS: Final = ("check", "stats")
_EVERY_S: Final = 0.25


def made(directory: Path, runs: int) -> int:
    """Write the dataset unless it is there; returns its number of events."""
    place = directory / str(runs)
    scenarios = [with_seed(parse_scenario(SCENARIO), seed) for seed in range(1, KINDS + 1)]
    tables = [events_table(run_id(each), simulate(each).histories) for each in scenarios]
    if not (place / "runs.parquet").exists():
        place.mkdir(parents=True, exist_ok=True)
        index = []
        for number in range(runs):
            scenario = with_seed(scenarios[0], number + 1)
            events, run = tables[number % KINDS], f"small-{number + 1}"
            renamed = events.set_column(0, events.schema.field(0), pa.repeat(pa.scalar(run), len(events)))
            write_events(renamed, place, run)
            record = RunRecord(run, scenario.name, scenario.seed, "benchmark", clock="virtual", finished=True)
            index.append((record, scenario_toml(scenario)))
        write_index(place, index)
    return sum(len(tables[number % KINDS]) for number in range(runs))


def measured(command: str, directory: Path) -> dict[str, Any]:
    """One command on one dataset."""
    line = [sys.executable, "-m", "antiphon", command, str(directory), "--json", "--master", "local[2]"]
    began = time.perf_counter()
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process, Peaks(process.pid) as peaks:
        out, _ = process.communicate()
    document = json.loads(out)
    told = document["verdict"] if command == "check" else document["number_of_runs"]
    return {
        "command": command,
        "answer": told,
        "seconds": round(time.perf_counter() - began, 1),
        "python_mib": peaks.python_bytes >> 20,
        "java_mib": peaks.java_bytes >> 20,
    }


class Peaks:
    """The peak memory of a process, and of the Java that it starts, as the operating system counts it."""

    def __init__(self, process: int) -> None:
        self.python_bytes = self.java_bytes = 0
        self._process = process
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_EVERY_S):
            self.python_bytes = max(self.python_bytes, _peak_bytes(self._process))
            self.java_bytes = max(self.java_bytes, *map(_peak_bytes, _children(self._process)), 0)


def _peak_bytes(process: int) -> int:
    status = _text(Path(f"/proc/{process}/status"))
    return next((1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")), 0)


def _children(process: int) -> list[int]:
    return [int(each) for each in _text(Path(f"/proc/{process}/task/{process}/children")).split()]


def _text(path: Path) -> str:
    """The text of a file; empty if the process is gone."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def main() -> None:
    """Make the datasets, run the commands, tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, action="append", help="default: 10000 and 100000")
    parser.add_argument("--directory", type=Path, default=Path("out/many-runs"))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = []
    for runs in arguments.runs or [10_000, 100_000]:
        events = made(arguments.directory, runs)
        for command in COMMANDS:
            found.append({"runs": runs, "events": events, **measured(command, arguments.directory / str(runs))})
            print(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in found[-1].items()), flush=True)
    result = {
        "question": "time and memory of the driver for many small runs",
        "command": " ".join(["python", "-m", "benchmarks.many_runs", *sys.argv[1:]]),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, CPython {platform.python_version()}",
        "found": found,
    }
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
