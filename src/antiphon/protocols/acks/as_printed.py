"""The printed rules that are wrong or missing, each in a class of its own: evidence, for the simulator only.

Nothing else in the product knows of them. Numbers are those of errata-intergroup.md section 3; T12 and T13 were found
here. `T13` has no printed form: the paper does not say how a late acknowledgment is told from a new one.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from antiphon.core.clocks import TimestampClock
from antiphon.core.effects import Deliver, Scope, Transmit
from antiphon.protocols.acks.frames import Acknowledgment, MessageFrame
from antiphon.protocols.acks.group import AcksGroup
from antiphon.protocols.acks.links import Links, Peer
from antiphon.protocols.acks.rules import ADOPTED, Rules
from antiphon.protocols.acks.settings import receives
from antiphon.protocols.acks.transitive import TransitiveAcks


class WallClock(TimestampClock):
    """T6, Berket98 Fig. 1: the current reading of the clock is the stamp, whatever the last stamp was."""

    __slots__ = ()

    def stamp(self, now: int) -> int:
        """Two messages at one reading have one stamp."""
        if not self.physical:
            return super().stamp(now)
        self.value = now
        return now


class EagerLogicalClock(TimestampClock):
    """T9: one is added on receipt, as Lamport's second rule is often read; Berket98 Fig. 3 has other values then."""

    __slots__ = ()

    def witness(self, time: int) -> None:
        """The receipt is an event, too."""
        if not self.physical:
            self.value = max(self.value, time) + 1


class EverybodyReceives(Links):
    """FIG-4: a sender believes that all receivers of the group receive its messages."""

    def feeds(self, peer: Peer) -> bool:
        """Whatever the peer believes."""
        return self.itself.sends and receives(peer.role)


class UncheckedMembership(AcksGroup):
    """FIG-4, Berket98 §6: the rules for connections are not followed.

    A sender counts everybody as a receiver as soon as it hears of him, and heeds every acknowledgment; a receiver
    keeps the sender set that it began with, delivers what comes from others too, and sends everyone the one
    acknowledgment, in which those others are missing.
    """

    def _message(self, frame: MessageFrame) -> None:
        peer = self.links.peers.get(frame.sender)
        if peer is None or frame.sender in self.senders:
            super()._message(frame)
        elif frame.payloads and receives(self._role):
            self._effects.append(Deliver(frame))

    def _heeds(self, peer: Peer, frame: Acknowledgment) -> bool:  # noqa: ARG002
        return True

    def _answered(self, peer: Peer, *, unasked: bool) -> None:
        super()._answered(peer, unasked=unasked)
        if unasked and peer.process in self._newcomers:
            self._newcomers.remove(peer.process)  # only of those who were there before us we know that they send

    def _connected(self, peer: Peer) -> None:
        super()._connected(peer)
        if self.links.feeds(peer) and peer.process not in self.receivers:
            self.receivers.add(peer.process)
            self.protocol.add_receiver(peer.process, 0)
            self._install()

    def _acknowledge(self, now: int) -> None:
        super()._acknowledge(now)
        for effect in [*self._effects]:
            if isinstance(effect, Transmit) and effect.to is Scope.SENDERS:
                missing = [
                    peer for peer in self.links.peers.values() if peer.sends and peer.process not in self.senders
                ]
                self._effects += [effect._replace(to=peer.process) for peer in missing]


class CredulousTransitiveAcks(TransitiveAcks):
    """T12, stability.md 3: what lies in the past of a message of x is acknowledged by x, whether or not x has it."""

    def _vouches(self, *_: object) -> bool:
        return True


_OTHERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "T6": {"clock": WallClock},
    "T8": {"merges_first_ack": False},
    "T9": {"clock": EagerLogicalClock},
    "T12": {"protocols": {**ADOPTED.protocols, "transitive": CredulousTransitiveAcks}},
    "FIG-4": {"group": UncheckedMembership, "links": EverybodyReceives},
}
ERRATA: Final = tuple(_OTHERS)
"""The errata whose printed rule can be followed."""


def printed(errata: tuple[str, ...]) -> Rules:
    """The adopted rules with the printed ones in place of those named."""
    rules = ADOPTED
    for erratum in errata:
        rules = replace(rules, **_OTHERS[erratum])
    return rules
