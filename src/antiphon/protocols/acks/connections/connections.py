"""The private sets of one process in one group (Berket98 §6): R_s, which it sends to, and S_r, which it receives from.

The invariant of §6 is kept by the order in which the sets grow. A receiver counts a sender from its first
acknowledgment to that sender on. A sender counts a receiver from its first message after that acknowledgment on. Hence
r ∈ R_s implies s ∈ S_r, and an acknowledgment that counts was made while its sender counted us.
"""

from typing import TYPE_CHECKING

from antiphon.core.clocks import TimestampClock
from antiphon.core.effects import Effect, InstallView, Transmit
from antiphon.protocols.acks.acknowledging.contract import AckProtocol
from antiphon.protocols.acks.connections.links import Links, Peer
from antiphon.protocols.acks.frames import Acknowledgment, CloseFrame, OpenFrame
from antiphon.protocols.acks.settings import receives
from antiphon.types import GroupId, ProcessId, View, private_view

if TYPE_CHECKING:
    from antiphon.protocols.acks.rules import Rules


class Connections:
    """Opens and closes connections, and installs a private view whenever one of the sets changes."""

    def __init__(
        self,
        group: GroupId,
        links: Links,
        protocol: AckProtocol,
        clock: TimestampClock,
        effects: list[Effect],
        rules: "Rules",
        *,
        static: bool,
    ) -> None:
        """`static`: the group never changes (theorem 2), so frames that open connections are ignored."""
        self._group, self._static = group, static
        self.links = links
        self._protocol, self._clock = protocol, clock
        self._effects = effects
        self._merges_first_ack = rules.merges_first_ack
        self._acknowledges = receives(links.itself.role) and not protocol.piggybacks
        self.receivers: set[ProcessId] = set()
        """R_s."""
        self.senders: set[ProcessId] = set()
        """S_r, without us."""
        self._new_senders: list[ProcessId] = []
        """Senders for which our next acknowledgment is the first."""
        self._candidates: dict[ProcessId, int] = {}
        """Receivers for which our next message is the first, with their first acknowledgments."""
        self._view: View | None = None

    def connect_present(self) -> None:
        """The processes that are present from the start count from the start; all vectors are 0."""
        links = self.links
        links.connect_present()
        for peer in links.peers.values():
            self._protocol.hear(peer, from_start=True)
            if links.takes(peer):
                self._add_sender(peer.process, 0)
            if links.feeds(peer):
                self._add_receiver(peer.process, 0)
        self._install()

    # Sessions

    def join(self) -> None:
        """Begin a session: open towards every process that concerns us; those in the group will answer."""
        self.links.begin_session()
        self._install()
        for process in self.links.expected():
            self._open(process, answers=0)

    def leave(self) -> None:
        """End the session: close towards every process that concerns us."""
        links = self.links
        close = CloseFrame(self._group, links.me, links.session)
        for process in sorted({*links.expected(), *links.peers}):
            self._effects.append(Transmit(close, process))
        for process in [*links.peers]:
            self._cut(process)
        links.end_session()
        self._install()

    def drop(self, process: ProcessId) -> None:
        """The channels to a process are closed or broken: it no longer counts, which may raise minima at once."""
        if process in self.links.peers and self._cut(process):
            self._install()

    def closed(self, frame: CloseFrame) -> bool:
        """Drop the sender of the frame; False if the frame belongs to an earlier session of it."""
        peer = self.links.peers.get(frame.sender)
        if peer is None or peer.session != frame.session:
            return False
        self.drop(frame.sender)
        return True

    def opened(self, frame: OpenFrame) -> None:
        """A process is in the group: answer it once in each of its sessions. If it answers ours, we are connected."""
        links, process = self.links, frame.sender
        if links.stale(frame) or self._static:
            return
        known = links.peers.get(process)
        if known is not None and known.session < frame.session:
            self.drop(process)
            known = None
        if known is None:
            known = Peer(process, frame.session, frame.role, frame.sources)
            if not links.concerns(known):
                return
            links.add(known)
            self._open(process, answers=frame.session)
            self._answered(known, unasked=not frame.answers)
        if frame.answers and known.acks_from is None:
            known.acks_from = frame.acks_from
            self._connected(known)

    def _answered(self, peer: Peer, *, unasked: bool) -> None:  # noqa: ARG002
        """We have answered its session: our next acknowledgment is for it too, and its frames may arrive."""
        self._protocol.hear(peer)
        if self._acknowledges and self.links.takes(peer):
            self._new_senders.append(peer.process)

    def _connected(self, peer: Peer) -> None:
        """It has answered our session.

        Piggybacked acknowledgments may reach it from now on. The other kinds wait for its first acknowledgment.
        """
        if self._protocol.piggybacks and self.links.takes(peer):
            self._add_sender(peer.process, 0)
            self._install()

    def _open(self, process: ProcessId, answers: int) -> None:
        links, itself = self.links, self.links.itself
        sources = None if itself.sources is None else tuple(sorted(itself.sources))
        first_ack = self._protocol.numbered + 1
        frame = OpenFrame(self._group, links.me, links.session, answers, first_ack, itself.role, sources)
        self._effects.append(Transmit(frame, process))

    # The sets

    def is_current(self, peer: Peer, frame: Acknowledgment) -> bool:
        """True if the acknowledgment was made in this connection: no other one counts (T13)."""
        return peer.acks_from is not None and frame.number >= peer.acks_from

    def acknowledged_first(self, peer: Peer, value: int) -> None:
        """A receiver has acknowledged for the first time, so it counts us; our next message makes us count it.

        Rule T8: that message must be above its first acknowledgment, even if our clock is behind.
        """
        if peer.process not in self.receivers and self.links.feeds(peer):
            self._candidates[peer.process] = value
            if self._merges_first_ack:
                self._clock.merge(value)

    def admit_receivers(self, stamp: int) -> None:
        """R_s gains the receivers whose acknowledgment is below the stamp of the message about to leave (T8)."""
        admitted = [(receiver, value) for receiver, value in self._candidates.items() if value < stamp]
        for receiver, value in admitted:
            del self._candidates[receiver]
            self._add_receiver(receiver, value)
        if admitted:
            self._install()

    def admit_senders(self, now: int) -> None:
        """S_r gains the senders for which the acknowledgment about to leave is the first."""
        if self._new_senders:
            value = self._protocol.first_value(now)
            for sender in self._new_senders:
                self._add_sender(sender, value)
            self._new_senders.clear()
            self._install()

    def _add_sender(self, sender: ProcessId, value: int) -> None:
        self.senders.add(sender)
        self._protocol.add_sender(sender, value)

    def _add_receiver(self, receiver: ProcessId, value: int) -> None:
        self.receivers.add(receiver)
        self._protocol.add_receiver(receiver, value)

    def _cut(self, process: ProcessId) -> bool:
        """Forget a peer; True if that changes our sets."""
        changes = process in self.senders or process in self.receivers
        self.links.remove(process)
        self._candidates.pop(process, None)
        if process in self._new_senders:
            self._new_senders.remove(process)
        if process in self.senders:
            self.senders.remove(process)
            self._protocol.remove_sender(process)
        if process in self.receivers:
            self.receivers.remove(process)
            self._protocol.remove_receiver(process)
        self._protocol.forget(process)
        return changes

    def _install(self) -> None:
        self._view = private_view(self.links.me, self._group, self.receivers, self.senders, self._view)
        self._effects.append(InstallView(self._view))
