"""Routes the frames of one process: to which peers, over which transport. It implements `drive.Network`."""

from collections.abc import Callable

from antiphon.core.effects import Left, Scope, Transmit
from antiphon.sockets.transports.contract import Transport
from antiphon.trace.labels import Labels
from antiphon.types import GroupId, ProcessId, View, name_of
from antiphon.wire.codec import encode

Multicast = Callable[[bytes, GroupId], None]
"""Keeps a frame for all processes that listen to a group until `Transport.flush`."""


class Port:
    """The outgoing side of one process, for all its groups."""

    __slots__ = ("_labels", "_me", "_multicast", "_transport", "others")

    def __init__(self, me: ProcessId, transport: Transport, labels: Labels, multicast: Multicast | None) -> None:
        """`multicast`: transmits to all listeners of a group, which the sender need not know (InterGroup)."""
        self.others: dict[GroupId, tuple[ProcessId, ...]] = {}
        """By group, the peers that frames go to."""
        self._me = me
        self._transport = transport
        self._labels = labels
        self._multicast = multicast

    def install(self, view: View) -> None:
        self.others[view.group] = tuple(member for member in view.members if member != self._me)
        self._tell_members()

    def leave(self, effect: Left) -> None:
        self.others.pop(effect.group, None)
        if effect.successor is None:
            self._tell_members()
            self._labels.parted(name_of(effect.group))

    def _tell_members(self) -> None:
        self._transport.set_members(frozenset(member for others in self.others.values() for member in others))

    def copies(self, effect: Transmit) -> int:
        """One copy of a multicast frame leaves; the number of listeners is not known here."""
        to = effect.to
        return len(self.others.get(effect.frame.group, ())) if isinstance(to, Scope) and to is not Scope.GROUP else 1

    def transmit(self, effect: Transmit, _now: int) -> None:
        """Encode a frame once, and keep it until the transport is flushed."""
        frame, to = effect.frame, effect.to
        if frame.payloads:
            self._labels.transmitted(frame)
        if to is Scope.GROUP:
            assert self._multicast is not None, "such a core needs a transport that multicasts"
            self._multicast(encode(frame), frame.group)
        else:
            peers = self.others.get(frame.group, ()) if isinstance(to, Scope) else (to,)
            self._transport.send(encode(frame), peers, frame)
