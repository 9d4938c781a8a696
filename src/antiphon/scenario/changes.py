"""Which process is in which group at which time, as the faults of a scenario plan it.

The protocol decides whether a formation or a merge succeeds; the plan assumes that every request does.
"""

from collections.abc import Iterator

import msgspec

from antiphon.scenario.model import (
    Change,
    Crash,
    Demote,
    Fault,
    Form,
    Group,
    Join,
    Leave,
    Merge,
    Promote,
    Recover,
    Scenario,
    absent_at_first,
    members_of,
)

_replace = msgspec.structs.replace
Moves = Crash | Change | Promote | Demote
"""The faults that need the process to be somewhere at the time."""


class Attendance:
    """The live processes and their groups at one time of the plan."""

    def __init__(self, scenario: Scenario) -> None:
        self.members = {group.name: members_of(group) for group in scenario.group}
        self.absent = {name: {*absent_at_first(scenario, name)} for name in self.members}
        self.crashed: set[str] = set()
        self.unformed = {group.name for group in scenario.group if group.formed}

    def groups(self, process: str) -> tuple[str, ...]:
        """The groups that a process is in, or was in when it crashed."""
        return tuple(
            name for name, members in self.members.items() if process in members and process not in self.absent[name]
        )

    def take(self, fault: Moves) -> None:
        """Apply a change as if it succeeded at once."""
        match fault:
            case Crash():
                self.crashed.add(fault.process)
            case Recover():
                self.crashed.discard(fault.process)
                joined = self.groups(fault.process) if fault.joins is None else fault.joins
                for name, members in self.members.items():
                    if fault.process in members:
                        self.absent[name] = (self.absent[name] | {fault.process}) - _one(fault.process, name in joined)
            case Join():
                self.absent[fault.group].discard(fault.process)
            case Leave():
                self.absent[fault.group].add(fault.process)
            case Form():
                self.unformed.discard(fault.group)
                self.absent[fault.group] -= {*(fault.members or self.members[fault.group])}


def _one(process: str, there: bool) -> set[str]:
    return {process} if there else set()


def in_time(scenario: Scenario) -> Iterator[tuple[int, Moves]]:
    """The faults that change attendance or roles, each with its place in the file, in order of time."""
    for place, fault in sorted(enumerate(scenario.fault), key=lambda entry: entry[1].at):
        if isinstance(fault, Moves):
            yield place, fault


def complete_changes(scenario: Scenario, *, asks: bool = True) -> Scenario:
    """The scenario with all defaults of its changes filled in, where possible.

    `asks`: a process that joins or merges asks certain others, and groups can be formed.
    """
    attendance, faults = Attendance(scenario), [*scenario.fault]
    groups = {group.name: group for group in scenario.group}
    for place, fault in in_time(scenario):
        if isinstance(fault, Join | Leave | Form | Merge) and fault.group not in groups:
            continue
        if isinstance(fault, Promote | Demote) or not (asks or isinstance(fault, Recover)):
            attendance.take(fault)
            continue
        faults[place] = complete = _completed(fault, groups, attendance)
        attendance.take(complete)
    return _replace(scenario, fault=tuple(faults))


def _completed(fault: Crash | Change, groups: dict[str, Group], attendance: Attendance) -> Crash | Change:
    match fault:
        case Join(via=None):
            return _replace(fault, via=_others(fault, groups))
        case Merge(with_=None):
            return _replace(fault, with_=_others(fault, groups))
        case Form(members=None):
            return _replace(fault, members=members_of(groups[fault.group]))
        case Recover(joins=None):
            return _replace(fault, joins=attendance.groups(fault.process))
    return fault


def _others(fault: Join | Merge, groups: dict[str, Group]) -> tuple[str, ...]:
    return tuple(name for name in members_of(groups[fault.group]) if name != fault.process)


def change_problems(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """The first crash, join, leave or other change that is impossible at its time."""
    attendance = Attendance(scenario)
    for place, fault in in_time(scenario):
        for key, problem in _problems(fault, attendance):
            yield f"fault[{place}].{key}", problem
            return
        attendance.take(fault)
    for i, group in enumerate(scenario.group):
        if group.name in attendance.unformed:
            yield f"group[{i}].formed", "the group is never formed: a fault of kind form is missing"


def _problems(fault: Moves, attendance: Attendance) -> Iterator[tuple[str, str]]:
    if isinstance(fault, Recover):
        yield from _recover_problems(fault, attendance)
        return
    if fault.process in attendance.crashed:
        yield "process", f"{fault.process} has crashed before"
    if isinstance(fault, Crash):
        return
    members = attendance.members.get(fault.group, ())
    if fault.process not in members:
        yield "process", f"unknown process {fault.process!r} in group {fault.group!r}"
        return
    if isinstance(fault, Form):
        yield from _form_problems(fault, attendance)
        return
    there = fault.process not in attendance.absent[fault.group]
    if there is isinstance(fault, Join):
        yield "process", f"{fault.process} {'is' if there else 'is not'} in group {fault.group} at that time"
    if isinstance(fault, Join | Merge):
        key, named = ("via", fault.via) if isinstance(fault, Join) else ("with", fault.with_)
        yield from ((key, problem) for problem in _named_problems(fault, named, members))


def _recover_problems(fault: Recover, attendance: Attendance) -> Iterator[tuple[str, str]]:
    if fault.process not in attendance.crashed:
        yield "process", f"{fault.process} has not crashed at that time"
    for name in fault.joins or ():
        if fault.process not in attendance.members.get(name, ()):
            yield "joins", f"unknown process {fault.process!r} in group {name!r}"
        elif attendance.members[name] == (fault.process,):
            yield "joins", f"group {name} never has another member that it could ask"
    if len({*(fault.joins or ())}) < len(fault.joins or ()):
        yield "joins", "must be different groups"


def _form_problems(fault: Form, attendance: Attendance) -> Iterator[tuple[str, str]]:
    members = attendance.members[fault.group]
    if fault.group not in attendance.unformed:
        yield "group", f"{fault.group} already exists: only a group with formed = true can be formed, and only once"
    for name in fault.members or ():
        if name not in members:
            yield "members", f"unknown process {name!r} in group {fault.group}"
        if name in attendance.crashed:
            yield "members", f"{name} has crashed before"
    if fault.members is not None and (fault.process not in fault.members or len({*fault.members}) < len(fault.members)):
        yield "members", f"must be different processes and include {fault.process}"


def _named_problems(fault: Join | Merge, named: tuple[str, ...] | None, members: tuple[str, ...]) -> Iterator[str]:
    if named is None:
        return
    if not named or len({*named}) < len(named):
        yield "must be different processes, at least one"
    for name in named:
        if name not in members:
            yield f"unknown process {name!r} in group {fault.group}"
        elif name == fault.process:
            yield f"{name} cannot ask itself"


def returns_at(faults: tuple[Fault, ...]) -> dict[str, int]:
    """By process, the time of its last recovery."""
    recoveries = [fault for fault in faults if isinstance(fault, Recover)]
    return {fault.process: int(fault.at) for fault in sorted(recoveries, key=lambda fault: fault.at)}


def possible_changes(scenario: Scenario) -> Scenario:
    """The scenario without the changes that are impossible at their time; for groups that exist from the start."""
    while (problem := next(change_problems(complete_changes(scenario, asks=False)), None)) is not None:
        place = int(problem[0].partition("[")[2].partition("]")[0])
        scenario = _replace(scenario, fault=(*scenario.fault[:place], *scenario.fault[place + 1 :]))
    return scenario
