"""What the classic family asks of a scenario beyond what every family asks."""

from antiphon.protocols.classic.options import options_of
from antiphon.scenario.model import Join, Leave, Loss, Scenario
from antiphon.scenario.refusals import Problems, kind, no_links, told_soon


def problems(scenario: Scenario) -> Problems:
    """Every (key, what is wrong with it)."""
    yield from told_soon(options_of(scenario).suspect_after)
    if scenario.network.loss:
        yield "network.loss", "the notes' algorithms ask for links that lose nothing"
    for i, fault in enumerate(scenario.fault):
        if isinstance(fault, Loss | Join | Leave):
            why = "links that lose nothing" if isinstance(fault, Loss) else "groups that only crashes change"
            yield f"fault[{i}].kind", f"{kind(fault)!r} is not available with classic: its algorithms ask for {why}"
    for i, member in enumerate(scenario.member):
        if member.role == "receiver" or member.sources is not None:
            yield f"member[{i}]", "in a classic group everybody receives; a sender may stand outside it"
    for i, workload in enumerate(scenario.workload):
        if workload.answers != "none" and workload.replies:
            yield f"workload[{i}].replies", "goes with messages, not with requests that are answered"
    yield from no_links(scenario)
