"""Processes keep the times and counts of docs/spec/intergroup.md 4.4 to 6.3 and 7.3, 7.7."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

import pytest

from antiphon.core.effects import Transmit
from antiphon.protocols.intergroup.delivery.orders import GroupTimestamp
from antiphon.protocols.intergroup.delivery.stream import Stream
from antiphon.protocols.intergroup.frames import (
    DataFrame,
    GoneFrame,
    JoinInfoFrame,
    JoinRequestFrame,
    KeepAliveFrame,
    RepairFrame,
    ReportFrame,
    RequestFrame,
    SourceAcceptFrame,
    SourceRequestFrame,
)
from antiphon.protocols.intergroup.membership.seat import Seat
from antiphon.protocols.intergroup.membership.senders import SenderSide
from antiphon.protocols.intergroup.sending.outbox import Outbox
from antiphon.protocols.intergroup.sending.rate import RateSettings
from antiphon.protocols.intergroup.settings import DISTANCE_MIN, InterGroupSettings
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.scenario.read import parse_scenario
from antiphon.sim.run import simulate
from antiphon.types import ProcessId
from tests.support.intergroup_cluster import GROUP, MS, Cluster, LinkFaults
from tests.support.intergroup_said import Said

S1, S2, R1, LATE = map(ProcessId, ("s1", "s2", "r1", "late"))
DISTANCE = 5
SUSPECT = 200
QUICK = InterGroupSettings(suspect_after_ns=SUSPECT * MS)
Kind = TypeVar("Kind")
ROUGH = LinkFaults(loss=0.2, duplicate=0.1, latency=(2 * MS, 25 * MS))


def frames(cluster: Cluster, kind: type[Kind], since: int = 0) -> Iterator[tuple[int, Kind]]:
    """The frames of a kind, each with its time in nanoseconds."""
    return ((at, frame) for at, frame in cluster.transmitted if isinstance(frame, kind) and at >= since)


def seat(cluster: Cluster, name: ProcessId = S1) -> Seat:
    return cluster.cores[name]._members[GROUP]._participant._seat


def outbox(cluster: Cluster, name: ProcessId = S1) -> Outbox:
    return seat(cluster, name).outbox


def members(cluster: Cluster, name: ProcessId) -> list[tuple[ProcessId, ...]]:
    return [view.members for view in cluster.views[name]]


# -------------------------------------------------------------------------------- 4.4, 4.5: repair and stability


def test_a_repair_is_the_message_unchanged() -> None:
    """4.1."""
    cluster = Cluster(2, {"r1": "total"}, link_faults=ROUGH)
    cluster.run(3000)
    for _ in range(60):
        cluster.send("s1")
        cluster.run(20)
    cluster.run(3000)
    sent = {(frame.sender, frame.seq): frame for _, frame in frames(cluster, DataFrame)}
    repairs = [frame.message for _, frame in frames(cluster, RepairFrame)]
    assert repairs
    assert all(sent[message.sender, message.seq] == message for message in repairs)


def test_a_request_for_a_gone_message_is_answered_once_in_a_round_trip() -> None:
    """R9."""
    cluster = Cluster(2)
    cluster.send("s1")
    cluster.run(1000)
    assert cluster.cores[S1].unstable(GROUP) == 0
    for wait in (0, 2 * DISTANCE - 1, 1):
        cluster.run(wait)
        cluster.hand("s1", RequestFrame(GROUP, S2, Ticket(S1, 1)))
    told = [frame for _, frame in frames(cluster, GoneFrame)]
    assert len(told) == 2
    assert told[0].stable >= next(frames(cluster, DataFrame))[1].stamp


def test_requests_for_messages_of_others_do_not_slow_a_sender_down() -> None:
    """R8: the rate falls to three quarters, and only for requests of the sender's own messages."""
    cluster = Cluster(2, settings=InterGroupSettings(rate=RateSettings(first=1e6)))
    cluster.run(100)
    cluster.send("s1")
    cluster.send("s2")
    cluster.run(DISTANCE + 1)
    before = outbox(cluster)._rate.bytes_per_second
    cluster.hand("s1", RequestFrame(GROUP, S2, Ticket(S2, 1)))
    assert outbox(cluster)._rate.bytes_per_second == before == 1e6
    cluster.hand("s1", RequestFrame(GROUP, S2, Ticket(S1, 1)))
    assert outbox(cluster)._rate.bytes_per_second == 0.75e6


