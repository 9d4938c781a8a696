"""Speed and memory of judging a dataset of runs under Spark, and of DuckDB for a part of the properties.

In one process first, on one run of each kind: rows a second, bytes of memory a row, and the share of each property.
Then under Spark on two cores, for each number of runs: everything judged, and then the five properties that SQL can
judge with window functions and aggregates (D2, D8, M2, O1, O5), by us and by DuckDB with two threads. The start of
Spark and a small dataset as warm-up are not timed. Memory and CPU time are those of the whole tree of processes,
Java included. On a busy machine CPU time is the better figure.

The datasets hold copies of fifteen simulated runs (`benchmarks/judged_runs.py`), made once and kept. DuckDB is in the
extra `bench`; without it the comparison is left out. From the root of the repository:

    python -m benchmarks.judging [--runs 100 --runs 500] [--directory out/judging] [--json FILE]
"""

import argparse
import cProfile
import importlib
import json
import os
import platform
import pstats
import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import antiphon
from antiphon.pipeline.dataset import Dataset, read_events
from antiphon.pipeline.jobs.verify import verify
from antiphon.pipeline.spark.session import spark_session
from antiphon.properties.checks import delivery, order, views, weak_total
from antiphon.properties.judge import judge
from antiphon.properties.promises import Promises
from antiphon.properties.tables.delivered import Delivered
from antiphon.properties.tables.history import load
from antiphon.properties.tables.membership import Membership
from antiphon.properties.verdicts.verdict import Verdict
from benchmarks.judged_runs import KINDS, dataset, simulated

THREADS: Final = 2
_PACKAGE: Final = Path(antiphon.__file__).parent
WARM_UP_RUNS: Final = 4
APART: Final = ("O3", "O4", "S1")
"""Properties whose cost grows with more than the rows (docs/spec/properties.md 7.5 and 7.6)."""
SUBSET: Final = ("D2", "D8", "M2", "O1", "O5")


# -------------------------------------------------------------------------------- one process


def judge_one(path: Path) -> dict[str, Any]:
    """One run in this process: the best of three, then a profile."""
    before = _peak_bytes()
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        verdicts = judge(read_events([path]))
        seconds.append(time.perf_counter() - started)
    rows = pq.read_metadata(path).num_rows
    return {
        "rows": rows,
        "rows_per_second": round(rows / min(seconds)),
        "bytes_per_row": round((_peak_bytes() - before) / rows),
        "violated": sorted({verdict.property for verdict in verdicts if verdict.violations}),
        "shares": _shares(path),
    }


def _peak_bytes() -> int:
    """The peak of this program alone: a forked child inherits the count of its parent from the operating system."""
    return _kilobytes(_text(Path("/proc/self/status")), "VmHWM") * 1024


def _shares(path: Path) -> dict[str, float]:
    """By property, the share of time spent in its checker; causes and other shared work are listed separately."""
    profile = cProfile.Profile(timer=time.process_time)
    profile.enable()
    judge(read_events([path]))
    profile.disable()
    stats: Any = pstats.Stats(profile)
    total = sum(own for _, _, own, _, _ in stats.stats.values())
    shares: dict[str, float] = defaultdict(float)
    for (file, _, name), (_, _, _, cumulative, _) in stats.stats.items():
        if label := _label(Path(file), name):
            shares[label] += cumulative / total
    shares["shared"] = 1 - sum(shares.values())
    return {label: round(share, 4) for label, share in sorted(shares.items(), key=lambda item: -item[1])}


_STEPS: Final = {
    ("dataset", "read_events"): "reading Parquet",
    ("history", "load"): "decoding",
    ("causality", "establish"): "causes (O3, O4, O8)",
    ("past", "of"): "causes (O3, O4, O8)",
}


def _label(file: Path, name: str) -> str | None:
    """The property of a checker, which is the first word of its docstring, or a step that comes before."""
    if not name.startswith("check_"):
        return _STEPS.get((file.stem, name)) if file.is_relative_to(_PACKAGE) else None
    if file.parent != _PACKAGE / "properties" / "checks":
        return None
    module = importlib.import_module(f"antiphon.properties.checks.{file.stem}")
    return str(getattr(module, name).__doc__).split(":")[0].split()[0]


def one_by_one(directory: Path) -> dict[str, Any]:
    """Each kind in a process of its own, so that memory is its own too."""
    found = {}
    for kind in (*KINDS, "long"):
        command = [sys.executable, "-m", "benchmarks.judging", "--one", str(simulated(directory, kind))]
        found[kind] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


# -------------------------------------------------------------------------------- under Spark


def judge_subset(events: pa.Table) -> list[Verdict]:
    """The properties that SQL can judge, by our checkers."""
    history = load(events)
    promises, delivered = Promises(history), Delivered(history)
    return [
        *views.check_growing_ids(history, promises, Membership(history, promises)),
        *delivery.check_duplication(history, promises),
        *delivery.check_virtual_synchrony(history, promises, delivered),
        *order.check_fifo(history, promises),
        *weak_total.check_one_group(history, promises, delivered),
    ]


