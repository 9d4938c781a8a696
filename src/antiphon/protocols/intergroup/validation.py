"""What InterGroup requires of a scenario: a fixed sender group, datagrams, a service for each member."""

from typing import Final

from antiphon.protocols.intergroup.options import options_of
from antiphon.scenario.model import (
    Crash,
    Cut,
    Fixed,
    Gone,
    Join,
    Leave,
    Partition,
    Scenario,
    Suspect,
    Uniform,
    members_of,
    role_of,
    senders_of,
    service_of,
)
from antiphon.scenario.refusals import (
    Problems,
    kind,
    no_formations,
    no_requests,
    source_problems,
    told_soon,
)

_QUIET_SUSPICIONS: Final = 6
_WINDOW_MIN: Final = 2
SERVICES: Final = ("total", "fifo", "unreliable", "unreliable-fifo", "unreliable-total", "framed")
"""The strongest first, which is the default."""


def problems(scenario: Scenario) -> Problems:
    """All problems, as (key, message)."""
    if scenario.network.transport != "datagram":
        yield "network.transport", "must be datagram: InterGroup repairs losses itself"
    yield from _option_problems(scenario)
    yield from _choices(scenario)
    yield from _fault_problems(scenario)
    yield from no_formations(scenario)
    yield from no_requests(scenario)


def _option_problems(scenario: Scenario) -> Problems:
    options = options_of(scenario)
    yield from told_soon(options.suspect_after)
    if options.window < _WINDOW_MIN:
        yield "options.window", f"must be at least {_WINDOW_MIN}: with less, no member ever sends"
    longest = options.keep_alive.value if isinstance(options.keep_alive, Fixed) else options.keep_alive.high
    if not longest:
        yield "options.keep_alive", "must be above zero"
    if isinstance(options.keep_alive, Uniform) and options.keep_alive.low > options.keep_alive.high:
        yield "options.keep_alive.low", "is above options.keep_alive.high"
    if not options.report_every:
        yield "options.report_every", "must be above zero"
    if scenario.fault and scenario.quiet < _QUIET_SUSPICIONS * options.suspect_after:
        why = "a receiver may need that time to notice that it cannot follow"
        yield "quiet", f"must be at least {_QUIET_SUSPICIONS} times options.suspect_after: {why}"
    if options.suspect_after <= 2 * longest:
        yield "options.suspect_after", "must be more than twice options.keep_alive: one keep-alive may be lost"


def _choices(scenario: Scenario) -> Problems:
    for i, member in enumerate(scenario.member):
        if member.service and member.service not in SERVICES:
            yield f"member[{i}].service", f"intergroup offers {', '.join(SERVICES)}, not {member.service!r}"
        if member.sources is None:
            continue
        group = next(group for group in scenario.group if group.name == member.group)
        if member.role != "receiver" or service_of(scenario, group, member.process) != "fifo":
            yield f"member[{i}].sources", "are only for a receiver in source order (service fifo)"
        yield from ((f"member[{i}].sources", problem) for problem in source_problems(scenario, i))
    for i, group in enumerate(scenario.group):
        if members_of(group) and not senders_of(scenario, group):
            yield f"group[{i}].members", "at least one member must send"


def _fault_problems(scenario: Scenario) -> Problems:
    """The sender group does not change, so its members are there from the start and come back after each fault."""
    groups = {group.name: group for group in scenario.group}
    for i, fault in enumerate(scenario.fault):
        if isinstance(fault, Suspect | Gone):
            yield (
                f"fault[{i}].kind",
                f"{kind(fault)!r} is not available with intergroup: its sender groups do not change",
            )
        if isinstance(fault, Partition | Cut) and fault.until is None:
            yield f"fault[{i}].until", "is needed: sender groups do not change, so the process must be connected again"
        concerned = [fault.group] if isinstance(fault, Join | Leave) else [*groups] if isinstance(fault, Crash) else []
        for name in concerned:
            group = groups.get(name)
            if not isinstance(fault, Crash | Join | Leave) or group is None:
                continue
            sends = fault.process in members_of(group) and role_of(scenario, name, fault.process).role != "receiver"
            if sends:
                why = f"{fault.process} is in the sender group of {name}, which does not change"
                yield f"fault[{i}].kind", f"{kind(fault)!r} is for receivers: {why}"
