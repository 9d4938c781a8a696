"""What each family of protocols asks of a scenario, beyond what holds for all: services, options, roles, faults."""

from collections.abc import Callable, Mapping
from typing import Final

from antiphon.protocols.acks import as_printed as acks_literal
from antiphon.protocols.classic import as_printed as classic_literal
from antiphon.protocols.intergroup import as_printed as intergroup_literal
from antiphon.protocols.newtop import as_printed as newtop_literal
from antiphon.scenario.changes import change_problems
from antiphon.scenario.intergroup import intergroup_problems
from antiphon.scenario.model import (
    OPTIONS_IN_FORCE,
    PROTOCOLS,
    STATE_BYTES_MIN,
    Change,
    Crash,
    Cut,
    Join,
    Leave,
    Loss,
    Options,
    Partition,
    Recover,
    Scenario,
    Suspect,
    absent_at_first,
    asymmetric,
    members_of,
    membership,
    role_of,
)
from antiphon.scenario.refusals import Problems, kind, no_links, no_requests, source_problems

_STATE_BYTES_MAX: Final = 16 * 1024 * 1024

ERRATA: Final[Mapping[str, tuple[str, ...]]] = {
    "newtop": newtop_literal.ERRATA,
    "classic": classic_literal.ERRATA,
    "acks": acks_literal.ERRATA,
    "intergroup": intergroup_literal.ERRATA,
}
"""By family, the errata whose printed rule can be followed."""


def concerns(erratum: str, scenario: Scenario) -> bool:
    """Whether the printed rule acts here: the family has it, and groups and options are what it is about."""
    options, services = scenario.options, frozenset(group.service for group in scenario.group)
    if erratum not in ERRATA[scenario.protocol]:
        return False
    if scenario.protocol == "newtop":
        return newtop_literal.concerns(
            erratum,
            services,
            options.flow_control,
            options.view_change,
            membership=membership(scenario),
            overlapping=any(
                sum(name in members_of(group) for group in scenario.group) > 1 for name in scenario.processes
            ),
            sequencer=asymmetric(scenario),
        )
    if scenario.protocol == "classic":
        return classic_literal.concerns(erratum, services)
    if scenario.protocol == "intergroup":
        return True
    return erratum not in _ABOUT or getattr(options, _ABOUT[erratum][0]) == _ABOUT[erratum][1]


_ABOUT: Final = {
    "T6": ("clock", "physical", "physical clocks"),
    "T9": ("clock", "logical", "logical clocks"),
    "T12": ("acks", "transitive", "transitive acknowledgments"),
}
"""The option without which a printed rule of acks has nothing to act on, its value, and both in words."""


def family_problems(scenario: Scenario) -> Problems:
    """Every (key, what is wrong with it) that concerns the protocol."""
    yield from _service_problems(scenario)
    yield from _idle_option_problems(scenario)
    yield from _literal_problems(scenario)
    yield from _member_problems(scenario)
    yield from change_problems(scenario)
    yield from _OWN[scenario.protocol](scenario)


def _service_problems(scenario: Scenario) -> Problems:
    services = PROTOCOLS[scenario.protocol]
    for i, group in enumerate(scenario.group):
        if group.service not in services:
            yield f"group[{i}].service", f"{scenario.protocol} offers {', '.join(services)}, not {group.service!r}"
        if group.numbering == "block" and scenario.protocol != "newtop":
            yield f"group[{i}].numbering", "belongs to flow control, which newtop alone has"
        if group.mode == "asymmetric" and scenario.protocol != "newtop":
            yield f"group[{i}].mode", "a sequencer is what newtop alone has"


def _idle_option_problems(scenario: Scenario) -> Problems:
    """Options that would change nothing: whoever sets them believes otherwise."""
    defaults = Options()
    for name in Options.__struct_fields__:
        acts = name in OPTIONS_IN_FORCE[scenario.protocol]
        if not acts and getattr(scenario.options, name) != getattr(defaults, name):
            yield f"options.{name}", f"changes nothing: {scenario.protocol} has no such option"


def _literal_problems(scenario: Scenario) -> Problems:
    known = ERRATA[scenario.protocol]
    for erratum in scenario.options.literal:
        if erratum not in known:
            yield "options.literal", f"{erratum!r} has no printed form to follow (there are {', '.join(known)})"
    for erratum in scenario.options.literal:
        if erratum in known and not concerns(erratum, scenario):
            why = f"it is about {_ABOUT[erratum][2]}" if erratum in _ABOUT else "no group has what its rule is about"
            yield "options.literal", f"{erratum} changes nothing here: {why}"


