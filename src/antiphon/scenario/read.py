"""Reads, completes and writes scenario files; `validate.py` validates them.

A problem is reported as a `ConfigurationError` of one sentence that names the key; nothing is guessed.
"""

import hashlib
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args, get_origin

import msgspec
import tomli_w

from antiphon.errors import ConfigurationError
from antiphon.protocols.registry import family, family_of
from antiphon.scenario.changes import complete_changes
from antiphon.scenario.limits import MEMBERS_MAX
from antiphon.scenario.model import (
    Fault,
    Group,
    Latency,
    Member,
    Network,
    Scenario,
    Workload,
    members_of,
    senders_of,
)
from antiphon.scenario.options import decoded, defaults, every_option, idle, words
from antiphon.scenario.units import quantity
from antiphon.scenario.validate import problems

_Parsed = TypeVar("_Parsed")
_LATER: Final = {
    "trace": (["sampled"], "a trace is full or off in this version"),
}
"""Words reserved for parts that do not exist yet; the message differs from that for misspellings."""

_WORDS: Final = {
    name: get_args(hint)
    for table in (Scenario, Group, Member, Network, Workload)
    for name, hint in table.__annotations__.items()
    if str(get_origin(hint)) == "typing.Literal"
}
"""The allowed values of keys that are a choice of words."""


def read_scenario(path: Path) -> Scenario:
    """The scenario in a file."""
    return read_with(parse_scenario, path)


def read_with(parse: Callable[[str], _Parsed], path: Path) -> _Parsed:
    """The result of parsing the text of a file; errors name the file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigurationError(f"cannot read scenario {path}: {reason}") from error
    try:
        return parse(text)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def parse_scenario(text: str) -> Scenario:
    """The scenario in a TOML text, validated and with all defaults filled in."""
    return from_table(parse_table(text))


def parse_table(text: str) -> dict[str, Any]:
    """The table in a TOML text, not validated."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, and errors that its parser does not convert
        raise ConfigurationError(f"not a TOML file: {_one_line(error)}") from error


def from_table(table: dict[str, Any]) -> Scenario:
    """The scenario in a table, validated and with all defaults filled in."""
    scenario = typed(table)
    for name in idle(table.get("options", {}), family_of(scenario)):
        raise ConfigurationError(f"options.{name}: has no effect: {scenario.protocol} has no such option")
    return judged(scenario)


def typed(table: dict[str, Any]) -> Scenario:
    """The scenario in a table with known keys and right types; neither validated nor complete."""
    _refuse_later_words(table)
    said = {key: value for key, value in table.items() if key != "options"}
    scenario: Scenario = _converted(lambda: msgspec.convert(said, Scenario, dec_hook=quantity))
    protocol = family(scenario.protocol)
    options = _converted(lambda: decoded(table.get("options", {}), protocol), "options")
    return msgspec.structs.replace(scenario, options=options)


def _converted(convert: Callable[[], _Parsed], place: str = "") -> _Parsed:
    try:
        return convert()
    except msgspec.ValidationError as error:
        raise ConfigurationError(_with_key(_one_line(error), place)) from error


def judged(scenario: Scenario) -> Scenario:
    """The scenario with every default filled in, if nothing is wrong with it."""
    scenario = completed(scenario)
    for key, problem in problems(scenario):
        raise ConfigurationError(f"{key}: {problem}")
    return scenario


def scenario_toml(scenario: Scenario) -> str:
    """The scenario as TOML, nothing left to a default; reading it gives the same scenario."""
    table = msgspec.to_builtins(scenario, enc_hook=str)
    table["options"] = msgspec.to_builtins(every_option(scenario), enc_hook=str)
    return tomli_w.dumps(_without_none(table))


def run_id(scenario: Scenario) -> str:
    """The name of the run: name, seed and a hash of the scenario."""
    digest = hashlib.blake2b(scenario_toml(scenario).encode(), digest_size=4).hexdigest()
    return f"{scenario.name}-{scenario.seed}-{digest}"


def with_seed(scenario: Scenario, seed: int) -> Scenario:
    """The same scenario under another seed."""
    return msgspec.structs.replace(scenario, seed=seed)


def with_transport(scenario: Scenario, transport: Literal["stream", "datagram"]) -> Scenario:
    """The same scenario over another transport, for sockets, without faults that only a simulated network has.

    They stay if processes inject them into what they receive.
    """
    network = msgspec.structs.replace(scenario.network, transport=transport)
    sockets = family_of(scenario).sockets
    if sockets is None or not sockets.link_faults:
        network = msgspec.structs.replace(network, loss=0.0, duplicate=0.0, reorder=0.0)
    return msgspec.structs.replace(scenario, network=network)


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else f"{text[:300]}…"


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_without_none(item) for item in value]
    return value


def _with_key(message: str, place: str = "") -> str:
    """Turn msgspec's `… - at `$.group[0].name`` around: the key first, after the path of the converted table."""
    problem, _, path = message.partition(" - at `$")
    problem = problem.replace("Object contains unknown field", "unknown key")
    problem = problem.replace("Object missing required field", "missing key")
    key = f"{place}{path.rstrip('`')}".lstrip(".")
    if problem.startswith("Invalid value") and key.endswith("kind"):
        union = Latency if key.startswith("network") else Fault
        problem += f" (kinds: {', '.join(str(kind.__struct_config__.tag) for kind in get_args(union))})"
    if problem.startswith("Invalid enum value") and (there_are := _words(key)):
        problem += f" (there are {', '.join(there_are)})"
    return f"{key}: {problem}" if key else problem


def _words(key: str) -> tuple[str, ...]:
    table, _, name = key.rpartition(".")
    return words(name) if table == "options" else _WORDS.get(name, ())


def _refuse_later_words(table: dict[str, Any]) -> None:
    if "sweep" in table:
        raise ConfigurationError("sweep: this table describes many runs; use `antiphon sweep`")
    places = [("", table)]
    places += [(f"{kind}[{i}].", entry) for kind in ("group", "fault") for i, entry in _entries(table, kind)]
    for place, entry in places:
        for key, (later, reason) in _LATER.items():
            if (word := entry.get(key)) in later:
                raise ConfigurationError(f"{place}{key}: {word!r} is not available: {reason}")


def _entries(table: dict[str, Any], key: str) -> list[tuple[int, dict[str, Any]]]:
    entries = table.get(key)
    return (
        [(i, entry) for i, entry in enumerate(entries) if isinstance(entry, dict)] if isinstance(entries, list) else []
    )


def completed(scenario: Scenario) -> Scenario:
    """Every default filled in, where it depends on the rest."""
    replace = msgspec.structs.replace
    for i, group in enumerate(scenario.group):
        if isinstance(group.members, int) and not 1 <= group.members <= MEMBERS_MAX:
            raise ConfigurationError(f"group[{i}].members: must be between 1 and {MEMBERS_MAX}")
    own = family_of(scenario)
    if not isinstance(scenario.options, own.options):
        scenario = replace(scenario, options=defaults(own))
    default = own.services[0]
    groups = tuple(
        replace(group, members=members_of(group), service=group.service or default) for group in scenario.group
    )
    senders = {group.name: senders_of(scenario, group) for group in groups}
    workloads = tuple(
        replace(
            workload,
            name=workload.name or f"w{number}",
            senders=senders.get(workload.group, ()) if workload.senders == "all" else workload.senders,
        )
        for number, workload in enumerate(scenario.workload, start=1)
    )
    scenario = replace(scenario, group=groups, workload=workloads)
    if not own.abilities.recovery:
        return scenario
    return complete_changes(scenario, asks=own.abilities.formation)
