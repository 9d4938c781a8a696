"""From a scenario to the cores of its processes: which family, with which settings, in which groups."""

import random
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from antiphon.core.contract import Core
from antiphon.protocols.acks.as_printed import printed as acks_rules
from antiphon.protocols.acks.process import AcksProcess
from antiphon.protocols.acks.settings import AcksGroupPlan, AcksSettings
from antiphon.protocols.classic.as_printed import printed as classic_rules
from antiphon.protocols.classic.process import ClassicProcess
from antiphon.protocols.classic.settings import ClassicGroupPlan, ClassicSettings
from antiphon.protocols.classic.settings import Service as ClassicService
from antiphon.protocols.intergroup.as_printed import printed as intergroup_rules
from antiphon.protocols.intergroup.process import InterGroupProcess
from antiphon.protocols.intergroup.rate import RateSettings
from antiphon.protocols.intergroup.settings import DISTANCE_MIN, Distance, InterGroupPlan, InterGroupSettings
from antiphon.protocols.newtop.as_printed import printed as newtop_rules
from antiphon.protocols.newtop.process import NewtopProcess
from antiphon.protocols.newtop.settings import NewtopSettings, Service
from antiphon.scenario.model import (
    OPTIONS_IN_FORCE,
    Fixed,
    Group,
    Options,
    Scenario,
    absent_at_first,
    asymmetric,
    changes,
    form_within,
    members_of,
    membership,
    role_of,
    senders_of,
    service_of,
)
from antiphon.scenario.topology import distances_from
from antiphon.trace.recorder import Recorder, compact_json
from antiphon.types import GroupId, ProcessId, View, first_view, split_process_id

Build = Callable[[ProcessId], Core]
"""Makes the core of one process."""


def core_builder(scenario: Scenario, chance: random.Random) -> Build:
    """What makes the cores of this scenario; `chance` is drawn from in the order in which they are asked for."""
    return _BUILDERS[scenario.protocol](scenario, chance)


def perpetual(scenario: Scenario) -> bool:
    """Whether its processes never fall silent, so that a run ends a quiet time after the last request and fault."""
    speaks_on = bool(scenario.options.idle_probe) or changes(scenario) or asymmetric(scenario)
    return scenario.protocol in ("acks", "intergroup") or (membership(scenario) and speaks_on)


def companies(scenario: Scenario) -> list[frozenset[ProcessId]]:
    """Who waits for whom: with flow control, the members of a group for its slowest one.

    With views, all who are connected: one that takes nothing, and those who wait for it, live and stay in them.
    """
    if membership(scenario):
        return [frozenset(map(ProcessId, scenario.processes))]
    if scenario.protocol == "intergroup":
        return [frozenset(map(ProcessId, senders_of(scenario, group))) for group in scenario.group]
    waiting = scenario.protocol == "newtop" and scenario.options.flow_control
    return [frozenset(map(ProcessId, members_of(group))) for group in scenario.group if waiting]


def told_of_losses(scenario: Scenario) -> bool:
    """Whether its processes learn from outside who has crashed."""
    return scenario.protocol in ("classic", "acks")


def listened_to(scenario: Scenario, process: ProcessId) -> list[GroupId]:
    """The groups whose multicasts reach a process from the start."""
    return [
        GroupId(group.name)
        for group in groups_of(scenario, process)
        if process not in absent_at_first(scenario, group.name)
    ]


def rides(scenario: Scenario) -> bool:
    """Whether messages carry acknowledgments, so that a trace must tell of each whom its sender counts (S5)."""
    return scenario.protocol == "intergroup" or (scenario.protocol == "acks" and scenario.options.acks == "transitive")


def groups_of(scenario: Scenario, process: ProcessId) -> list[Group]:
    """The groups that name the process."""
    name, _ = split_process_id(process)
    return [group for group in scenario.group if name in members_of(group)]