def _member_problems(scenario: Scenario) -> Problems:
    members = {group.name: members_of(group) for group in scenario.group}
    seen = set()
    for i, member in enumerate(scenario.member):
        key = f"member[{i}]"
        if member.group not in members:
            yield f"{key}.group", f"unknown group {member.group!r} (groups: {', '.join(members)})"
            return
        if member.process not in members[member.group]:
            yield f"{key}.process", f"unknown process {member.process!r} in group {member.group}"
        if (member.group, member.process) in seen:
            yield key, f"{member.process} is spoken of twice in group {member.group}"
        seen.add((member.group, member.process))
        if member.service and scenario.protocol != "intergroup":
            yield f"{key}.service", "is the same for all members of a group; with intergroup alone each may choose"
    for i, group in enumerate(scenario.group):
        roles = [role_of(scenario, group.name, name).role for name in members[group.name]]
        if roles and "both" not in roles and not {"sender", "receiver"} <= {*roles}:
            yield f"group[{i}].members", "somebody must send and somebody receive"
    for i, workload in enumerate(scenario.workload):
        for name in workload.senders:
            if workload.group in members and role_of(scenario, workload.group, name).role == "receiver":
                yield f"workload[{i}].senders", f"{name} is a receiver in group {workload.group}"
        if workload.replies and any(member.role != "both" for member in scenario.member):
            yield f"workload[{i}].replies", "goes with groups in which everybody sends and receives"


_BY_NUMBER: Final = frozenset({"total", "total-safe", "causal-slow"})
"""Services under which views change by numbers."""


def _newtop_problems(scenario: Scenario) -> Problems:
    options, services = scenario.options, frozenset(group.service for group in scenario.group)
    if options.compression and not {"causal-fast", "causal-vector"} & services:
        yield "options.compression", "goes with causal-fast and causal-vector only; others have nothing to compress"
    if scenario.member:
        yield "member", "every member of a newtop group sends and receives alike"
    if options.view_change != "cut" and "total-safe" in services:
        why = "only at a cut is it settled what the old view must still deliver"
        yield "options.view_change", f"{options.view_change!r} does not go with service total-safe; {why}"
    elif options.view_change != "cut" and services != {"total"}:
        why = "causal orders install a view at a cut or by a flush"
        yield "options.view_change", f"{options.view_change!r} goes with service total only; {why}"
    if options.view_change != "cut" and not options.suspect_after:
        yield "options.view_change", "changes nothing: with options.suspect_after = 0s views never change"
    for i, group in enumerate(scenario.group):
        if group.numbering == "block" and options.suspect_after and group.service not in _BY_NUMBER:
            why = f"under {group.service} a view changes by a flush, which no window may hold back"
            yield f"group[{i}].numbering", f'"block" needs options.suspect_after = "0s" here: {why}'
    yield from _formation_problems(scenario)
    yield from _asymmetric_problems(scenario)
    for i, fault in enumerate(scenario.fault):
        if isinstance(fault, Crash | Partition | Cut | Suspect) and not membership(scenario):
            why = "with options.suspect_after = 0s nobody would ever find out"
            yield f"fault[{i}].kind", f"{kind(fault)!r} needs membership: {why}"
    yield from no_requests(scenario)


FORMING: Final = ("total", "total-safe")
"""The services of groups that can be formed, joined, left and merged: the freeze is one of the total order."""


def _formation_problems(scenario: Scenario) -> Problems:
    """What groups that change ask for (docs/spec/newtop.md 11)."""
    options = scenario.options
    keys = [(f"fault[{i}].kind", fault) for i, fault in enumerate(scenario.fault) if isinstance(fault, Change)]
    asking = [(key, kind(fault), _concerned(scenario, fault)) for key, fault in keys]
    if options.merge_every:
        asking.append(("options.merge_every", "merging", tuple(group.name for group in scenario.group)))
    asking += [
        (f"group[{i}].formed", "formed", (group.name,)) for i, group in enumerate(scenario.group) if group.formed
    ]
    services = {group.name: group.service for group in scenario.group}
    for key, what, groups in asking:
        if not membership(scenario):
            yield key, f"{what!r} needs membership: with options.suspect_after = 0s views never change"
        for name in groups:
            if services.get(name) not in FORMING:
                yield (
                    key,
                    f"{what!r} goes with service {' and '.join(FORMING)} only; group {name} gets {services[name]}",
                )
    if asking and options.form_within and options.form_within < options.suspect_after:
        yield "options.form_within", "must be at least options.suspect_after: that long nobody knows who has failed"
    if options.form_within and not asking:
        yield "options.form_within", "changes nothing: no group is formed, joined, left or merged"
    if 0 < options.merge_every < options.suspect_after:
        yield "options.merge_every", "must be at least options.suspect_after, or 0s"
    for i, group in enumerate(scenario.group):
        if not group.formed and {*members_of(group)} == absent_at_first(scenario, group.name):
            yield f"group[{i}].members", "somebody must be in it at first; or it is formed = true"
        if not STATE_BYTES_MIN <= group.state_bytes <= _STATE_BYTES_MAX:
            yield f"group[{i}].state_bytes", f"must be between {STATE_BYTES_MIN} and {_STATE_BYTES_MAX:,}"


