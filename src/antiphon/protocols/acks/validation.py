"""What the acks family asks of a scenario beyond what every family asks."""

from antiphon.protocols.acks.options import options_of
from antiphon.scenario.model import Crash, Join, Leave, Scenario
from antiphon.scenario.refusals import Problems, no_links, no_requests, source_problems, told_soon


def problems(scenario: Scenario) -> Problems:
    """Every (key, what is wrong with it)."""
    options = options_of(scenario)
    yield from told_soon(options.suspect_after)
    if scenario.network.transport != "stream":
        yield "network.transport", "messages travel on streams here; loss, duplicate and reorder befall acknowledgments"
    for name in ("send_every", "ack_every"):
        if not getattr(options, name):
            yield f"options.{name}", "must be above zero"
    if scenario.quiet <= 2 * (options.send_every + options.ack_every):
        yield "quiet", "must be longer than twice options.send_every and options.ack_every together"
    for i, member in enumerate(scenario.member):
        if member.sources is not None:
            yield from ((f"member[{i}].sources", problem) for problem in source_problems(scenario, i))
    if options.stability == "all":
        yield from _static_problems(scenario)
    yield from no_links(scenario)
    yield from no_requests(scenario)


def _static_problems(scenario: Scenario) -> Problems:
    """Theorem 2 of Berket98 speaks of nodes that all send and receive, and of a group that stays."""
    if options_of(scenario).acks == "explicit":
        yield "options.stability", "explicit acknowledgments tell the sender alone"
    if any(member.role != "both" or member.sources is not None for member in scenario.member):
        yield "options.stability", "needs members that all send to all"
    if any(isinstance(fault, Crash | Join | Leave) for fault in scenario.fault):
        yield "options.stability", "needs a group that nobody joins or leaves"
