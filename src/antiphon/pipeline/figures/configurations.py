"""Configurations: runs that differ only in their seed. The mean of each figure, and its confidence interval."""

import re
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from math import sqrt
from statistics import fmean, stdev
from typing import Any, Final

import pyarrow as pa

from antiphon.errors import TraceError
from antiphon.pipeline.figures.measures import Configuration, Interval
from antiphon.pipeline.tables.schemas import FIGURES
from antiphon.trace.directory import RunRecord, each_run, has_index
from antiphon.trace.places import Place

_QUANTILES: Final = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281)
"""Student's t for a two-sided 95 %, by degrees of freedom from 1."""
_NORMAL: Final = 1.959964
CONFIGURATIONS_MAX: Final = 1_000
_SEED: Final = re.compile(r"^seed = \d+\n", re.MULTILINE)
"""The line in which the scenarios of one configuration differ, as we write it."""


def configurations(directory: Place, runs: pa.Table) -> tuple[Configuration, ...]:
    """The configurations of the runs in a directory, in the order of their first runs; none without an index.

    `runs`: their figures, one row each. If there are too many configurations, only those with several runs count.
    """
    if not has_index(directory):
        return ()
    place = {run: number for number, run in enumerate(runs["run"].to_pylist())}
    parts: dict[bytes, list[str]] = defaultdict(list)
    for record, text in each_run(directory):
        if record.run in place:
            parts[_digest(_SEED.sub("", text, count=1))].append(record.run)
    if len(parts) > CONFIGURATIONS_MAX:
        several = [scenario for scenario, own in parts.items() if len(own) > 1]
        parts = {scenario: parts[scenario] for scenario in several[:CONFIGURATIONS_MAX]}
    known = {ids[0]: scenario for scenario, ids in parts.items()}
    first = {known[record.run]: (record, text) for record, text in each_run(directory) if record.run in known}
    settings = _differing([_flat(_without_seed(*first[scenario])) for scenario in parts])
    return tuple(
        Configuration(
            first[scenario][0].scenario, own, tuple(ids), _intervals(runs.take([place[each] for each in ids]))
        )
        for (scenario, ids), own in zip(parts.items(), settings, strict=True)
    )


def _digest(scenario: str) -> bytes:
    """Stands for a scenario: a hundred thousand different ones need not be in memory together."""
    return blake2b(scenario.encode(), digest_size=16).digest()


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


def _intervals(runs: pa.Table) -> dict[str, Interval]:
    """The interval of every figure that some run has, over the runs that have it."""
    known = {name: runs[name].drop_null().to_pylist() for name in FIGURES.names}
    return {name: interval(values) for name, values in known.items() if values}


def _without_seed(record: RunRecord, text: str) -> dict[str, Any]:
    try:
        scenario = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TraceError(f"the scenario of run {record.run} cannot be read: {error}") from error
    return {key: value for key, value in scenario.items() if key != "seed"}


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
