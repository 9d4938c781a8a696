"""`antiphon sweep SWEEP --out DIR`: run every combination of a scenario's lists of values, with many seeds."""

import json as json_format
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.markup import escape
from rich.table import Table

from antiphon import __version__
from antiphon.cli.shared.interrupts import interrupted
from antiphon.cli.shared.output import Json, as_json, out, print_json, progress, waiting
from antiphon.cli.shared.paths import path_argument, place_option
from antiphon.cli.shared.sessions import (
    Conf,
    DriverMemory,
    Master,
    ShipPackages,
    SparkChoice,
    spark_choice,
    started,
)
from antiphon.errors import ConfigurationError
from antiphon.scenario.read import run_id, with_seed
from antiphon.sweep.plan import Sweep, describe_values, read_sweep
from antiphon.trace.directory import PARTS, RunRecord, check_free, is_occupied, write_index
from antiphon.trace.places import Place, written
from antiphon.trace.unfinished import continued, unfinished

if TYPE_CHECKING:
    import pyarrow as pa

    from antiphon.pipeline.figures.measures import Interval
    from antiphon.sweep.run import Item
    from antiphon.sweep.summary import CombinationSummary

LIMIT_SECONDS: Final = 600.0
SHOWN_MAX: Final = 20
_SHOWN: Final = {
    "latency_mean_ns": ("latency\nmean, ms", 1e-6),
    "latency_p99_ns": ("latency\np99, ms", 1e-6),
    "per_second": ("messages\nper second", 1.0),
    "copies_per_message": ("copies per\nmessage", 1.0),
    "wire_bytes_per_message": ("wire bytes\nper message", 1.0),
    "unstable_max": ("unstable\nmost", 1.0),
}
"""The figures that the table shows, with headings and factors; `--json` and figures.parquet have all."""


@dataclass(frozen=True, slots=True)
class _Request:
    """The parsed command line."""

    sweep: Sweep
    directory: Place
    traces: bool
    limit: float
    spark: SparkChoice
    force: bool

    @property
    def items(self) -> "list[Item]":
        """The runs of all combinations that can run."""
        possible = [each.scenario for each in self.sweep.combinations if each.scenario is not None]
        return [(scenario, seed) for scenario in possible for seed in self.sweep.seeds]


def sweep(
    file: Annotated[Path, path_argument("SWEEP", "A scenario file (TOML) with a table [sweep].")],
    out_directory: Annotated[Place, place_option("--out", "DIR", "Directory for figures and scenarios.")],
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", metavar="N", help="Number of seeds; default: the value in [sweep], or one."),
    ] = None,
    traces: Annotated[bool, typer.Option("--traces", help="Keep the trace of every run.")] = False,
    limit: Annotated[
        float,
        typer.Option(
            "--limit", metavar="SECONDS", help="A run that takes more CPU time is aborted and counts as failed."
        ),
    ] = LIMIT_SECONDS,
    force: Annotated[
        bool, typer.Option("--force", help="Replace other runs in the output directory, also unfinished ones.")
    ] = False,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
    driver_memory: DriverMemory = None,
    ship_packages: ShipPackages = False,
) -> None:
    """Simulate every combination of a scenario's lists of values, as Spark tasks, and keep the figures of each run.

    After an interrupt the results are kept beside --out, and the same command does the rest. Exit code 0: every run was
    measured. 1: some runs failed, and their rows say why.
    """
    if not limit > 0:
        raise ConfigurationError(f"--limit {limit:g} must be above zero")
    choice = spark_choice(master, conf, driver_memory, ship_packages)
    with waiting("reading the sweep"):  # a hundred thousand combinations take half a minute
        plan = read_sweep(file, seeds)
    request = _Request(plan, out_directory, traces, limit, choice, force)
    _check_free(request)
    if not json:
        _say(_announced(request.sweep))
    began = time.perf_counter()
    summaries, document = _swept(request)
    if json:
        print_json(document)
    else:
        _print(request, summaries, time.perf_counter() - began)
    raise typer.Exit(1 if document["failed"] else 0)


def _check_free(request: _Request) -> None:
    """Refuse early. The ids of the runs are computed only if they must be compared."""
    directory = request.directory
    occupied = is_occupied(directory)
    with waiting("comparing with existing runs"):
        runs = [run_id(with_seed(*item)) for item in request.items] if occupied and not request.force else []
    check_free(directory, runs, force=request.force)