def outside_of(scenario: Scenario, process: ProcessId) -> frozenset[GroupId]:
    """Of these, where members agree on who is in them, those in which it is not when it starts."""
    _, incarnation = split_process_id(process)
    groups = groups_of(scenario, process) if scenario.protocol == "newtop" else ()
    return frozenset(
        GroupId(group.name) for group in groups if incarnation or process in absent_at_first(scenario, group.name)
    )


def _newtop(scenario: Scenario, _: random.Random) -> Build:
    rules, options = newtop_rules(scenario.options.literal), scenario.options
    views, suspect_after = _first_views(scenario), int(options.suspect_after)

    def build(process: ProcessId) -> Core:
        groups = groups_of(scenario, process)
        services = {group.service for group in groups}
        service: Service = "total-safe" if "total-safe" in services else groups[0].service  # type: ignore[assignment]
        settings = NewtopSettings(
            service=service,
            merely_total=frozenset(group.name for group in groups if group.service != service),
            silence_timeout_ns=options.time_silence,
            packing=options.packing,
            frame_bytes_max=options.frame_bytes,
            flow_control=options.flow_control,
            window=options.window,
            window_bytes=options.window_bytes,
            block_numbered=frozenset(GroupId(group.name) for group in groups if group.numbering == "block"),
            asymmetric=frozenset(GroupId(group.name) for group in groups if group.mode == "asymmetric"),
            compression=options.compression,
            datagrams=scenario.network.transport == "datagram",
            repair_max_ns=suspect_after // 4 or NewtopSettings().repair_max_ns,
            suspect_after_ns=suspect_after,
            idle_probe_ns=int(options.idle_probe) if suspect_after else 0,
            view_change=options.view_change,
            merge_every_ns=int(options.merge_every),
            form_within_ns=int(form_within(options)) or NewtopSettings().form_within_ns,
            tracing=scenario.trace == "full",
        )
        outside = outside_of(scenario, process)
        own = [views[group.name] for group in groups if group.name not in outside]
        return NewtopProcess(process, {view.group: view for view in own}, settings, rules)

    return build


def _classic(scenario: Scenario, _: random.Random) -> Build:
    rules, views = classic_rules(scenario.options.literal), _first_views(scenario)
    settings = ClassicSettings(
        datagrams=scenario.network.transport == "datagram", retry_ns=scenario.options.suspect_after
    )

    def build(process: ProcessId) -> Core:
        plans = {}
        for group in groups_of(scenario, process):
            service: ClassicService = group.service  # type: ignore[assignment]  # of this family, validated
            view = views[group.name]
            plans[view.group] = ClassicGroupPlan(view, service, delivers=process in view.members)
        return ClassicProcess(process, plans, settings, rules)

    return build


def _acks(scenario: Scenario, chance: random.Random) -> Build:
    rules, options = acks_rules(scenario.options.literal), scenario.options
    plans = {GroupId(group.name): _acks_plan(scenario, group) for group in scenario.group}

    def build(process: ProcessId) -> Core:
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

    return build


def _acks_plan(scenario: Scenario, group: Group) -> AcksGroupPlan:
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


def _intergroup(scenario: Scenario, chance: random.Random) -> Build:
    options, rules = scenario.options, intergroup_rules(scenario.options.literal)
    views = {
        group.name: first_view(GroupId(group.name), frozenset(map(ProcessId, senders_of(scenario, group))))
        for group in scenario.group
    }

    def build(process: ProcessId) -> Core:
        settings = InterGroupSettings(
            keep_alive_ns=_keep_alive(options),
            report_every_ns=options.ack_every,
            suspect_after_ns=options.suspect_after,
            window=options.window,
            rate=RateSettings(None if options.rate is None else options.rate / 8),
            profile=options.repair_timers,
            wait_us=options.wait // 1000,
            distance=_distances(scenario, process),
            tracing=scenario.trace == "full",
        )
        plans = {}
        for group in groups_of(scenario, process):
            view, sources = views[group.name], role_of(scenario, group.name, process).sources
            plans[view.group] = InterGroupPlan(
                view,
                service_of(scenario, group, process),  # type: ignore[arg-type]  # of this family, validated
                tuple(map(ProcessId, sources)) if sources is not None else view.members,
                present=process not in absent_at_first(scenario, group.name),
            )
        return InterGroupProcess(process, plans, settings, random.Random(chance.random()).random, rules)

    return build


