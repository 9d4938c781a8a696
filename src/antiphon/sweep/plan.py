"""The `[sweep]` table of a scenario file: which values are varied, and the scenarios of all combinations.

A key is the path of a value, such as `options.window` or `network.latency.median`. Groups and workloads are addressed
by name, `group.orders.members`; faults and members by number, `fault.1.at`. An unknown key, or a value of the wrong
type, is rejected at once. What the rules of scenarios reject may be wrong in some combinations only, so it is reported
for each combination.
"""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from antiphon.errors import ConfigurationError, abbreviated
from antiphon.scenario.model import Scenario
from antiphon.scenario.read import from_table, parse_table, read_with, run_id, typed

RUNS_MAX: Final = 100_000
_NOT_VARIED: Final = {
    "name": "all runs of a sweep have one name",
    "seed": "use `seeds = N` to run each combination with N seeds",
    "trace": "the figures of a run are taken from its trace",
}
_LISTS: Final = ("group", "workload", "fault", "member")


@dataclass(frozen=True, slots=True)
class Combination:
    """A value for each key, and the resulting scenario."""

    values: tuple[Any, ...]
    """As written in the file, in the order of the keys."""
    scenario: Scenario | None
    problem: str | None
    """Why this combination gives no valid scenario."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """All runs of a sweep: the combinations, each with the same seeds."""

    name: str
    keys: tuple[str, ...]
    combinations: tuple[Combination, ...]
    seeds: range

    @property
    def runs(self) -> int:
        """The number of runs, including those of impossible combinations."""
        return len(self.combinations) * len(self.seeds)


def read_sweep(path: Path, seeds: int | None = None) -> Sweep:
    """Read the sweep of a file; `seeds` overrides its number of seeds."""
    return read_with(lambda text: parse_sweep(text, seeds), path)


def parse_sweep(text: str, seeds: int | None = None) -> Sweep:
    """Parse the sweep of a TOML text. ConfigurationError if a key or value is wrong, or no combination can run."""
    table = parse_table(text)
    lists = _lists(table.pop("sweep", None))
    stated = lists.pop("seeds", 1)
    number = stated if seeds is None else seeds
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ConfigurationError("sweep.seeds: must be a number of seeds, at least one")
    for key, values in lists.items():
        _check_list(key, values)
    total = number * math.prod(map(len, lists.values()))
    if total > RUNS_MAX:
        raise ConfigurationError(f"sweep: these are {total:,} runs; split sweeps of more than {RUNS_MAX:,}")
    _check_types(table, lists)
    combinations = tuple(_combination(table, lists, values) for values in itertools.product(*lists.values()))
    first = _first_possible(combinations)
    _check_different(combinations, tuple(lists))
    if first.seed + number > 2**63:
        raise ConfigurationError(f"sweep.seeds: {number} seeds from {first.seed} on exceed 64-bit numbers")
    return Sweep(first.name, tuple(lists), combinations, range(first.seed, first.seed + number))


def _lists(sweep: Any) -> dict[str, Any]:
    if not isinstance(sweep, dict) or not sweep:
        raise ConfigurationError(
            'sweep: the table is missing; it lists the values to vary, e.g. "options.window" = [8, 64]'
        )
    leaves = [leaf for place, value in sweep.items() for leaf in _leaves(place, value)]
    twice = [key for key, count in Counter(key for key, _ in leaves).items() if count > 1]
    if twice:
        raise ConfigurationError(f"sweep.{twice[0]}: given twice, with and without quotes")
    return dict(leaves)


def _leaves(key: str, value: Any) -> list[tuple[str, Any]]:
    """TOML reads a dotted key without quotes as a table; both forms mean the same."""
    if not isinstance(value, dict):
        return [(key, value)]
    return [leaf for name, inner in value.items() for leaf in _leaves(f"{key}.{name}", inner)]


def _check_list(key: str, values: Any) -> None:
    if key in _NOT_VARIED:
        raise ConfigurationError(f"sweep.{key}: cannot be varied: {_NOT_VARIED[key]}")
    if not isinstance(values, list):
        raise ConfigurationError(f"sweep.{key}: must be a list of values")
    if not values:
        raise ConfigurationError(f"sweep.{key}: the list is empty; give at least one value")


def _check_types(table: Mapping[str, Any], lists: Mapping[str, Sequence[Any]]) -> None:
    """Check each value once, with the first values of the other keys."""
    first = {key: values[0] for key, values in lists.items()}
    for key, values in lists.items():
        for value in values:
            try:
                typed(_with(table, {**first, key: value}))
            except ConfigurationError as error:
                raise ConfigurationError(f"sweep.{key}: {value!r} cannot be set: {error}") from error
    if not lists:
        typed(_with(table, {}))


def _combination(table: Mapping[str, Any], lists: Mapping[str, Any], values: tuple[Any, ...]) -> Combination:
    try:
        return Combination(values, from_table(_with(table, dict(zip(lists, values, strict=True)))), None)
    except ConfigurationError as error:
        return Combination(values, None, str(error))


def _first_possible(combinations: Sequence[Combination]) -> Scenario:
    for combination in combinations:
        if combination.scenario is not None:
            if combination.scenario.trace == "off":
                raise ConfigurationError('trace: a sweep needs traces, but the scenario has trace = "off"')
            return combination.scenario
    raise ConfigurationError(f"sweep: no combination can run; {combinations[0].problem}")


def _check_different(combinations: Sequence[Combination], keys: Sequence[str]) -> None:
    known: dict[str, Combination] = {}
    for combination in combinations:
        if combination.scenario is None:
            continue
        other = known.setdefault(run_id(combination.scenario), combination)
        if other is not combination:
            values = f"{describe_values(keys, other)} and {describe_values(keys, combination)}"
            raise ConfigurationError(f"sweep: {values} make the same scenario")


def describe_values(keys: Sequence[str], combination: Combination) -> str:
    """The values of a combination in words."""
    values = (f"{key} = {value}" for key, value in zip(keys, combination.values, strict=True))
    return ", ".join(values) or "the unchanged scenario"


def _with(table: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    changed = deepcopy(dict(table))
    for key, value in values.items():
        _set(changed, key, deepcopy(value))
    return changed


def _set(table: dict[str, Any], key: str, value: Any) -> None:
    kind, _, rest = key.partition(".")
    if kind in _LISTS and rest:
        table, key = _entry(table.get(kind), kind, rest)
    while "." in key:
        name, _, key = key.partition(".")
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise ConfigurationError(f"{name} is a value and has no keys")
    table[key] = value


def _entry(entries: Any, kind: str, rest: str) -> tuple[dict[str, Any], str]:
    """The group, workload, fault or member that a key addresses, and the rest of the key."""
    tables = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    named = kind in ("group", "workload")
    names = [
        str(entry.get("name") or f"w{number}") if named else str(number) for number, entry in enumerate(tables, start=1)
    ]
    for name, entry in zip(names, tables, strict=True):
        if rest.startswith(f"{name}."):
            return entry, rest.removeprefix(f"{name}.")
    known = f"there are {abbreviated(names)}" if names else "there is none"
    raise ConfigurationError(f"{kind}.{rest} is not a key of a {kind}: {known}")
