"""What InterGroup requires of a scenario: datagrams, a service for each member, a sender."""

from typing import Final

from antiphon.protocols.intergroup.options import options_of
from antiphon.scenario.model import (
    Fixed,
    Gone,
    Scenario,
    Uniform,
    members_of,
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
    yield from no_formations(scenario, recovers=True)
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
    for i, fault in enumerate(scenario.fault):
        if isinstance(fault, Gone):
            why = "its datagrams have no connection that could be refused"
            yield f"fault[{i}].kind", f"{kind(fault)!r} is not available with intergroup: {why}"
