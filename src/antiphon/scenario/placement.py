"""Which processes are in which groups when a run starts."""

from collections.abc import Mapping

from antiphon.scenario.model import Group, Scenario, absent_at_first, members_of, role_of
from antiphon.types import GroupId, ProcessId, View, first_view, split_process_id


def groups_of(scenario: Scenario, process: ProcessId) -> list[Group]:
    """The groups that name the process."""
    name, _ = split_process_id(process)
    return [group for group in scenario.group if name in members_of(group)]


def joined_later(scenario: Scenario, process: ProcessId) -> frozenset[GroupId]:
    """Those of its groups that a process is not in when it starts; later incarnations start in none."""
    _, incarnation = split_process_id(process)
    return frozenset(
        GroupId(group.name)
        for group in groups_of(scenario, process)
        if incarnation or process in absent_at_first(scenario, group.name)
    )


def present_in(scenario: Scenario, group: Group) -> list[str]:
    """The members of a group at the start."""
    absent = absent_at_first(scenario, group.name)
    return [
        name
        for name in members_of(group)
        if name not in absent and role_of(scenario, group.name, name).role != "sender"
    ]


def first_views(scenario: Scenario) -> Mapping[str, View]:
    """The configured view of each group, one object for all its members.

    A process that only sends, or joins later, is not in it. A group that is formed later has no such view.
    """
    return {
        group.name: first_view(GroupId(group.name), frozenset(map(ProcessId, present_in(scenario, group))))
        for group in scenario.group
        if not group.formed
    }


def service_told(scenario: Scenario, group: Group, process: ProcessId) -> str:
    """The service of a process in a group: "sending" if it only sends, because nothing is delivered to it."""
    return "sending" if role_of(scenario, group.name, process).role == "sender" else group.service
