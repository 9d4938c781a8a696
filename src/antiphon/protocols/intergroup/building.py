"""Builds the cores of an InterGroup scenario, and tells what drivers must know about its runs."""

import random

from antiphon.core.contract import Core
from antiphon.protocols.contract import Build, Facts
from antiphon.protocols.intergroup.as_printed import printed
from antiphon.protocols.intergroup.options import InterGroupOptions, options_of
from antiphon.protocols.intergroup.process import InterGroupProcess
from antiphon.protocols.intergroup.sending.rate import RateSettings
from antiphon.protocols.intergroup.settings import DISTANCE_MIN, Distance, InterGroupPlan, InterGroupSettings
from antiphon.scenario.model import Fixed, Group, Scenario, absent_at_first, role_of, senders_of, service_of
from antiphon.scenario.placement import groups_of
from antiphon.scenario.topology import distances_from
from antiphon.types import GroupId, ProcessId, first_view


def build(scenario: Scenario, chance: random.Random) -> Build:
    """The function that makes the core of a process; each core has its own stream of random numbers."""
    options = options_of(scenario)
    rules = printed(options.literal)
    views = {
        group.name: first_view(GroupId(group.name), frozenset(map(ProcessId, senders_of(scenario, group))))
        for group in scenario.group
    }

    def core(process: ProcessId) -> Core:
        plans = {}
        for group in groups_of(scenario, process):
            view, sources = views[group.name], role_of(scenario, group.name, process).sources
            plans[view.group] = InterGroupPlan(
                view,
                service_of(scenario, group, process),  # type: ignore[arg-type]  # of this family, validated
                tuple(map(ProcessId, sources)) if sources is not None else view.members,
                present=process not in absent_at_first(scenario, group.name),
            )
        settings = _settings(scenario, options, process)
        return InterGroupProcess(process, plans, settings, random.Random(chance.random()).random, rules)

    return core


def _settings(scenario: Scenario, options: InterGroupOptions, process: ProcessId) -> InterGroupSettings:
    return InterGroupSettings(
        keep_alive_ns=_keep_alive(options),
        report_every_ns=options.report_every,
        suspect_after_ns=options.suspect_after,
        window=options.window,
        rate=RateSettings(None if options.rate is None else options.rate / 8),
        profile=options.repair_timers,
        wait_us=options.wait // 1000,
        distance=_distances(scenario, process),
        tracing=scenario.trace == "full",
    )


def _keep_alive(options: InterGroupOptions) -> tuple[int, int]:
    every = options.keep_alive
    return (every.value, every.value) if isinstance(every, Fixed) else (every.low, every.high)


def _distances(scenario: Scenario, process: ProcessId) -> Distance:
    """The distances of the scenario."""
    known = {ProcessId(name): max(far, DISTANCE_MIN) for name, far in distances_from(scenario, process).items()}
    return lambda other: known.get(other, DISTANCE_MIN)


def told(scenario: Scenario, group: Group, process: ProcessId) -> dict[str, object]:
    """What a `start` row tells about a group: the sender group if the process is in it, otherwise its sources."""
    senders, sources = senders_of(scenario, group), role_of(scenario, group.name, process).sources
    entry: dict[str, object] = {"service": service_of(scenario, group, process)}
    entry |= {"members": sorted(senders)} if process in senders else {"role": "receiver"}
    return entry if sources is None else {**entry, "sources": sources}


def facts(scenario: Scenario) -> Facts:
    """What drivers must know about its runs."""
    return Facts(
        perpetual=True,
        rides=True,
        waiting=tuple(frozenset(map(ProcessId, senders_of(scenario, group))) for group in scenario.group),
        broken_after_ns=int(options_of(scenario).suspect_after) // 2,
    )