def _swept(request: _Request) -> "tuple[list[CombinationSummary], dict[str, Any]]":
    """Run everything that has not run yet; the directory appears when the last run is done."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    from antiphon.pipeline.jobs.spread import Work, results, spread  # noqa: PLC0415 - Spark takes a second to import
    from antiphon.sweep.run import RESULTS, Runner  # noqa: PLC0415
    from antiphon.sweep.summary import figure_table, summaries  # noqa: PLC0415

    with continued(request.directory, _plan(request), force=request.force) as place:
        parts, items = place / PARTS, request.items
        runner = Runner(request.limit, place if request.traces else None)
        with _kept_when_interrupted(request, parts, RESULTS):
            with progress("simulating") as advance:
                spread(
                    partial(started, request.spark, light=True),
                    Work(runner, runner.lost, RESULTS),
                    items,
                    parts,
                    advance,
                )
            rows = results(parts, RESULTS)
            table = figure_table(request.sweep, rows)
            summary = summaries(request.sweep, table)
            index = [
                _record(request.sweep.name, seed, row) for (_, seed), row in zip(items, rows.to_pylist(), strict=True)
            ]
            kept = [record.run for record, _ in index if request.traces and record.finished]
            document = _document(request.sweep, summary, kept)
            write_index(place, index)
            with written(place / "figures.parquet") as file:
                pq.write_table(table, file, compression="zstd")
            (place / "sweep.json").write_text(as_json(document), "utf-8")
    return summary, document


def _plan(request: _Request) -> dict[str, Any]:
    """What distinguishes one sweep from another: the scenarios, and how they are run."""
    made = [
        (combination.values, combination.problem if combination.scenario is None else run_id(combination.scenario))
        for combination in request.sweep.combinations
    ]
    text = json_format.dumps([request.sweep.keys, made], default=str)
    return {
        "command": "sweep",
        "name": request.sweep.name,
        "combinations": blake2b(text.encode(), digest_size=8).hexdigest(),
        "seeds": len(request.sweep.seeds),
        "traces": request.traces,
        "limit_seconds": request.limit,
    }


@contextmanager
def _kept_when_interrupted(request: _Request, parts: Place, schema: "pa.Schema") -> Iterator[None]:
    from antiphon.pipeline.jobs.spread import results  # noqa: PLC0415

    try:
        yield
    except KeyboardInterrupt:
        place = unfinished(request.directory, _plan(request))
        raise interrupted(len(results(parts, schema)), len(request.items), place) from None


def _record(name: str, seed: int, row: dict[str, Any]) -> tuple[RunRecord, str]:
    finished = row["error"] is None
    record = RunRecord(row["run"], name, seed, __version__, clock="virtual", finished=finished)
    return record, row["scenario_toml"]


def _document(sweep: Sweep, summary: "Sequence[CombinationSummary]", kept: list[str]) -> dict[str, Any]:
    """The document that `--json` prints and `sweep.json` holds; it depends on the machine only through `--limit`."""
    return {
        "sweep": sweep.name,
        "antiphon_version": __version__,
        "keys": sweep.keys,
        "first_seed": sweep.seeds.start,
        "seeds": len(sweep.seeds),
        "runs": sweep.runs,
        "failed": sum(each.failed for each in summary),
        "combinations": [asdict(each) for each in summary],
        "traces": kept,
    }


def _announced(sweep: Sweep) -> str:
    combinations, seeds = len(sweep.combinations), len(sweep.seeds)
    return f"{sweep.name}: {_many(combinations, 'combination')} with {_many(seeds, 'seed')}, {_many(sweep.runs, 'run')}"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' if count != 1 else ''}"


def _print(request: _Request, summary: "Sequence[CombinationSummary]", seconds: float) -> None:
    out.print(_table(request.sweep, summary))
    failed = [(place, each) for place, each in enumerate(summary) if each.failed]
    for place, each in failed[:SHOWN_MAX]:
        combination = request.sweep.combinations[place]
        values = describe_values(request.sweep.keys, combination)
        _say(f"{values}: {each.failed:,} of {each.runs:,} runs failed: {each.error}")
    if len(failed) > SHOWN_MAX:
        _say(f"and {len(failed) - SHOWN_MAX:,} more combinations with failed runs; --json lists them all")
    restless = sum(each.runs - each.failed - each.settled for each in summary)
    if restless:
        _say(f"{_many(restless, 'run')} did not become quiet within the scenario's duration")
    what = "figures, scenarios and traces" if request.traces else "figures and scenarios"
    _say(f"{what} of {_many(request.sweep.runs, 'run')} in {request.directory}, in {seconds:.0f} s")


def _table(sweep: Sweep, summary: "Sequence[CombinationSummary]") -> Table:
    table = Table(title="Mean over the seeds ± half of its 95 % confidence interval", title_justify="left")
    for key in sweep.keys:
        table.add_column(key.replace(".", ".\n"), overflow="fold")
    table.add_column("runs", justify="right")
    for heading, _ in _SHOWN.values():
        table.add_column(heading, justify="right", no_wrap=True)
    for each in summary:
        values = (escape(str(value)) for value in each.values.values())
        runs = f"{each.runs - each.failed:,}" + (f" of {each.runs:,}" if each.failed else "")
        table.add_row(*values, runs, *(_number(each.figures.get(name), scale) for name, (_, scale) in _SHOWN.items()))
    return table


def _number(figure: "Interval | None", scale: float) -> str:
    if figure is None:
        return "-"
    mean = _short(figure.mean * scale, 3)
    return mean if figure.half_width is None else f"{mean} ± {_short(figure.half_width * scale, 2)}"


def _short(value: float, digits: int) -> str:
    return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def _say(sentence: str) -> None:
    out.print(escape(sentence), highlight=False, soft_wrap=True)
