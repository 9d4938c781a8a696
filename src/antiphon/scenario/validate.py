"""What a scenario may say beyond its types: every limit, and one sentence for each mistake, with its key."""

import re
from collections.abc import Iterator
from typing import Final

from antiphon.errors import some
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.scenario.families import family_problems
from antiphon.scenario.model import (
    Cut,
    Delay,
    Fault,
    Group,
    Heal,
    Lognormal,
    Loss,
    Moment,
    Options,
    Partition,
    Pause,
    Scenario,
    Skew,
    Slow,
    Suspect,
    Uniform,
    Workload,
    accusers,
    members_of,
    membership,
)
from antiphon.scenario.topology import topology_problems
from antiphon.types import WORLD

PAYLOAD_BYTES_MAX: Final = 16 * 1024 * 1024
MEMBERS_MAX: Final = 10_000
MESSAGES_MAX: Final = 10_000_000
WINDOW_MIN: Final = {1: 3, 2: 2, 3: 2}
"""By algorithm of flow control, the least window with which it can send at all (flow-control invariant I7)."""
_SCENARIO_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_REPAIR_NS: Final = NewtopSettings().repair_ns
_ROUND_TRIP_NS: Final = 20_000_000
"""2δ: a question and its answer (docs/spec/newtop.md 12)."""
_QUIET_SUSPICIONS: Final = 8
"""So many times `suspect_after` may pass, in a bad case, from the last fault to the view without those who failed."""
_SKEW_NS_MAX: Final = 24 * 3_600_000_000_000
_NAME: Final = re.compile(r"[^\s#@/:]{1,60}")


def problems(scenario: Scenario) -> Iterator[tuple[str, str]]:
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
    yield from _membership_problems(scenario)
    yield from _group_problems(scenario)
    yield from _network_problems(scenario)
    yield from topology_problems(scenario)
    for i, workload in enumerate(scenario.workload):
        for key, problem in _workload_problems(scenario, workload):
            yield f"workload[{i}].{key}", problem
    if scenario.hosts.count is not None and scenario.hosts.count < 1:
        yield "hosts.count", "must be above zero"
    for i, fault in enumerate(scenario.fault):
        for key, problem in _fault_problems(scenario, fault):
            yield f"fault[{i}].{key}", problem
    yield from family_problems(scenario)


def _option_problems(options: Options) -> Iterator[tuple[str, str]]:
    if options.flow_control not in (0, *WINDOW_MIN):
        yield "options.flow_control", "is 0 (off), or algorithm 1, 2 or 3"
    if not 1 <= options.frame_bytes <= PAYLOAD_BYTES_MAX:
        yield "options.frame_bytes", f"must be between 1 and {PAYLOAD_BYTES_MAX:,}"
    if options.window < (least := WINDOW_MIN.get(options.flow_control, 1)):
        yield "options.window", f"must be at least {least}: with less, algorithm {options.flow_control} never sends"
    if options.window_bytes < 1:
        yield "options.window_bytes", "must be above zero"
    if options.flow_control and options.window_bytes < options.frame_bytes:
        yield "options.window_bytes", "must hold a frame: at least options.frame_bytes"


def _membership_problems(scenario: Scenario) -> Iterator[tuple[str, str]]:
    options = scenario.options
    if scenario.protocol == "newtop" and not options.suspect_after:
        return
    if options.suspect_after < 4 * _REPAIR_NS:
        yield "options.suspect_after", "must be at least 80ms: four tries to repair a loss must fit in it"
    if scenario.protocol != "newtop":
        return
    if options.suspect_after <= options.time_silence + _ROUND_TRIP_NS:
        yield (
            "options.suspect_after",
            "must be more than options.time_silence and 20ms: members may stay silent that long before they answer",
        )
    if scenario.fault and scenario.quiet < options.idle_probe + _QUIET_SUSPICIONS * options.suspect_after:
        least = f"options.idle_probe and {_QUIET_SUSPICIONS} times options.suspect_after together"
        yield "quiet", f"must be at least {least}: that long it may take to agree on who has failed"


def _group_problems(scenario: Scenario) -> Iterator[tuple[str, str]]:
    groups = scenario.group
    if not groups:
        yield "group", "a scenario needs a group"
    for i, group in enumerate(groups):
        members = members_of(group)
        if not _NAME.fullmatch(group.name) or group.name in [other.name for other in groups[:i]]:
            yield (
                f"group[{i}].name",
                f"{group.name!r} must be unique, short, and without spaces, '#', '@', '/' and ':'",
            )
        if not 1 <= len(members) <= MEMBERS_MAX or len(set(members)) < len(members):
            yield f"group[{i}].members", f"must be 1 to {MEMBERS_MAX} different processes"
        for name in members:
            if not _NAME.fullmatch(name) or name == WORLD:
                yield f"group[{i}].members", f"{name!r} cannot name a process"
        if scenario.protocol == "newtop":
            yield from _overlap_problems(i, group, groups[:i])


