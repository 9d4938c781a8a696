"""What the acks family requires of a scenario beyond the rules for all families."""

from antiphon.protocols.acks.options import options_of
from antiphon.scenario.model import Crash, Join, Leave, Scenario
from antiphon.scenario.refusals import Problems, no_links, no_requests, source_problems, told_soon


def problems(scenario: Scenario) -> Problems:
    """All problems, as (key, message)."""
    options = options_of(scenario)
    yield from told_soon(options.suspect_after)
    if scenario.network.transport != "stream":
        yield (
            "network.transport",
            "must be stream: only acknowledgments are datagrams, which loss, duplicate and reorder affect",
        )
    for name in ("send_every", "ack_every"):
        if not getattr(options, name):
            yield f"options.{name}", "must be above zero"
    if scenario.quiet <= 2 * (options.send_every + options.ack_every):
        yield "quiet", "must be longer than twice the sum of options.send_every and options.ack_every"
    for i, member in enumerate(scenario.member):
        if member.sources is not None:
            yield from ((f"member[{i}].sources", problem) for problem in source_problems(scenario, i))
    if options.stability == "all":
        yield from _static_problems(scenario)
    yield from no_links(scenario)
    yield from no_requests(scenario)


def _static_problems(scenario: Scenario) -> Problems:
    """Theorem 2 of Berket98 assumes that all nodes send and receive, and that the group does not change."""
    if options_of(scenario).acks == "explicit":
        yield "options.stability", "explicit acknowledgments reach only the sender"
    if any(member.role != "both" or member.sources is not None for member in scenario.member):
        yield "options.stability", "needs members that all send to all"
    if any(isinstance(fault, Crash | Join | Leave) for fault in scenario.fault):
        yield "options.stability", "needs a group without joins and leaves"
