"""From a scenario to the parts of each process for drivers: its core, its recorder, its `start` row, its groups."""

import random

import msgspec

from antiphon.protocols.contract import Build, Facts
from antiphon.protocols.registry import family_of
from antiphon.scenario.model import Scenario
from antiphon.scenario.placement import groups_of, joined_later
from antiphon.trace.recorder import Recorder, compact_json
from antiphon.types import GroupId, ProcessId


def core_builder(scenario: Scenario, chance: random.Random) -> Build:
    """A function that builds the cores of this scenario; it draws from `chance` in the order of the calls."""
    return family_of(scenario).build(scenario, chance)


def facts_of(scenario: Scenario) -> Facts:
    """What drivers must know about the runs of this scenario."""
    return family_of(scenario).facts(scenario)


def listened_to(scenario: Scenario, process: ProcessId) -> list[GroupId]:
    """The groups whose multicasts reach a process from the start."""
    outside = joined_later(scenario, process)
    return [GroupId(group.name) for group in groups_of(scenario, process) if group.name not in outside]


def outside_of(scenario: Scenario, process: ProcessId) -> frozenset[GroupId]:
    """If processes come and go: the groups that a process is not in when it starts."""
    abilities = family_of(scenario).abilities
    return joined_later(scenario, process) if abilities.formation or abilities.recovery else frozenset()


def recorder_of(scenario: Scenario, process: ProcessId) -> Recorder:
    """The history of a process, empty."""
    family, facts = family_of(scenario), facts_of(scenario)
    services = {
        GroupId(group.name): str(family.told(scenario, group, process)["service"])
        for group in groups_of(scenario, process)
    }
    return Recorder(process, services, rides=facts.rides, signed=facts.signed, counted=facts.counted)


def start_detail(scenario: Scenario, process: ProcessId) -> str:
    """The contents of the `start` row of a process: protocol, options, its groups."""
    family = family_of(scenario)
    options = msgspec.to_builtins(scenario.options, enc_hook=str)
    groups = {group.name: family.told(scenario, group, process) for group in groups_of(scenario, process)}
    return compact_json({"protocol": family.name, "options": options, "groups": groups})