class Honest(Cluster):
    """Checks every acknowledgment of a sender when it leaves."""

    checked = 0

    def _transmit(self, sender: ProcessId, effect: Transmit) -> None:
        frame = effect.frame
        if isinstance(frame, DataFrame | KeepAliveFrame):
            stamped = {said.payloads[0]: said.stamp for _, said in frames(self, DataFrame)}
            owed = {payload for payload, stamp in stamped.items() if stamp <= frame.ack}
            assert owed <= {*self.payloads(sender)}
            self.checked += len(owed)
        super()._transmit(sender, effect)


def test_a_process_that_acknowledges_a_stamp_has_delivered_all_up_to_it() -> None:
    """T3, J0: also messages that have arrived and wait for their turn."""
    cluster = Honest(3, link_faults=ROUGH)
    for _ in range(20):
        for name in ("s1", "s2", "s3"):
            cluster.send(name)
            cluster.run(7)
    cluster.run(2000)
    assert cluster.checked > 1000


TWO_GROUPS = """
name = "two"
protocol = "intergroup"
duration = "20s"
quiet = "4s"
options = { suspect_after = "500ms" }
[[group]]
name = "busy"
members = ["p1", "p2"]
[[group]]
name = "stuck"
members = ["p2", "p3"]
[network]
transport = "datagram"
[[workload]]
group = "busy"
interval = "20ms"
messages = 50
[[workload]]
group = "stuck"
interval = "20ms"
messages = 50
[[fault]]
kind = "stall"
at = "10ms"
until = "3s"
process = "p3"
"""


def test_a_group_that_makes_no_progress_does_not_hold_up_another() -> None:
    """T1: stability is found in each group independently, although p2 is in both."""
    run = simulate(parse_scenario(TWO_GROUPS))
    stable = [
        (row["group"], row["time"]) for history in run.histories for row in history.rows if row["kind"] == "stable"
    ]
    last_sent = max(row["time"] for history in run.histories for row in history.rows if row["kind"] == "send")
    assert last_sent < 2_000 * MS
    assert max(at for group, at in stable if group == "busy") < last_sent + 300 * MS
    assert max(at for group, at in stable if group == "stuck") > 3_000 * MS


@pytest.mark.parametrize("rate", [100, 1000])
def test_a_sender_holds_as_many_as_it_sends_while_one_is_acknowledged(rate: int) -> None:
    """T7: the longest time of an acknowledgment (round trip and silence) is multiplied by the rate, not divided."""
    silence = 50
    cluster = Cluster(2, settings=InterGroupSettings(keep_alive_ns=(silence * MS, silence * MS)))
    held = 0
    for _ in range(rate):
        cluster.send("s1")
        cluster.run(1000 / rate)
        held = max(held, outbox(cluster)._window.unstable)
    bound = rate * (2 * DISTANCE + silence) / 1000
    assert 0.9 * bound - 1 < held <= bound + 1


def test_one_of_two_equal_stamps_does_not_acknowledge_the_other() -> None:
    """T3: (20, a) is here, (20, b) may still arrive."""
    a, b = ProcessId("a"), ProcessId("b")
    order: GroupTimestamp[Said] = GroupTimestamp(None, {a: 1, b: 1}, start=0)
    order.data(a, Said(1, 20))
    order.streams[b].keep_alive(0, 19)
    assert [*order.deliverable(0)] == []
    assert order.gate == 19
    order.data(b, Said(1, 20))
    assert len([*order.deliverable(0)]) == 2
    assert order.gate == 20


