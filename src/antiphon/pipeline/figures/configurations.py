"""Configurations: runs that differ only in their seed. The mean of each figure, and its confidence interval."""

import json
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Final

from antiphon.errors import TraceError
from antiphon.pipeline.figures.measures import Configuration, Interval, RunStatistics
from antiphon.pipeline.figures.one_run import Figures, figures_of
from antiphon.pipeline.tables.schemas import FIGURES
from antiphon.trace.directory import RunRecord, read_index

_QUANTILES: Final = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281)
"""Student's t for a two-sided 95 %, by degrees of freedom from 1."""
_NORMAL: Final = 1.959964


def configurations(directory: Path, runs: Iterable[RunStatistics]) -> tuple[Configuration, ...]:
    """The configurations of the runs in a directory, in the order of their first runs; none without an index."""
    if not any((directory / name).is_file() for name in ("runs.parquet", "run.json")):
        return ()
    measured = {run.run: figures_of(run) for run in runs if run.run is not None}
    parts: dict[str, list[str]] = defaultdict(list)
    names: dict[str, str] = {}
    for record, text in read_index(directory):
        if record.run in measured:
            scenario = _without_seed(record, text)
            parts[scenario].append(record.run)
            names[scenario] = record.scenario
    settings = _differing([_flat(json.loads(scenario)) for scenario in parts])
    return tuple(
        Configuration(names[scenario], own, tuple(ids), _intervals([measured[run] for run in ids]))
        for (scenario, ids), own in zip(parts.items(), settings, strict=True)
    )


def interval(values: Sequence[float]) -> Interval:
    """The mean of the values with the half width of its 95 % confidence interval; a single value has none."""
    half_width = None
    if len(values) > 1:
        half_width = student_t(len(values) - 1) * stdev(values) / sqrt(len(values))
    return Interval(len(values), fmean(values), half_width, min(values), max(values))


def student_t(degrees: int) -> float:
    """The two-sided 95 % quantile: from a table, beyond it by its series in 1 / degrees; accurate to four digits."""
    if degrees <= len(_QUANTILES):
        return _QUANTILES[degrees - 1]
    z = _NORMAL
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3


def _intervals(runs: Sequence[Figures]) -> dict[str, Interval]:
    """The interval of every figure that some run has, over the runs that have it."""
    known = {name: [value for run in runs if (value := run[name]) is not None] for name in FIGURES.names}
    return {name: interval(values) for name, values in known.items() if values}


def _without_seed(record: RunRecord, text: str) -> str:
    try:
        scenario = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TraceError(f"the scenario of run {record.run} cannot be read: {error}") from error
    return json.dumps({key: value for key, value in scenario.items() if key != "seed"}, sort_keys=True, default=str)


def _differing(scenarios: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each scenario the settings in which it differs from another."""
    keys = dict.fromkeys(key for scenario in scenarios for key in scenario)
    differ = [key for key in keys if len({repr(scenario.get(key)) for scenario in scenarios}) > 1]
    return [{key: scenario.get(key) for key in differ} for scenario in scenarios]


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    """Every setting by its path, as sweeps address it; list entries by name if they have one, else by number."""
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        items = [(str(each.get("name", at)), each) for at, each in enumerate(value)]
    else:
        return {path: value}
    return {key: each for name, part in items for key, each in _flat(part, f"{path}.{name}".lstrip(".")).items()}
