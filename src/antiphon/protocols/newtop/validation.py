"""Requirements of Newtop on scenarios, beyond those of every family."""

from typing import Final

from msgspec import UnsetType

from antiphon.protocols.newtop.options import ONE_ORDER, WINDOW_MIN, asymmetric, membership, options_of
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.scenario.limits import PAYLOAD_BYTES_MAX
from antiphon.scenario.model import (
    STATE_BYTES_MIN,
    Change,
    Crash,
    Cut,
    Gone,
    Group,
    Partition,
    Scenario,
    Suspect,
    absent_at_first,
    members_of,
)
from antiphon.scenario.refusals import Problems, kind, request_problems

_STATE_BYTES_MAX: Final = 16 * 1024 * 1024
_REPAIR_NS: Final = NewtopSettings().repair_ns
_ROUND_TRIP_NS: Final = 20_000_000
"""2δ: a question and its answer (docs/spec/newtop.md 12)."""
_QUIET_SUSPICIONS: Final = 8
"""Time from the last fault to the view without the failed members, at worst, as a multiple of `suspect_after`."""
_BY_NUMBER: Final = frozenset({"total", "total-safe", "causal-slow"})
"""Services under which views change by numbers."""


def problems(scenario: Scenario) -> Problems:
    """All problems, as (key, message)."""
    yield from _option_problems(scenario)
    yield from _suspicion_problems(scenario)
    for i, group in enumerate(scenario.group):
        yield from _overlap_problems(i, group, scenario.group[:i])
    yield from _service_problems(scenario)
    yield from _count_problems(scenario)
    yield from _primary_problems(scenario)
    yield from _formation_problems(scenario)
    yield from _asymmetric_problems(scenario)
    yield from _fault_problems(scenario)
    yield from request_problems(scenario)


def _option_problems(scenario: Scenario) -> Problems:
    options = options_of(scenario)
    if scenario.quiet <= options.time_silence:
        yield "quiet", "must be longer than options.time_silence: members may stay silent that long before they answer"
    if options.flow_control not in (0, *WINDOW_MIN):
        yield "options.flow_control", "must be 0 (off), 1, 2 or 3"
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
        yield "options.suspect_after", "must be at least 80ms, time for four attempts to repair a loss"
    if options.suspect_after <= options.time_silence + _ROUND_TRIP_NS:
        yield (
            "options.suspect_after",
            "must be more than options.time_silence and 20ms: members may stay silent that long before they answer",
        )
    if scenario.fault and scenario.quiet < options.idle_probe + _QUIET_SUSPICIONS * options.suspect_after:
        least = f"options.idle_probe and {_QUIET_SUSPICIONS} times options.suspect_after together"
        yield "quiet", f"must be at least {least}: agreement on a failure may take that long"


def _count_problems(scenario: Scenario) -> Problems:
    options = options_of(scenario)
    if options.excluded_count is True and not options.suspect_after:
        yield "options.excluded_count", "has no effect: with options.suspect_after = 0s no member is excluded"


def _overlap_problems(i: int, group: Group, earlier: tuple[Group, ...]) -> Problems:
    """Groups that share a process are ordered together, so their services must be compatible."""
    for other in earlier:
        shared = sorted({*members_of(group)} & {*members_of(other)})
        if shared and group.service != other.service and not {group.service, other.service} <= ONE_ORDER:
            yield f"group[{i}].service", f"{shared[0]} is also in group {other.name}, which has service {other.service}"
        if shared and "block" in (group.numbering, other.numbering):
            yield (
                f"group[{i}].members",
                f'{shared[0]} is also in group {other.name}; numbering = "block" needs members with one group only',
            )


def _service_problems(scenario: Scenario) -> Problems:
    options, services = options_of(scenario), frozenset(group.service for group in scenario.group)
    if options.compression and not {"causal-fast", "causal-vector"} & services:
        yield (
            "options.compression",
            "needs service causal-fast or causal-vector; other services have nothing to compress",
        )
    if scenario.member:
        yield "member", "every member of a newtop group sends and receives"
    if options.view_change != "cut" and "total-safe" in services:
        why = "only a cut decides what the old view must still deliver"
        yield "options.view_change", f"{options.view_change!r} is not possible with service total-safe; {why}"
    elif options.view_change != "cut" and services != {"total"}:
        why = "causal orders install a view at a cut or by a flush"
        yield "options.view_change", f"{options.view_change!r} needs service total; {why}"
    if options.view_change != "cut" and not options.suspect_after:
        yield "options.view_change", "has no effect: with options.suspect_after = 0s views never change"
    for i, group in enumerate(scenario.group):
        if group.numbering == "block" and options.suspect_after and group.service not in _BY_NUMBER:
            why = f"under {group.service} a view changes by a flush, and flow control must not delay a flush"
            yield f"group[{i}].numbering", f'"block" needs options.suspect_after = "0s" here: {why}'


