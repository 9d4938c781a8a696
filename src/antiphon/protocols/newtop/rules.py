"""The classes that a process is built from: the adopted rules, or printed ones instead (`as_printed.py`)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from antiphon.core.contract import StateSink
from antiphon.core.services import GroupService
from antiphon.protocols.newtop.flow.windows import FlowControl
from antiphon.protocols.newtop.formation.formation import Formations
from antiphon.protocols.newtop.fragments import Pieces
from antiphon.protocols.newtop.membership.acceptance import AcceptedChange
from antiphon.protocols.newtop.membership.agreement import Agreement
from antiphon.protocols.newtop.membership.suspector import SteadySuspector, Suspector
from antiphon.protocols.newtop.membership.views import (
    ClosedChange,
    FlushChange,
    HaltedChange,
    RemoveChange,
    SequencerChange,
    ViewChange,
)
from antiphon.protocols.newtop.ordering.blocks import SlowOrder, TotalOrder
from antiphon.protocols.newtop.ordering.contract import Order
from antiphon.protocols.newtop.ordering.relative import RelativeOrder
from antiphon.protocols.newtop.ordering.streams import FifoOrder, ReliableOrder
from antiphon.protocols.newtop.ordering.vectors import FastOrder, VectorOrder
from antiphon.protocols.newtop.sequencing.turns import Turns
from antiphon.protocols.newtop.settings import NewtopSettings, Service
from antiphon.protocols.newtop.silence import LazySilence, Silence
from antiphon.types import View

_ORDERS: Mapping[Service, type[Order]] = {
    "total": TotalOrder,
    "total-safe": TotalOrder,
    "causal-slow": SlowOrder,
    "causal-fast": FastOrder,
    "causal-relative": RelativeOrder,
    "causal-vector": VectorOrder,
    "fifo": FifoOrder,
    "reliable": ReliableOrder,
}
_CHANGES: Mapping[str, type[ViewChange]] = {
    "cut": ViewChange,
    "remove": RemoveChange,
    "closed": ClosedChange,
    "halted": HaltedChange,
    "accepted": AcceptedChange,
    "flush": FlushChange,
}


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a process; the defaults are the adopted ones."""

    orders: Mapping[Service, type[Order]] = field(default_factory=lambda: _ORDERS)
    silence: type[Silence] = Silence
    flow: type[FlowControl] = FlowControl
    announces: bool = True
    """True if members announce what they have completed when no message carries it (E-51, E-19b)."""
    one_counter: bool = True
    """True if a process numbers its messages of all groups from one counter (E-14)."""
    answers_cuts: bool = True
    """True if all groups of a process reach the number after which a view of one of them changes (E-43)."""
    awaits_acknowledgments: bool = True
    """True if, in safe delivery, a member that owes only an acknowledgment is suspected too (E-74)."""
    suspector: type[Suspector] = Suspector
    steady: type[SteadySuspector] = SteadySuspector
    """The suspector of asymmetric groups."""
    sequencing: type[SequencerChange] = SequencerChange
    """How views change in asymmetric groups."""
    turns: type[Turns] = Turns
    """Decides in which of its groups a process may send, if one of them is asymmetric."""
    agreement: type[Agreement] = Agreement
    formations: type[Formations] = Formations
    states: Callable[[], StateSink] = Pieces
    """Joins the pieces of a received state; a driver may have a cheaper implementation."""
    changes: Mapping[str, type[ViewChange]] = field(default_factory=lambda: _CHANGES)
    signature: Callable[[View], str] | None = None
    """The signature of a member in a view, if it is not the set of excluded members (E-29)."""

    def answering(self, settings: NewtopSettings) -> Silence:
        """When a member answers a number: later if no delivery waits for it."""
        if not self.orders[settings.service].lazy:
            return self.silence(settings.silence_timeout_ns)
        waits_ns = max(settings.silence_timeout_ns, settings.announce_pause_ns)
        return LazySilence(waits_ns, settings.window // 4)

    def change(self, order: Service, service: GroupService) -> ViewChange:
        """How views change in a group: orders without a number to cut at use a flush."""
        if self.orders[order].cut_after is None:
            return self.changes["flush"]()
        return self.changes["accepted" if service.accept else service.views]()


ADOPTED = Rules()
