"""The family as antiphon knows it: options, what a scenario may say, cores, random scenarios."""

import random
from typing import Final, cast

from antiphon.core.contract import Core
from antiphon.protocols.contract import Build, Family, Problems, RandomScenarios, Sockets
from antiphon.scenario.draws import draw_fault, draw_hosts, draw_latency, draw_workload
from antiphon.scenario.model import (
    Change,
    Crash,
    Cut,
    Group,
    Network,
    Options,
    Partition,
    Scenario,
    Suspect,
    members_of,
)
from antiphon.scenario.placement import first_views, groups_of
from antiphon.scenario.refusals import kind, no_formations, no_requests
from antiphon.types import ProcessId, View
from fixed_sequencer.core import FixedSequencer
from fixed_sequencer.frames import WIRE

NAME: Final = "fixed-sequencer"


class FixedSequencerOptions(Options, frozen=True, kw_only=True):
    """The `[options]` table."""

    sequencer: str = ""
    """The member that numbers messages; default: the first member of each group."""


def _sequencer(scenario: Scenario, group: Group) -> ProcessId:
    options = cast("FixedSequencerOptions", scenario.options)
    return ProcessId(options.sequencer or members_of(group)[0])


def build(scenario: Scenario, _: random.Random) -> Build:
    """What makes the core of a process."""
    views = first_views(scenario)

    def core(process: ProcessId) -> Core:
        own: dict[ProcessId, list[View]] = {}
        for group in groups_of(scenario, process):
            own.setdefault(_sequencer(scenario, group), []).append(views[group.name])
        return FixedSequencer(process, own)

    return core


def told(scenario: Scenario, group: Group, _process: ProcessId) -> dict[str, object]:
    """What the `start` row of a process tells of a group."""
    sequencer = _sequencer(scenario, group)
    return {"service": group.service, "members": sorted(members_of(group)), "sequencer": sequencer}


def problems(scenario: Scenario) -> Problems:
    """Every (key, what is wrong with it)."""
    if scenario.network.transport != "stream":
        yield "network.transport", f"must be stream: {NAME} does not repair losses"
    if scenario.member:
        yield "member", "every member sends and receives"
    for group in scenario.group:
        if _sequencer(scenario, group) not in members_of(group):
            yield "options.sequencer", f"is not a member of group {group.name}"
    for i, fault in enumerate(scenario.fault):
        if isinstance(fault, Change | Crash | Cut | Partition | Suspect):
            yield f"fault[{i}].kind", f"{kind(fault)!r} is not available with {NAME}: its groups are static"
    yield from no_formations(scenario)
    yield from no_requests(scenario)


def draw(chance: random.Random) -> Scenario:
    """A group of two to six, under faults that end."""
    members = tuple(f"p{number}" for number in range(1, chance.randint(2, 6) + 1))
    hosts = draw_hosts(chance)
    workload = draw_workload(chance, "g", members, messages=chance.choice([1, 5, 20]), payload=32)
    return Scenario(
        name=NAME,
        protocol=NAME,
        options=FixedSequencerOptions(sequencer=chance.choice(members)),
        group=(Group(name="g", members=members),),
        network=Network(latency=draw_latency(chance)),
        workload=(workload,),
        hosts=hosts,
        fault=tuple(draw_fault(chance, members, hosts) for _ in range(chance.choice([0, 1, 2]))),
    )


FAMILY: Final = Family(
    name=NAME,
    services=("total",),
    options=FixedSequencerOptions,
    build=build,
    told=told,
    wire=WIRE,
    problems=problems,
    scenarios=(RandomScenarios(name=NAME, sentence="One static group in the order of its sequencer.", draw=draw),),
    sockets=Sockets(player="streams"),
)