def under_spark(spark: SparkSession, directory: Path) -> dict[str, Any]:
    """Everything, then the subset, over one dataset."""
    rows = Dataset.of(directory).rows
    started, cpu = time.perf_counter(), _cpu_seconds()
    with Memory() as memory:
        verdicts = verify(spark, directory)
    judged, judged_cpu = time.perf_counter(), _cpu_seconds()
    verify(spark, directory, judge=judge_subset)
    return {
        "rows": rows,
        "runs": len({verdict.run for verdict in verdicts}),
        "seconds": round(judged - started, 2),
        "rows_per_second": round(rows / (judged - started)),
        "cpu_seconds": round(judged_cpu - cpu, 2),
        "peak_bytes": memory.peak_bytes,
        "violated": sorted({verdict.property for verdict in verdicts if verdict.violations}),
        "subset_seconds": round(time.perf_counter() - judged, 2),
        "subset_cpu_seconds": round(_cpu_seconds() - judged_cpu, 2),
    }


class Memory:
    """The peak memory of this process and its descendants, sampled every second, because sampling costs time too.

    A shared page counts once (`Pss`), because workers are forked from one another.
    """

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._over.wait(1.0):
            self.peak_bytes = max(self.peak_bytes, sum(map(_memory_bytes, _family())))


def _cpu_seconds() -> float:
    """CPU seconds of this process and its descendants, including ended ones."""
    ticks = sum(int(field) for fields in _family().values() for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _family() -> dict[str, list[str]]:
    """By id, the fields of /proc/…/stat after the name, for this process and its descendants."""
    told = {path.parent.name: _text(path) for path in Path("/proc").glob("[0-9]*/stat")}
    fields = {process: text.rpartition(")")[2].split() for process, text in told.items() if text}
    family = {str(os.getpid())}
    while more := {process for process, each in fields.items() if each[1] in family} - family:
        family |= more
    return {process: fields[process] for process in family}


def _memory_bytes(process: str) -> int:
    return _kilobytes(_text(Path("/proc") / process / "smaps_rollup"), "Pss") * 1024


def _kilobytes(text: str, name: str) -> int:
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith(f"{name}:")), 0)


def _text(path: Path) -> str:
    """The text of a file; empty if the process is gone."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


# -------------------------------------------------------------------------------- DuckDB

_MEMBER: Final = 'run, process, incarnation, "group"'
_PROMISED: Final = """
    CREATE TEMP TABLE promised AS SELECT DISTINCT run FROM events
    WHERE kind = 'start' AND contains(detail, '"protocol":"newtop"')
"""
"""Other families have no views that all share."""
_TOGETHER: Final = """
    WITH stays AS (
        SELECT MEMBER, view, lead(view) OVER (PARTITION BY MEMBER ORDER BY index) AS next
        FROM events SEMI JOIN promised USING (run) WHERE kind = 'view'
    ),
    placed AS (
        SELECT MEMBER, view, hash(sender, sender_incarnation, number) AS message,
            row_number() OVER (PARTITION BY MEMBER, view ORDER BY index) AS place
        FROM events SEMI JOIN promised USING (run) WHERE kind = 'deliver' AND service LIKE 'SERVICE'
    ),
    delivered AS (SELECT MEMBER, view, sum(MARK::HUGEINT) AS mark FROM placed GROUP BY MEMBER, view),
    together AS (
        SELECT count(DISTINCT coalesce(mark, 0)) AS marks
        FROM stays LEFT JOIN delivered USING (MEMBER, view)
        WHERE next IS NOT NULL GROUP BY run, "group", view, next
    )
    SELECT count(*) FROM together WHERE marks > 1
