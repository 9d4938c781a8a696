"""Builds the cores of an InterGroup scenario, and tells what drivers must know about its runs."""

import random

from antiphon.core.contract import Core
from antiphon.protocols.contract import Build, Facts
from antiphon.protocols.intergroup.as_printed import printed
from antiphon.protocols.intergroup.options import InterGroupOptions, options_of
from antiphon.protocols.intergroup.process import InterGroupProcess
from antiphon.protocols.intergroup.sending.rate import RateSettings
from antiphon.protocols.intergroup.settings import DISTANCE_MIN, Distance, InterGroupPlan, InterGroupSettings
from antiphon.scenario.model import (
    Fixed,
    Group,
    Promote,
    Scenario,
    absent_at_first,
    role_of,
    senders_of,
    service_of,
)
from antiphon.scenario.placement import groups_of, joined_later
from antiphon.scenario.topology import distances_from
from antiphon.types import GroupId, ProcessId, View, first_view, split_process_id


def build(scenario: Scenario, chance: random.Random) -> Build:
    """The function that makes the core of a process; each core has its own stream of random numbers."""
    options = options_of(scenario)
    rules = printed(options.literal)
    views = {group.name: _first_view(scenario, group) for group in scenario.group}

    def core(process: ProcessId) -> Core:
        plans = {}
        name, outside = split_process_id(process)[0], joined_later(scenario, process)
        for group in groups_of(scenario, process):
            view, sources = views[group.name], role_of(scenario, group.name, name).sources
            plans[view.group] = InterGroupPlan(
                view,
                service_of(scenario, group, name),  # type: ignore[arg-type]  # of this family, validated
                None if sources is None else tuple(map(ProcessId, sources)),
                present=view.group not in outside,
                sends=name in senders_of(scenario, group),
            )
        settings = _settings(scenario, options, process)
        return InterGroupProcess(process, plans, settings, random.Random(chance.random()).random, rules)

    return core


def _first_view(scenario: Scenario, group: Group) -> View:
    """The senders at the start."""
    absent = absent_at_first(scenario, group.name)
    return first_view(
        GroupId(group.name), frozenset(ProcessId(name) for name in senders_of(scenario, group) if name not in absent)
    )


def _settings(scenario: Scenario, options: InterGroupOptions, process: ProcessId) -> InterGroupSettings:
    return InterGroupSettings(
        keep_alive_ns=_keep_alive(options),
        report_every_ns=options.report_every,
        suspect_after_ns=options.suspect_after,
        window=options.window,
        rate=RateSettings(None if options.rate is None else options.rate / 8),
        profile=options.repair_timers,
        wait_us=options.wait // 1000,
        idle_ns=options.idle_after or None,
        distance=_distances(scenario, process),
        tracing=scenario.trace == "full",
    )


def _keep_alive(options: InterGroupOptions) -> tuple[int, int]:
    every = options.keep_alive
    return (every.value, every.value) if isinstance(every, Fixed) else (every.low, every.high)


def _distances(scenario: Scenario, process: ProcessId) -> Distance:
    """The distances of the scenario."""
    own = split_process_id(process)[0]
    known = {name: max(far, DISTANCE_MIN) for name, far in distances_from(scenario, own).items()}
    return lambda other: known.get(split_process_id(other)[0], DISTANCE_MIN)


def told(scenario: Scenario, group: Group, process: ProcessId) -> dict[str, object]:
    """What a `start` row tells about a group: its first view, its sources if it chose some, and its first role."""
    name, view = split_process_id(process)[0], _first_view(scenario, group)
    sources = role_of(scenario, group.name, name).sources
    entry: dict[str, object] = {"service": service_of(scenario, group, name)}
    if process in view.members and view.group not in joined_later(scenario, process):
        entry["members"] = list(view.members)
    if name not in senders_of(scenario, group):
        entry["role"] = "receiver"
    return entry if sources is None else {**entry, "sources": sources}


def facts(scenario: Scenario) -> Facts:
    """What drivers must know about its runs."""
    return Facts(
        perpetual=True,
        agreed=True,
        rides=True,
        waiting=tuple(_possible_senders(scenario, group) for group in scenario.group),
        broken_after_ns=int(options_of(scenario).suspect_after) // 2,
        resting_ns=int(options_of(scenario).suspect_after),
    )


def _possible_senders(scenario: Scenario, group: Group) -> frozenset[ProcessId]:
    """The processes that are a sender of the group at some time."""
    sending = {name for workload in scenario.workload if workload.group == group.name for name in workload.senders}
    sending |= {fault.process for fault in scenario.fault if isinstance(fault, Promote) and fault.group == group.name}
    return frozenset(map(ProcessId, sending.union(senders_of(scenario, group))))
