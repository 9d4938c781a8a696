"""A receiver in source order: asks each of its sources where to begin (Berket00 §4.7; errata D1, T5, J9).

Its sources are those that it chose, or all senders that it hears. What a change of the sender group means for it
(docs/spec/intergroup.md 6.2): a source that is added is asked, a source that leaves in order ends its stream with its
last message, and a source that is silent for long is lost. Numbers go on in every view (D12), so a repair of the sender
group does not concern it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from antiphon.core.effects import Unavailable
from antiphon.protocols.intergroup.context import MemberContext
from antiphon.protocols.intergroup.delivery.handoff import Handoff
from antiphon.protocols.intergroup.delivery.orders import SourceOrder
from antiphon.protocols.intergroup.frames import (
    DataFrame,
    GoneFrame,
    KeepAliveFrame,
    RepairFrame,
    ReportFrame,
    RequestFrame,
    SourceAcceptFrame,
    SourceRequestFrame,
)
from antiphon.protocols.intergroup.outlet import Outlet, Views
from antiphon.protocols.intergroup.repair.recovery import Recovery
from antiphon.protocols.intergroup.role import Handlers, Role
from antiphon.protocols.intergroup.settings import ASK_EVERY_NS, SOURCE_TRIES, SOURCES_MAX
from antiphon.protocols.intergroup.stability.schedule import ReportSchedule
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId, split_process_id


@dataclass(slots=True)
class _Activation:
    """A source that has not accepted our request yet."""

    nonce: int
    tries: int
    next_at: int


class SourceOrderReceiver(Role):
    """Its views are private: they name the sources that it receives from."""

    def __init__(self, context: MemberContext, outlet: Outlet, views: Views, handoff: Handoff) -> None:
        super().__init__(context, outlet, views, handoff)
        self._recovery = Recovery(context, outlet, handoff)
        self._order: SourceOrder[DataFrame] = SourceOrder(context.rules.stream)
        self._activating: dict[ProcessId, _Activation] = {}
        self._nonces = 0
        self._heard: dict[ProcessId, int] = {}
        """By source, when something was last heard of it."""
        self._left: dict[ProcessId, tuple[int, int]] = {}
        """By source that left in order, the number of its last message, and when we had it."""
        self._risen: dict[ProcessId, tuple[float, int]] = {}
        """By source, its horizon, and when that last rose."""
        self._gone: dict[Ticket, int] = {}
        """Messages that we lack and that no process holds any more, with the time at which we were told."""
        self._reports = ReportSchedule(context.me, context.settings.report_every_ns, context.draw)
        self._acked = 0
        """The largest stamp that we have acknowledged."""
        self._consumed_at = 0
        """When the application last consumed something, or had nothing to consume."""
        self._has_consumed = False
        """True if it has consumed something since the last `conclude`."""

    def begin(self, now: int) -> None:
        plan = self._context.plan
        for source in plan.view.members if plan.sources is None else plan.sources:
            self._activate(source, now)
        self._install_view(self._order.streams)

    def _is_chosen(self, sender: ProcessId) -> bool:
        """A source is chosen by its name, for all its incarnations."""
        sources = self._context.plan.sources
        return sources is None or split_process_id(sender)[0] in sources

    def end(self) -> None:
        context = self._context
        self._outlet.transmit(ReportFrame(context.group, context.me, context.epoch, 0, ()))
        for source in [*self._order.streams]:
            self._drop(source)
        self._activating.clear()

    def consumed(self) -> None:
        self._has_consumed = True

    # Frames

    def data(self, message: DataFrame, now: int) -> None:
        if self._note_heard(message, now):
            self._recovery.received(self._order, message, now)
            self._end_if_left(message.sender, now)

    def repair(self, frame: RepairFrame, now: int) -> None:
        self._recovery.received(self._order, frame.message, now, repair=True)
        self._end_if_left(frame.message.sender, now)

    def keep_alive(self, frame: KeepAliveFrame, now: int) -> None:
        if self._note_heard(frame, now):
            self._recovery.keep_alive(self._order, frame, now)

    def _note_heard(self, frame: DataFrame | KeepAliveFrame, now: int) -> bool:
        """A source lives; one that is new, or was given up, is asked. False if the sender is no source of ours."""
        source = frame.sender
        if not self._is_chosen(source) or (source not in self._heard and len(self._heard) >= SOURCES_MAX):
            return False
        if self._is_leaving(source, frame.seq, now):
            return False
        self._heard[source] = now
        if source in self._order.streams:
            return True
        activation = self._activating.get(source)
        if activation is None or activation.tries > SOURCE_TRIES:
            self._activate(source, now)
        return True

    def _is_leaving(self, source: ProcessId, seq: int, now: int) -> bool:
        """True if a source that left repeats its last number until all have its last message (D9).

        A source that still does so much later has become a sender again.
        """
        last, at = self._left.get(source, (-1, now))
        return seq <= last and now - at < 2 * self._context.settings.suspect_after_ns

    def _end_if_left(self, source: ProcessId, now: int) -> None:
        """The stream has ended with the source's own PLeave: it is no source any more, until it sends again."""
        stream = self._order.streams.get(source)
        if stream is not None and stream.has_ended:
            self._left[source] = stream.last, now
            del self._heard[source]
            self._drop(source)
            self._install_view(self._order.streams)

    def requested(self, frame: RequestFrame, now: int) -> None:
        self._recovery.heard(frame, now)

    @property
    def handlers(self) -> Handlers:
        return {SourceAcceptFrame: self._accepted, GoneFrame: self._note_gone, ReportFrame: self._reports.note}

    def _note_gone(self, frame: GoneFrame, now: int) -> None:
        if frame.ticket in self._recovery:
            self._gone.setdefault(frame.ticket, now)

    def _accepted(self, frame: SourceAcceptFrame, now: int) -> None:
        activation = self._activating.get(frame.sender)
        if frame.to != self._context.me or activation is None or activation.nonce != frame.nonce:
            return
        if frame.start > self._context.clock.read(now // 1000):
            return  # no gate is beyond the stamps that we have heard: if this is none of a sender's, it answers again
        if frame.start < self._acked:
            return  # others may free what we have acknowledged, also of this source: it answers again (T3)
        if not self._order.streams:
            self._acked = frame.start
        del self._activating[frame.sender]
        self._order.activate(frame.sender, frame.first, frame.start)
        self._heard[frame.sender] = now
        self._install_view(self._order.streams)
        self._reports.begin(now)  # the report names the source, and so ends its hold (J9)

    # Consequences

    def conclude(self, now: int) -> None:
        self._recovery.transmit_due(now)
        self._gone = {ticket: at for ticket, at in self._gone.items() if ticket in self._recovery}
        if not self._handoff or self._has_consumed:
            self._consumed_at = now
        self._has_consumed = False
        for source in [*self._order.streams]:
            if self._is_lost(source, now):
                self._drop(source)
                self._install_view(self._order.streams)
                self._activate(source, now)
        for source, activation in [*self._activating.items()]:
            if now >= activation.next_at and not self._handoff:
                self._try(source, activation, now)
        if self._order.streams and self._reports.is_due(now):
            self._report(now)

    def _report(self, now: int) -> None:
        context, ack = self._context, self._acknowledgeable(now)
        self._acked = max(self._acked, ack)
        sources = tuple(sorted(self._order.streams))
        self._outlet.transmit(ReportFrame(context.group, context.me, context.epoch, ack, sources))
        self._reports.sent(now)

    def _acknowledgeable(self, now: int) -> int:
        """What we have of all sources.

        While a source is to begin, it is no more than before: the source may begin below that (T3).
        """
        horizons = [int(stream.horizon) for stream in self._order.streams.values()]
        has = self._handoff.acknowledgeable(self._context.rules.relevant(horizons))
        if any(self._may_accept(source, activation, now) for source, activation in self._activating.items()):
            return min(has, self._acked)
        return has

    def _may_accept(self, source: ProcessId, activation: _Activation, now: int) -> bool:
        """True if the source may still answer: it was heard recently, or never, and has tries left.

        A source that fell silent is probably dead: stability must not wait for its answers.
        """
        heard_at = self._heard.get(source)
        return activation.tries < SOURCE_TRIES if heard_at is None else heard_at >= now - 2 * ASK_EVERY_NS

    def _is_lost(self, source: ProcessId, now: int) -> bool:
        """True if the source is silent, or a message of it is gone; if we or our application do not keep up (J16)."""
        settings = self._context.settings
        gone = [at for ticket, at in self._gone.items() if ticket.sender == source]
        waited = settings.suspect_after_ns
        stalled = now - min(self._consumed_at, self._rose(source, now)) >= settings.stall_ns
        return stalled or now - self._heard[source] >= 2 * waited or any(now - at >= waited for at in gone)

    def _rose(self, source: ProcessId, now: int) -> int:
        """When the horizon of the source last rose: it may have told us a first number that it never reaches."""
        horizon, known = self._order.streams[source].horizon, self._risen.get(source)
        if known is None or known[0] < horizon:
            known = self._risen[source] = horizon, now
        return known[1]

    def _drop(self, source: ProcessId) -> None:
        stream = self._order.streams[source]
        self._recovery.forget(source, below=stream.expected + 1)
        self._order.drop(source)
        self._risen.pop(source, None)
        self._gone = {ticket: at for ticket, at in self._gone.items() if ticket.sender != source}

    def _activate(self, source: ProcessId, now: int) -> None:
        """Ask the source where to begin, from now on until it answers."""
        self._nonces += 1
        self._activating[source] = _Activation(self._nonces, 0, now)

    def _try(self, source: ProcessId, activation: _Activation, now: int) -> None:
        """Ask five times, a second apart; a source that is heard again is asked again (`_note_heard`)."""
        context = self._context
        if activation.tries < SOURCE_TRIES:
            activation.tries += 1
            self._outlet.transmit(SourceRequestFrame(context.group, context.me, activation.nonce), source)
        elif activation.tries == SOURCE_TRIES:
            activation.tries += 1  # tell it once
            self._outlet.add(Unavailable(context.group, source))
            self._heard.pop(source, None)
        activation.next_at = now + ASK_EVERY_NS

    def _install_view(self, sources: Iterable[ProcessId]) -> None:
        self._views.install_private(sources)

    def deadlines(self) -> Iterable[int]:
        settings, streams = self._context.settings, self._order.streams
        waits = [2 * settings.suspect_after_ns + self._heard[source] for source in streams]
        waits += [at + settings.suspect_after_ns for at in self._gone.values()]
        if self._handoff and streams:
            waits.append(self._consumed_at + settings.stall_ns)
        reports = [self._reports.next_at] if streams else []
        asked = [each.next_at for each in self._activating.values() if each.tries <= SOURCE_TRIES]
        asking = [] if self._handoff else asked
        return (*self._recovery.deadlines(), *waits, *reports, *asking)

    @property
    def unfinished(self) -> bool:
        asking = any(activation.tries <= SOURCE_TRIES for activation in self._activating.values())
        return len(self._recovery) > 0 or (asking and not self._handoff)
