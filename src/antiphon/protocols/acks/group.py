"""One process in one group: what the four acknowledgment protocols share (Berket98 §2, §3, §6; stability.md 1-4).

It stamps and sends, delivers what it receives, keeps its own messages until they are stable, and changes its two
private sets: R_s, to whom it sends, and S_r, from whom it receives. The invariant of §6 is kept by their order of
growth: a receiver counts a sender from its first acknowledgment to it on, a sender counts a receiver from its first
message after that on. Hence r ∈ R_s implies s ∈ S_r, and an acknowledgment that counts was made with us in view.
"""

from collections import deque
from typing import TYPE_CHECKING

from antiphon.core.effects import Deliver, Discard, Effect, InstallView, Scope, Stable, Transmit
from antiphon.protocols.acks.contract import AckProtocol
from antiphon.protocols.acks.frames import AckFrame, Acknowledgment, AcksFrame, CloseFrame, MessageFrame, OpenFrame
from antiphon.protocols.acks.links import Peer
from antiphon.protocols.acks.settings import AcksGroupPlan, AcksSettings, receives, sends
from antiphon.types import GroupId, ProcessId, View, private_view

if TYPE_CHECKING:
    from antiphon.protocols.acks.rules import Rules


class AcksGroup:
    """Invariant: what is in `_buffer` was sent by us, carries a payload, and is not known to be stable."""

    def __init__(
        self, me: ProcessId, name: GroupId, plan: AcksGroupPlan, settings: AcksSettings, rules: "Rules"
    ) -> None:
        self.clock = rules.clock(physical=settings.clock == "physical")
        """One per group, since groups are independent: a busy one must not set logical clocks of another apart."""
        self.links = rules.links(me, plan)
        self.receivers: set[ProcessId] = set()
        """R_s."""
        self.senders: set[ProcessId] = set()
        """S_r, of others."""
        self.outbox: deque[tuple[bytes, int]] = deque()
        self.writable = True
        self.armed: int | None = None
        """The deadline that the process has an alarm for."""
        self._me = me
        self._name = name
        self._settings = settings
        self._rules = rules
        self._role = plan.roles[me]
        self._watches_all = settings.stability == "all"
        assert not self._watches_all or (set(plan.roles.values()) == {"both"} and settings.acks != "explicit")
        self.protocol: AckProtocol = rules.protocols[settings.acks](
            name, self.links, self.clock, watches_all=self._watches_all
        )
        rides = self.protocol.rides
        self._reach = Scope.VIEW if rides else Scope.RECEIVERS
        self._speaks = rides or sends(self._role)
        self._acknowledges = receives(self._role) and not rides
        self._silence_ns = self._longest_silence()
        self._send_at: int | None = None
        self._ack_at: int | None = None
        self._newcomers: list[ProcessId] = []  # senders that our next acknowledgment is the first for
        self._candidates: dict[ProcessId, int] = {}  # receivers that our next message is the first for: their first ack
        self._buffer: deque[tuple[int, int]] = deque()  # stamps and labels
        self._others: dict[ProcessId, deque[tuple[int, int]]] = {}  # likewise of everybody, where all is watched
        self._view: View | None = None
        self._effects: list[Effect] = []
        self._started = False  # timers are set when time is first known
        if self.links.joined:
            self._connect_present()

    @property
    def deadline(self) -> int | None:
        """When this group must be looked at again."""
        send_at, ack_at = self._send_at, self._ack_at
        if send_at is None or (ack_at is not None and ack_at < send_at):
            return ack_at
        return send_at

    @property
    def unstable(self) -> int:
        """How many of our messages somebody may still lack."""
        return len(self._buffer)

    # What comes in

    def receive(self, frame: AcksFrame) -> None:
        """Take a frame; outside the group nothing concerns us."""
        if not self.links.joined:
            return
        if isinstance(frame, MessageFrame):
            self._message(frame)
        elif isinstance(frame, OpenFrame):
            self._opened(frame)
        elif isinstance(frame, CloseFrame):
            peer = self.links.peers.get(frame.sender)
            if peer is not None and peer.session == frame.session:
                self.drop(frame.sender)
        else:
            self._acknowledged(frame)

    def join(self) -> None:
        """Begin a session: open towards everybody we may have to do with; who is there will answer."""
        links = self.links
        if links.joined:
            return
        links.joined = True
        links.session += 1
        self._started = False
        self._install()
        for process in links.expected():
            self._open(process, answers=0)

    def leave(self, now: int) -> None:
        """End the session: what the application has asked for leaves first, then the closing frames, then nothing."""
        links = self.links
        if not links.joined:
            return
        self._send_waiting(now)
        close = CloseFrame(self._name, self._me, links.session)
        for process in sorted({*links.expected(), *links.peers}):
            self._effects.append(Transmit(close, process))
        for process in [*links.peers]:
            self._cut(process)
        links.joined = False
        self._send_at = self._ack_at = None
        self._install()

    def drop(self, process: ProcessId) -> None:
        """The channels to a process are closed or broken: it no longer counts, which may raise minima at once."""
        if process in self.links.peers and self._cut(process):
            self._install()

    def _message(self, frame: MessageFrame) -> None:
        peer = self.links.peers.get(frame.sender)
        if peer is None or not self.protocol.received(frame):
            return
        self.clock.witness(frame.stamp)
        if self.protocol.rides:
            self._becomes_candidate(peer, 0)
        if frame.payloads and self._delivers(peer):
            self._effects.append(Deliver(frame))
            self._effects += self.protocol.reply(frame)
            if self._watches_all:
                self._others[frame.sender].append((frame.stamp, frame.label))

    def _delivers(self, peer: Peer) -> bool:
        return self.links.takes(peer)

    def _acknowledged(self, frame: Acknowledgment) -> None:
        peer = self.links.peers.get(frame.sender)
        if peer is None or not self._heeds(peer, frame):
            return
        if isinstance(frame, AckFrame):
            self.clock.witness(frame.time)
        if frame.sender in self.receivers:
            self.protocol.acknowledged(frame)
            return
        value = self.protocol.said_of_me(frame)
        if value is not None:
            self._becomes_candidate(peer, value)

    def _heeds(self, peer: Peer, frame: Acknowledgment) -> bool:
        """Only what was acknowledged in this connection, to us, counts (T13)."""
        return peer.acks_from is not None and frame.number >= peer.acks_from

    def _becomes_candidate(self, peer: Peer, value: int) -> None:
        """A receiver has acknowledged for the first time, so it counts us; its own turn comes with our next message.

        Rule T8: that message must be above its first acknowledgment, even if our clock is behind.
        """
        if peer.process not in self.receivers and self.links.feeds(peer):
            self._candidates[peer.process] = value
            if self._rules.merges_first_ack:
                self.clock.merge(value)

    # Connections

    def _opened(self, frame: OpenFrame) -> None:
        """A process is in the group: answer it once in each of its sessions; if it answers ours, we are connected."""
        links, process = self.links, frame.sender
        if links.stale(frame) or self._watches_all:  # where all is watched, the group stays as it is (theorem 2)
            return
        known = links.peers.get(process)
        if known is not None and known.session < frame.session:
            self.drop(process)
            known = None
        if known is None:
            known = Peer(process, frame.session, frame.role, frame.sources)
            if not links.concerns(known):
                return
            links.peers[process] = known
            self._open(process, answers=frame.session)
            self._answered(known, unasked=not frame.answers)
        if frame.answers and known.acks_from is None:
            known.acks_from = frame.acks_from
            self._connected(known)

    def _answered(self, peer: Peer, *, unasked: bool) -> None:  # noqa: ARG002
        """We have answered its session: our next acknowledgment is for it too, and its frames may come."""
        self.protocol.hear(peer)
        if self._acknowledges and self.links.takes(peer):
            self._newcomers.append(peer.process)

    def _connected(self, peer: Peer) -> None:
        """It has answered ours. What rides on messages may ride to it from now on; others wait for its first ack."""
        if self.protocol.rides and self.links.takes(peer):
            self.senders.add(peer.process)
            self.protocol.add_sender(peer.process, 0)
            self._install()

    def _open(self, process: ProcessId, answers: int) -> None:
        links, sources = self.links, self.links.itself.sources
        frame = OpenFrame(
            self._name,
            self._me,
            links.session,
            answers,
            self.protocol.numbered + 1,
            self._role,
            None if sources is None else tuple(sorted(sources)),
        )
        self._effects.append(Transmit(frame, process))

    def _cut(self, process: ProcessId) -> bool:
        """Forget a peer; whether that changes our sets."""
        changes = process in self.senders or process in self.receivers
        del self.links.peers[process]
        self._others.pop(process, None)
        self._candidates.pop(process, None)
        if process in self._newcomers:
            self._newcomers.remove(process)
        if process in self.senders:
            self.senders.remove(process)
            self.protocol.remove_sender(process)
        if process in self.receivers:
            self.receivers.remove(process)
            self.protocol.remove_receiver(process)
        self.protocol.forget(process)
        return changes

    # What goes out

    def settle(self, now: int, effects: list[Effect]) -> None:
        """Send what waits, a null or an acknowledgment if one is due, then let go what has become stable."""
        if self.links.joined:
            if not self._started:
                self._arm(now)
            if self.outbox and self.writable:
                self._send_waiting(now)
            if self._send_at is not None and self._send_at <= now:
                self._send((), 0, now)
            if self._ack_at is not None and self._ack_at <= now:
                self._acknowledge(now)
        if self._buffer or self._watches_all:
            self._conclude()
        if self._effects:
            effects += self._effects
            self._effects = []

    def _connect_present(self) -> None:
        """Everybody who is there from the start counts from the start; all vectors are 0."""
        links = self.links
        links.start()
        for peer in links.peers.values():
            self.protocol.hear(peer, from_start=True)
            if links.takes(peer):
                self.senders.add(peer.process)
                self.protocol.add_sender(peer.process, 0)
            if links.feeds(peer):
                self.receivers.add(peer.process)
                self.protocol.add_receiver(peer.process, 0)
            self._others[peer.process] = deque()
        self._install()

    def _arm(self, now: int) -> None:
        settings = self._settings
        self._started = True
        first_ns = settings.first_send_ns if sends(self._role) else settings.first_ack_ns
        self._send_at = now + first_ns if self._speaks else None
        self._ack_at = now + settings.first_ack_ns if self._acknowledges else None

    def _longest_silence(self) -> int:
        """t_send; but where acknowledgments ride on messages, an idle process speaks every t_ack (stability.md 3)."""
        settings = self._settings
        if not self.protocol.rides:
            return settings.send_every_ns
        return min(settings.send_every_ns, settings.ack_every_ns) if sends(self._role) else settings.ack_every_ns

    def _send_waiting(self, now: int) -> None:
        outbox = self.outbox
        while outbox:
            payload, label = outbox.popleft()
            self._send((payload,), label, now)

    def _send(self, payloads: tuple[bytes, ...], label: int, now: int) -> None:
        stamp = self.clock.stamp(now)
        self._admit(stamp)
        frame = MessageFrame(self._name, self._me, stamp, payloads, label, *self.protocol.past())
        self.protocol.sent(frame)
        self._effects.append(Transmit(frame, self._reach))
        self._send_at = now + self._silence_ns
        if payloads:
            self._buffer.append((stamp, label))
            if receives(self._role):
                self._effects.append(Deliver(frame))

    def _admit(self, stamp: int) -> None:
        """R_s gains whoever has acknowledged less than the stamp of the message that is about to leave (T8)."""
        admitted = [(receiver, value) for receiver, value in self._candidates.items() if value < stamp]
        for receiver, value in admitted:
            del self._candidates[receiver]
            self.receivers.add(receiver)
            self.protocol.add_receiver(receiver, value)
        if admitted:
            self._install()

    def _acknowledge(self, now: int) -> None:
        """S_r gains those who have opened since; then everyone in it is told what is here."""
        if self._newcomers:
            value = self.protocol.first_value(now)
            for sender in self._newcomers:
                self.senders.add(sender)
                self.protocol.add_sender(sender, value)
            self._newcomers.clear()
            self._install()
        self._effects += self.protocol.acknowledge(now)
        assert self._ack_at is not None
        self._ack_at += self._settings.ack_every_ns
        if self._ack_at <= now:  # we slept through some
            self._ack_at = now + self._settings.ack_every_ns

    def _conclude(self) -> None:
        upto = _take(self._buffer, self.protocol.stable)
        own = [(self._me, upto)] if upto is not None else []
        told = own + (self._stable_of_others() if self._watches_all else [])
        if told and self._settings.tracing:
            self._effects.append(Stable(self._name, tuple(sorted(told))))
            if own:
                self._effects.append(Discard(self._name, tuple(own)))

    def _stable_of_others(self) -> list[tuple[ProcessId, int]]:
        labels = ((sender, _take(known, self.protocol.stable_of(sender))) for sender, known in self._others.items())
        return [(sender, label) for sender, label in labels if label is not None]

    def _install(self) -> None:
        self._view = private_view(self._me, self._name, self.receivers, self.senders, self._view)
        self._effects.append(InstallView(self._view))


def _take(messages: deque[tuple[int, int]], stable: int) -> int | None:
    """Let go all messages up to a stamp; gives the label of the last one, or None."""
    last = None
    while messages and messages[0][0] <= stable:
        last = messages.popleft()[1]
    return last
