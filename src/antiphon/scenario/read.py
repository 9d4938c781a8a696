"""Scenario files: read, judged, completed, written back.

What is wrong is said in one sentence that names the key, as `ConfigurationError`; nothing is guessed.
"""

import hashlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args

import msgspec
import tomli_w

from antiphon.errors import ConfigurationError, some
from antiphon.scenario.model import (
    Delay,
    Fault,
    Group,
    Heal,
    Latency,
    Lognormal,
    Loss,
    Network,
    Options,
    Pause,
    Scenario,
    Skew,
    Slow,
    Uniform,
    Workload,
    members_of,
)
from antiphon.scenario.units import Bandwidth, Duration
from antiphon.types import WORLD

PAYLOAD_BYTES_MAX: Final = 16 * 1024 * 1024
MEMBERS_MAX: Final = 10_000
MESSAGES_MAX: Final = 10_000_000
_SCENARIO_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_NAME: Final = re.compile(r"[^\s#/:]{1,60}")

_LATER: Final = {
    "protocol": ("intergroup classic acks".split(), "newtop is the protocol of this version"),
    "kind": (
        "crash recover partition cut leave join form merge suspect".split(),
        "it needs group membership, which this version does not have",
    ),
    "service": (
        "total-safe causal-slow causal-fast causal-relative causal-vector".split(),
        "total is the service of this version",
    ),
    "trace": (["sampled"], "a trace is full or off in this version"),
}
"""Words of the scenario language that belong to parts not built yet: refused, and told apart from misspellings."""


def read_scenario(path: Path) -> Scenario:
    """The scenario in a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigurationError(f"cannot read scenario {path}: {reason}") from error
    try:
        return parse_scenario(text)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def parse_scenario(text: str) -> Scenario:
    """The scenario in a TOML text, judged and with every default filled in."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, and what its parser lets through
        raise ConfigurationError(f"not a TOML file: {_one_line(error)}") from error
    _refuse_later_words(table)
    try:
        scenario: Scenario = msgspec.convert(table, Scenario, dec_hook=_quantity)
    except msgspec.ValidationError as error:
        raise ConfigurationError(_with_key(_one_line(error))) from error
    scenario = _complete(scenario)
    for key, problem in _problems(scenario):
        raise ConfigurationError(f"{key}: {problem}")
    return scenario


def scenario_toml(scenario: Scenario) -> str:
    """The scenario as TOML, nothing left to a default; reading it gives the same scenario."""
    return tomli_w.dumps(_without_none(msgspec.to_builtins(scenario, enc_hook=str)))


def run_id(scenario: Scenario) -> str:
    """Name, seed and a hash of the scenario: the name of the run that it is."""
    digest = hashlib.blake2b(scenario_toml(scenario).encode(), digest_size=4).hexdigest()
    return f"{scenario.name}-{scenario.seed}-{digest}"


def with_seed(scenario: Scenario, seed: int) -> Scenario:
    """The same scenario under another seed."""
    return msgspec.structs.replace(scenario, seed=seed)


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else f"{text[:300]}…"


def _quantity(kind: type, value: object) -> object:
    if kind is Duration:
        return Duration.parse(value)
    assert kind is Bandwidth
    return Bandwidth.parse(value)


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_without_none(item) for item in value]
    return value


def _with_key(message: str) -> str:
    """Turn msgspec's `… - at `$.group[0].name`` around: the key first."""
    problem, _, path = message.partition(" - at `$")
    problem = problem.replace("Object contains unknown field", "unknown key")
    problem = problem.replace("Object missing required field", "missing key")
    key = path.rstrip("`").lstrip(".")
    if problem.startswith("Invalid value") and key.endswith("kind"):
        union = Latency if key.startswith("network") else Fault
        problem += f" (kinds: {', '.join(str(kind.__struct_config__.tag) for kind in get_args(union))})"
    return f"{key}: {problem}" if key else problem


