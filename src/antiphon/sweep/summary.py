"""Adds a sweep up: the rows of all runs beside their values, and each figure of a combination over its seeds."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from antiphon.pipeline.figures.configurations import interval
from antiphon.pipeline.figures.measures import Interval
from antiphon.pipeline.tables.schemas import FIGURES
from antiphon.sweep.plan import Combination, Sweep
from antiphon.sweep.run import RESULTS

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CombinationSummary:
    """The runs of one combination, added up."""

    values: dict[str, Any]
    runs: int
    settled: int
    failed: int
    error: str | None
    """The error of the first run that failed."""
    figures: dict[str, Interval]


def figure_table(sweep: Sweep, results: pa.Table) -> pa.Table:
    """One row for each run, including impossible combinations: values as columns, then the results."""
    rows = _rows(sweep, results)
    columns: dict[str, Any] = {
        "run": pa.array([row["run"] for row in rows], pa.string()),
        "combination": pa.array([row["combination"] for row in rows], pa.int32()),
        "seed": pa.array([row["seed"] for row in rows], pa.int64()),
    }
    for place, key in enumerate(sweep.keys):
        values = _column([combination.values[place] for combination in sweep.combinations])
        columns[key] = values.take(columns["combination"])
    for field in (RESULTS.field(name) for name in ("settled", "error", *FIGURES.names)):
        columns[field.name] = pa.array([row.get(field.name) for row in rows], field.type)
    return pa.table(columns)


def summaries(sweep: Sweep, figures: pa.Table) -> list[CombinationSummary]:
    """The summaries of all combinations, in order."""
    rows = figures.to_pylist()
    seeds = len(sweep.seeds)
    return [
        _summary(dict(zip(sweep.keys, combination.values, strict=True)), rows[start : start + seeds])
        for combination, start in zip(sweep.combinations, range(0, len(rows), seeds), strict=True)
    ]


def _rows(sweep: Sweep, results: pa.Table) -> list[Row]:
    """Combination by combination, seed by seed; `results` has the possible ones only, in the same order."""
    measured = iter(results.to_pylist())
    return [
        {**_result(combination, measured), "combination": number, "seed": seed}
        for number, combination in enumerate(sweep.combinations)
        for seed in sweep.seeds
    ]


def _result(combination: Combination, measured: Any) -> Row:
    return {"run": None, "error": combination.problem} if combination.scenario is None else next(measured)


def _column(values: Sequence[Any]) -> pa.Array:
    """Values as written, or as JSON if a column of one plain type cannot hold them."""
    kinds = {type(value) for value in values}
    if kinds in ({str}, {int}, {float}, {bool}, {int, float}):
        try:
            return pa.array(values, pa.float64() if len(kinds) > 1 else None)
        except (OverflowError, pa.ArrowInvalid):  # TOML has no limit for whole numbers
            pass
    return pa.array([json.dumps(value, default=str) for value in values], pa.string())


def _summary(values: dict[str, Any], rows: Sequence[Row]) -> CombinationSummary:
    errors = [row["error"] for row in rows if row["error"] is not None]
    figures = {name: [row[name] for row in rows if row[name] is not None] for name in FIGURES.names}
    return CombinationSummary(
        values,
        runs=len(rows),
        settled=sum(row["settled"] is True for row in rows),
        failed=len(errors),
        error=errors[0] if errors else None,
        figures={name: interval(found) for name, found in figures.items() if found},
    )
