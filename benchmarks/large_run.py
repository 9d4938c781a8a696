"""One run that no task can hold: made, then judged by `antiphon check` in parts; time, rows a second, peak of memory.

The run is a simulated one of five members in total order, where two send twice as often as the others, over a
network whose latency is fixed: after its first moments it repeats itself exactly, which is checked. Its middle is
written again and again, with shifted numbers, stamps, positions and times, so that all its promises hold at
any length. Run from the root:

    python -m benchmarks.large_run [--rows 20000000] [--rows-per-task N] [--keep DIR] [--json FILE]
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from antiphon.scenario.read import parse_scenario, run_id
from antiphon.sim.run import simulate
from antiphon.trace.directory import ROWS_PER_GROUP, event_writer
from antiphon.trace.schema import EVENTS
from antiphon.trace.table import events_table
from antiphon.trace.typed import TYPED, with_typed
from benchmarks.memory import Peak

SCENARIO = """
name = "large"
duration = "60s"
quiet = "2s"

[[group]]
name = "orders"
members = 5

[network]
latency = { kind = "fixed", value = "2ms" }

[[workload]]
group = "orders"
senders = ["p1", "p2"]
messages = 600
interval = "5ms"

[[workload]]
group = "orders"
senders = ["p3", "p4", "p5"]
messages = 300
interval = "10ms"
"""
BEGIN_NS, PERIOD_NS = 1_000_000_000, 500_000_000
"""The middle, which is repeated; the same time after it is compared with it."""
ROWS_PER_FILE = 5 * ROWS_PER_GROUP

_FLOW = r'^(?P<a>.*"flow":\[)(?P<n>\d+),(?P<c>\d+),(?P<s>\d+)(?P<b>.*)$'
_FRAME = r'^(?P<a>.*"frame":"[^"]*/)(?P<f>\d+)(?P<b>".*)$'

Ints = npt.NDArray[np.int64]


class Steady:
    """A simulated run that repeats itself, and the changes by one repetition."""

    def __init__(self) -> None:
        scenario = parse_scenario(SCENARIO)
        self.events = events_table(run_id(scenario), simulate(scenario).histories).combine_chunks()
        self.processes: list[str] = pc.unique(self.events["process"]).to_pylist()
        self._codes = {name: code for code, name in enumerate(self.processes)}
        time_ns = self.events["time"].to_numpy()
        self.head, self.middle, after, self.tail = (
            self.events.filter(pa.array(chosen))
            for chosen in (
                time_ns < BEGIN_NS,
                (time_ns >= BEGIN_NS) & (time_ns < BEGIN_NS + PERIOD_NS),
                (time_ns >= BEGIN_NS + PERIOD_NS) & (time_ns < BEGIN_NS + 2 * PERIOD_NS),
                time_ns >= BEGIN_NS + PERIOD_NS,
            )
        )
        sends = self.middle.filter(pc.equal(self.middle["kind"], "send"))
        self.sent = {name: pc.sum(pc.equal(sends["sender"], name)).as_py() or 0 for name in self.processes}
        self.stamps = int(pc.max(after["clock"]).as_py() - pc.max(self.middle["clock"]).as_py())
        self.positions = {name: pc.sum(pc.equal(self.middle["process"], name)).as_py() or 0 for name in self.processes}
        again = self.shifted(self.middle, np.ones(len(self.middle), np.int64))
        assert again.equals(self.shifted(after, np.zeros(len(after), np.int64))), "the run does not repeat itself"

    def shifted(self, rows: pa.Table, times: Ints) -> pa.Table:
        """The rows shifted by this number of repetitions, with digests computed from the messages."""
        columns = {name: rows[name] for name in rows.column_names}
        number = _plus(rows["number"], times * _by_name(self.sent, rows["sender"]))
        columns |= {
            "index": _plus(rows["index"], times * _by_name(self.positions, rows["process"])),
            "time": _plus(rows["time"], times * PERIOD_NS),
            "requested": _plus(rows["requested"], times * PERIOD_NS),
            "number": number,
            "clock": _plus(rows["clock"], times * self.stamps),
            "digest": _digests(rows["digest"], _by_name(self._codes, rows["sender"]), number),
            "upto": self._upto(rows["upto"].combine_chunks(), times),
            "detail": self._detail(rows["detail"].combine_chunks(), times * self.stamps),
        }
        told = {name: column for name, column in columns.items() if name not in TYPED}
        return with_typed(pa.table(told)).select(EVENTS.names).cast(EVENTS)

    def _upto(self, upto: pa.MapArray, times: Ints) -> pa.MapArray:
        lengths = np.diff(upto.offsets.to_numpy())
        more = np.repeat(times, lengths) * _by_name(self.sent, upto.keys)
        values = pc.add(upto.items, pa.array(more))
        return pa.MapArray.from_arrays(upto.offsets, upto.keys, values, mask=upto.is_null())

    def _detail(self, texts: pa.Array, more: Ints) -> pa.Array:
        flow = pc.extract_regex(texts, _FLOW)
        numbers = [_raised(flow, name, more) for name in ("n", "c", "s")]
        parts = [pc.struct_field(flow, "a"), *_between(numbers, ","), pc.struct_field(flow, "b")]
        texts = pc.coalesce(pc.binary_join_element_wise(*parts, ""), texts)
        frame = pc.extract_regex(texts, _FRAME)
        parts = [pc.struct_field(frame, "a"), _raised(frame, "f", more), pc.struct_field(frame, "b")]
        return pc.coalesce(pc.binary_join_element_wise(*parts, ""), texts)

    def log(self, process: str, repetitions: int) -> Iterator[pa.Table]:
        """The log of a process with this number of repetitions of the middle, in pieces."""
        head, middle, tail = (
            part.filter(pc.equal(part["process"], process)).combine_chunks()
            for part in (self.head, self.middle, self.tail)
        )
        yield self.shifted(head, np.zeros(len(head), np.int64))
        step = max(ROWS_PER_GROUP // max(len(middle), 1), 1)
        for begin in range(0, repetitions if len(middle) else 0, step):
            times = np.arange(begin, min(begin + step, repetitions))
            again = middle.take(pa.array(np.tile(np.arange(len(middle)), len(times))))
            yield self.shifted(again, np.repeat(times, len(middle)))
        yield self.shifted(tail, np.full(len(tail), repetitions - 1, np.int64))


def _plus(column: pa.ChunkedArray, more: Ints) -> pa.ChunkedArray:
    return pc.add(column, pa.array(more))


def _by_name(values: dict[str, int], names: pa.Array | pa.ChunkedArray) -> Ints:
    codes = pc.fill_null(pc.index_in(names, pa.array(list(values))), len(values))
    found: Ints = np.array([*values.values(), 0], np.int64)[codes.to_numpy(zero_copy_only=False)]
    return found


def _digests(had: pa.ChunkedArray, sender: Ints, number: pa.ChunkedArray) -> pa.Array:
    words = (np.asarray(pc.fill_null(number, 0).to_numpy(), np.uint64) << np.uint64(8)) + sender.astype(np.uint64)
    mixed = (words * np.uint64(0x9E3779B97F4A7C15)).astype(np.int64)
    return pa.array(mixed, mask=np.asarray(had.is_null().to_numpy(), np.bool_))


def _raised(found: pa.Array, name: str, more: Ints) -> pa.Array:
    return pc.cast(pc.add(pc.cast(pc.struct_field(found, name), pa.int64()), pa.array(more)), pa.string())


def _between(parts: list[pa.Array], text: str) -> list[Any]:
    return [each for part in parts for each in (text, part)][1:]


def write(directory: Path, rows: int) -> int:
    """Write a run of about this number of rows, ordered by process, in large files; return the exact number."""
    steady = Steady()
    repetitions = max((rows - len(steady.events)) // len(steady.middle) + 1, 1)
    folder, written, in_file, number = directory / "events", 0, 0, 0
    folder.mkdir(parents=True)
    writer: pq.ParquetWriter | None = None
    for process in steady.processes:
        for piece in steady.log(process, repetitions):
            if writer is None or in_file >= ROWS_PER_FILE:
                if writer is not None:
                    writer.close()
                path = folder / f"part-{number:05}.parquet"
                writer = event_writer(path)
                in_file, number = 0, number + 1
            writer.write_table(piece, ROWS_PER_GROUP)
            in_file, written = in_file + len(piece), written + len(piece)
    if writer is not None:
        writer.close()
    return written


def judged(directory: Path, rows_per_task: int | None) -> tuple[dict[str, Any], float, int]:
    """The output of `antiphon check`, its duration, and the peak memory of its processes together."""
    option = [] if rows_per_task is None else ["--rows-per-task", str(rows_per_task)]
    command = [sys.executable, "-m", "antiphon.cli.main", "check", str(directory), "--json", *option]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        peak = Peak(process.pid)
        out, _ = process.communicate()
    return json.loads(out), time.perf_counter() - began, peak.bytes()


def main() -> None:
    """Make the run, judge it, tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rows-per-task", type=int)
    parser.add_argument("--keep", type=Path, help="write the run to this new directory, and leave it there")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = options.keep or Path(scratch) / "run"
        began = time.perf_counter()
        rows = options.rows if directory.exists() else write(directory, options.rows)
        made_s = time.perf_counter() - began
        document, took_s, peak = judged(directory, options.rows_per_task)
    result = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "command": " ".join(sys.argv),
        "rows": rows,
        "made_s": round(made_s, 1),
        "verdict": document["verdict"],
        "properties_with_opportunities": sum(each["opportunities"] > 0 for each in document["properties"]),
        "check_s": round(took_s, 1),
        "rows_per_s": round(rows / took_s),
        "peak_mib": round(peak / 2**20),
    }
    print(json.dumps(result, indent=2))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