def _refuse_later_words(table: dict[str, Any]) -> None:
    for key in ("member", "site", "path", "sweep"):
        if key in table:
            raise ConfigurationError(f"{key}: this table belongs to a part that this version does not have")
    places = [("", table)]
    places += [(f"{kind}[{i}].", entry) for kind in ("group", "fault") for i, entry in _entries(table, kind)]
    for place, entry in places:
        for key, (words, reason) in _LATER.items():
            if (word := entry.get(key)) in words:
                raise ConfigurationError(f"{place}{key}: {word!r} is not available: {reason}")


def _entries(table: dict[str, Any], key: str) -> list[tuple[int, dict[str, Any]]]:
    entries = table.get(key)
    return (
        [(i, entry) for i, entry in enumerate(entries) if isinstance(entry, dict)] if isinstance(entries, list) else []
    )


def _complete(scenario: Scenario) -> Scenario:
    replace = msgspec.structs.replace
    for i, group in enumerate(scenario.group):
        if isinstance(group.members, int) and not 1 <= group.members <= MEMBERS_MAX:
            raise ConfigurationError(f"group[{i}].members: must be between 1 and {MEMBERS_MAX}")
    groups = tuple(replace(group, members=members_of(group)) for group in scenario.group)
    members = {group.name: members_of(group) for group in groups}
    workloads = tuple(
        replace(
            workload,
            name=workload.name or f"w{number}",
            senders=members.get(workload.group, ()) if workload.senders == "all" else workload.senders,
        )
        for number, workload in enumerate(scenario.workload, start=1)
    )
    return replace(scenario, group=groups, workload=workloads)


