"""Which classes a process is made of: the adopted rules, or a printed one in place of one of them (`as_printed.py`)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from antiphon.core.contract import StateSink
from antiphon.protocols.newtop.flow.windows import FlowControl
from antiphon.protocols.newtop.formation.formation import Formations
from antiphon.protocols.newtop.fragments import Pieces
from antiphon.protocols.newtop.membership.agreement import Agreement
from antiphon.protocols.newtop.membership.suspector import SteadySuspector, Suspector
from antiphon.protocols.newtop.membership.views import (
    ClosedChange,
    FlushChange,
    RemoveChange,
    SequencerChange,
    ViewChange,
)
from antiphon.protocols.newtop.ordering.blocks import SafeOrder, SlowOrder, TotalOrder
from antiphon.protocols.newtop.ordering.contract import Order
from antiphon.protocols.newtop.ordering.relative import RelativeOrder
from antiphon.protocols.newtop.ordering.vectors import FastOrder, VectorOrder
from antiphon.protocols.newtop.sequencing.turns import Turns
from antiphon.protocols.newtop.settings import NewtopSettings, Service
from antiphon.protocols.newtop.silence import Silence
from antiphon.types import View

_ORDERS: Mapping[Service, type[Order]] = {
    "total": TotalOrder,
    "total-safe": SafeOrder,
    "causal-slow": SlowOrder,
    "causal-fast": FastOrder,
    "causal-relative": RelativeOrder,
    "causal-vector": VectorOrder,
}
_CHANGES: Mapping[str, type[ViewChange]] = {
    "cut": ViewChange,
    "remove": RemoveChange,
    "closed": ClosedChange,
    "flush": FlushChange,
}


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules in force; the defaults are the adopted ones."""

    orders: Mapping[Service, type[Order]] = field(default_factory=lambda: _ORDERS)
    silence: type[Silence] = Silence
    flow: type[FlowControl] = FlowControl
    announces: bool = True
    """Whether members say what they have completed when no message is there to carry it (E-51, E-19b)."""
    one_counter: bool = True
    """Whether a process numbers its messages of all groups from one counter (E-14)."""
    answers_cuts: bool = True
    """Whether all groups of a process get to the number behind which a view of one of them changes (E-43)."""
    awaits_acknowledgments: bool = True
    """Whether, in safe delivery, a member that owes nothing but an acknowledgment is suspected too (E-74)."""
    suspector: type[Suspector] = Suspector
    steady: type[SteadySuspector] = SteadySuspector
    """The suspector of asymmetric groups."""
    sequencing: type[SequencerChange] = SequencerChange
    """How views change in asymmetric groups."""
    turns: type[Turns] = Turns
    """Who may send in which of its groups, where one of them is asymmetric."""
    agreement: type[Agreement] = Agreement
    formations: type[Formations] = Formations
    states: Callable[[], StateSink] = Pieces
    """What puts a state together that comes from elsewhere; a driver may have a way that costs less."""
    changes: Mapping[str, type[ViewChange]] = field(default_factory=lambda: _CHANGES)
    signature: Callable[[View], str] | None = None
    """What a member adds to its name in a view, where that is not the members it has excluded (E-29)."""

    def change(self, settings: NewtopSettings) -> ViewChange:
        """How views change under these settings: orders that have no number to cut at flush."""
        cuts = self.orders[settings.service].cut_after is not None
        return self.changes[settings.view_change if cuts else "flush"]()


ADOPTED = Rules()
