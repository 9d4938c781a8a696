"""The cost of a trace in lines: of each call of `antiphon.trace_writer`, and of reading and judging the files.

A process delivers messages of three senders, one in four its own, as a member of a totally ordered group does. CPU time
counts, so that a busy machine says the same. Run from the root:

    python -m benchmarks.trace_writer [--events 200000] [--directory DIR] [--json FILE]
"""

import argparse
import json
import platform
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from antiphon.pipeline.dataset import find_event_files, read_events
from antiphon.properties.judge import judge
from antiphon.properties.verdicts.summary import summarise
from antiphon.trace.line_runs import collect_lines
from antiphon.trace_writer import TraceWriter

_NAMES = ("a", "b", "c")
_GROUPS = {"log": {"promises": ["reliable", "fifo", "total"], "members": _NAMES}}
_SYNCED_PER = 200
"""One in so many events is measured with a sync of the disk."""
_TURNS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=200_000, help="events of each process")
    parser.add_argument("--directory", type=Path, help="where the traces go, removed at the end; default: /tmp")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found: dict[str, Any] = {"machine": platform.platform(), "python": platform.python_version()}
    with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
        found["writer"] = _writer(Path(folder), arguments.events)
        found["reader"] = _reader(Path(folder), arguments.events)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _writer(folder: Path, events: int) -> dict[str, dict[str, float]]:
    print(f"{'flush':6} {'payload':>8} {'CPU us':>8} {'wall us':>8} {'bytes':>6}   for each event, best of {_TURNS}")
    found = {}
    for flush, payload in (("block", 0), ("line", 0), ("line", 100), ("line", 10_000), ("disk", 0)):
        count = max(events // _SYNCED_PER, 1) if flush == "disk" else events
        turns = [_written(folder / f"{flush}-{payload}-{turn}", count, flush, payload) for turn in range(_TURNS)]
        best = {name: min(turn[name] for turn in turns) for name in turns[0]}
        print(f"{flush:6} {payload:>8,} {best['cpu_us']:>8.2f} {best['wall_us']:>8.2f} {best['bytes']:>6.0f}")
        found[f"{flush} {payload}"] = best
    return found


def _written(directory: Path, events: int, flush: str, payload_bytes: int) -> dict[str, float]:
    trace = TraceWriter(directory, "a", _GROUPS, flush=flush)
    payload = b"x" * payload_bytes if payload_bytes else None
    size = (directory / "a.jsonl").stat().st_size
    cpu, wall = time.process_time_ns(), time.perf_counter_ns()
    for number in range(events // 4):
        trace.sent("log", payload)
        for sender in _NAMES:
            trace.delivered("log", sender, number, payload)
    trace.flush()
    cpu, wall = time.process_time_ns() - cpu, time.perf_counter_ns() - wall
    written = (directory / "a.jsonl").stat().st_size - size
    trace.close()
    return {"cpu_us": cpu / 1e3 / events, "wall_us": wall / 1e3 / events, "bytes": written / events}


def _reader(folder: Path, events: int) -> dict[str, float]:
    directory = folder / "run"
    traces = {name: TraceWriter(directory, name, _GROUPS, flush="block") for name in _NAMES}
    for number in range(events // 4):
        for trace in traces.values():
            trace.sent("log")
        for sender in _NAMES:
            for trace in traces.values():
                trace.delivered("log", sender, number)
    for trace in traces.values():
        trace.stopped(quiet=True)
    total = len(_NAMES) * (events // 4) * 4
    collecting = _cpu_s(lambda: collect_lines(directory))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    verdicts: list[Any] = []
    judging = _cpu_s(lambda: verdicts.extend(judge(read_events(find_event_files(directory)))))
    size = sum(path.stat().st_size for path in find_event_files(directory))
    found = {
        "events": total,
        "collect_us": collecting * 1e6 / total,
        "judge_us": judging * 1e6 / total,
        "parquet_bytes": size / total,
        "peak_mib": peak,
    }
    print(
        f"{total:,} events of three processes, {summarise(verdicts)}: read {found['collect_us']:.2f} us CPU for each, "
        f"judged {found['judge_us']:.2f} us, {found['parquet_bytes']:.1f} bytes as Parquet; peak {peak:,.0f} MiB"
    )
    return found


def _cpu_s(action: Callable[[], object]) -> float:
    began = time.process_time()
    action()
    return time.process_time() - began


if __name__ == "__main__":
    main()