"""
_QUERIES: Final = {
    "D2": """
        SELECT count(*) FROM (
            SELECT 1 FROM events WHERE kind = 'deliver'
            GROUP BY MEMBER, sender, sender_incarnation, number HAVING count(*) > 1
        )""",
    "D8": _TOGETHER.replace("MARK", "message").replace("SERVICE", "%"),
    "M2": """
        SELECT count(*) FROM (
            SELECT view <= lag(view) OVER (PARTITION BY MEMBER ORDER BY index) AS back
            FROM events SEMI JOIN promised USING (run) WHERE kind = 'view'
        ) WHERE back""",
    "O1": """
        SELECT count(*) FROM (
            SELECT number < lag(number) OVER (
                PARTITION BY MEMBER, sender, sender_incarnation ORDER BY index
            ) AS overtaken
            FROM events WHERE kind = 'deliver' AND service NOT IN ('reliable')
        ) WHERE overtaken""",
    "O5": _TOGETHER.replace("MARK", "hash(message, place)").replace("SERVICE", "total%"),
}
"""Violations of each property, as far as SQL can judge: D8 and O5 by hashes of the deliveries in a view."""


def by_duckdb(directory: Path) -> dict[str, Any] | None:
    """Seconds of each query, and its result; None without DuckDB."""
    try:
        duckdb = importlib.import_module("duckdb")
    except ImportError:
        return None
    connection = duckdb.connect(config={"threads": THREADS})
    connection.read_parquet(str(directory / "events" / "*.parquet")).create_view("events")
    started, cpu = time.perf_counter(), time.process_time()
    connection.execute(_PROMISED)
    found: dict[str, Any] = {"seconds": {"promises": round(time.perf_counter() - started, 2)}, "violations": {}}
    for name, query in _QUERIES.items():
        started = time.perf_counter()
        found["violations"][name] = connection.execute(query.replace("MEMBER", _MEMBER)).fetchone()[0]
        found["seconds"][name] = round(time.perf_counter() - started, 2)
    found["cpu_seconds"] = round(time.process_time() - cpu, 2)
    connection.close()
    return found


# -------------------------------------------------------------------------------- all of it


def measure(directory: Path, sizes: list[int]) -> dict[str, Any]:
    """One process, then Spark and DuckDB over datasets of these sizes."""
    one = one_by_one(directory)
    datasets = {size: dataset(directory, size) for size in (WARM_UP_RUNS, *sizes)}
    started = time.perf_counter()
    spark = spark_session(f"local[{THREADS}]", "antiphon benchmark")
    start_seconds = time.perf_counter() - started
    verify(spark, datasets.pop(WARM_UP_RUNS))
    warm_seconds = time.perf_counter() - started
    large = []
    for size, place in datasets.items():
        large.append({"asked": size, **under_spark(spark, place), "duckdb": by_duckdb(place)})
    spark.stop()
    return {
        "question": "rows judged a second, all properties",
        "command": " ".join(["python", "-m", "benchmarks.judging", *sys.argv[1:]]),
        "version": antiphon.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, CPython {platform.python_version()}",
        "one_process": one,
        "spark_start_seconds": round(start_seconds, 1),
        "spark_warm_seconds": round(warm_seconds, 1),
        "datasets": large,
    }


def show(result: dict[str, Any]) -> None:
    """Tables for people."""
    print(f"{result['question']} ({result['machine']}); datasets are copies of {len(KINDS)} simulated runs")
    print(f"\n{'in one process':<14} {'rows':>10} {'rows/s':>10} {'bytes/row':>10}   most of the time goes to")
    for kind, found in result["one_process"].items():
        most = ", ".join(f"{name} {share:.0%}" for name, share in [*found["shares"].items()][:6])
        print(f"{kind:<14} {found['rows']:>10,} {found['rows_per_second']:>10,} {found['bytes_per_row']:>10,}   {most}")
    for name in APART:
        shares = sorted(found["shares"].get(name, 0.0) for found in result["one_process"].values())
        print(f"{name} alone: {shares[0]:.1%} to {shares[-1]:.1%} of the time")
    print(
        f"\nSpark on {THREADS} cores: started in {result['spark_start_seconds']} s, "
        f"warm after {result['spark_warm_seconds']} s"
    )
    for found in result["datasets"]:
        _show_dataset(found)
    first, last = result["datasets"][0], result["datasets"][-1]
    growth = last["rows_per_second"] / first["rows_per_second"]
    print(f"rate at {last['rows']:,} rows / at {first['rows']:,} rows: {growth:.2f}")


def _show_dataset(found: dict[str, Any]) -> None:
    print(
        f"{found['runs']} runs, {found['rows']:,} rows: {found['seconds']} s, {found['rows_per_second']:,} rows/s, "
        f"{found['peak_bytes'] / 2**30:.2f} GiB at most, violated: {', '.join(found['violated']) or 'nothing'}"
    )
    rate = found["rows"] / found["cpu_seconds"]
    print(f"  {found['cpu_seconds']} s of CPU time: {rate:,.0f} rows in one, {THREADS * rate:,.0f} in {THREADS}")
    duckdb = found["duckdb"]
    if duckdb is None:
        print("  DuckDB is not installed (`pip install antiphon[bench]`): no comparison")
        return
    total = sum(duckdb["seconds"].values())
    each = ", ".join(f"{name} {seconds}" for name, seconds in duckdb["seconds"].items())
    print(
        f"  {', '.join(SUBSET)}: here {found['subset_seconds']} s, DuckDB {total:.2f} s ({each}); "
        f"here / DuckDB {found['subset_seconds'] / total:.2f}, everything / DuckDB {found['seconds'] / total:.2f}; "
        f"by CPU time {found['subset_cpu_seconds'] / duckdb['cpu_seconds']:.2f} and "
        f"{found['cpu_seconds'] / duckdb['cpu_seconds']:.2f}; "
        f"DuckDB found {sum(duckdb['violations'].values())} violations"
    )


def main() -> None:
    """Measure, show, and keep the result where asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, action="append", help="size of a dataset; default 100, then 500")
    parser.add_argument("--directory", type=Path, default=Path("out/judging"), help="where the runs are kept")
    parser.add_argument("--json", type=Path, help="write the result here")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(judge_one(arguments.one)))
        return
    result = measure(arguments.directory, arguments.runs or [100, 500])
    show(result)
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
