"""What several families ask of a scenario alike: what they refuse, with the reason."""

from collections.abc import Iterator

from antiphon.scenario.model import (
    Cut,
    Fault,
    Form,
    Group,
    Join,
    Merge,
    Partition,
    Recover,
    Scenario,
    Suspect,
    members_of,
    role_of,
)

Problems = Iterator[tuple[str, str]]
"""Every (key, what is wrong with it)."""


def no_links(scenario: Scenario) -> Problems:
    """Faults of which only members that find out for themselves recover."""
    for i, fault in enumerate(scenario.fault):
        if isinstance(fault, Partition | Cut | Suspect):
            why = "who has failed is told there, never wrongly"
            yield f"fault[{i}].kind", f"{kind(fault)!r} is not available with {scenario.protocol}: {why}"
    yield from no_formations(scenario)


def no_formations(scenario: Scenario) -> Problems:
    """What only groups have that are formed while others work."""
    for i, fault in enumerate(scenario.fault):
        if isinstance(fault, Form | Merge | Recover):
            why = "its groups are there from the start, and whoever crashes is gone for good"
            yield f"fault[{i}].kind", f"{kind(fault)!r} is not available with {scenario.protocol}: {why}"
        if isinstance(fault, Join) and fault.via is not None:
            yield f"fault[{i}].via", f"changes nothing: with {scenario.protocol} whoever joins asks nobody"
    for i, group in enumerate(scenario.group):
        if group.formed or group.state_bytes != Group(name="", members=()).state_bytes:
            key = "formed" if group.formed else "state_bytes"
            yield f"group[{i}].{key}", "belongs to groups that are formed while others work, which newtop alone has"


def source_problems(scenario: Scenario, i: int) -> Iterator[str]:
    """Of the sources of a member."""
    member = scenario.member[i]
    if member.role == "sender":
        yield "a sender receives from nobody"
    if len({*(member.sources or ())}) < len(member.sources or ()):
        yield "must be different processes"
    group = next(group for group in scenario.group if group.name == member.group)
    for name in member.sources or ():
        known = name in members_of(group) and name != member.process
        if not known or role_of(scenario, member.group, name).role == "receiver":
            yield f"{name!r} is no other sender of group {member.group}"


def no_requests(scenario: Scenario) -> Problems:
    """Requests to a group, and their answers."""
    for i, workload in enumerate(scenario.workload):
        if workload.answers != "none":
            yield f"workload[{i}].answers", "requests to a group belong to the classic protocols"


def kind(fault: Fault) -> str:
    """As the file calls it."""
    return str(fault.__struct_config__.tag)
