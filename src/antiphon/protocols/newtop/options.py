"""The options of Newtop scenarios, and what follows from them."""

from typing import Final, Literal, cast

from msgspec import UNSET, UnsetType

from antiphon.scenario.model import Change, Options, Scenario
from antiphon.scenario.units import Duration

WINDOW_MIN: Final = {1: 3, 2: 2, 3: 2}
"""By algorithm of flow control, the smallest window with which it can send (flow-control invariant I7)."""

ONE_ORDER: Final = frozenset({"total", "total-safe"})
"""Services that a process may have together: one order; only the conditions of delivery differ."""


class NewtopOptions(Options, frozen=True, kw_only=True):
    """The `[options]` table."""

    time_silence: Duration = Duration(0)
    """Silence before a null message; "0s" answers at once."""
    packing: bool = True
    """False: one application message per frame, as in the papers' experiments."""
    frame_bytes: int = 65_536
    """Maximum payload bytes of a frame; a larger message is sent as fragments."""
    flow_control: int = 3
    """Algorithm 1, 2 or 3 of Macedo95; 0 turns it off."""
    window: int = 64
    """N: blocks (algorithms 1, 2) or own frames (3) that may be unstable; without effect while flow control is off."""
    window_bytes: int = 1_048_576
    """Maximum unstable payload bytes of a member's own messages; without effect while flow control is off."""
    compression: bool = False
    """causal-fast, causal-vector: a stamp says what changed since its sender's previous message in the group."""
    suspect_after: Duration = Duration(500_000_000)
    """ω: silence after which a member is suspected; "0s": never, and groups have no membership."""
    idle_probe: Duration = Duration(1_000_000_000)
    """How often an idle group looks for crashed members; "0s": never. Acts with membership only."""
    view_change: Literal["cut", "remove", "closed", "halted"] = "cut"
    """How a view is installed when a member fails (docs/spec/newtop.md 9.6); all except "cut" need total order."""
    merge_every: Duration = Duration(0)
    """τ_probe: how often a member searches for members of its group outside its view, to merge; "0s": never."""
    primary: Literal["dynamic"] | int | UnsetType = UNSET
    """How a view becomes primary (docs/spec/newtop.md 15): "dynamic" voting, or most of this many; unset: no voting."""
    excluded_count: bool | UnsetType = UNSET
    """Views also tell the trace how many processes were excluded so far (docs/spec/newtop.md 9.7); unset: not."""
    form_within: Duration = Duration(0)
    """τ_form: timeout for forming or leaving a group; "0s": four times suspect_after."""


def options_of(scenario: Scenario) -> NewtopOptions:
    """The options of a Newtop scenario."""
    return cast("NewtopOptions", scenario.options)


def membership(scenario: Scenario) -> bool:
    """Whether members detect failures themselves and agree on views."""
    return bool(options_of(scenario).suspect_after)


def changes(scenario: Scenario) -> bool:
    """Whether groups are formed, joined, left or merged while they work."""
    return (
        bool(options_of(scenario).merge_every)
        or any(group.formed for group in scenario.group)
        or any(isinstance(fault, Change) for fault in scenario.fault)
    )


def asymmetric(scenario: Scenario) -> bool:
    """Whether some group has a sequencer."""
    return any(group.mode == "asymmetric" for group in scenario.group)


def form_within(options: NewtopOptions) -> Duration:
    """The effective τ_form."""
    return options.form_within or Duration(4 * options.suspect_after)


def settling(options: NewtopOptions) -> Duration:
    """Failed members are excluded within this time, if nothing else fails."""
    return Duration(options.idle_probe + options.time_silence + 6 * options.suspect_after)


def uniting(scenario: Scenario) -> Duration:
    """Connected members that search for each other are in one view within this time: three rounds, and forming.

    L1 demands it after that time, by its own computation.
    """
    options = options_of(scenario)
    rounds = 3 * (len(scenario.processes) * options.merge_every + form_within(options))
    return Duration(settling(options) + rounds)
