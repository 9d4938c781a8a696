"""`antiphon sweep SWEEP --out DIR`: every combination of a scenario's lists of values, under many seeds."""

import json as json_format
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.markup import escape
from rich.table import Table

from antiphon import __version__
from antiphon.cli.shared.output import Json, Master, as_json, out, print_json, progress, waiting
from antiphon.cli.shared.sessions import starting, tell_what_is_kept
from antiphon.errors import ConfigurationError
from antiphon.scenario.read import run_id, with_seed
from antiphon.sweep.plan import Sweep, read_sweep, told
from antiphon.trace.directory import RunRecord, check_free, write_index
from antiphon.trace.unfinished import PARTS, continued, unfinished

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
    "per_second": ("messages\na second", 1.0),
    "copies_per_message": ("copies\na message", 1.0),
    "wire_bytes_per_message": ("wire bytes\na message", 1.0),
    "unstable_max": ("unstable\nmost", 1.0),
}
"""The figures that the table has, with headings and factors; `--json` and figures.parquet have all."""


@dataclass(frozen=True, slots=True)
class _Order:
    """What was asked for."""

    sweep: Sweep
    directory: Path
    traces: bool
    limit: float
    master: str | None
    force: bool

    @property
    def items(self) -> "list[Item]":
        """The runs of all combinations that can run."""
        possible = [each.scenario for each in self.sweep.combinations if each.scenario is not None]
        return [(scenario, seed) for scenario in possible for seed in self.sweep.seeds]


def sweep(
    file: Annotated[Path, typer.Argument(metavar="SWEEP", help="A scenario file (TOML) with a table [sweep].")],
    out_directory: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where figures and scenarios go.")],
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", metavar="N", help="Under how many seeds; default: what [sweep] says, or one."),
    ] = None,
    traces: Annotated[bool, typer.Option("--traces", help="Keep the trace of every run.")] = False,
    limit: Annotated[
        float, typer.Option("--limit", metavar="SECONDS", help="A run that takes longer is given up, and has failed.")
    ] = LIMIT_SECONDS,
    force: Annotated[
        bool, typer.Option("--force", help="Replace other runs in the output directory, also unfinished ones.")
    ] = False,
    json: Json = False,
    master: Master = None,
) -> None:
    """Simulate every combination of a scenario's lists of values, as tasks of Spark, and keep the figures of each run.

    What is interrupted is kept beside --out; the same command does the rest. Exit code 0: every run was measured; 1:
    some failed, and their rows say why.
    """
    if not limit > 0:
        raise ConfigurationError(f"--limit {limit:g} is not a time above zero")
    with waiting("reading the sweep"):  # a hundred thousand combinations take half a minute
        plan = read_sweep(file, seeds)
    order = _Order(plan, out_directory, traces, limit, master, force)
    _check_free(order)
    if not json:
        _say(_announced(order.sweep))
    began = time.perf_counter()
    summaries, document = _swept(order)
    if json:
        print_json(document)
    else:
        _print(order, summaries, time.perf_counter() - began)
    raise typer.Exit(1 if document["failed"] else 0)


def _check_free(order: _Order) -> None:
    """Refuse early; the runs there will be are named only where they must be compared."""
    directory = order.directory
    occupied = directory.is_dir() and any(directory.iterdir())
    with waiting("comparing with what is there"):
        runs = [run_id(with_seed(*item)) for item in order.items] if occupied and not order.force else []
    check_free(directory, runs, force=order.force)


def _swept(order: _Order) -> "tuple[list[CombinationSummary], dict[str, Any]]":
    """Run all that has not run yet; the directory appears when the last is done."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    from antiphon.pipeline.jobs.spread import Work, results, spread  # noqa: PLC0415 - Spark takes a second to import
    from antiphon.sweep.run import RESULTS, Runner  # noqa: PLC0415
    from antiphon.sweep.summary import figure_table, summaries  # noqa: PLC0415

    with continued(order.directory, _plan(order), force=order.force) as place:
        parts, items = place / PARTS, order.items
        runner = Runner(order.limit, place if order.traces else None)
        with _kept_when_interrupted(order, parts, RESULTS):
            with progress("simulating") as advance:
                spread(starting(order.master), Work(runner, runner.lost, RESULTS), items, parts, advance)
            rows = results(parts, RESULTS)
            table = figure_table(order.sweep, rows)
            summary = summaries(order.sweep, table)
            index = [
                _record(order.sweep.name, seed, row) for (_, seed), row in zip(items, rows.to_pylist(), strict=True)
            ]
            kept = [record.run for record, _ in index if order.traces and record.finished]
            document = _document(order.sweep, summary, kept)
            write_index(place, index)
            pq.write_table(table, place / "figures.parquet", compression="zstd")
            (place / "sweep.json").write_text(as_json(document), encoding="utf-8")
    return summary, document


def _plan(order: _Order) -> dict[str, Any]:
    """What tells one sweep from another: the scenarios, and how they are run."""
    made = [
        (combination.values, combination.problem if combination.scenario is None else run_id(combination.scenario))
        for combination in order.sweep.combinations
    ]
    text = json_format.dumps([order.sweep.keys, made], default=str)
    return {
        "command": "sweep",
        "name": order.sweep.name,
        "combinations": blake2b(text.encode(), digest_size=8).hexdigest(),
        "seeds": len(order.sweep.seeds),
        "traces": order.traces,
        "limit_seconds": order.limit,
    }


@contextmanager
def _kept_when_interrupted(order: _Order, parts: Path, schema: "pa.Schema") -> Iterator[None]:
    from antiphon.pipeline.jobs.spread import results  # noqa: PLC0415

    try:
        yield
    except KeyboardInterrupt:
        tell_what_is_kept(len(results(parts, schema)), len(order.items), unfinished(order.directory))
        raise


def _record(name: str, seed: int, row: dict[str, Any]) -> tuple[RunRecord, str]:
    finished = row["error"] is None
    record = RunRecord(row["run"], name, seed, __version__, clock="virtual", finished=finished)
    return record, row["scenario_toml"]


def _document(sweep: Sweep, summary: "Sequence[CombinationSummary]", kept: list[str]) -> dict[str, Any]:
    """What `--json` prints and `sweep.json` holds; nothing in it depends on the machine but `--limit`."""
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
    return (
        f"{sweep.name}: {_many(combinations, 'combination')} under {_many(seeds, 'seed')}, {_many(sweep.runs, 'run')}"
    )


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' if count != 1 else ''}"


def _print(order: _Order, summary: "Sequence[CombinationSummary]", seconds: float) -> None:
    out.print(_table(order.sweep, summary))
    failed = [(place, each) for place, each in enumerate(summary) if each.failed]
    for place, each in failed[:SHOWN_MAX]:
        combination = order.sweep.combinations[place]
        _say(f"{told(order.sweep.keys, combination)}: {each.failed:,} of {each.runs:,} runs failed: {each.error}")
    if len(failed) > SHOWN_MAX:
        _say(f"and {len(failed) - SHOWN_MAX:,} more combinations with failed runs; --json tells them all")
    restless = sum(each.runs - each.failed - each.settled for each in summary)
    if restless:
        _say(f"{_many(restless, 'run')} did not become quiet before the scenario's duration was over")
    what = "figures, scenarios and traces" if order.traces else "figures and scenarios"
    _say(f"{what} of {_many(order.sweep.runs, 'run')} in {order.directory}, in {seconds:.0f} s")


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
