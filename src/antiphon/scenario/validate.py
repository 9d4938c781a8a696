"""Validation beyond types: all limits, and one sentence with its key for each mistake."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from antiphon.errors import abbreviated
from antiphon.protocols.registry import families, family_of
from antiphon.scenario.changes import change_problems
from antiphon.scenario.limits import MEMBERS_MAX, MESSAGES_MAX, PAYLOAD_BYTES_MAX
from antiphon.scenario.model import (
    Cut,
    Delay,
    Demote,
    Fault,
    Gone,
    Heal,
    Lognormal,
    Loss,
    Moment,
    Partition,
    Pause,
    Promote,
    Scenario,
    Skew,
    Slow,
    Suspect,
    Uniform,
    Workload,
    accusers,
    members_of,
    role_of,
)
from antiphon.scenario.topology import topology_problems
from antiphon.types import WORLD

_SCENARIO_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SKEW_NS_MAX: Final = 24 * 3_600_000_000_000
_NAME: Final = re.compile(r"[^\s#@/:]{1,60}")


def problems(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """All problems beyond types, as (key, message); the first one is reported."""
    if not _SCENARIO_NAME.fullmatch(scenario.name):
        yield (
            "name",
            f"{scenario.name!r} must be 1 to 100 letters, digits, '.', '_' or '-': file names contain it",
        )
    if not 0 <= scenario.seed < 2**63:
        yield "seed", "must be a non-negative 64-bit number"
    if not scenario.duration:
        yield "duration", "must be above zero"
    yield from _group_problems(scenario)
    yield from _network_problems(scenario)
    yield from topology_problems(scenario, sites=family_of(scenario).abilities.sites)
    for i, workload in enumerate(scenario.workload):
        for key, problem in _workload_problems(scenario, workload):
            yield f"workload[{i}].{key}", problem
    if scenario.hosts.count is not None and scenario.hosts.count < 1:
        yield "hosts.count", "must be above zero"
    for i, fault in enumerate(scenario.fault):
        for key, problem in _fault_problems(scenario, fault):
            yield f"fault[{i}].{key}", problem
    yield from _service_problems(scenario)
    yield from _errata_problems(scenario)
    yield from _member_problems(scenario)
    yield from change_problems(scenario)
    yield from family_of(scenario).problems(scenario)


def concerns(erratum: str, scenario: Scenario) -> bool:
    """True if the printed rule has an effect: the family has it, and the scenario uses what it is about."""
    errata = family_of(scenario).errata
    return erratum in errata.names and errata.concerns(erratum, scenario)


def _service_problems(scenario: Scenario) -> Iterator[tuple[str, str]]:
    family = family_of(scenario)
    for i, group in enumerate(scenario.group):
        if group.service not in family.services:
            offered = ", ".join(family.services)
            yield f"group[{i}].service", f"{family.name} offers {offered}, not {group.service!r}"
        if group.numbering == "block" and not family.abilities.numbering:
            yield f"group[{i}].numbering", f"is an option of flow control, which only {_having('numbering')} has"
        if group.mode == "asymmetric" and not family.abilities.sequencer:
            yield f"group[{i}].mode", f"only {_having('sequencer')} has a sequencer"


def _having(ability: str) -> str:
    """The names of the families that have an ability, for a message."""
    return " and ".join(name for name, family in families().items() if getattr(family.abilities, ability))


def _errata_problems(scenario: Scenario) -> Iterator[tuple[str, str]]:
    errata = family_of(scenario).errata
    for erratum in scenario.options.literal:
        if erratum not in errata.names:
            there_are = f"there are {', '.join(errata.names)}" if errata.names else "there are none"
            yield "options.literal", f"{erratum!r} is not an erratum with a printed form ({there_are})"
    for erratum in scenario.options.literal:
        if erratum in errata.names and not concerns(erratum, scenario):
            about = errata.about.get(erratum)
            why = f"it is about {about}" if about else "its rule applies to no group of this scenario"
            yield "options.literal", f"{erratum} has no effect here: {why}"


def _member_problems(scenario: Scenario) -> Iterator[tuple[str, str]]:
    members = {group.name: members_of(group) for group in scenario.group}
    problems = [*_entry_problems(scenario, members)]
    yield from problems
    if any(key.endswith("].group") for key, _ in problems):
        return  # what follows would only repeat it
    yield from _role_problems(scenario, members)


def _entry_problems(scenario: Scenario, members: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    seen = set()
    for i, member in enumerate(scenario.member):
        key = f"member[{i}]"
        if member.group not in members:
            yield f"{key}.group", f"unknown group {member.group!r} (groups: {', '.join(members)})"
            return
        if member.process not in members[member.group]:
            yield f"{key}.process", f"unknown process {member.process!r} in group {member.group}"
        if (member.group, member.process) in seen:
            yield key, f"{member.process} has two entries for group {member.group}"
        seen.add((member.group, member.process))
        if member.service and not family_of(scenario).abilities.own_services:
            yield (
                f"{key}.service",
                f"is the same for all members of a group; only {_having('own_services')} lets each member choose",
            )


def _role_problems(scenario: Scenario, members: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    for i, group in enumerate(scenario.group):
        roles = [role_of(scenario, group.name, name).role for name in members[group.name]]
        if roles and "both" not in roles and not {"sender", "receiver"} <= {*roles}:
            yield f"group[{i}].members", "at least one member must send and at least one must receive"
    for i, workload in enumerate(scenario.workload):
        for name in workload.senders:
            receives = workload.group in members and role_of(scenario, workload.group, name).role == "receiver"
            if receives and not family_of(scenario).abilities.roles:
                yield f"workload[{i}].senders", f"{name} is a receiver in group {workload.group}"
        if workload.replies and any(member.role != "both" for member in scenario.member):
            yield f"workload[{i}].replies", "needs groups in which every member sends and receives"


def _group_problems(scenario: Scenario) -> Iterator[tuple[str, str]]:
    groups = scenario.group
    if not groups:
        yield "group", "a scenario needs a group"
    for i, group in enumerate(groups):
        members = members_of(group)
        if not _NAME.fullmatch(group.name) or group.name in [other.name for other in groups[:i]]:
            yield (
                f"group[{i}].name",
                f"{group.name!r} must be unique, at most 60 characters, and without spaces, '#', '@', '/' and ':'",
            )
        if not 1 <= len(members) <= MEMBERS_MAX or len(set(members)) < len(members):
            yield f"group[{i}].members", f"must be 1 to {MEMBERS_MAX} different processes"
        for name in members:
            if not _NAME.fullmatch(name) or name == WORLD:
                yield f"group[{i}].members", f"{name!r} cannot be the name of a process"


def _network_problems(scenario: Scenario) -> Iterator[tuple[str, str]]:
    network = scenario.network
    for key in ("loss", "duplicate", "reorder"):
        share = getattr(network, key)
        if not 0 <= share <= 1:
            yield f"network.{key}", f"{share} is not a share between 0 and 1"
        if share and network.transport == "stream" and not family_of(scenario).abilities.lossy_streams:
            yield f"network.{key}", "needs the datagram transport; streams retransmit"
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
            yield key, f"unknown process {name!r} (processes: {abbreviated(scenario.processes)})"
    if not isinstance(fault, Moment) and fault.until is not None and fault.until <= fault.at:
        yield "until", "must be later than at"
    match fault:
        case Suspect() | Gone():
            yield from _suspect_problems(scenario, fault)
        case Pause() | Promote() | Demote():
            yield from _ability_problems(scenario, fault)
        case Partition():
            yield from _partition_problems(scenario, fault)
        case Cut(from_=a, to=b) if a == b:
            yield "to", "must be another process than from"
        case Delay() | Loss():
            yield from _link_fault_problems(scenario, fault)
        case Slow():
            yield from _slow_problems(scenario, fault)
        case Skew():
            yield from _skew_problems(fault)


def _ability_problems(scenario: Scenario, fault: Pause | Promote | Demote) -> Iterator[tuple[str, str]]:
    family = family_of(scenario)
    if isinstance(fault, Pause):
        if fault.until is None and not family.facts(scenario).agreed:
            able = "newtop with options.suspect_after and intergroup"
            yield "until", f"is needed: an endless pause looks like a crash, which only {able} handle"
    elif not family.abilities.roles:
        yield "kind", f"only {_having('roles')} has processes that change between sending and receiving"


def _partition_problems(scenario: Scenario, fault: Partition) -> Iterator[tuple[str, str]]:
    named = [name for side in fault.sides for name in side]
    if len(fault.sides) < 2:
        yield "sides", "must be at least two"
    if not all(fault.sides):
        yield "sides", "must not be empty: name at least one process for each side"
    for name in named:
        if name not in scenario.processes:
            yield "sides", f"unknown process {name!r} (processes: {abbreviated(scenario.processes)})"
        if named.count(name) > 1:
            yield "sides", f"{name} is named more than once"


def _suspect_problems(scenario: Scenario, fault: Suspect | Gone) -> Iterator[tuple[str, str]]:
    by = accusers(fault)
    if not by or len({*by}) < len(by):
        yield "by", "must be different processes, at least one"
    for name in by:
        if name not in scenario.processes:
            yield "by", f"unknown process {name!r} (processes: {abbreviated(scenario.processes)})"
        elif name == fault.process:
            yield "by", f"{name} cannot suspect itself"
        elif not any({name, fault.process} <= {*members_of(group)} for group in scenario.group):
            yield "by", f"{name} and {fault.process} share no group, so the fault has no effect"


def _link_fault_problems(scenario: Scenario, fault: Delay | Loss) -> Iterator[tuple[str, str]]:
    if (fault.from_ is None) != (fault.to is None) or (fault.from_ and fault.process):
        yield "from", "must be given together with to, and without process"
    if isinstance(fault, Loss) and not 0 <= fault.rate <= 1:
        yield "rate", f"{fault.rate} is not a share between 0 and 1"
    if (
        isinstance(fault, Loss)
        and scenario.network.transport == "stream"
        and not family_of(scenario).abilities.lossy_streams
    ):
        yield "kind", "loss needs the datagram transport; streams retransmit"


def _slow_problems(scenario: Scenario, fault: Slow) -> Iterator[tuple[str, str]]:
    if not 0 < fault.factor <= 1e6:
        yield "factor", "must be above 0 and at most a million"
    if not scenario.hosts.service:
        yield "kind", "slow has no effect while hosts.service is 0"


def _skew_problems(fault: Skew) -> Iterator[tuple[str, str]]:
    if not 0 < fault.rate <= 1000:
        yield "rate", "must be above 0 and at most 1000"
    if fault.offset > _SKEW_NS_MAX:
        yield "offset", "must be at most 24h"