def _keep_alive(options: Options) -> tuple[int, int]:
    every = options.keep_alive
    return (every.value, every.value) if isinstance(every, Fixed) else (every.low, every.high)


def _distances(scenario: Scenario, process: ProcessId) -> Distance:
    """The configured table."""
    known = {ProcessId(name): max(far, DISTANCE_MIN) for name, far in distances_from(scenario, process).items()}
    return lambda other: known.get(other, DISTANCE_MIN)


def _first_views(scenario: Scenario) -> Mapping[str, View]:
    """The configured view of each group, one object for all its members.

    A process that only sends is outside, as is one that joins later; a group that is formed later has none.
    """
    return {
        group.name: first_view(GroupId(group.name), frozenset(map(ProcessId, present_in(scenario, group))))
        for group in scenario.group
        if not group.formed
    }


def present_in(scenario: Scenario, group: Group) -> list[str]:
    """Those who are members of a group from the start."""
    absent = absent_at_first(scenario, group.name)
    return [
        name
        for name in members_of(group)
        if name not in absent and role_of(scenario, group.name, name).role != "sender"
    ]


_BUILDERS: Final[Mapping[str, Callable[[Scenario, random.Random], Build]]] = {
    "newtop": _newtop,
    "classic": _classic,
    "acks": _acks,
    "intergroup": _intergroup,
}


def recorder_of(scenario: Scenario, process: ProcessId) -> Recorder:
    """The history of a process, empty."""
    services = {GroupId(group.name): _service(scenario, group, process) for group in groups_of(scenario, process)}
    return Recorder(process, services, rides=rides(scenario), agreed=membership(scenario))


def start_detail(scenario: Scenario, process: ProcessId) -> str:
    """What the `start` row of a process tells: protocol, options in force, its groups."""
    options = msgspec.to_builtins(scenario.options, enc_hook=str)
    in_force = {name: value for name, value in options.items() if name in OPTIONS_IN_FORCE[scenario.protocol]}
    groups = {group.name: _told(scenario, group, process) for group in groups_of(scenario, process)}
    return compact_json({"protocol": scenario.protocol, "options": in_force, "groups": groups})


def _service(scenario: Scenario, group: Group, process: ProcessId) -> str:
    """What a process gets in a group; one that only sends there gets nothing delivered."""
    if scenario.protocol == "intergroup":
        return service_of(scenario, group, process)
    return "sending" if role_of(scenario, group.name, process).role == "sender" else group.service


def _told(scenario: Scenario, group: Group, process: ProcessId) -> dict[str, object]:
    """What a process goes by in a group; members, if it is there from the start."""
    told: dict[str, object] = {"service": _service(scenario, group, process)}
    if scenario.protocol == "intergroup":
        senders = senders_of(scenario, group)
        told |= {"members": sorted(senders)} if process in senders else {"role": "receiver"}
        sources = role_of(scenario, group.name, process).sources
        told |= {"sources": sources} if sources is not None else {}
    elif scenario.protocol == "newtop":
        told["numbering"] = group.numbering
        if group.mode == "asymmetric":
            told["mode"] = group.mode
        if group.name not in outside_of(scenario, process):
            told["members"] = sorted(present_in(scenario, group))
    else:
        told["members"] = sorted(members_of(group))
    if scenario.protocol == "acks":
        member = role_of(scenario, group.name, process)
        told |= {"role": member.role} | ({"sources": member.sources} if member.sources is not None else {})
    return told
