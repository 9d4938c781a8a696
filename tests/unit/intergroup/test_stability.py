"""Which processes count for stability, and where joiners begin.

From docs/spec/intergroup.md 4.5, 7.3, 7.7; errata T4, T5, J8 to J16, P1.
"""

from antiphon.core.effects import Gauge
from antiphon.protocols.intergroup.frames import JoinInfoFrame, JoinRequestFrame
from antiphon.protocols.intergroup.settings import ASK_EVERY_NS, InterGroupSettings
from antiphon.protocols.intergroup.stability.stability import Stability
from antiphon.types import ProcessId
from tests.support.intergroup_cluster import GROUP, MS, Cluster, LinkFaults

A, B, R = ProcessId("a"), ProcessId("b"), ProcessId("r")
STALL = 5_000

HOLD_NS = InterGroupSettings().hold_ns


def known(*, b: int, own: int = 100) -> Stability:
    stability = Stability(A, [A, B], 0, STALL)
    stability.told(B, b)
    stability.conclude(own, 0)
    return stability


def test_messages_that_all_members_acknowledge_are_stable_and_stay_so() -> None:
    stability = known(b=60)
    assert stability.stable == 60
    stability.told(B, 50)
    assert not stability.conclude(100, 0)
    assert stability.stable == 60


def test_a_receiver_counts_from_its_first_report_on_while_it_makes_progress() -> None:
    """J16."""
    stability = known(b=60)
    stability.told(B, 200)
    stability.reported(R, 70, now=10)
    stability.conclude(200, 10)
    assert stability.stable == 70
    stability.reported(R, 70, now=10 + STALL - 1)
    stability.conclude(200, 10 + STALL - 1)
    assert stability.stable == 70
    stability.conclude(200, 10 + STALL)
    assert stability.stable == 200


def test_receivers_that_crash_do_not_add_up() -> None:
    stability = Stability(A, [A, B], 0, STALL)
    for number in range(100):
        stability.reported(ProcessId(f"r{number}"), 70, now=number * STALL)
    assert stability.receivers <= 3


def test_stability_does_not_wait_for_a_receiver_that_left() -> None:
    stability = known(b=60)
    stability.told(B, 200)
    stability.reported(R, 70, now=10)
    stability.left(R)
    stability.conclude(200, 11)
    assert stability.stable == 200


def test_the_start_promised_to_a_joiner_is_kept_until_it_begins_or_for_ten_seconds() -> None:
    """T5, J9."""
    stability = known(b=200)
    stability.hold(R, 120, until=HOLD_NS, now=0)
    assert stability.own_ack(180, now=HOLD_NS - 1) == 120
    assert stability.own_ack(180, now=HOLD_NS) == 180
    stability.hold(R, 120, until=2 * HOLD_NS, now=HOLD_NS)
    stability.reported(R, 130, now=HOLD_NS)
    assert stability.own_ack(180, now=HOLD_NS) == 120  # the report may name other senders
    stability.begun(R)
    assert stability.own_ack(180, now=HOLD_NS) == 180


def test_a_joiner_that_got_two_answers_may_begin_at_either() -> None:
    """T5: the network repeats requests, and a second answer must not cancel the first."""
    stability = known(b=200)
    stability.hold(R, 120, until=HOLD_NS, now=0)
    stability.hold(R, 150, until=HOLD_NS + 1, now=1)
    assert stability.own_ack(180, now=2 * ASK_EVERY_NS) == 120
    stability.begun(R)
    assert stability.own_ack(180, now=2 * ASK_EVERY_NS) == 180


def test_a_joiner_that_asks_for_ever_does_not_block_stability_for_long() -> None:
    """T5: only the last two or three answers to a joiner count, so their number is bounded."""
    stability = known(b=200)
    for number in range(100):
        now = number * ASK_EVERY_NS
        stability.hold(R, 120 + number, until=now + HOLD_NS, now=now)
        assert stability.own_ack(1000, now=now) >= 120 + number - 2
    assert stability.own_ack(1000, now=now + HOLD_NS) == 1000


