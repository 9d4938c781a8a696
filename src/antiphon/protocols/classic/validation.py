"""What the classic family requires of a scenario beyond the rules for all families."""

from antiphon.protocols.classic.options import options_of
from antiphon.scenario.model import Join, Leave, Loss, Scenario
from antiphon.scenario.refusals import Problems, kind, no_links, told_soon


def problems(scenario: Scenario) -> Problems:
    """All problems, as (key, message)."""
    yield from told_soon(options_of(scenario).suspect_after)
    if scenario.network.loss:
        yield "network.loss", "must be 0: the classic algorithms need links that lose nothing"
    for i, fault in enumerate(scenario.fault):
        if isinstance(fault, Loss | Join | Leave):
            why = "links that lose nothing" if isinstance(fault, Loss) else "groups that only crashes change"
            yield f"fault[{i}].kind", f"{kind(fault)!r} is not available with classic: its algorithms need {why}"
    for i, member in enumerate(scenario.member):
        if member.role == "receiver" or member.sources is not None:
            yield f"member[{i}]", "all members of a classic group receive; only a sender may be outside"
    for i, workload in enumerate(scenario.workload):
        if workload.answers != "none" and workload.replies:
            yield f"workload[{i}].replies", "is for messages, not for requests with answers"
    yield from no_links(scenario)