def test_a_receiver_in_source_order_acknowledges_as_far_as_its_slowest_source() -> None:
    """T3."""
    cluster = Cluster(2, {"r1": "fifo"}, settings=QUICK)
    cluster.run(1500)
    cluster.cut.add(S2)
    stopped = cluster.now
    for _ in range(30):
        cluster.send("s1")
        cluster.run(10)
    reports = [report for _, report in frames(cluster, ReportFrame, since=stopped) if report.sources == (S1, S2)]
    assert reports
    assert max(report.ack for report in reports) <= stopped // 1000


def test_a_receiver_is_given_up_after_five_suspicions() -> None:
    """RECV_STALL (J16)."""
    assert InterGroupSettings().stall_ns == 5 * InterGroupSettings().suspect_after_ns


# -------------------------------------------------------------------------------- 5: clock, transmission, flow control


@pytest.mark.parametrize(("low", "high"), [(25, 75), (50, 50)])
def test_a_sender_with_nothing_to_say_says_so(low: int, high: int) -> None:
    """U(25, 75) ms by default, or fixed; the interval begins again after each message."""
    cluster = Cluster(1, settings=replace(InterGroupSettings(), keep_alive_ns=(low * MS, high * MS)))
    assert InterGroupSettings().keep_alive_ns == (25 * MS, 75 * MS)
    for _ in range(20):
        cluster.run(333)
        cluster.send("s1")
    said = sorted(at for kind in (DataFrame, KeepAliveFrame) for at, _ in frames(cluster, kind))
    keep_alives = {at for at, _ in frames(cluster, KeepAliveFrame)}
    gaps = [later - earlier for earlier, later in pairwise(said) if later in keep_alives]
    assert low * MS <= min(gaps) <= max(gaps) <= high * MS
    assert sum(gaps) / len(gaps) == pytest.approx(50 * MS, rel=0.1)


def test_stamps_of_messages_and_keep_alives_rise_together() -> None:
    """D7: a keep-alive is stamped like a message, and carries the number of the last one; stamps are in µs."""
    cluster = Cluster(2, skew={"s2": 500 * MS})
    for _ in range(50):
        cluster.send("s1")
        cluster.send("s1")
        cluster.run(40)
    last_seq, last_stamp = 0, 0
    for _, frame in cluster.transmitted:
        if isinstance(frame, DataFrame | KeepAliveFrame) and frame.sender == S1:
            assert frame.stamp > last_stamp
            assert frame.seq == (last_seq if isinstance(frame, KeepAliveFrame) else last_seq + 1)
            last_seq, last_stamp = frame.seq, frame.stamp
    assert last_seq == 100


def test_a_window_of_256_opens_when_less_than_half_of_it_is_unstable() -> None:
    cluster = Cluster(2)
    one, log = outbox(cluster), seat(cluster).log
    assert InterGroupSettings().window == 256
    for unstable, may in ((255, True), (256, False), (129, False), (128, False), (127, True), (255, True)):
        one._window.last = unstable
        assert one._may_send(log) == may


@pytest.mark.parametrize(("ahead_s", "told"), [(59, False), (61, True)])
def test_a_clock_is_far_ahead_beyond_a_minute(ahead_s: int, told: bool) -> None:
    """P1."""
    cluster = Cluster(2, skew={"s1": ahead_s * 1000 * MS})
    cluster.run(500)
    assert ("clock_ahead_us" in {gauge.name for gauge in cluster.gauges[S2]}) == told


def test_no_distance_is_below_a_millisecond() -> None:
    """MIN_DISTANCE: with distance 0, requests would not suppress one another (H1)."""
    assert InterGroupSettings().distance(S1) == DISTANCE_MIN == MS


# -------------------------------------------------------------------------------- 6.2: source order


