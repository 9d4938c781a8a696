"""What Newtop asks of a scenario beyond what every family asks."""

from typing import Final

from antiphon.protocols.newtop.options import WINDOW_MIN, asymmetric, membership, options_of
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.scenario.limits import PAYLOAD_BYTES_MAX
from antiphon.scenario.model import (
    STATE_BYTES_MIN,
    Change,
    Crash,
    Cut,
    Group,
    Partition,
    Recover,
    Scenario,
    Suspect,
    absent_at_first,
    members_of,
)
from antiphon.scenario.refusals import Problems, kind, no_requests

_STATE_BYTES_MAX: Final = 16 * 1024 * 1024
_REPAIR_NS: Final = NewtopSettings().repair_ns
_ROUND_TRIP_NS: Final = 20_000_000
"""2δ: a question and its answer (docs/spec/newtop.md 12)."""
_QUIET_SUSPICIONS: Final = 8
"""How many times `suspect_after` may pass, in a bad case, from the last fault to the view without the failed."""
_BY_NUMBER: Final = frozenset({"total", "total-safe", "causal-slow"})
"""Services under which views change by numbers."""
_ONE_ORDER: Final = frozenset({"total", "total-safe"})
"""Services that a process may have side by side: one order, and only what a message waits for differs."""
FORMING: Final = ("total", "total-safe")
"""The services of groups that can be formed, joined, left and merged: the freeze is one of the total order."""


def problems(scenario: Scenario) -> Problems:
    """Every (key, what is wrong with it)."""
    yield from _option_problems(scenario)
    yield from _suspicion_problems(scenario)
    for i, group in enumerate(scenario.group):
        yield from _overlap_problems(i, group, scenario.group[:i])
    yield from _service_problems(scenario)
    yield from _formation_problems(scenario)
    yield from _asymmetric_problems(scenario)
    yield from _fault_problems(scenario)
    yield from no_requests(scenario)


def _option_problems(scenario: Scenario) -> Problems:
    options = options_of(scenario)
    if scenario.quiet <= options.time_silence:
        yield "quiet", "must be longer than options.time_silence: members may stay silent that long before they answer"
    if options.flow_control not in (0, *WINDOW_MIN):
        yield "options.flow_control", "is 0 (off), or algorithm 1, 2 or 3"
    if not 1 <= options.frame_bytes <= PAYLOAD_BYTES_MAX:
        yield "options.frame_bytes", f"must be between 1 and {PAYLOAD_BYTES_MAX:,}"
    if options.window < (least := WINDOW_MIN.get(options.flow_control, 1)):
        yield "options.window", f"must be at least {least}: with less, algorithm {options.flow_control} never sends"
    if options.window_bytes < 1:
        yield "options.window_bytes", "must be above zero"
    if options.flow_control and options.window_bytes < options.frame_bytes:
        yield "options.window_bytes", "must hold a frame: at least options.frame_bytes"


def _suspicion_problems(scenario: Scenario) -> Problems:
    options = options_of(scenario)
    if not options.suspect_after:
        return
    if options.suspect_after < 4 * _REPAIR_NS:
        yield "options.suspect_after", "must be at least 80ms: four tries to repair a loss must fit in it"
    if options.suspect_after <= options.time_silence + _ROUND_TRIP_NS:
        yield (
            "options.suspect_after",
            "must be more than options.time_silence and 20ms: members may stay silent that long before they answer",
        )
    if scenario.fault and scenario.quiet < options.idle_probe + _QUIET_SUSPICIONS * options.suspect_after:
        least = f"options.idle_probe and {_QUIET_SUSPICIONS} times options.suspect_after together"
        yield "quiet", f"must be at least {least}: that long it may take to agree on who has failed"


def _overlap_problems(i: int, group: Group, earlier: tuple[Group, ...]) -> Problems:
    """Groups that share a process are ordered together, so what they promise must go together."""
    for other in earlier:
        shared = sorted({*members_of(group)} & {*members_of(other)})
        if shared and group.service != other.service and not {group.service, other.service} <= _ONE_ORDER:
            yield f"group[{i}].service", f"{shared[0]} is in group {other.name} too, which gets {other.service}"
        if shared and "block" in (group.numbering, other.numbering):
            yield (
                f"group[{i}].members",
                f'{shared[0]} is in group {other.name} too; numbering = "block" goes with members in one group only',
            )


def _service_problems(scenario: Scenario) -> Problems:
    options, services = options_of(scenario), frozenset(group.service for group in scenario.group)
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


def _fault_problems(scenario: Scenario) -> Problems:
    if membership(scenario):
        return
    for i, fault in enumerate(scenario.fault):
        if isinstance(fault, Crash | Partition | Cut | Suspect):
            why = "with options.suspect_after = 0s nobody would ever find out"
            yield f"fault[{i}].kind", f"{kind(fault)!r} needs membership: {why}"


def _formation_problems(scenario: Scenario) -> Problems:
    """What groups that change ask for (docs/spec/newtop.md 11)."""
    options = options_of(scenario)
    keys = [(f"fault[{i}].kind", fault) for i, fault in enumerate(scenario.fault) if isinstance(fault, Change)]
    asking = [(key, kind(fault), _concerned(scenario, fault)) for key, fault in keys]
    if options.merge_every:
        asking.append(("options.merge_every", "merging", tuple(group.name for group in scenario.group)))
    asking += [
        (f"group[{i}].formed", "formed", (group.name,)) for i, group in enumerate(scenario.group) if group.formed
    ]
    yield from _unable_problems(scenario, asking)
    if asking and options.form_within and options.form_within < options.suspect_after:
        yield "options.form_within", "must be at least options.suspect_after: that long nobody knows who has failed"
    if options.form_within and not asking:
        yield "options.form_within", "changes nothing: no group is formed, joined, left or merged"
    if 0 < options.merge_every < options.suspect_after:
        yield "options.merge_every", "must be at least options.suspect_after, or 0s"
    yield from _group_problems(scenario)


def _unable_problems(scenario: Scenario, asking: list[tuple[str, str, tuple[str, ...]]]) -> Problems:
    """Changes of groups whose options or services do not allow any."""
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


def _group_problems(scenario: Scenario) -> Problems:
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
    options = options_of(scenario)
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
