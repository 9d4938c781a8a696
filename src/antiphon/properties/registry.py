"""Every checker with what it looks at: the one list that runs are judged by, whole or in parts.

A run is a few rows that tell who was there, the backbone (starts, views, suspicions, faults, ends …), and many that
tell what was done: the bulk. Every checker sees the whole backbone; of the bulk it names the kinds it looks at, and
whether it looks at them all together. Where it does not, the rows of one part of the processes, or of one group, are
enough for its verdict on that part, and the verdicts add up.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from typing import Final

from antiphon.properties.checks import (
    acknowledgments,
    agreement,
    answers,
    calm,
    connected,
    cuts,
    delivery,
    drained,
    exclusions,
    flow,
    liveness,
    order,
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
from antiphon.properties.tables.history import BULK
from antiphon.properties.tables.run_tables import Case
from antiphon.properties.verdicts.findings import not_promised
from antiphon.properties.verdicts.verdict import Verdict

_Kinds = frozenset[str]
_NONE: Final[_Kinds] = frozenset()


def _some(kinds: str) -> _Kinds:
    return frozenset(kinds.split())


@dataclass(frozen=True, slots=True)
class Look:
    """Which rows of the bulk a checker looks at, beside the backbone."""

    everybody: _Kinds = _NONE
    """Kinds of which it needs the rows of all processes."""
    own: _Kinds = _NONE
    """Kinds of which the rows of some processes are enough, for the verdict on these."""
    about: _Kinds = _NONE
    """Kinds of which the rows about messages of some senders are enough, whosever rows they are."""
    by_group: bool = False
    """The rows of one group are enough for the verdict on it."""
    texts: _Kinds = _NONE
    """Those kinds of the bulk of which it reads `detail` and `peer`."""
    seldom: _Kinds = _NONE
    """Those kinds of which it mostly needs nothing: it is tried without them first."""

    @property
    def kinds(self) -> _Kinds:
        """All kinds of the bulk that it looks at."""
        return self.everybody | self.own | self.about

    @property
    def mostly(self) -> "Look":
        """What it looks at where it needs nothing of what it seldom needs."""
        kinds = {name: getattr(self, name) - self.seldom for name in ("everybody", "own", "about", "texts")}
        return replace(self, **kinds, seldom=_NONE)

    @property
    def by_process(self) -> bool:
        """Some processes at a time are enough."""
        return bool(self.own or self.about)


BACKBONE: Final = Look()
LOGS: Final = Look(own=BULK)
_RUN: Final = Look(everybody=_some("send deliver"))
_GROUPS: Final = Look(everybody=_some("send deliver block unblock answer"), by_group=True, texts=_some("block answer"))
_STABLE: Final = Look(everybody=_some("send stable"), by_group=True)
_STREAMS: Final = Look(about=_some("send deliver receive"), seldom=_some("receive"))
_RECEIPTS: Final = Look(about=_some("send receive stable deliver"), seldom=_some("deliver"))
_FREED: Final = Look(
    about=_some("send stable discard receive deliver"), seldom=_some("receive deliver"), texts=_some("discard")
)
_KNOWN: Final = Look(everybody=_some("send"), own=_some("deliver stable"))
_BUFFERS: Final = Look(everybody=_some("send"), own=_some("receive discard deliver"), seldom=_some("deliver"))
_TALK: Final = Look(own=_some("transmit"))
_FRAMES: Final = Look(
    own=_some("transmit gauge"),
    about=_some("receive"),
    seldom=_some("transmit gauge receive"),
    texts=_some("transmit gauge receive"),
)
_BOUNDS: Final = Look(
    own=_some("transmit gauge send stable"),
    about=_some("receive"),
    seldom=_some("transmit gauge send stable receive"),
    texts=_some("transmit gauge receive"),
)
_TRAVEL: Final = Look(
    everybody=_some("send transmit receive"), seldom=_some("send transmit receive"), texts=_some("transmit receive")
)
_FOLLOWING: Final = replace(_TRAVEL, everybody=_TRAVEL.everybody | {"deliver"}, seldom=_TRAVEL.seldom | {"deliver"})


@dataclass(frozen=True, slots=True)
class Checker:
    """One property, and who judges it."""

    property_id: str
    check: Callable[..., list[Verdict]]
    """Its parameters name what it wants of the case."""
    look: Look
    over_groups: bool = True
    """It gives a verdict on each group, not one on the run."""

    def judge(self, case: Case) -> list[Verdict]:
        """Its verdicts; where nobody promises the property nothing is looked at."""
        if not case.promises.groups(self.property_id).any():
            return not_promised(case.history, self.property_id, over_groups=self.over_groups)
        return self.check(**{name: self._wanted(case, name) for name in signature(self.check).parameters})

    def _wanted(self, case: Case, name: str) -> object:
        return case.pasts.of(self.property_id) if name == "past" else getattr(case, name)


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
    Checker("L9", calm.check_no_false_exclusion, _FOLLOWING),
    Checker("L10", calm.check_silence, _TALK),
    Checker("R2", states.check_new_incarnations, BACKBONE),
)
"""In the order of their verdicts. W comes before all of them (`wellformed.py`); it looks at `LOGS`."""