def test_a_joiner_that_receives_no_answer_does_not_stop_the_senders() -> None:
    """T5 with a link that is cut in one direction: the requests arrive, but the answers do not."""
    cluster = Cluster(2, {"r1": "total"}, absent=frozenset({"r1"}))
    cluster.run(500)
    for number in range(600):  # two windows
        if number % 50 == 0:
            cluster.hand("s1", JoinRequestFrame(GROUP, ProcessId("r1"), 0))
        cluster.send("s1")
        cluster.run(20)
    assert len(cluster.payloads("s2")) > 550
    cluster.run(15_000)
    assert len(cluster.payloads("s2")) == 600
    assert cluster.cores[ProcessId("s1")].unstable(GROUP) == 0


def test_any_holder_of_a_message_can_repair_it() -> None:
    """T4: the sender is cut off when the message is requested."""
    cluster = Cluster(3, link_faults=LinkFaults(latency=(5 * MS, 5 * MS)))
    cluster.run(500)
    cluster.cut.add(ProcessId("s3"))
    payload = cluster.send("s1")
    cluster.run(6)
    cluster.cut.clear()
    cluster.run_until(lambda: cluster.said["request"] > 0)
    cluster.cut.add(ProcessId("s1"))
    cluster.run(500)
    assert cluster.said["repair"] == 1
    assert cluster.said["request"] == 1
    cluster.cut.clear()
    cluster.run(500)
    assert cluster.payloads("s3") == [payload]


def test_a_newcomer_begins_above_all_that_it_has_seen() -> None:
    """J8: also after a reset; J10: the ids of its views tell where they begin, and their kind."""
    cluster = Cluster(2, {"r1": "total"}, settings=InterGroupSettings(suspect_after_ns=200 * MS))
    cluster.run(1000)
    for _ in range(20):
        cluster.send("s1")
        cluster.run(20)
    cluster.cut.add(ProcessId("r1"))
    for _ in range(60):
        cluster.send("s2")
        cluster.run(30)
    cluster.cut.clear()
    cluster.run(4000)
    starts = [(int(view.id.split(".")[0]), view.id.split(".")[1]) for view in cluster.views[ProcessId("r1")]]
    assert [kind for _, kind in starts] == ["3", "4", "3"]
    assert starts[0][0] < starts[1][0] < starts[2][0]


def test_a_newcomer_ignores_an_answer_that_does_not_fit() -> None:
    """Of a process outside of the view that it tells of, for another joiner, with us in the view, without stints."""
    cluster = Cluster(2, {"r1": "total"}, absent=frozenset({"r1"}))
    cluster.run(500)
    cluster.join("r1")
    s1, s2, r1, x = map(ProcessId, ("s1", "s2", "r1", "x"))
    epoch, start = cluster.views[s1][0].id, cluster.now // 1000
    both, us = ((s1, 1), (s2, 1)), ((r1, 1), (s1, 1), (s2, 1))
    for sender, to, first, stints in (
        (x, r1, both, both),
        (s1, x, both, both),
        (s1, r1, us, us),
        (s1, r1, both, both[:1]),
    ):
        cluster.hand("r1", JoinInfoFrame(GROUP, sender, to, epoch, epoch, 0, start, first, stints, (), ()))
    assert cluster.views[r1] == []
    cluster.run(500)
    assert cluster.members("r1") == [("s1", "s2")]


def test_a_newcomer_begins_in_whatever_view_a_sender_is_in() -> None:
    """7.3: its plan names the first senders, which may have changed since."""
    cluster = Cluster(3, {"r1": "total"}, absent=frozenset({"r1"}))
    cluster.demote("s3")
    cluster.run(1000)
    cluster.join("r1")
    cluster.run(2000)
    assert cluster.members("r1") == [("s1", "s2")]
    sent = cluster.send("s2")
    cluster.run(500)
    assert cluster.payloads("r1") == [sent]


def test_a_clock_far_ahead_is_borne_and_told() -> None:
    """P1: it drags the other clocks along; order and delivery do not change."""
    cluster = Cluster(2, skew={"s1": 90_000 * MS})
    cluster.run(500)
    sent = [cluster.send("s1"), cluster.send("s2")]
    cluster.run(1000)
    assert sorted(cluster.payloads("s1")) == sorted(sent)
    assert cluster.payloads("s1") == cluster.payloads("s2")
    told = [effect for effect in cluster.gauges[ProcessId("s2")] if effect.name == "clock_ahead_us"]
    assert [effect.of for effect in told] == ["s1"]
    assert isinstance(told[0], Gauge)
    assert told[0].value > 60_000_000
    assert cluster.cores[ProcessId("s1")].unstable(GROUP) == 0
