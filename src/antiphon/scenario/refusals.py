"""Checks of scenarios that several families share: what they refuse, with the reason."""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from antiphon.scenario.model import (
    Cut,
    Fault,
    Form,
    Gone,
    Group,
    Join,
    Merge,
    Options,
    Partition,
    Recover,
    Scenario,
    Suspect,
    members_of,
    role_of,
)

Problems = Iterator[tuple[str, str]]
"""Problems, as (key, message)."""

_SUSPECT_AFTER_NS_MIN: Final = 80_000_000


def told_soon(suspect_after: int) -> Problems:
    """Problems with the time after which a loss is reported or detected."""
    if suspect_after < _SUSPECT_AFTER_NS_MIN:
        yield "options.suspect_after", "must be at least 80ms, time for four attempts to repair a loss"


def with_notices(scenario: Scenario, default: Options) -> Scenario:
    """The scenario with the default time for reporting losses, if suspicions were turned off for another family."""
    if scenario.options.suspect_after:
        return scenario
    return replace(scenario, options=replace(scenario.options, suspect_after=default.suspect_after))


def no_links(scenario: Scenario) -> Problems:
    """Faults that need members with a failure detector of their own."""
    for i, fault in enumerate(scenario.fault):
        if isinstance(fault, Partition | Cut | Suspect | Gone):
            why = "its processes are informed of crashes and never suspect wrongly"
            yield f"fault[{i}].kind", f"{kind(fault)!r} is not available with {scenario.protocol}: {why}"
    yield from no_formations(scenario)


def no_formations(scenario: Scenario, *, recovers: bool = False) -> Problems:
    """Faults and keys for groups that are formed at run time. `recovers`: a crashed process may recover."""
    for i, fault in enumerate(scenario.fault):
        if isinstance(fault, Form | Merge) or (isinstance(fault, Recover) and not recovers):
            why = "its groups exist from the start" + ("" if recovers else ", and a crashed process never recovers")
            yield f"fault[{i}].kind", f"{kind(fault)!r} is not available with {scenario.protocol}: {why}"
        if isinstance(fault, Join) and fault.via is not None:
            yield f"fault[{i}].via", f"has no effect: with {scenario.protocol} a joiner asks no member"
    for i, group in enumerate(scenario.group):
        if group.formed or group.state_bytes != Group(name="", members=()).state_bytes:
            key = "formed" if group.formed else "state_bytes"
            yield (
                f"group[{i}].{key}",
                f"is for groups that are formed during a run, which {scenario.protocol} does not have",
            )


def source_problems(scenario: Scenario, i: int) -> Iterator[str]:
    """Problems with the sources of a member."""
    member = scenario.member[i]
    if member.role == "sender":
        yield "a sender receives from nobody"
    if len({*(member.sources or ())}) < len(member.sources or ()):
        yield "must be different processes"
    group = next(group for group in scenario.group if group.name == member.group)
    for name in member.sources or ():
        known = name in members_of(group) and name != member.process
        if not known or role_of(scenario, member.group, name).role == "receiver":
            yield f"{name!r} is not another sender of group {member.group}"


def no_requests(scenario: Scenario) -> Problems:
    """Problems with requests to a group, for families without them."""
    for i, workload in enumerate(scenario.workload):
        if workload.answers != "none":
            yield f"workload[{i}].answers", "requests to a group belong to the protocols classic and newtop"


def request_problems(scenario: Scenario) -> Problems:
    """Problems with requests to a group, for families that have them."""
    for i, workload in enumerate(scenario.workload):
        if workload.answers != "none" and workload.replies:
            yield f"workload[{i}].replies", "is for messages, not for requests with answers"


def kind(fault: Fault) -> str:
    """The kind of a fault, as written in the file."""
    return str(fault.__struct_config__.tag)