_ONE_ORDER: Final = frozenset({"total", "total-safe"})
"""Services that a process may have side by side: one order, and only what a message waits for differs."""


def _overlap_problems(i: int, group: Group, earlier: tuple[Group, ...]) -> Iterator[tuple[str, str]]:
    """Groups that share a process are ordered together, so what they promise must go together."""
    for other in earlier:
        shared = sorted({*members_of(group)} & {*members_of(other)})
        if shared and group.service != other.service and not {group.service, other.service} <= _ONE_ORDER:
            yield f"group[{i}].service", f"{shared[0]} is in group {other.name} too, which gets {other.service}"
        if shared and "block" in (group.numbering, other.numbering):
            yield (
                f"group[{i}].members",
                f'{shared[0]} is in group {other.name} too; numbering = "block" goes with members in one group only',
            )


def _network_problems(scenario: Scenario) -> Iterator[tuple[str, str]]:
    network = scenario.network
    for key in ("loss", "duplicate", "reorder"):
        share = getattr(network, key)
        if not 0 <= share <= 1:
            yield f"network.{key}", f"{share} is not a share between 0 and 1"
        if share and network.transport == "stream" and scenario.protocol != "acks":
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
    if not isinstance(fault, Moment) and fault.until is not None and fault.until <= fault.at:
        yield "until", "must be later than at"
    match fault:
        case Suspect():
            yield from _suspect_problems(scenario, fault)
        case Pause(until=None) if not membership(scenario):
            yield "until", "a pause for ever is a crash to the others; it needs newtop with options.suspect_after"
        case Partition():
            yield from _partition_problems(scenario, fault)
        case Cut(from_=a, to=b) if a == b:
            yield "to", "is the process that it comes from; a link has two ends"
        case Delay() | Loss():
            yield from _link_fault_problems(scenario, fault)
        case Slow():
            yield from _slow_problems(scenario, fault)
        case Skew():
            yield from _skew_problems(fault)


def _partition_problems(scenario: Scenario, fault: Partition) -> Iterator[tuple[str, str]]:
    named = [name for side in fault.sides for name in side]
    if len(fault.sides) < 2:
        yield "sides", "there must be two at least"
    if not all(fault.sides):
        yield "sides", "must not be empty: name a process on each"
    for name in named:
        if name not in scenario.processes:
            yield "sides", f"unknown process {name!r} (processes: {some(scenario.processes)})"
        if named.count(name) > 1:
            yield "sides", f"{name} stands on two sides, or twice on one"


def _suspect_problems(scenario: Scenario, fault: Suspect) -> Iterator[tuple[str, str]]:
    by = accusers(fault)
    if not by or len({*by}) < len(by):
        yield "by", "must be different processes, at least one"
    for name in by:
        if name not in scenario.processes:
            yield "by", f"unknown process {name!r} (processes: {some(scenario.processes)})"
        elif name == fault.process:
            yield "by", f"{name} cannot suspect itself"
        elif not any({name, fault.process} <= {*members_of(group)} for group in scenario.group):
            yield "by", f"{name} and {fault.process} share no group, so it changes nothing"


def _link_fault_problems(scenario: Scenario, fault: Delay | Loss) -> Iterator[tuple[str, str]]:
    if (fault.from_ is None) != (fault.to is None) or (fault.from_ and fault.process):
        yield "from", "goes with to, and without process"
    if isinstance(fault, Loss) and not 0 <= fault.rate <= 1:
        yield "rate", f"{fault.rate} is not a share between 0 and 1"
    if isinstance(fault, Loss) and scenario.network.transport == "stream" and scenario.protocol != "acks":
        yield "kind", "loss goes with the datagram transport only; streams retransmit"


def _slow_problems(scenario: Scenario, fault: Slow) -> Iterator[tuple[str, str]]:
    if not 0 < fault.factor <= 1e6:
        yield "factor", "must be above 0 and at most a million"
    if not scenario.hosts.service:
        yield "kind", "slow changes nothing while hosts.service is 0"


def _skew_problems(fault: Skew) -> Iterator[tuple[str, str]]:
    if not 0 < fault.rate <= 1000:
        yield "rate", "must be above 0 and at most 1000"
    if fault.offset > _SKEW_NS_MAX:
        yield "offset", "must be at most 24h"
