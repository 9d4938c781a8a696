"""The classic multicasts and the acknowledgment protocols with one rule left out: the judge must notice.

T12 and T13 are too rare for random runs: `scenarios/errata/T12.toml` and `test_berket98_connection.py` show them;
FIG-4, also there, is what S5 is for.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import msgspec
import pytest

from antiphon.campaign.families import FAMILIES
from antiphon.properties.judge import judge
from antiphon.protocols.acks.acknowledging.minimum import Minimum
from antiphon.protocols.acks.acknowledging.timestamp import TimestampAcks
from antiphon.protocols.acks.connections.connections import Connections
from antiphon.protocols.acks.frames import MessageFrame
from antiphon.protocols.acks.group import AcksGroup
from antiphon.protocols.classic.frames import ClassicFrame, DataFrame, MessageName, RelayFrame
from antiphon.protocols.classic.ordering.combined import FifoTotal
from antiphon.protocols.classic.ordering.takeover import TwoPhaseWithTakeover
from antiphon.protocols.classic.ordering.two_phase import SiteClock
from antiphon.protocols.classic.relaying.causal import Causal
from antiphon.protocols.classic.relaying.fifo import Fifo
from antiphon.protocols.classic.relaying.reliable import Reliable
from antiphon.protocols.classic.relaying.synchronous import Synchronous
from antiphon.protocols.classic.requests import Requests
from antiphon.protocols.classic.site import Site
from antiphon.scenario.draws import MS
from antiphon.scenario.model import Crash, Scenario
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table
from antiphon.types import ProcessId
from tests.planted.found import Plant, assert_found

Fits = Callable[[Scenario], bool]


def no_relays(patch: pytest.MonkeyPatch) -> None:
    """No member relays messages."""
    real = Site.multicast

    def multicast(self: Site, frame: ClassicFrame) -> None:
        if not isinstance(frame, RelayFrame):
            real(self, frame)

    patch.setattr(Site, "multicast", multicast)


def deliver_every_copy(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reliable, "_arrived", lambda self, frame, _by: self._reliable(frame))


def no_bag(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fifo, "_reliable", lambda self, frame: self._fifo(frame))


def no_context(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Causal, "_context", lambda _self: ())


def commits_do_not_move_the_clock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SiteClock, "committed", lambda _self, _time: None)


def takers_ignore_reports(patch: pytest.MonkeyPatch) -> None:
    """A taker commits its own proposal at once, and ignores the reports of the other sites."""

    def decide(self: TwoPhaseWithTakeover, message: MessageName) -> None:
        entry = self._queue.get(message)
        if message in self._inquiries and entry is not None:
            self._commit(message, entry.stamp)

    patch.setattr(TwoPhaseWithTakeover, "_decide", decide)


def no_takeover(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TwoPhaseWithTakeover, "_decide", lambda _self, _message: None)


def many_messages_at_a_time(patch: pytest.MonkeyPatch) -> None:
    """Combined orders: a message does not wait for the commit of the one before."""

    def settle(self: FifoTotal, now: int) -> None:
        while self._waiting:
            TwoPhaseWithTakeover.send(self, *self._waiting.popleft())
        TwoPhaseWithTakeover.settle(self, now)

    patch.setattr(FifoTotal, "settle", settle)


def no_rounds(patch: pytest.MonkeyPatch) -> None:
    """A message is delivered when it arrives."""
    patch.setattr(Synchronous, "_reliable", lambda self, frame: self._site.deliver(frame))


def rounds_in_order_of_arrival(patch: pytest.MonkeyPatch) -> None:
    def end(self: Synchronous, frames: list[DataFrame]) -> None:
        for frame in frames:
            self._site.deliver(frame)

    patch.setattr(Synchronous, "_end", end)


def rounds_with_gaps(patch: pytest.MonkeyPatch) -> None:
    """A message is delivered although its predecessor is missing."""

    def end(self: Synchronous, frames: list[DataFrame]) -> None:
        for frame in sorted(frames, key=lambda frame: frame.name):
            self._site.deliver(frame)

    patch.setattr(Synchronous, "_end", end)


def messages_leave_within_a_round(patch: pytest.MonkeyPatch) -> None:
    """A message does not wait for the beginning of a round, and has only the rest of one."""

    def send_in_time(self: Synchronous, _now: int) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            Reliable.send(self, *each)

    patch.setattr(Synchronous, "_send_in_time", send_in_time)


def late_messages_count(patch: pytest.MonkeyPatch) -> None:
    """A message of a round that is over is delivered at the end of the current one."""

    def arrived(self: Synchronous, frame: DataFrame, by: ProcessId) -> None:
        assert frame.stamp is not None
        current = frame._replace(stamp=frame.stamp._replace(time=max(frame.stamp.time, self._round)))
        Reliable._arrived(self, current, by)

    patch.setattr(Synchronous, "_arrived", arrived)


def slower(scenario: Scenario) -> Scenario:
    """The same on a network that is slower than its rounds assume."""
    return msgspec.structs.replace(scenario, options=msgspec.structs.replace(scenario.options, round=2 * MS))


def no_answers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Requests, "answer", lambda _self, _frame, _payload: None)


def one_answer_will_do(patch: pytest.MonkeyPatch) -> None:
    real = Requests.ask

    def ask(self: Requests, payload: bytes, answers: str, now: int, label: int) -> int:
        return real(self, payload, "any" if answers == "any" else "first", now, label)

    patch.setattr(Requests, "ask", ask)


def acknowledge_the_largest(patch: pytest.MonkeyPatch) -> None:
    """A receiver acknowledges the largest stamp received instead of the smallest."""

    def acknowledge(self: TimestampAcks, now: int) -> Any:
        smallest = self._last_received
        self._last_received = _Largest(smallest)  # type: ignore[assignment]
        try:
            return [*real(self, now)]
        finally:
            self._last_received = smallest

    real = TimestampAcks.acknowledge
    patch.setattr(TimestampAcks, "acknowledge", acknowledge)


class _Largest:
    def __init__(self, of: Minimum) -> None:
        self._of = of

    def __len__(self) -> int:
        return len(self._of)

    @property
    def smallest(self) -> int | None:
        return max((self._of[process] for process in [*self._of]), default=None)


def discard_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Minimum, "smallest", property(lambda _self: None))


def no_nulls(patch: pytest.MonkeyPatch) -> None:
    """An idle sender sends no nulls."""
    real = AcksGroup._transmit

    def transmit(self: AcksGroup, payloads: tuple[bytes, ...], label: int, now: int) -> None:
        if payloads:
            real(self, payloads, label, now)
        else:
            self._schedule.sent(now)

    patch.setattr(AcksGroup, "_transmit", transmit)


def newcomers_are_never_admitted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Connections, "admit_receivers", lambda _self, _stamp: None)


def forget_a_sender(patch: pytest.MonkeyPatch) -> None:
    """A receiver delivers messages of a sender that it does not count."""
    real = AcksGroup._message

    def message(self: AcksGroup, frame: MessageFrame) -> None:
        senders = self.connections.senders
        if frame.sender in senders and len(senders) > 1 and frame.sender == max(senders):
            senders.remove(frame.sender)
            self.connections._install()
        real(self, frame)

    patch.setattr(AcksGroup, "_message", message)


def services(*wanted: str) -> Fits:
    return lambda scenario: {group.service for group in scenario.group} <= {*wanted}


def crashing(*wanted: str) -> Fits:
    fits = services(*wanted)
    return lambda scenario: fits(scenario) and any(isinstance(fault, Crash) for fault in scenario.fault)


def asking(scenario: Scenario) -> bool:
    return any(workload.answers in ("majority", "all") for workload in scenario.workload)


def acks(kind: str = "", shape: str = "") -> Fits:
    return lambda scenario: kind in ("", scenario.options.acks) and shape in scenario.name


@pytest.mark.parametrize(
    ("plant", "property_", "family", "fits", "runs"),
    [
        (no_relays, "D13", "classic", crashing("reliable"), 150),
        (deliver_every_copy, "D2", "classic", services("reliable"), 30),
        (no_bag, "O1", "classic", services("fifo"), 60),
        (no_context, "O3", "classic", services("causal"), 100),
        (commits_do_not_move_the_clock, "O6", "two-phase", services("total"), 400),
        (commits_do_not_move_the_clock, "O7", "two-phase", services("total"), 400),
        (takers_ignore_reports, "O6", "two-phase", crashing("total"), 300),
        (many_messages_at_a_time, "O1", "combined", services("fifo-total"), 30),
        (many_messages_at_a_time, "O3", "combined", services("causal-total"), 30),
        (many_messages_at_a_time, "O8", "combined", services("causal-total"), 30),
        (no_relays, "D13", "synchronous", crashing("synchronous"), 60),
        (no_rounds, "O6", "synchronous", services("synchronous"), 30),
        (rounds_in_order_of_arrival, "O6", "synchronous", services("synchronous"), 30),
        (rounds_with_gaps, "O2", "synchronous", crashing("synchronous"), 300),
        (messages_leave_within_a_round, "D13", "synchronous", services("synchronous"), 60),
        (no_answers, "D14", "classic", asking, 40),
        (one_answer_will_do, "D14", "classic", asking, 60),
        (no_takeover, "L8", "two-phase", crashing("total"), 100),
        (acknowledge_the_largest, "S1", "acks", acks("timestamp"), 100),
        (discard_at_once, "S1", "acks", acks("vector", "static"), 30),
        (no_nulls, "L6", "acks", acks("timestamp"), 60),
        (no_nulls, "L8", "acks", acks("timestamp"), 60),
        (newcomers_are_never_admitted, "S6", "acks", acks("vector", "moving"), 60),
        (newcomers_are_never_admitted, "S6", "acks", acks("transitive", "moving"), 60),
        (forget_a_sender, "S6", "acks", acks("vector", "static"), 30),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", ""),
)
def test_a_planted_bug_is_found(
    plant: Plant, property_: str, family: str, fits: Fits, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenarios: Iterator[Scenario] = map(FAMILIES[family].draw, range(100_000))
    plant(monkeypatch)
    assert_found(property_, islice(filter(fits, scenarios), runs))


def test_messages_that_come_after_their_round_must_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow network members may miss messages, but keep one order; without the rule they do not."""
    scenarios = [slower(FAMILIES["synchronous"].draw(seed)) for seed in range(20)]
    for scenario in scenarios:
        run = simulate(scenario)
        assert not {"O1", "O2", "O3", "O5", "O6", "O8"} & {
            verdict.property for verdict in judge(events_table(run.id, run.histories)) if verdict.violations
        }
    late_messages_count(monkeypatch)
    assert_found("O6", scenarios)
