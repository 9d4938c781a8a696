"""The list of all checkers, each with the rows it needs. Small runs and large runs are judged by this same list.

The rows of a run have two parts. The backbone is small: it tells which processes took part (starts, views, suspicions,
faults, ends …). The bulk is large: it tells what they did. Every checker reads the whole backbone. Of the bulk it names
the kinds that it needs, and whether it needs them from all processes. If not, the rows of some processes, or of one
group, are enough for the verdict on these, and the verdicts of the parts add up to the verdict on the run.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Final

from antiphon.properties.checks import (
    acknowledgments,
    agreement,
    answers,
    connected,
    cuts,
    delivery,
    drained,
    exclusions,
    failure_detection,
    flow,
    liveness,
    order,
    primary,
    reliable,
    reliable_total,
    safe,
    stability,
    states,
    successors,
    total,
    views,
    weak_total,
)
from antiphon.properties.run_tables import RunTables
from antiphon.properties.tables.history import BULK
from antiphon.properties.verdicts.findings import not_promised
from antiphon.properties.verdicts.verdict import Verdict

_Kinds = frozenset[str]
_NONE: Final[_Kinds] = frozenset()


def _some(kinds: str) -> _Kinds:
    return frozenset(kinds.split())


@dataclass(frozen=True, slots=True)
class RowNeeds:
    """The rows of the bulk that a checker needs in addition to the backbone.

    A large run is judged in parts. A part covers some processes or some groups, which are "its own" below.
    """

    all_processes: _Kinds = _NONE
    """Kinds that it needs from all processes, for any part that it judges."""
    own_processes: _Kinds = _NONE
    """Kinds that it needs only from the processes of its own part."""
    own_senders: _Kinds = _NONE
    """Kinds that it needs only about messages of its own senders, whichever process wrote the row."""
    by_group: bool = False
    """True if the rows of one group are enough for the verdict on that group."""
    with_text: _Kinds = _NONE
    """Kinds whose columns `detail` and `peer`, or typed columns, it reads."""
    rare: _Kinds = _NONE
    """Kinds that it rarely needs. It is tried without them first, and again with them if it raises LackingError."""

    @property
    def kinds(self) -> _Kinds:
        """All kinds of the bulk that it needs."""
        return self.all_processes | self.own_processes | self.own_senders

    @property
    def usual(self) -> "RowNeeds":
        """The needs without the rare kinds."""
        kinds = {
            name: getattr(self, name) - self.rare
            for name in ("all_processes", "own_processes", "own_senders", "with_text")
        }
        return replace(self, **kinds, rare=_NONE)

    @property
    def by_process(self) -> bool:
        """True if the run can be judged some processes at a time."""
        return bool(self.own_processes or self.own_senders)


BACKBONE: Final = RowNeeds()
"""Nothing of the bulk."""
LOGS: Final = RowNeeds(own_processes=BULK)
"""The complete logs of some processes."""
_RUN: Final = RowNeeds(all_processes=_some("send deliver"))
_GROUPS: Final = RowNeeds(
    all_processes=_some("send deliver block unblock answer unanswered"),
    by_group=True,
    with_text=_some("block answer unanswered"),
)
_STABLE: Final = RowNeeds(all_processes=_some("send stable"), by_group=True)
_STREAMS: Final = RowNeeds(own_senders=_some("send deliver receive"), rare=_some("receive"))
_RECEIPTS: Final = RowNeeds(own_senders=_some("send receive stable deliver"), rare=_some("deliver"))
_FREED: Final = RowNeeds(
    own_senders=_some("send stable discard receive deliver"), rare=_some("receive deliver"), with_text=_some("discard")
)
_KNOWN: Final = RowNeeds(all_processes=_some("send"), own_processes=_some("deliver stable"))
_BUFFERS: Final = RowNeeds(
    all_processes=_some("send"), own_processes=_some("receive discard deliver"), rare=_some("deliver")
)
_TALK: Final = RowNeeds(own_processes=_some("transmit"))
_FRAMES: Final = RowNeeds(
    own_processes=_some("transmit gauge"),
    own_senders=_some("receive"),
    rare=_some("transmit gauge receive"),
    with_text=_some("transmit gauge receive"),
)
_BOUNDS: Final = RowNeeds(
    own_processes=_some("transmit gauge send stable"),
    own_senders=_some("receive"),
    rare=_some("transmit gauge send stable receive"),
    with_text=_some("transmit gauge receive"),
)
_TRAVEL: Final = RowNeeds(
    all_processes=_some("send transmit receive"),
    rare=_some("send transmit receive"),
    with_text=_some("transmit receive"),
)
_FOLLOWING: Final = replace(_TRAVEL, all_processes=_TRAVEL.all_processes | {"deliver"}, rare=_TRAVEL.rare | {"deliver"})


@dataclass(frozen=True, slots=True)
class Checker:
    """One property with the function that judges it."""

    property_id: str
    check: Callable[..., list[Verdict]]
    """Its parameters are names of `RunTables` attributes, or `past`."""
    needs: RowNeeds
    over_groups: bool = True
    """True if it gives one verdict for each group, False if it gives one for the run."""
    tables: tuple[str, ...] = field(init=False)
    """The names of its parameters, read once: looking at a signature takes as long as a small check."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", tuple(signature(self.check).parameters))

    def judge(self, tables: RunTables) -> list[Verdict]:
        """Return its verdicts. If no process promises the property, nothing is computed."""
        if not tables.promises.groups(self.property_id).any():
            return not_promised(tables.history, self.property_id, over_groups=self.over_groups)
        return self.check(**{name: self._argument(tables, name) for name in self.tables})

    def _argument(self, tables: RunTables, name: str) -> object:
        return tables.pasts.of(self.property_id) if name == "past" else getattr(tables, name)


