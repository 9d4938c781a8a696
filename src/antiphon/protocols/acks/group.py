"""One process in one group: what the four kinds of acknowledgments share (Berket98 §2, §3, §6).

From docs/spec/stability.md 1-4. A process stamps and sends messages, delivers what it receives, and keeps its own
messages until they are stable. `connections/` decides which processes it sends to and receives from.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from antiphon.core.effects import Deliver, Discard, Effect, Scope, Stable, Transmit
from antiphon.protocols.acks.acknowledging.contract import AckProtocol
from antiphon.protocols.acks.connections.links import Links, Peer
from antiphon.protocols.acks.frames import (
    AckFrame,
    Acknowledgment,
    AcksFrame,
    CloseFrame,
    MessageFrame,
    OpenFrame,
    VectorAckFrame,
)
from antiphon.protocols.acks.schedule import Schedule
from antiphon.protocols.acks.settings import AcksGroupPlan, AcksSettings, receives
from antiphon.protocols.acks.unstable import UnstableMessages
from antiphon.types import GroupId, ProcessId

if TYPE_CHECKING:
    from antiphon.protocols.acks.rules import Rules


class AcksGroup:
    def __init__(
        self, me: ProcessId, name: GroupId, plan: AcksGroupPlan, settings: AcksSettings, rules: "Rules"
    ) -> None:
        self._me, self._name, self._tracing = me, name, settings.tracing
        self._role = plan.roles[me]
        self._watches_all = settings.stability == "all"
        assert not self._watches_all or (set(plan.roles.values()) == {"both"} and settings.acks != "explicit")
        self._effects: list[Effect] = []
        self._clock = rules.clock(physical=settings.clock == "physical")
        """One for each group, because groups are independent: a busy group must not drive the clock of another."""
        self._outbox: deque[tuple[bytes, int]] = deque()
        self._writable = True
        self._unstable = UnstableMessages()
        links = rules.links(me, plan)
        self.protocol: AckProtocol = rules.protocols[settings.acks](
            name, links, self._clock, watches_all=self._watches_all
        )
        self._schedule = Schedule(settings, self._role, piggybacks=self.protocol.piggybacks)
        self.connections = rules.connections(
            name, links, self.protocol, self._clock, self._effects, rules, static=self._watches_all
        )
        self._handlers: Mapping[type[Any], Callable[[Any], None]] = {
            MessageFrame: self._message,
            OpenFrame: self.connections.opened,
            CloseFrame: self._closed,
            AckFrame: self._acknowledged,
            VectorAckFrame: self._acknowledged,
        }
        if links.joined:
            self._connect_present()

    def _connect_present(self) -> None:
        self.connections.connect_present()
        if self._watches_all:
            for process in self.links.peers:
                self._unstable.watch(process)

    @property
    def links(self) -> Links:
        return self.connections.links

    @property
    def deadline(self) -> int | None:
        return self._schedule.deadline

    @property
    def unstable(self) -> int:
        """Number of our messages that some receiver may lack."""
        return len(self._unstable)

    # Inputs

    def send(self, payload: bytes, label: int) -> None:
        self._outbox.append((payload, label))

    def set_writable(self, ready: bool) -> None:
        self._writable = ready

    def receive(self, frame: AcksFrame) -> None:
        """Receive a frame; a process outside the group ignores it."""
        if self.links.joined:
            self._handlers[type(frame)](frame)

    def join(self) -> None:
        if not self.links.joined:
            self._schedule.reset()
            self.connections.join()

    def leave(self, now: int) -> None:
        """Transmit the messages that wait, and then the closing frames."""
        if not self.links.joined:
            return
        self._transmit_waiting(now)
        for process in self.links.peers:
            self._unstable.forget(process)
        self.connections.leave()
        self._schedule.stop()

    def drop(self, process: ProcessId) -> None:
        """The channels to a process are broken."""
        self._unstable.forget(process)
        self.connections.drop(process)

    def _closed(self, frame: CloseFrame) -> None:
        if self.connections.closed(frame):
            self._unstable.forget(frame.sender)

    def _message(self, frame: MessageFrame) -> None:
        peer = self.links.peers.get(frame.sender)
        if peer is None or not self.protocol.received(frame):
            return
        self._clock.witness(frame.stamp)
        if self.protocol.piggybacks:
            self.connections.acknowledged_first(peer, 0)
        if frame.payloads and self._delivers(peer):
            self._effects.append(Deliver(frame))
            self._effects += self.protocol.reply(frame)
            if self._watches_all:
                self._unstable.received(frame.sender, frame.stamp, frame.label)

    def _delivers(self, peer: Peer) -> bool:
        return self.links.takes(peer)

    def _acknowledged(self, frame: Acknowledgment) -> None:
        peer = self.links.peers.get(frame.sender)
        if peer is None or not self.connections.is_current(peer, frame):
            return
        if isinstance(frame, AckFrame):
            self._clock.witness(frame.time)
        if frame.sender in self.connections.receivers:
            self.protocol.acknowledged(frame)
            return
        value = self.protocol.said_of_me(frame)
        if value is not None:
            self.connections.acknowledged_first(peer, value)

    # Outputs

    def settle(self, now: int, effects: list[Effect]) -> None:
        """Transmit what waits, a null or an acknowledgment if one is due, and then free what has become stable."""
        if self.links.joined:
            schedule = self._schedule
            if not schedule.started:
                schedule.start(now)
            if self._outbox and self._writable:
                self._transmit_waiting(now)
            if schedule.send_at is not None and schedule.send_at <= now:
                self._transmit((), 0, now)
            if schedule.ack_at is not None and schedule.ack_at <= now:
                self._acknowledge(now)
        if self._unstable or self._watches_all:
            self._conclude()
        if self._effects:
            effects += self._effects
            self._effects.clear()  # `connections` adds to this very list

    def _transmit_waiting(self, now: int) -> None:
        outbox = self._outbox
        while outbox:
            payload, label = outbox.popleft()
            self._transmit((payload,), label, now)

    def _transmit(self, payloads: tuple[bytes, ...], label: int, now: int) -> None:
        """Stamp and transmit a message or, without payloads, a null."""
        stamp = self._clock.stamp(now)
        self.connections.admit_receivers(stamp)
        frame = MessageFrame(self._name, self._me, stamp, payloads, label, *self.protocol.past())
        self.protocol.sent(frame)
        self._effects.append(Transmit(frame, Scope.VIEW if self.protocol.piggybacks else Scope.RECEIVERS))
        self._schedule.sent(now)
        if payloads:
            self._unstable.sent(stamp, label)
            if receives(self._role):
                self._effects.append(Deliver(frame))

    def _acknowledge(self, now: int) -> None:
        """Tell everyone in S_r what has arrived here."""
        self.connections.admit_senders(now)
        self._effects += self.protocol.acknowledge(now)
        self._schedule.acknowledged(now)

    def _conclude(self) -> None:
        upto = self._unstable.take_own(self.protocol.stable)
        own = [(self._me, upto)] if upto is not None else []
        told = own + (self._unstable.take_others(self.protocol.stable_of) if self._watches_all else [])
        if told and self._tracing:
            self._effects.append(Stable(self._name, tuple(sorted(told))))
            if own:
                self._effects.append(Discard(self._name, tuple(own)))
