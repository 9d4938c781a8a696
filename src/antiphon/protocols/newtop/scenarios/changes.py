"""The family `changes`: groups that are formed, joined, left and merged, and processes that come back, amid failures.

Faults, networks and workloads are those of the family `membership`. In addition processes join and leave, at random
times or together with another fault. In most runs members search for lost members, so healed partitions merge. In a
share of the runs some or all groups have a sequencer.
"""

import random
from collections.abc import Mapping
from itertools import chain
from typing import Final, Literal

from msgspec.structs import replace

from antiphon.protocols.newtop.options import NewtopOptions, options_of
from antiphon.protocols.newtop.scenarios.membership import draw_with_failures
from antiphon.protocols.newtop.settings import Service
from antiphon.protocols.newtop.validation import problems
from antiphon.scenario.changes import change_problems, complete_changes
from antiphon.scenario.draws import MS
from antiphon.scenario.model import (
    Crash,
    Fault,
    Form,
    Group,
    Join,
    Leave,
    Merge,
    Recover,
    Scenario,
    Workload,
    members_of,
)
from antiphon.scenario.units import Duration

MERGED: Final = 0.7
"""Share of the runs in which members search for each other."""
RECOVERED: Final = 0.6
"""Share of crashed processes that come back."""
FORMED: Final = 0.3
"""Share of the runs in which one more group is formed."""
_SERVICES: Final[Mapping[Service, int]] = {"total": 80, "total-safe": 20}
SEQUENCED: Final = 0.4
"""Share of the runs in which groups have a sequencer."""


def draw_changes(chance: random.Random) -> Scenario:
    """One run of the family; the scenario's name tells the shape."""
    scenario = bearable(draw_symmetric_changes(chance))
    return with_sequencers(chance, scenario) if chance.random() < SEQUENCED else scenario


def draw_symmetric_changes(
    chance: random.Random, family: str = "changes", services: Mapping[Service, int] = _SERVICES
) -> Scenario:
    """One in which members number their messages themselves; `services`: with their weights."""
    scenario = draw_with_failures(chance, family, services)
    suspect_after = int(scenario.options.suspect_after)
    merge_every = chance.choice([2, 3, 5]) * suspect_after if chance.random() < MERGED else 0
    phase = max((int(fault.at) for fault in scenario.fault), default=3 * suspect_after)
    scenario = replace(
        scenario,
        duration=Duration(80_000 * MS),
        options=replace(scenario.options, merge_every=Duration(merge_every), compression=False),
        group=tuple(replace(group, state_bytes=_state_bytes(chance, options_of(scenario))) for group in scenario.group),
    )
    if chance.random() < FORMED:
        scenario = _with_formed_group(chance, scenario, phase)
    faults = [*scenario.fault, *_changes(chance, scenario, phase)]
    return possible(replace(scenario, fault=tuple(faults)))


def with_sequencers(chance: random.Random, scenario: Scenario) -> Scenario:
    """The same, without options that a sequencer excludes (docs/spec/newtop.md 11.3 rule 8)."""
    modes: list[Literal["symmetric", "asymmetric"]] = [
        chance.choice(["symmetric", "asymmetric", "asymmetric"]) for _ in scenario.group
    ]
    modes[chance.randrange(len(modes))] = "asymmetric"
    return replace(
        scenario,
        name=f"{scenario.name}-sequenced",
        options=replace(
            scenario.options,
            view_change="cut",
            flow_control=chance.choice([0, 3, 3]),
            window=max(2, scenario.options.window),
        ),
        group=tuple(
            replace(group, mode=mode, service="total", numbering="separate")
            for group, mode in zip(scenario.group, modes, strict=True)
        ),
    )