def test_delivered_messages_are_not_stored() -> None:
    """D2."""
    stream: Stream[Said] = Stream(first=1, horizon=0)
    for seq in (3, 2, 1):
        stream.data(Said(seq, 10 * seq))
    stream.data(Said(2, 20))
    assert stream._stored == {}


def test_a_source_answers_with_its_next_number_and_numbers_run_on() -> None:
    """6.2, D12: also for a receiver that joins again."""
    cluster = Cluster(2, {"r1": "fifo"}, absent=frozenset({"r1"}))
    for _ in range(3):
        cluster.send("s1")
    cluster.run(200)
    for _ in range(2):
        cluster.join("r1")
        cluster.run(200)
        cluster.leave("r1")
        cluster.send("s1")
        cluster.run(200)
    first = [(frame.sender, frame.first) for _, frame in frames(cluster, SourceAcceptFrame)]
    assert sorted(first) == [(S1, 4), (S1, 5), (S2, 1), (S2, 1)]


def test_a_source_is_asked_five_times_a_second_apart() -> None:
    """6.2; after that it is not asked until it is heard again."""
    cluster = Cluster(2, {"r1": "fifo"}, absent=frozenset({"r1"}))
    cluster.cut.add(S1)
    cluster.run(100)
    cluster.join("r1")
    cluster.run(20_000)
    asked = [at for at, frame in frames(cluster, SourceRequestFrame)]
    began = 100 * MS
    assert asked == [began, *(began + number * 1000 * MS for number in range(5))]  # s2 is asked once, and answers
    assert members(cluster, R1)[-1] == (S2,)
    cluster.cut.clear()
    cluster.run(2000)
    assert members(cluster, R1)[-1] == (S1, S2)


def test_a_source_is_lost_when_it_is_silent_for_two_suspicions() -> None:
    """6.2."""
    cluster = Cluster(2, {"r1": "fifo"}, settings=QUICK)
    cluster.run(2000)
    cluster.cut.add(S1)
    cluster.run(2 * SUSPECT - 80)
    assert members(cluster, R1)[-1] == (S1, S2)
    cluster.run(80 + DISTANCE)
    assert members(cluster, R1)[-1] == (S2,)