CHECKERS: Final = (
    Checker("M1", views.check_self_inclusion, BACKBONE),
    Checker("M2", views.check_growing_ids, BACKBONE),
    Checker("M3", views.check_first_view, BACKBONE),
    Checker("M4", views.check_one_membership, BACKBONE),
    Checker("M5", successors.check_same_history, BACKBONE),
    Checker("M6", successors.check_disjoint_successors, BACKBONE),
    Checker("M6e", successors.check_disjoint_at_last, BACKBONE),
    Checker("M7", successors.check_successors_agree, BACKBONE),
    Checker("M8", successors.check_transitional, BACKBONE),
    Checker("M9", views.check_shrinking, BACKBONE),
    Checker("M10", views.check_reasons, BACKBONE),
    Checker("M11", views.check_primary_chain, BACKBONE),
    Checker("M12", primary.check_chain, BACKBONE),
    Checker("M13", primary.check_kept, _GROUPS),
    Checker("D1", delivery.check_integrity, _RUN),
    Checker("D2", delivery.check_duplication, _STREAMS),
    Checker("D3", cuts.check_right_place, _STREAMS),
    Checker("D4", cuts.check_sender_in_view, _STREAMS),
    Checker("D5", cuts.check_same_view, _STREAMS),
    Checker("D5w", cuts.check_same_view_together, _GROUPS),
    Checker("D6", cuts.check_sending_view, _STREAMS),
    Checker("D7", cuts.check_blocked_while_flushing, _GROUPS),
    Checker("D8", delivery.check_virtual_synchrony, _GROUPS),
    Checker("D9", cuts.check_same_cut, _GROUPS),
    Checker("D10", cuts.check_nothing_after_removal, _GROUPS),
    Checker("D11", cuts.check_uniform_agreement, _GROUPS),
    Checker("D12", states.check_states, _GROUPS),
    Checker("D13", agreement.check_agreement, _GROUPS),
    Checker("D14", answers.check_answers, _GROUPS),
    Checker("D15", cuts.check_halted, _GROUPS),
    Checker("O1", order.check_fifo, _STREAMS),
    Checker("O2", reliable.check_reliable_fifo, _STREAMS),
    Checker("O3", order.check_causal, _RUN, over_groups=False),
    Checker("O4", reliable.check_reliable_causal, _RUN, over_groups=False),
    Checker("O5", weak_total.check_one_group, _GROUPS),
    Checker("O5x", weak_total.check_many_groups, _RUN, over_groups=False),
    Checker("O6", total.check_total, _RUN, over_groups=False),
    Checker("O7", reliable_total.check_reliable_total, _RUN),
    Checker("O8", total.check_causal_total, _RUN, over_groups=False),
    Checker("S1", stability.check_stable_everywhere, _RECEIPTS),
    Checker("S2", stability.check_stable_prefix, _KNOWN),
    Checker("S3", safe.check_safe_delivery, _KNOWN),
    Checker("S4", stability.check_no_early_discard, _FREED),
    Checker("S5", acknowledgments.check_acknowledgers, _FRAMES),
    Checker("S6", connected.check_connected, BACKBONE),
    Checker("F1", flow.check_bounds, _BOUNDS),
    Checker("F2", flow.check_send_condition, _FRAMES),
    Checker("F3", liveness.check_no_loss_by_pressure, _GROUPS),
    Checker("L1", exclusions.check_precision, _TRAVEL),
    Checker("L2", liveness.check_multicast, _GROUPS),
    Checker("L3", liveness.check_self_delivery, _GROUPS),
    Checker("L4", exclusions.check_termination, _GROUPS),
    Checker("L5", exclusions.check_exclusion, _TRAVEL),
    Checker("L6", drained.check_stable_at_last, _STABLE),
    Checker("L7", drained.check_unblocked, _GROUPS),
    Checker("L8", drained.check_buffers_empty, _BUFFERS),
    Checker("L9", failure_detection.check_no_false_exclusion, _FOLLOWING),
    Checker("L10", failure_detection.check_silence, _TALK),
    Checker("L11", primary.check_returns, BACKBONE),
    Checker("R2", states.check_new_incarnations, BACKBONE),
)
"""In the order of their verdicts. W comes before all of them (`wellformed.py`) and needs `LOGS`."""