def _concerned(scenario: Scenario, fault: Change) -> tuple[str, ...]:
    if isinstance(fault, Recover):
        return tuple(group.name for group in scenario.group if fault.process in members_of(group))
    return (fault.group,)


def _asymmetric_problems(scenario: Scenario) -> Problems:
    """What goes with a sequencer (docs/spec/newtop.md 11.3 rule 8)."""
    options = scenario.options
    for i, group in enumerate(scenario.group):
        if group.mode != "asymmetric":
            continue
        if group.service != "total":
            yield f"group[{i}].mode", f"a sequencer gives one order to all: service total, not {group.service!r}"
        if group.numbering == "block":
            yield f"group[{i}].numbering", '"block" is for symmetric groups: a sequencer alone fills blocks'
    if asymmetric(scenario) and options.view_change != "cut":
        why = "where one group is asymmetric its sequencer says where views change, and others take cuts"
        yield "options.view_change", f"{options.view_change!r} is for symmetric groups: {why}"
    if asymmetric(scenario) and options.flow_control in (1, 2):
        why = "an origin knows its own messages and not the numbers of others, so its window is algorithm 3's"
        yield "options.flow_control", f"{options.flow_control} is for symmetric groups, take 3 or 0: {why}"


def _classic_problems(scenario: Scenario) -> Problems:
    if scenario.network.loss:
        yield "network.loss", "the notes' algorithms ask for links that lose nothing"
    for i, fault in enumerate(scenario.fault):
        if isinstance(fault, Loss | Join | Leave):
            why = "links that lose nothing" if isinstance(fault, Loss) else "groups that only crashes change"
            yield f"fault[{i}].kind", f"{kind(fault)!r} is not available with classic: its algorithms ask for {why}"
    for i, member in enumerate(scenario.member):
        if member.role == "receiver" or member.sources is not None:
            yield f"member[{i}]", "in a classic group everybody receives; a sender may stand outside it"
    for i, workload in enumerate(scenario.workload):
        if workload.answers != "none" and workload.replies:
            yield f"workload[{i}].replies", "goes with messages, not with requests that are answered"
    yield from no_links(scenario)


def _acks_problems(scenario: Scenario) -> Problems:
    options = scenario.options
    if scenario.network.transport != "stream":
        yield "network.transport", "messages travel on streams here; loss, duplicate and reorder befall acknowledgments"
    for name in ("send_every", "ack_every"):
        if not getattr(options, name):
            yield f"options.{name}", "must be above zero"
    if scenario.quiet <= 2 * (options.send_every + options.ack_every):
        yield "quiet", "must be longer than twice options.send_every and options.ack_every together"
    for i, member in enumerate(scenario.member):
        if member.sources is not None:
            yield from ((f"member[{i}].sources", problem) for problem in source_problems(scenario, i))
    if options.stability == "all":
        yield from _static_problems(scenario)
    yield from no_links(scenario)
    yield from no_requests(scenario)


def _static_problems(scenario: Scenario) -> Problems:
    """Theorem 2 of Berket98 speaks of nodes that all send and receive, and of a group that stays."""
    if scenario.options.acks == "explicit":
        yield "options.stability", "explicit acknowledgments tell the sender alone"
    if any(member.role != "both" or member.sources is not None for member in scenario.member):
        yield "options.stability", "needs members that all send to all"
    if any(isinstance(fault, Crash | Join | Leave) for fault in scenario.fault):
        yield "options.stability", "needs a group that nobody joins or leaves"


_OWN: Final[Mapping[str, Callable[[Scenario], Problems]]] = {
    "newtop": _newtop_problems,
    "classic": _classic_problems,
    "acks": _acks_problems,
    "intergroup": intergroup_problems,
}