def _primary_problems(scenario: Scenario) -> Problems:
    """What voting on primary views asks for (docs/spec/newtop.md 15)."""
    primary = options_of(scenario).primary
    if isinstance(primary, UnsetType):
        return
    if isinstance(primary, int) and primary < 1:
        yield "options.primary", "must be 'dynamic', or the size of a group"
    if not membership(scenario):
        yield "options.primary", "needs membership: with options.suspect_after = 0s views never change"
    if not {group.service for group in scenario.group} <= ONE_ORDER:
        yield "options.primary", f"needs service {' or '.join(sorted(ONE_ORDER))}: a vote has its place in one order"


def _fault_problems(scenario: Scenario) -> Problems:
    if membership(scenario):
        return
    for i, fault in enumerate(scenario.fault):
        if isinstance(fault, Crash | Partition | Cut | Suspect | Gone):
            why = "with options.suspect_after = 0s no member would notice it"
            yield f"fault[{i}].kind", f"{kind(fault)!r} needs membership: {why}"


def _formation_problems(scenario: Scenario) -> Problems:
    """Requirements of groups that change (docs/spec/newtop.md 11)."""
    options = options_of(scenario)
    keys = [(f"fault[{i}].kind", fault) for i, fault in enumerate(scenario.fault) if isinstance(fault, Change)]
    asking = [(key, kind(fault)) for key, fault in keys]
    if options.merge_every:
        asking.append(("options.merge_every", "merging"))
    asking += [(f"group[{i}].formed", "formed") for i, group in enumerate(scenario.group) if group.formed]
    yield from _unable_problems(scenario, asking)
    if asking and options.form_within and options.form_within < options.suspect_after:
        yield "options.form_within", "must be at least options.suspect_after: failures are not known earlier"
    if options.form_within and not asking:
        yield "options.form_within", "has no effect: no group is formed, joined, left or merged"
    if 0 < options.merge_every < options.suspect_after:
        yield "options.merge_every", "must be at least options.suspect_after, or 0s"
    yield from _group_problems(scenario)


def _unable_problems(scenario: Scenario, asking: list[tuple[str, str]]) -> Problems:
    """Changes of groups whose options do not allow any."""
    for key, what in asking:
        if not membership(scenario):
            yield key, f"{what!r} needs membership: with options.suspect_after = 0s views never change"
    if asking and options_of(scenario).compression:
        why = "a stamp that tells only changes cannot tell which groups its sender has left"
        yield "options.compression", f"is not possible with groups that are formed, joined, left or merged: {why}"


def _group_problems(scenario: Scenario) -> Problems:
    for i, group in enumerate(scenario.group):
        if not group.formed and {*members_of(group)} == absent_at_first(scenario, group.name):
            yield f"group[{i}].members", "must have a member at the start, unless formed = true"
        if not STATE_BYTES_MIN <= group.state_bytes <= _STATE_BYTES_MAX:
            yield f"group[{i}].state_bytes", f"must be between {STATE_BYTES_MIN} and {_STATE_BYTES_MAX:,}"


def _asymmetric_problems(scenario: Scenario) -> Problems:
    """Requirements of groups with a sequencer (docs/spec/newtop.md 11.3 rule 8)."""
    options = options_of(scenario)
    for i, group in enumerate(scenario.group):
        if group.mode != "asymmetric":
            continue
        if group.service != "total":
            yield f"group[{i}].mode", f"a sequencer needs service total, not {group.service!r}"
        if group.numbering == "block":
            yield (
                f"group[{i}].numbering",
                '"block" is for symmetric groups: with a sequencer, only the sequencer sends into blocks',
            )
    if asymmetric(scenario) and options.view_change != "cut":
        why = "if one group is asymmetric, its sequencer decides where views change, and the other groups use cuts"
        yield "options.view_change", f"{options.view_change!r} is for symmetric groups: {why}"
    if asymmetric(scenario) and options.flow_control in (1, 2):
        why = "an origin does not know the numbers of other members, so only the window of algorithm 3 works"
        yield "options.flow_control", f"{options.flow_control} is for symmetric groups; use 3 or 0: {why}"
