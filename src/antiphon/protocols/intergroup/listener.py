"""A receiver in source order: asks each of its sources where to begin (Berket00 §4.7; errata D1, T5, J9)."""

from collections.abc import Iterable
from dataclasses import dataclass

from antiphon.protocols.intergroup.frames import (
    Answer,
    DataFrame,
    GoneFrame,
    KeepAliveFrame,
    ReportFrame,
    SourceAcceptFrame,
    SourceRequestFrame,
)
from antiphon.protocols.intergroup.orders import SourceOrder
from antiphon.protocols.intergroup.party import Part, Repaired
from antiphon.protocols.intergroup.requests import Ticket
from antiphon.protocols.intergroup.settings import ASK_EVERY_NS, SOURCE_TRIES
from antiphon.protocols.intergroup.stream import Stream
from antiphon.types import ProcessId


@dataclass(slots=True)
class _Asking:
    """A source that has not answered yet."""

    nonce: int
    tries: int
    next_at: int


class Listener(Repaired):
    """Its views are its own affair: they name the sources that it hears in order."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self._order: SourceOrder[DataFrame] = SourceOrder(part.rules.stream)
        self._asking: dict[ProcessId, _Asking] = {}
        self._heard: dict[ProcessId, int] = {}
        self._gone: dict[Ticket, int] = {}  # what we were told is gone, and when
        self._nonces = 0
        self._report_at = 0
        self._told = 0  # the largest stamp that we have acknowledged
        self._taken_at = 0  # when our application last had nothing to take, or took something
        self._takes = False

    def _begin(self, now: int) -> None:
        for source in self._plan.sources:
            self._ask_source(source, now)
        self._follow_these(self._order.streams)

    def _end(self) -> None:
        self._say(ReportFrame(self._name, self._me, self._plan.view.id, 0, ()))
        for source in [*self._order.streams]:
            self._drop(source)
        self._asking.clear()

    @property
    def unfinished(self) -> bool:
        """Whether a source has not answered, and could; or it lacks something."""
        return super().unfinished or (self.joined and bool(self._asking) and not self._untaken)

    # What comes in

    def consumed(self, position: int) -> None:
        """The application has taken so many deliveries."""
        super().consumed(position)
        self._takes = True

    def _streams(self) -> dict[ProcessId, Stream[DataFrame]]:
        return self._order.streams

    def _ordered(self, message: DataFrame) -> list[DataFrame]:
        return self._order.data(message.sender, message)

    def _data(self, message: DataFrame, now: int) -> None:
        self._heard[message.sender] = now
        super()._data(message, now)

    def _keep_alive(self, frame: KeepAliveFrame, now: int) -> None:
        self._heard[frame.sender] = now
        super()._keep_alive(frame, now)

    def _answer(self, frame: Answer, now: int) -> None:
        if isinstance(frame, SourceAcceptFrame) and frame.to == self._me:
            self._accepted(frame, now)
        elif isinstance(frame, GoneFrame) and frame.ticket in self._requests:
            self._gone.setdefault(frame.ticket, now)

    def _accepted(self, frame: SourceAcceptFrame, now: int) -> None:
        asking = self._asking.get(frame.sender)
        if asking is None or asking.nonce != frame.nonce:
            return
        if frame.start < self._told:
            return  # others may free what we have acknowledged, of this source too: it answers again (T3)
        if not self._order.streams:
            self._told = frame.start
        del self._asking[frame.sender]
        self._order.activate(frame.sender, frame.first, frame.start)
        self._heard[frame.sender] = now
        self._follow_these(self._order.streams)
        self._report_at = now  # names it, and so ends its hold (J9)

    # What follows

    def _conclude(self, now: int) -> None:
        super()._conclude(now)
        self._gone = {ticket: at for ticket, at in self._gone.items() if ticket in self._requests}
        if not self._untaken or self._takes:
            self._taken_at = now
        self._takes = False
        for source in [*self._order.streams]:
            if self._lost(source, now):
                self._drop(source)
                self._follow_these(self._order.streams)
                self._ask_source(source, now)
        for source, asking in [*self._asking.items()]:
            if now >= asking.next_at and not self._untaken:
                self._try(source, asking, now)
        if self._order.streams and now >= self._report_at:
            ack = self._acknowledged(now)
            self._told = max(self._told, ack)
            sources = tuple(sorted(self._order.streams))
            self._say(ReportFrame(self._name, self._me, self._plan.view.id, ack, sources))
            self._report_at = now + int(self._settings.report_every_ns * (0.5 + self._draw()))

    def _acknowledged(self, now: int) -> int:
        """What we have of all sources; no more than before while one is to begin, for it may begin below that (T3)."""
        has = self._untaken.held(int(min(stream.horizon for stream in self._order.streams.values())))
        if any(self._activating(source, asking, now) for source, asking in self._asking.items()):
            return min(has, self._told)
        return has

    def _activating(self, source: ProcessId, asking: _Asking, now: int) -> bool:
        """Whether it may answer yet: it was asked not often enough to be given up, or was heard of late."""
        return asking.tries < SOURCE_TRIES or self._heard.get(source, -1) >= now - 2 * ASK_EVERY_NS

    def _lost(self, source: ProcessId, now: int) -> bool:
        """Nothing is heard of it, something of it is gone for good, or our application does not keep up (J16)."""
        gone = [at for ticket, at in self._gone.items() if ticket.sender == source]
        waited = self._settings.suspect_after_ns
        stalled = now - self._taken_at >= self._settings.stall_ns
        return stalled or now - self._heard[source] >= 2 * waited or any(now - at >= waited for at in gone)

    def _drop(self, source: ProcessId) -> None:
        stream = self._order.streams[source]
        self._requests.forget(source, below=stream.expected + 1)
        self._order.drop(source)
        self._gone = {ticket: at for ticket, at in self._gone.items() if ticket.sender != source}

    def _ask_source(self, source: ProcessId, now: int) -> None:
        self._nonces += 1
        self._asking[source] = _Asking(self._nonces, 0, now)

    def _try(self, source: ProcessId, asking: _Asking, now: int) -> None:
        """Five times, a second apart; then again when something is heard of it."""
        if asking.tries < SOURCE_TRIES or self._heard.get(source, -1) >= asking.next_at - ASK_EVERY_NS:
            asking.tries += 1
            self._say(SourceRequestFrame(self._name, self._me, asking.nonce), source)
        asking.next_at = now + ASK_EVERY_NS

    def _deadlines(self) -> Iterable[int]:
        waits = [2 * self._settings.suspect_after_ns + self._heard[source] for source in self._order.streams]
        waits += [at + self._settings.suspect_after_ns for at in self._gone.values()]
        if self._untaken and self._order.streams:
            waits.append(self._taken_at + self._settings.stall_ns)
        reports = [self._report_at] if self._order.streams else []
        asking = [each.next_at for each in self._asking.values()] if not self._untaken else []
        return (*super()._deadlines(), *waits, *reports, *asking)