def _problems(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Every (key, what is wrong with it) beyond types; the first is reported."""
    if not _SCENARIO_NAME.fullmatch(scenario.name):
        yield (
            "name",
            f"{scenario.name!r} must be letters, digits, '.', '_' or '-', at most 100, for files bear it",
        )
    if not 0 <= scenario.seed < 2**63:
        yield "seed", "must be a non-negative 64-bit number"
    if not scenario.duration:
        yield "duration", "must be above zero"
    if scenario.quiet <= scenario.options.time_silence:
        yield "quiet", "must be longer than options.time_silence: members may stay silent that long before they answer"
    yield from _option_problems(scenario.options)
    yield from _group_problems(scenario.group)
    yield from _network_problems(scenario.network)
    for i, workload in enumerate(scenario.workload):
        for key, problem in _workload_problems(scenario, workload):
            yield f"workload[{i}].{key}", problem
    if scenario.hosts.count is not None and scenario.hosts.count < 1:
        yield "hosts.count", "must be above zero"
    for i, fault in enumerate(scenario.fault):
        for key, problem in _fault_problems(scenario, fault):
            yield f"fault[{i}].{key}", problem


def _option_problems(options: Options) -> Iterator[tuple[str, str]]:
    if options.flow_control:
        yield "options.flow_control", "flow control is not available in this version; 0 turns it off"
    if options.literal:
        yield "options.literal", "no erratum can be followed as printed in this version"
    if not 1 <= options.frame_bytes <= PAYLOAD_BYTES_MAX:
        yield "options.frame_bytes", f"must be between 1 and {PAYLOAD_BYTES_MAX:,}"
    for key in ("window", "window_bytes"):
        if getattr(options, key) < 1:
            yield f"options.{key}", "must be above zero"


def _group_problems(groups: tuple[Group, ...]) -> Iterator[tuple[str, str]]:
    if not groups:
        yield "group", "a scenario needs a group"
    home: dict[str, str] = {}
    for i, group in enumerate(groups):
        members = members_of(group)
        if not _NAME.fullmatch(group.name) or group.name in [other.name for other in groups[:i]]:
            yield (
                f"group[{i}].name",
                f"{group.name!r} must be unique, short, and without spaces, '#', '/' and ':'",
            )
        if not 1 <= len(members) <= MEMBERS_MAX or len(set(members)) < len(members):
            yield f"group[{i}].members", f"must be 1 to {MEMBERS_MAX} different processes"
        for name in members:
            if not _NAME.fullmatch(name) or name == WORLD:
                yield f"group[{i}].members", f"{name!r} cannot name a process"
            if home.setdefault(name, group.name) != group.name:
                yield (
                    f"group[{i}].members",
                    f"{name} is in group {home[name]} too; groups may not overlap yet",
                )


def _network_problems(network: Network) -> Iterator[tuple[str, str]]:
    if network.transport == "datagram":
        yield "network.transport", "newtop needs the stream transport in this version"
    for key in ("loss", "duplicate", "reorder"):
        share = getattr(network, key)
        if not 0 <= share <= 1:
            yield f"network.{key}", f"{share} is not a share between 0 and 1"
        if share and network.transport == "stream":
            yield f"network.{key}", "goes with the datagram transport only; streams retransmit"
    if isinstance(network.latency, Uniform) and network.latency.low > network.latency.high:
        yield "network.latency.low", "is above network.latency.high"
    if isinstance(network.latency, Lognormal) and not 0 <= network.latency.sigma <= 10:
        yield "network.latency.sigma", "must be between 0 and 10"


def _workload_problems(scenario: Scenario, workload: Workload) -> Iterator[tuple[str, str]]:
    members = {group.name: members_of(group) for group in scenario.group}
    if workload.group not in members:
        yield "group", f"unknown group {workload.group!r} (groups: {', '.join(members)})"
        return
    for name in workload.senders:
        if name not in members[workload.group]:
            yield "senders", f"unknown process {name!r} in group {workload.group}"
    if not workload.senders or len(set(workload.senders)) < len(workload.senders):
        yield "senders", "must be different processes, at least one"
    if [other.name for other in scenario.workload].count(workload.name) > 1:
        yield "name", f"{workload.name!r} names two workloads"
    if not 0 <= workload.messages <= MESSAGES_MAX:
        yield "messages", f"must be between 0 and {MESSAGES_MAX:,}"
    if not 0 <= workload.payload <= PAYLOAD_BYTES_MAX:
        yield "payload", f"must be between 0 and {PAYLOAD_BYTES_MAX} bytes"
    if not 0 <= workload.jitter <= 1:
        yield "jitter", f"{workload.jitter} is not a share between 0 and 1"


def _fault_problems(scenario: Scenario, fault: Fault) -> Iterator[tuple[str, str]]:
    if isinstance(fault, Heal):
        return
    for key in ("process", "from", "to"):
        name = getattr(fault, key.replace("from", "from_"), None)
        if name is not None and name not in scenario.processes:
            yield key, f"unknown process {name!r} (processes: {some(scenario.processes)})"
    if fault.until is not None and fault.until <= fault.at:
        yield "until", "must be later than at"
    match fault:
        case Pause(until=None):
            yield "until", "a pause for ever is a crash to the others; it needs group membership, which is not here yet"
        case Delay() | Loss():
            yield from _link_fault_problems(scenario, fault)
        case Slow():
            if not 0 < fault.factor <= 1e6:
                yield "factor", "must be above 0 and at most a million"
            if not scenario.hosts.service:
                yield "kind", "slow changes nothing while hosts.service is 0"
        case Skew() if not 0 < fault.rate <= 1000:
            yield "rate", "must be above 0 and at most 1000"


def _link_fault_problems(scenario: Scenario, fault: Delay | Loss) -> Iterator[tuple[str, str]]:
    if (fault.from_ is None) != (fault.to is None) or (fault.from_ and fault.process):
        yield "from", "goes with to, and without process"
    if isinstance(fault, Loss) and not 0 <= fault.rate <= 1:
        yield "rate", f"{fault.rate} is not a share between 0 and 1"
    if isinstance(fault, Loss) and scenario.network.transport == "stream":
        yield "kind", "loss goes with the datagram transport only; streams retransmit"