def test_a_source_is_lost_when_something_of_it_has_been_gone_for_a_suspicion() -> None:
    """6.2, R9."""
    cluster = Cluster(2, {"r1": "fifo"}, settings=QUICK)
    cluster.run(2000)
    view = cluster.views[S1][0].id
    cluster.hand("r1", KeepAliveFrame(GROUP, S1, 1, cluster.now // 1000, view, 0))
    cluster.hand("r1", GoneFrame(GROUP, S1, Ticket(S1, 1), view, 0))
    cluster.run(SUSPECT - 1)
    assert members(cluster, R1)[-1] == (S1, S2)
    cluster.run(2)
    assert (S2,) in members(cluster, R1)


# -------------------------------------------------------------------------------- 7.3, 7.7: receivers


def test_a_newcomer_is_told_to_begin_above_the_gate() -> None:
    """J8, M28: for each member, the first number not delivered yet; nothing above is acknowledged meanwhile (T5)."""
    cluster = Cluster(2, {"late": "total"}, absent=frozenset({LATE}))
    for _ in range(5):
        cluster.send("s2")
    cluster.run(500)
    cluster.hand("s1", JoinRequestFrame(GROUP, LATE, 0))
    asked = cluster.now
    (_, info), *_ = frames(cluster, JoinInfoFrame)
    assert (info.to, info.epoch, info.first) == (LATE, cluster.views[S1][0].id, ((S1, 1), (S2, 6)))
    cluster.send("s2")
    cluster.run(9_000)
    own = [frame.ack for _, frame in frames(cluster, KeepAliveFrame, since=asked + 1) if frame.sender == S1]
    assert {*own} == {info.start}
    cluster.run(2_000)
    *_, (_, last) = ((at, frame) for at, frame in frames(cluster, KeepAliveFrame) if frame.sender == S1)
    assert last.ack > info.start


def test_a_newcomer_is_not_answered_before_all_are_past_what_it_has_seen() -> None:
    """J8: its floor is merged into the clock, so that later stamps are above it."""
    cluster = Cluster(2, {"late": "total"}, absent=frozenset({LATE}))
    cluster.run(200)
    floor = cluster.now // 1000 + 10_000_000
    cluster.hand("s1", JoinRequestFrame(GROUP, LATE, floor))
    assert not [*frames(cluster, JoinInfoFrame)]
    cluster.run(500)
    cluster.hand("s1", JoinRequestFrame(GROUP, LATE, floor))
    (_, info), *_ = frames(cluster, JoinInfoFrame)
    assert info.start > floor


def test_the_id_of_a_newcomers_view_is_its_own() -> None:
    """M27, J10: the id tells where it began, that it joined later, and the view of the senders.

    M7: resets are counted by each incarnation, so that no two ids are equal.
    """
    cluster = Cluster(2, {"r1": "total"}, settings=QUICK)
    cluster.run(2000)
    for _ in range(2):
        cluster.cut_links.add((S2, R1))
        cluster.run(8 * SUSPECT)
        cluster.cut_links.clear()
        cluster.run(2000)
    base, ids = cluster.views[S1][0].id, [view.id for view in cluster.views[R1]]
    parts = [each.split(".", 2) for each in ids]
    assert [kind for _, kind, _ in parts] == ["3", "4", "3", "4", "3"]
    assert [rest for _, _, rest in parts] == [base, "r1.0.000001", base, "r1.0.000002", base]
    assert len({*ids}) == len(ids)


def test_a_receiver_begins_anew_after_five_suspicions_without_progress() -> None:
    """J13: only while a sender is heard; M16: a view of its own is installed in between.

    Only r1 does not hear s2, so the senders see no reason to change their view.
    """
    cluster = Cluster(2, {"r1": "total"}, settings=QUICK)
    cluster.run(2000)
    cluster.cut_links.add((S2, R1))
    cluster.run(5 * SUSPECT - 80)
    assert members(cluster, R1) == [(S1, S2)]
    cluster.run(2 * 80 + DISTANCE)  # a keep-alive of s1 may have brought progress after the last one of s2
    assert members(cluster, R1)[:2] == [(S1, S2), (R1,)]
    assert members(cluster, S1) == [(S1, S2)]


def test_a_receiver_follows_the_senders_when_one_of_them_fails() -> None:
    """7.7: there is progress again after a suspicion, so it does not begin anew."""
    cluster = Cluster(2, {"r1": "total"}, settings=QUICK)
    cluster.run(2000)
    cluster.cut.add(S2)
    cluster.run(8 * SUSPECT)
    sent = cluster.send("s1")
    cluster.run(500)
    assert members(cluster, R1) == [(S1, S2), (S1,)]
    assert cluster.views[R1][-1].id == cluster.views[S1][-1].id
    assert cluster.payloads("r1") == [sent]
    assert not cluster.notices["r1"]


def test_a_receiver_that_hears_no_sender_waits() -> None:
    """J13."""
    cluster = Cluster(2, {"r1": "total"}, settings=QUICK)
    cluster.run(2000)
    cluster.cut.add(R1)
    cluster.run(50 * SUSPECT)
    assert members(cluster, R1) == [(S1, S2)]


def test_a_newcomer_asks_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """7.3: it asks one of the senders that it hears, another each time; here none answers."""
    monkeypatch.setattr(SenderSide, "admit", lambda *_: None)
    cluster = Cluster(2, {"r1": "total"}, absent=frozenset({"r1"}))
    cluster.run(100)
    cluster.join("r1")
    cluster.run(10_000)
    asked = [at for at, _ in frames(cluster, JoinRequestFrame)]
    assert 0 < asked[0] - 100 * MS <= 80 * MS
    assert [later - earlier for earlier, later in pairwise(asked)] == [1000 * MS] * 9
