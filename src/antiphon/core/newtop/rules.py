"""Which classes a process is made of: the adopted rules, or a printed one in place of one of them (`literal.py`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from antiphon.core.newtop.flow import FlowControl
from antiphon.core.newtop.orders.blocks import SlowOrder, TotalOrder
from antiphon.core.newtop.orders.contract import Order
from antiphon.core.newtop.orders.relative import RelativeOrder
from antiphon.core.newtop.orders.vectors import FastOrder, VectorOrder
from antiphon.core.newtop.settings import Service
from antiphon.core.newtop.silence import Silence

_ORDERS: Mapping[Service, type[Order]] = {
    "total": TotalOrder,
    "causal-slow": SlowOrder,
    "causal-fast": FastOrder,
    "causal-relative": RelativeOrder,
    "causal-vector": VectorOrder,
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


ADOPTED = Rules()
