"""Which classes a process is made of: the adopted rules, or a printed one in place of one of them (`literal.py`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from antiphon.core.clocks import TimestampClock
from antiphon.protocols.acks.contract import AckProtocol
from antiphon.protocols.acks.explicit import ExplicitAcks
from antiphon.protocols.acks.group import AcksGroup
from antiphon.protocols.acks.links import Links
from antiphon.protocols.acks.settings import Acks
from antiphon.protocols.acks.timestamp import TimestampAcks
from antiphon.protocols.acks.transitive import TransitiveAcks
from antiphon.protocols.acks.vector import VectorAcks

_PROTOCOLS: Final[Mapping[Acks, type[AckProtocol]]] = {
    "timestamp": TimestampAcks,
    "vector": VectorAcks,
    "explicit": ExplicitAcks,
    "transitive": TransitiveAcks,
}


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules in force; the defaults are the adopted ones."""

    protocols: Mapping[Acks, type[AckProtocol]] = field(default_factory=lambda: _PROTOCOLS)
    clock: type[TimestampClock] = TimestampClock
    group: type[AcksGroup] = AcksGroup
    links: type[Links] = Links
    merges_first_ack: bool = True
    """Whether a sender's clock takes over the first acknowledgment of a receiver (T8)."""


ADOPTED: Final = Rules()
