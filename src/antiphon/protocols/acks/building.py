"""Builds the cores of an acks scenario, and tells what drivers must know about its runs."""

import random

from antiphon.core.contract import Core
from antiphon.protocols.acks.as_printed import printed
from antiphon.protocols.acks.options import options_of
from antiphon.protocols.acks.process import AcksProcess
from antiphon.protocols.acks.settings import AcksGroupPlan, AcksSettings
from antiphon.protocols.contract import Build, Facts, Labels
from antiphon.scenario.model import Group, Scenario, absent_at_first, members_of, role_of
from antiphon.scenario.placement import groups_of, service_told
from antiphon.types import GroupId, ProcessId


def build(scenario: Scenario, chance: random.Random) -> Build:
    """The function that makes the core of a process; the time of its first message is random."""
    options = options_of(scenario)
    rules = printed(options.literal)
    plans = {GroupId(group.name): _plan(scenario, group) for group in scenario.group}

    def core(process: ProcessId) -> Core:
        settings = AcksSettings(
            acks=options.acks,
            clock=options.clock,
            send_every_ns=options.send_every,
            ack_every_ns=options.ack_every,
            first_send_ns=chance.randrange(options.send_every),
            first_ack_ns=chance.randrange(options.ack_every),
            stability=options.stability,
            tracing=scenario.trace == "full",
        )
        own = {GroupId(group.name): plans[GroupId(group.name)] for group in groups_of(scenario, process)}
        return AcksProcess(process, own, settings, rules)

    return core


def _plan(scenario: Scenario, group: Group) -> AcksGroupPlan:
    members = {ProcessId(name): role_of(scenario, group.name, name) for name in members_of(group)}
    absent = absent_at_first(scenario, group.name)
    return AcksGroupPlan(
        roles={process: member.role for process, member in members.items()},
        present=frozenset(process for process in members if process not in absent),
        sources={
            process: frozenset(map(ProcessId, member.sources))
            for process, member in members.items()
            if member.sources is not None
        },
    )


def told(scenario: Scenario, group: Group, process: ProcessId) -> dict[str, object]:
    """What a `start` row tells about a group: also role and sources."""
    member = role_of(scenario, group.name, process)
    entry: dict[str, object] = {
        "service": service_told(scenario, group, process),
        "members": sorted(members_of(group)),
        "role": member.role,
    }
    return entry if member.sources is None else {**entry, "sources": member.sources}


def facts(scenario: Scenario) -> Facts:
    """What drivers must know about its runs."""
    options = options_of(scenario)
    suspect_after = int(options.suspect_after)
    return Facts(
        perpetual=True,
        rides=options.acks == "transitive",
        told_after_ns=suspect_after,
        broken_after_ns=suspect_after // 2,
    )


def labels(scenario: Scenario) -> Labels:
    """The labels by which campaigns count its runs."""
    return Labels(service=options_of(scenario).acks)
