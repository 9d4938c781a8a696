"""The printed rules that are wrong or missing, each in a class of its own: evidence, for the simulator only.

Nothing else in the product knows of them. The numbers are those of docs/spec/errata-intergroup.md 3; T12 and T13 were
found here. T13 has no printed form: the paper does not tell how a late acknowledgment differs from a new one.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from antiphon.core.clocks import TimestampClock
from antiphon.core.effects import Deliver, Scope, Transmit
from antiphon.protocols.acks.acknowledging.transitive import TransitiveAcks
from antiphon.protocols.acks.connections.connections import Connections
from antiphon.protocols.acks.connections.links import Links, Peer
from antiphon.protocols.acks.frames import Acknowledgment, MessageFrame
from antiphon.protocols.acks.group import AcksGroup
from antiphon.protocols.acks.rules import ADOPTED, Rules
from antiphon.protocols.acks.settings import receives


class WallClock(TimestampClock):
    """T6, Berket98 Fig. 1: the stamp is the reading of the clock, so two messages at one reading have one stamp."""

    __slots__ = ()

    def stamp(self, now: int) -> int:
        if not self.physical:
            return super().stamp(now)
        self.value = now
        return now


class EagerLogicalClock(TimestampClock):
    """T9: a receipt adds one, as Lamport's second rule is often read; Berket98 Fig. 3 then has other values."""

    __slots__ = ()

    def witness(self, time: int) -> None:
        if not self.physical:
            self.value = max(self.value, time) + 1


class EverybodyReceives(Links):
    """FIG-4: a sender believes that all receivers of the group receive its messages."""

    def feeds(self, peer: Peer) -> bool:
        return self.itself.sends and receives(peer.role)


class UncheckedConnections(Connections):
    """FIG-4, Berket98 §6: the rules for connections are not followed.

    A sender counts every receiver as soon as it knows it, and accepts every acknowledgment. A receiver keeps the
    sender set that it began with.
    """

    def is_current(self, peer: Peer, frame: Acknowledgment) -> bool:  # noqa: ARG002
        return True

    def _answered(self, peer: Peer, *, unasked: bool) -> None:
        super()._answered(peer, unasked=unasked)
        if unasked and peer.process in self._new_senders:
            self._new_senders.remove(peer.process)  # we know only of processes that were here before us that they send

    def _connected(self, peer: Peer) -> None:
        super()._connected(peer)
        if self.links.feeds(peer) and peer.process not in self.receivers:
            self._add_receiver(peer.process, 0)
            self._install()


class UncheckedMembership(AcksGroup):
    """FIG-4, with `UncheckedConnections`: a receiver also delivers messages of senders that it does not count.

    It transmits the one acknowledgment, in which those senders are missing, to all senders.
    """

    def _message(self, frame: MessageFrame) -> None:
        peer = self.links.peers.get(frame.sender)
        if peer is None or frame.sender in self.connections.senders:
            super()._message(frame)
        elif frame.payloads and receives(self._role):
            self._effects.append(Deliver(frame))

    def _acknowledge(self, now: int) -> None:
        super()._acknowledge(now)
        senders = self.connections.senders
        for effect in [*self._effects]:
            if isinstance(effect, Transmit) and effect.to is Scope.SENDERS:
                missing = [peer for peer in self.links.peers.values() if peer.sends and peer.process not in senders]
                self._effects += [effect._replace(to=peer.process) for peer in missing]


class CredulousTransitiveAcks(TransitiveAcks):
    """T12, docs/spec/stability.md 3: a message of x acknowledges its whole past, even if x lacks a part of it."""

    def _vouches(self, *_: object) -> bool:
        return True


_OTHERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "T6": {"clock": WallClock},
    "T8": {"merges_first_ack": False},
    "T9": {"clock": EagerLogicalClock},
    "T12": {"protocols": {**ADOPTED.protocols, "transitive": CredulousTransitiveAcks}},
    "FIG-4": {"group": UncheckedMembership, "connections": UncheckedConnections, "links": EverybodyReceives},
}
ERRATA: Final = tuple(_OTHERS)
"""The errata whose printed rule can be run."""


def printed(errata: tuple[str, ...]) -> Rules:
    """The adopted rules, except that these errata follow the printed rule."""
    rules = ADOPTED
    for erratum in errata:
        rules = replace(rules, **_OTHERS[erratum])
    return rules
