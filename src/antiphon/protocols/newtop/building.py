"""From a Newtop scenario to the cores of its processes, and what drivers must know about its runs."""

import random

from antiphon.core.contract import Core
from antiphon.protocols.contract import Build, Facts, Labels
from antiphon.protocols.newtop.as_printed import printed
from antiphon.protocols.newtop.options import (
    ONE_ORDER,
    asymmetric,
    changes,
    form_within,
    membership,
    options_of,
    settling,
    uniting,
)
from antiphon.protocols.newtop.process import NewtopProcess
from antiphon.protocols.newtop.settings import NewtopSettings, Service
from antiphon.scenario.model import Group, Scenario, members_of
from antiphon.scenario.placement import first_views, groups_of, joined_later, present_in, service_told
from antiphon.types import GroupId, ProcessId


def build(scenario: Scenario, _: random.Random) -> Build:
    """A function that builds the core of a process."""
    options, views = options_of(scenario), first_views(scenario)
    rules = printed(options.literal)

    def core(process: ProcessId) -> Core:
        groups, outside = groups_of(scenario, process), joined_later(scenario, process)
        own = [views[group.name] for group in groups if group.name not in outside]
        return NewtopProcess(process, {view.group: view for view in own}, _settings(scenario, groups), rules)

    return core


def _settings(scenario: Scenario, groups: list[Group]) -> NewtopSettings:
    options = options_of(scenario)
    suspect_after = int(options.suspect_after)
    services = {group.service for group in groups}
    service: Service = "total-safe" if "total-safe" in services else groups[0].service  # type: ignore[assignment]
    return NewtopSettings(
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
        compares_histories=True,  # the state of a simulated application follows from messages alone
        primary=options.primary or None,
        entitled=True,
        tracing=scenario.trace == "full",
    )


def told(scenario: Scenario, group: Group, process: ProcessId) -> dict[str, object]:
    """The fields of a `start` row about a group; with its members, if the process is in it from the start."""
    entry: dict[str, object] = {"service": service_told(scenario, group, process), "numbering": group.numbering}
    if group.mode == "asymmetric":
        entry["mode"] = group.mode
    if group.name not in joined_later(scenario, process):
        entry["members"] = sorted(present_in(scenario, group))
    return entry


def facts(scenario: Scenario) -> Facts:
    """What drivers must know about its runs."""
    options, agreed = options_of(scenario), membership(scenario)
    probe = int(options.idle_probe or options.suspect_after)
    return Facts(
        perpetual=agreed and (bool(options.idle_probe) or changes(scenario) or asymmetric(scenario)),
        agreed=agreed,
        signed=agreed,
        counted=options.excluded_count is True,
        changing=changes(scenario),
        merges=bool(options.merge_every),
        unordered=frozenset(group.name for group in scenario.group if group.service not in ONE_ORDER),
        waiting=_waiting(scenario),
        broken_after_ns=int(options.suspect_after) // 2,
        recheck_ns=probe * 5 // 13 if agreed else 0,
        settling_ns=int(settling(options)),
        uniting_ns=int(uniting(scenario)),
    )


def _waiting(scenario: Scenario) -> tuple[frozenset[ProcessId], ...]:
    """With flow control, the members of a group wait for its slowest one.

    With views, one process may block all that are connected: a stalled process, and those that wait for it, are alive
    and stay in views.
    """
    if membership(scenario):
        return (frozenset(map(ProcessId, scenario.processes)),)
    if not options_of(scenario).flow_control:
        return ()
    return tuple(frozenset(map(ProcessId, members_of(group))) for group in scenario.group)


def labels(scenario: Scenario) -> Labels:
    """The kind of a run, for the statistics of campaigns."""
    options = options_of(scenario)
    return Labels(
        flow_control=options.flow_control, view_change=options.view_change if membership(scenario) else "none"
    )
