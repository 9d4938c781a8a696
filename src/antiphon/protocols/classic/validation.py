"""What the classic family requires of a scenario beyond the rules for all families."""

from msgspec import UNSET

from antiphon.protocols.classic.options import options_of, round_of
from antiphon.scenario.model import Join, Leave, Loss, Scenario
from antiphon.scenario.refusals import Problems, kind, no_links, request_problems, told_soon


def problems(scenario: Scenario) -> Problems:
    """All problems, as (key, message)."""
    options = options_of(scenario)
    yield from told_soon(options.suspect_after)
    if options.round is not UNSET and not any(group.service == "synchronous" for group in scenario.group):
        yield "options.round", "has no effect: no group has service synchronous"
    elif round_of(options) <= 0:
        yield "options.round", "must be more than 0s"
    if scenario.network.loss:
        yield "network.loss", "must be 0: the classic algorithms need links that lose nothing"
    for i, fault in enumerate(scenario.fault):
        if isinstance(fault, Loss | Join | Leave):
            why = "links that lose nothing" if isinstance(fault, Loss) else "groups that only crashes change"
            yield f"fault[{i}].kind", f"{kind(fault)!r} is not available with classic: its algorithms need {why}"
    for i, member in enumerate(scenario.member):
        if member.role == "receiver" or member.sources is not None:
            yield f"member[{i}]", "all members of a classic group receive; only a sender may be outside"
    yield from request_problems(scenario)
    yield from no_links(scenario)
