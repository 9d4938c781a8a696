"""The classes that implement the rules: the adopted ones, unless `as_printed.py` replaces some by printed ones."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from antiphon.core.clocks import TimestampClock
from antiphon.protocols.acks.acknowledging.contract import AckProtocol
from antiphon.protocols.acks.acknowledging.explicit import ExplicitAcks
from antiphon.protocols.acks.acknowledging.timestamp import TimestampAcks
from antiphon.protocols.acks.acknowledging.transitive import TransitiveAcks
from antiphon.protocols.acks.acknowledging.vector import VectorAcks
from antiphon.protocols.acks.connections.connections import Connections
from antiphon.protocols.acks.connections.links import Links
from antiphon.protocols.acks.group import AcksGroup
from antiphon.protocols.acks.settings import Acks

_PROTOCOLS: Final[Mapping[Acks, type[AckProtocol]]] = {
    "timestamp": TimestampAcks,
    "vector": VectorAcks,
    "explicit": ExplicitAcks,
    "transitive": TransitiveAcks,
}


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a process; the defaults are the adopted ones."""

    protocols: Mapping[Acks, type[AckProtocol]] = field(default_factory=lambda: _PROTOCOLS)
    clock: type[TimestampClock] = TimestampClock
    group: type[AcksGroup] = AcksGroup
    connections: type[Connections] = Connections
    links: type[Links] = Links
    merges_first_ack: bool = True
    """Whether a sender's clock is merged with the first acknowledgment of a receiver (T8)."""


ADOPTED: Final = Rules()
