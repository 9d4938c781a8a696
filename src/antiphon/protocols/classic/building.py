"""Builds the cores of a classic scenario, and tells what drivers must know about its runs."""

import random

from antiphon.core.contract import Core
from antiphon.protocols.classic.as_printed import printed
from antiphon.protocols.classic.options import options_of, round_of
from antiphon.protocols.classic.process import ClassicProcess
from antiphon.protocols.classic.settings import ClassicGroupPlan, ClassicSettings, Service
from antiphon.protocols.contract import Build, Facts
from antiphon.scenario.model import Group, Scenario, members_of
from antiphon.scenario.placement import first_views, groups_of, service_told
from antiphon.types import ProcessId


def build(scenario: Scenario, _: random.Random) -> Build:
    """The function that makes the core of a process."""
    options, views = options_of(scenario), first_views(scenario)
    rules = printed(options.literal)
    settings = ClassicSettings(
        datagrams=scenario.network.transport == "datagram",
        retry_ns=options.suspect_after,
        round_ns=round_of(options),
    )

    def core(process: ProcessId) -> Core:
        plans = {}
        for group in groups_of(scenario, process):
            service: Service = group.service  # type: ignore[assignment]  # of this family, validated
            view = views[group.name]
            plans[view.group] = ClassicGroupPlan(view, service, delivers=process in view.members)
        return ClassicProcess(process, plans, settings, rules)

    return core


def told(scenario: Scenario, group: Group, process: ProcessId) -> dict[str, object]:
    """What a `start` row tells about a group."""
    return {"service": service_told(scenario, group, process), "members": sorted(members_of(group))}


def facts(scenario: Scenario) -> Facts:
    """What drivers must know about its runs."""
    suspect_after = int(options_of(scenario).suspect_after)
    return Facts(told_after_ns=suspect_after, broken_after_ns=suspect_after // 2)