def bearable(scenario: Scenario) -> Scenario:
    """Hosts that are fast enough: a quarter of their time is enough for all signs of life.

    With a sequencer members send them always. On slower hosts members rightly suspect each other and split forever.
    """
    frames = 4 * sum(len(members_of(group)) ** 2 for group in scenario.group)  # during the suspicion time
    hosts = scenario.hosts.count or len(scenario.processes)
    most = Duration(scenario.options.suspect_after * hosts // (4 * frames))
    return replace(scenario, hosts=replace(scenario.hosts, service=min(scenario.hosts.service, most)))


def _state_bytes(chance: random.Random, options: NewtopOptions) -> int:
    """Sometimes many frames, more than the window holds; limited so that a run does not get too many rows."""
    return chance.choice([32, 32, 1_000, min(100_000, 20 * options.frame_bytes)])


def _with_formed_group(chance: random.Random, scenario: Scenario, phase: int) -> Scenario:
    """A group of some existing processes, which may be in other groups."""
    count = chance.randint(2, min(4, len(scenario.processes)))
    members = tuple(chance.sample(scenario.processes, count))
    first = scenario.group[0]
    group = Group(name="formed", members=members, service=first.service, formed=True)
    at = Duration(chance.randint(0, phase))
    late = Workload(
        name="formed",
        group="formed",
        senders=members,
        messages=chance.choice([1, 2]),
        interval=Duration(phase + chance.randint(1, 4) * scenario.options.suspect_after),
        payload=8,
    )
    return replace(
        scenario,
        group=(*(replace(each, numbering="separate") for each in scenario.group), group),
        workload=(*scenario.workload, late),
        fault=(*scenario.fault, Form(at=at, process=members[0], group="formed")),
    )


def _changes(chance: random.Random, scenario: Scenario, phase: int) -> list[Fault]:
    """Random joins, leaves and recoveries; impossible ones are removed later."""
    suspect_after = int(scenario.options.suspect_after)
    crashes = [fault for fault in scenario.fault if isinstance(fault, Crash)]
    moments = [int(fault.at) for fault in scenario.fault] or [phase // 2]
    changes: list[Fault] = []
    for crash in crashes:
        if chance.random() < RECOVERED:
            at = crash.at + chance.choice([1, 20, suspect_after // MS, 3 * suspect_after // MS]) * MS
            changes.append(Recover(at=Duration(at), process=crash.process))
    companies = [group for group in scenario.group if len(members_of(group)) > 1]
    for _ in range(chance.choice([1, 1, 2, 3, 4]) if companies else 0):
        group = chance.choice(companies)
        process = chance.choice(members_of(group))
        near = chance.choice(moments) + chance.randint(-30, 30) * MS
        at = Duration(max(0, near if chance.random() < 0.5 else chance.randint(0, phase)))
        kind = chance.choice(["join", "join", "leave", "leave again", "merge"])
        if kind == "join":
            changes.append(Join(at=at, process=process, group=group.name))
        elif kind == "merge":
            changes.append(Merge(at=at, process=process, group=group.name))
        else:
            changes.append(Leave(at=at, process=process, group=group.name))
            if kind == "leave again":
                back = at + chance.choice([1, 50, 2 * suspect_after // MS]) * MS
                changes.append(Join(at=Duration(back), process=process, group=group.name))
    return changes


def possible(scenario: Scenario) -> Scenario:
    """The scenario without impossible changes, and with a member in every group from the start."""
    while (problem := _first_problem(complete_changes(scenario))) is not None:
        table, place = problem[0].partition("[")[0], int(problem[0].partition("[")[2].partition("]")[0])
        if table == "fault":
            scenario = _without(scenario, place)
        elif (group := scenario.group[place]).formed:
            scenario = _without_group(scenario, group.name)
        else:
            joins = [
                i for i, fault in enumerate(scenario.fault) if isinstance(fault, Join) and fault.group == group.name
            ]
            scenario = _without(scenario, joins[0])
    return scenario


def _first_problem(scenario: Scenario) -> tuple[str, str] | None:
    return next(chain(change_problems(scenario), problems(scenario)), None)


def _without(scenario: Scenario, place: int) -> Scenario:
    return replace(scenario, fault=(*scenario.fault[:place], *scenario.fault[place + 1 :]))


def _without_group(scenario: Scenario, name: str) -> Scenario:
    return replace(
        scenario,
        group=tuple(group for group in scenario.group if group.name != name),
        workload=tuple(workload for workload in scenario.workload if workload.group != name),
        fault=tuple(fault for fault in scenario.fault if getattr(fault, "group", None) != name),
    )
