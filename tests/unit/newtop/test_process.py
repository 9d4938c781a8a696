"""One Newtop process and its peers, one step at a time."""

from contextlib import suppress
from typing import Any

import pytest

from antiphon.core.effects import (
    Blocked,
    Channel,
    Deliver,
    Discard,
    Effect,
    Frame,
    Gauge,
    InstallView,
    Stable,
    Transmit,
    Unblocked,
)
from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.frames import (
    AckFrame,
    AliveFrame,
    BlockFrame,
    Flow,
    MapStamp,
    RelativeStamp,
    RepairFrame,
    RequestFrame,
    StatusFrame,
)
from antiphon.protocols.newtop.process import NewtopProcess
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import GroupId, ProcessId, first_view
from tests.support.cluster import GROUP, SLOW_NS, Cluster

P1, P2, P3 = ProcessId("p1"), ProcessId("p2"), ProcessId("p3")


def process(settings: NewtopSettings | None = None, *members: ProcessId) -> NewtopProcess:
    view = first_view(GROUP, frozenset(members or (P1, P2)))
    core = NewtopProcess(P1, {GROUP: view}, settings or NewtopSettings())
    assert core.drain(0) == [InstallView(view)]
    return core


def kinds(effects: list[Effect]) -> list[str]:
    return [type(effect).__name__ for effect in effects]


def frames(effects: list[Effect]) -> list[Frame]:
    return [effect.frame for effect in effects if isinstance(effect, Transmit)]


def flowing(algorithm: int = 3, *members: ProcessId, **settings: Any) -> NewtopProcess:
    return process(NewtopSettings(**{"flow_control": algorithm, "packing": False, **settings}), *members)


def test_a_lone_member_delivers_its_own_messages_at_once() -> None:
    core = process(None, P1)
    core.send(GROUP, b"hello", 0)
    assert kinds(core.drain(0)) == ["Transmit", "Deliver"]


def test_numbering_and_packing_happen_at_drain() -> None:
    core = process()
    core.send(GROUP, b"a", 0, label=0)
    core.send(GROUP, b"b", 0, label=1)
    assert core.drain(0) == [Transmit(BlockFrame(GROUP, P1, 1, 0, 0, (b"a", b"b"), 0))]
    core.send(GROUP, b"c", 0, label=2)
    assert core.drain(0) == [Transmit(BlockFrame(GROUP, P1, 2, 1, 0, (b"c",), 2))]
    assert core.drain(0) == []


def test_messages_gather_while_the_transport_is_full_and_nulls_still_leave() -> None:
    core = process()
    core.writable(False, 0)
    core.send(GROUP, b"a", 0)
    assert core.drain(0) == []
    core.receive(BlockFrame(GROUP, P2, 5, 0, 0, (b"x",)), 0)
    assert kinds(core.drain(0)) == ["Transmit", "Deliver"]  # the null that block 5 waits for
    core.send(GROUP, b"b", 0)
    core.writable(True, 0)
    (transmit,) = core.drain(0)
    assert isinstance(transmit, Transmit)
    assert transmit.frame.payloads == (b"a", b"b")
    assert transmit.frame.clock == 6


def test_an_eager_null_carries_the_largest_number_received() -> None:
    core = process(None, P1, P2, P3)
    core.receive(BlockFrame(GROUP, P2, 3, 0, 0, (b"x",)), 0)
    core.receive(BlockFrame(GROUP, P3, 8, 0, 0, (b"y",)), 0)
    assert [(frame.clock, frame.kind) for frame in frames(core.drain(0))] == [(8, "null")]


def test_a_silent_member_speaks_when_its_timeout_expires_and_not_before() -> None:
    core = process(NewtopSettings(silence_timeout_ns=50))
    core.receive(BlockFrame(GROUP, P2, 1, 0, 0, (b"x",)), 10)
    assert core.drain(10) == []
    assert core.deadline == 60
    core.tick(59)  # a spurious tick is harmless
    assert core.drain(59) == []
    core.tick(60)
    assert kinds(core.drain(60)) == ["Transmit", "Deliver"]
    assert core.deadline == 110  # then it is time to say that block 1 is complete here


def test_a_data_message_below_the_received_number_does_not_pay_the_duty() -> None:
    core = process()
    core.receive(BlockFrame(GROUP, P2, 9, 0, 0, (b"x",)), 0)
    core.send(GROUP, b"a", 0)
    assert [(frame.kind, frame.clock) for frame in frames(core.drain(0))] == [("data", 1), ("null", 9)]


@pytest.mark.parametrize(
    "frame",
    [
        BlockFrame(GROUP, ProcessId("stranger"), 1, 0, 0, (b"x",)),
        BlockFrame(GroupId("other"), P2, 1, 0, 0, (b"x",)),
        BlockFrame(GROUP, P1, 1, 0, 0, (b"x",)),
        BlockFrame(GROUP, P2, 0, 0, 0, (b"x",)),
        BlockFrame(GROUP, P2, 1, 0, 0, (b"x",), flow=Flow(1, 0, 0, 0)),
        BlockFrame(GROUP, P2, 1, 0, 0, (b"x",), stamp=MapStamp(())),
        BlockFrame(GROUP, P2, 1, 0, 0, (b"x",), stamp=RelativeStamp((0, 0), ())),
    ],
    ids=[
        "stranger",
        "other group",
        "echo of ourselves",
        "number not above the last",
        "flow control where there is none",
        "a stamp of the Fast order",
        "a stamp of the Relative order",
    ],
)
def test_frames_that_no_correct_peer_sends_are_refused(frame: BlockFrame) -> None:
    core = process()
    core.receive(frame, 0)
    assert core.drain(0) == []
    assert core.unstable(GROUP) == core.unstable(frame.group) == 0


def test_a_gap_ends_the_channel() -> None:
    core = process()
    with pytest.raises(ProtocolViolation, match="number 4 follows 2, but the last number of p2 here is 0"):
        core.receive(BlockFrame(GROUP, P2, 4, 2, 0, (b"x",)), 0)
    assert core.drain(0) == []
    assert core.unstable(GROUP) == 0


def test_a_copy_is_refused() -> None:
    core = process()
    frame = BlockFrame(GROUP, P2, 1, 0, 0, (b"x",))
    core.receive(frame, 0)
    core.receive(frame, 0)
    assert kinds(core.drain(0)) == ["Transmit", "Deliver"]


def test_frames_are_freed_once_every_member_said_it_has_them() -> None:
    core = process(NewtopSettings(tracing=True))
    core.receive(BlockFrame(GROUP, P2, 1, 0, 0, (b"x", b"y"), 5), 0)
    core.drain(0)
    assert core.unstable(GROUP) == 2  # p2's message and our null
    core.receive(BlockFrame(GROUP, P2, 2, 1, 1, (b"z",), 7), 0)
    effects = core.drain(0)
    assert Stable(GROUP, ((P2, 6),)) in effects
    assert Discard(GROUP, ((P2, 6),)) in effects
    assert core.unstable(GROUP) == 2


def test_equal_blocks_are_delivered_in_the_order_of_their_senders() -> None:
    cluster = Cluster("p1", "p2", "p3", silence_timeout_ns=SLOW_NS)
    for name in ("p3", "p1", "p2"):
        cluster.send(name, name.encode())
    cluster.move_all()
    assert list(cluster.delivered.values()) == [[b"p1", b"p2", b"p3"]] * 3


def test_nulls_do_not_answer_one_another_for_ever() -> None:
    """A budget: one message in a group of n costs n - 1 nulls, one from each other member (E-6)."""
    cluster = Cluster("p1", "p2", "p3", "p4")
    cluster.send("p1", b"only")
    cluster.move_all()
    assert sum(len(frames) for frames in cluster.transmitted.values()) == 4
    assert list(cluster.delivered.values()) == [[b"only"]] * 4


def test_delivery_effects_come_in_one_list_behind_what_completed_them() -> None:
    core = process()
    core.receive(BlockFrame(GROUP, P2, 1, 0, 0, (b"x",)), 0)
    effects = core.drain(0)
    assert isinstance(effects[0], Transmit)
    assert isinstance(effects[1], Deliver)


# Announcements


def test_a_complete_block_is_announced_after_a_pause_if_no_message_tells_it() -> None:
    core = process(NewtopSettings(announce_pause_ns=100))
    core.receive(BlockFrame(GROUP, P2, 1, 0, 0, (b"x",)), 0)
    core.drain(0)
    assert core.deadline == 100
    core.tick(99)
    assert core.drain(99) == []
    core.tick(100)
    assert frames(core.drain(100)) == [AliveFrame(GROUP, P1, 1, 1)]
    assert core.deadline is None


def test_a_message_that_says_it_puts_the_announcement_off() -> None:
    core = process(NewtopSettings(announce_pause_ns=100))
    core.receive(BlockFrame(GROUP, P2, 1, 0, 0, (b"x",)), 0)
    core.drain(0)
    core.send(GROUP, b"a", 60)
    assert [frame.kind for frame in frames(core.drain(60))] == ["data"]
    core.tick(100)
    assert core.drain(100) == []
    assert core.deadline is None


def test_announcements_make_the_last_messages_stable_and_are_not_answered() -> None:
    cluster = Cluster("p1", "p2", "p3")
    cluster.send("p1", b"only")
    cluster.move_all()
    assert all(core.unstable(GROUP) == 3 for core in cluster.cores.values())
    cluster.finish()
    assert all(core.unstable(GROUP) == 0 for core in cluster.cores.values())
    assert all(core.deadline is None for core in cluster.cores.values())
    assert [len(control) for control in cluster.control.values()] == [1, 1, 1]


def test_an_announcement_of_a_stranger_or_of_ourselves_changes_nothing() -> None:
    core = process()
    core.send(GROUP, b"a", 0)
    core.drain(0)
    for sender in (ProcessId("stranger"), P1):
        core.receive(AliveFrame(GROUP, sender, 1, 1), 0)
        assert core.drain(0) == []
    assert core.unstable(GROUP) == 1


# Several groups


def test_a_number_in_one_group_is_answered_in_the_others_at_once() -> None:
    """Rule CA4; and nulls cause no nulls."""
    cluster = Cluster(groups={"g": ["p1", "p2"], "h": ["p1", "p3"]}, silence_timeout_ns=SLOW_NS)
    cluster.send("p1", b"a", group="g")
    assert [(frame.group, frame.kind, frame.block) for frame in cluster.transmitted["p1"]] == [
        ("g", "data", 1),
        ("h", "null", 1),
    ]
    cluster.move_all()
    assert not cluster.transmitted["p2"] + cluster.transmitted["p3"]


def test_a_received_number_is_answered_in_the_other_groups_too() -> None:
    cluster = Cluster(groups={"g": ["p1", "p2"], "h": ["p1", "p3"]}, silence_timeout_ns=SLOW_NS)
    cluster.send("p2", b"a", group="g")
    cluster.move_all()
    assert [(frame.group, frame.kind, frame.block) for frame in cluster.transmitted["p1"]] == [("h", "null", 1)]


@pytest.mark.parametrize("service", ["causal-fast", "causal-relative", "causal-vector"])
def test_orders_that_do_not_need_it_answer_nothing_in_other_groups(service: str) -> None:
    cluster = Cluster(
        groups={"g": ["p1", "p2"], "h": ["p1", "p3"]}, service=service, silence_timeout_ns=SLOW_NS, packing=False
    )
    cluster.send("p1", b"a", b"b", group="g")
    cluster.move_all()
    assert [frame.group for frame in cluster.transmitted["p1"]] == ["g", "g"]
    assert cluster.delivered == {"p1": [b"a", b"b"], "p2": [b"a", b"b"], "p3": []}


def test_one_order_over_all_groups() -> None:
    cluster = Cluster(groups={"g": ["p1", "p2"], "h": ["p1", "p2"]})
    cluster.send("p1", b"a", group="g")
    cluster.send("p2", b"b", group="h")
    cluster.send("p1", b"c", group="h")
    cluster.finish()
    assert cluster.delivered["p1"] == cluster.delivered["p2"]
    assert sorted(cluster.delivered["p1"]) == [b"a", b"b", b"c"]


# Flow control


@pytest.mark.parametrize(("algorithm", "window"), [(1, 3), (2, 2), (3, 2)])
def test_with_the_least_window_one_message_leaves_and_all_do_in_the_end(algorithm: int, window: int) -> None:
    messages = [b"%d" % number for number in range(6)]
    cluster = Cluster("p1", "p2", flow_control=algorithm, window=window, packing=False)
    cluster.send("p1", *messages)
    assert len(cluster.transmitted["p1"]) == 1
    assert Blocked(GROUP, P2) in cluster.effects["p1"]  # p2 has completed nothing; we do not wait for ourselves
    cluster.finish(rounds=20)
    assert list(cluster.delivered.values()) == [messages] * 2
    assert cluster.effects["p1"].count(Unblocked(GROUP)) == sum(
        isinstance(effect, Blocked) for effect in cluster.effects["p1"]
    )
    assert all(core.unstable(GROUP) == 0 for core in cluster.cores.values())


def test_a_blocked_sender_names_the_member_that_it_waits_for() -> None:
    core = flowing(3, P1, P2, P3, window=2)
    core.send(GROUP, b"a", 0)
    core.drain(0)
    for name, flow in ((P2, Flow(1, 1, 0, 0)), (P3, Flow(1, 0, 0, 0))):
        core.receive(BlockFrame(GROUP, name, 1, 0, 0, flow=flow), 0)
    core.drain(0)
    core.consumed(GROUP, 1, 0)
    for payload in (b"b", b"c"):
        core.send(GROUP, payload, 0)
    effects = core.drain(0)
    assert [frame.payloads for frame in frames(effects)] == [(b"b",)]
    assert Blocked(GROUP, P3) in effects


def test_messages_pack_while_the_window_is_shut() -> None:
    cluster = Cluster("p1", "p2", flow_control=3, window=2)
    cluster.send("p1", b"a")
    for payload in (b"b", b"c", b"d"):
        cluster.send("p1", payload)
    cluster.finish()
    assert [frame.payloads for frame in cluster.transmitted["p1"] if frame.payloads] == [(b"a",), (b"b", b"c", b"d")]


def test_bytes_shut_the_window_too() -> None:
    cluster = Cluster("p1", "p2", flow_control=3, window=50, window_bytes=10, frame_bytes_max=10, packing=False)
    cluster.send("p1", b"12345", b"12345", b"1")
    assert len(cluster.transmitted["p1"]) == 2
    cluster.finish()
    assert cluster.delivered["p2"] == [b"12345", b"12345", b"1"]
    assert (
        max(
            effect.value
            for effect in cluster.effects["p1"]
            if isinstance(effect, Gauge) and effect.name == "own_unstable_bytes"
        )
        == 10
    )


def test_an_application_that_takes_nothing_stops_all_members_and_nulls_still_leave() -> None:
    cluster = Cluster("p1", "p2", flow_control=3, window=2, packing=False)
    cluster.stalled.add("p2")
    messages = [b"%d" % number for number in range(5)]
    cluster.send("p1", *messages)
    cluster.finish()
    assert cluster.delivered == {"p1": messages[:2], "p2": messages[:2]}
    assert cluster.core("p1").unstable(GROUP) == 2  # but the nulls are stable: blocks have no Δ
    cluster.wake("p2")
    cluster.finish(rounds=20)
    assert cluster.delivered == {"p1": messages, "p2": messages}


def test_flow_numbers_count_data_alone_and_are_the_groups_own() -> None:
    cluster = Cluster(groups={"g": ["p1", "p2"], "h": ["p1", "p2"]}, flow_control=3, packing=False)
    cluster.send("p1", b"a", b"b", group="g")
    cluster.send("p1", b"c", group="h")
    data = [frame for frame in cluster.transmitted["p1"] if frame.payloads]
    assert [(frame.group, frame.block, frame.flow and frame.flow.number) for frame in data] == [
        ("g", 1, 1),
        ("g", 2, 2),
        ("h", 3, 1),
    ]


def test_with_block_numbering_a_null_may_be_held_back_and_its_sender_says_that_it_lives() -> None:
    settings = {"block_numbered": frozenset({GROUP}), "window": 2, "repair_max_ns": 1_000, "announce_pause_ns": 10}
    core = flowing(3, P1, P2, P3, **settings)
    core.receive(BlockFrame(GROUP, P2, 1, 0, 0, (b"x",), flow=Flow(1, 0, 0, 0)), 0)
    assert [frame.kind for frame in frames(core.drain(0))] == ["null"]
    core.receive(BlockFrame(GROUP, P2, 2, 1, 0, (b"y",), flow=Flow(2, 0, 0, 0)), 0)
    assert frames(core.drain(0)) == []  # block 1 is not complete: p3 is silent
    assert core.deadline == 1_000
    core.tick(1_000)
    assert frames(core.drain(1_000)) == [AliveFrame(GROUP, P1, 1, 0, Flow(1, 0, 0, 0), stalled=True)]
    assert core.deadline == 2_000
    core.receive(BlockFrame(GROUP, P3, 1, 0, 0, flow=Flow(1, 0, 0, 0)), 1_500)
    assert kinds(core.drain(1_500)) == ["Deliver"]
    core.consumed(GROUP, 1, 1_600)
    assert [(frame.kind, frame.clock) for frame in frames(core.drain(1_600))] == [("null", 2)]


def test_a_message_that_pays_a_null_held_back_ends_the_signs_of_life() -> None:
    cluster = Cluster("p1", "p2", "p3", flow_control=3, window=2, packing=False, block_numbered=frozenset({GROUP}))
    cluster.stalled.add("p1")
    cluster.send("p2", b"a")
    cluster.move("p2", "p1")
    cluster.move("p2", "p3")
    cluster.move("p1", "p2")
    cluster.move("p3", "p2")
    cluster.send("p2", b"b")
    cluster.move("p2", "p1", len(cluster.channels["p2", "p1"]))  # block 2: p1 may not answer before block 1 is taken
    cluster.move("p3", "p1")
    cluster.send("p1", b"c")
    assert [frame.kind for frame in cluster.transmitted["p1"]] == ["null"]
    cluster.wake("p1")
    assert [frame.kind for frame in cluster.transmitted["p1"]] == ["null", "data"]
    cluster.rest()
    assert not any(isinstance(frame, AliveFrame) and frame.stalled for frame in cluster.control["p1"])


def test_frames_without_flow_control_are_refused_where_it_is_on() -> None:
    core = flowing()
    core.receive(BlockFrame(GROUP, P2, 1, 0, 0, (b"x",)), 0)
    assert core.drain(0) == []
    assert core.unstable(GROUP) == 0


# Large messages


@pytest.mark.parametrize(
    "flow", [{"flow_control": 0}, {"flow_control": 3, "window": 2}, {"flow_control": 1, "window": 3}]
)
def test_a_message_longer_than_the_window_arrives_whole(flow: dict[str, Any]) -> None:
    cluster = Cluster("p1", "p2", "p3", frame_bytes_max=3, **flow)
    large = bytes(range(40))
    cluster.send("p1", b"ab", large, b"cd")
    cluster.send("p2", b"ef")
    cluster.finish(rounds=60)
    assert sorted(cluster.delivered["p1"]) == sorted([b"ab", large, b"cd", b"ef"])
    assert cluster.delivered["p2"] == cluster.delivered["p3"] == cluster.delivered["p1"]
    kinds_sent = [frame.kind for frame in cluster.transmitted["p1"] if frame.payloads]
    assert kinds_sent == ["data", *["fragment"] * 13, "data", "data"]


def test_a_large_message_counts_as_taken_when_the_application_took_it_whole() -> None:
    cluster = Cluster("p1", "p2", frame_bytes_max=2, flow_control=3, window=4)
    cluster.stalled.add("p2")
    cluster.send("p1", b"12345678", b"9", b"10", b"11", b"12", b"13")
    cluster.finish(rounds=20)
    assert cluster.delivered["p2"] == [b"12345678", b"9", b"10", b"11"]
    cluster.wake("p2")
    cluster.finish(rounds=20)
    assert cluster.delivered["p2"] == [b"12345678", b"9", b"10", b"11", b"12", b"13"]


# Datagrams


def test_on_datagrams_every_frame_has_its_place() -> None:
    core = process(NewtopSettings(datagrams=True, announce_pause_ns=5, repair_ns=1_000))
    core.send(GROUP, b"a", 0)
    (transmit,) = core.drain(0)
    assert transmit == Transmit(BlockFrame(GROUP, P1, 1, 0, 0, (b"a",), sequence=1), channel=Channel.DATAGRAM)
    core.receive(BlockFrame(GROUP, P2, 1, 0, 0, sequence=1), 0)
    assert kinds(core.drain(0)) == ["Deliver"]
    core.tick(5)
    assert frames(core.drain(5)) == [AliveFrame(GROUP, P1, 1, 1, sequence=2)]


def test_frames_that_came_out_of_order_are_asked_for_and_put_in_order() -> None:
    core = process(NewtopSettings(datagrams=True))
    second = BlockFrame(GROUP, P2, 2, 1, 0, (b"y",), sequence=2)
    core.receive(second, 0)
    assert frames(core.drain(0)) == [RequestFrame(GROUP, P1, P2, (1,))]
    first = BlockFrame(GROUP, P2, 1, 0, 0, (b"x",), sequence=1)
    core.receive(RepairFrame(GROUP, P2, (first,)), 0)
    delivered = [effect.frame for effect in core.drain(0) if isinstance(effect, Deliver)]
    assert delivered == [first, second]
    core.receive(second, 0)
    assert core.drain(0) == []
    core.receive(StatusFrame(GROUP, P2, 2), 0)
    assert frames(core.drain(0)) == [AckFrame(GROUP, P1, 2)]


def test_on_datagrams_too_traffic_ends() -> None:
    cluster = Cluster("p1", "p2", "p3", datagrams=True, flow_control=3, window=2)
    for turn in range(4):
        cluster.send(f"p{turn % 3 + 1}", b"%d" % turn)
    cluster.finish(rounds=20)
    assert all(len(delivered) == 4 for delivered in cluster.delivered.values())
    assert all(core.deadline is None for core in cluster.cores.values())
    assert all(core.unstable(GROUP) == 0 for core in cluster.cores.values())


@pytest.mark.parametrize(
    "frame",
    [
        StatusFrame(GROUP, P2, 5),
        AckFrame(GROUP, P2, 5),
        RequestFrame(GROUP, P2, P1, (1,)),
        RepairFrame(GROUP, P2, (BlockFrame(GROUP, P2, 1, 0, 0, (b"x",), sequence=1),)),
    ],
    ids=lambda frame: frame.kind,
)
def test_on_streams_there_are_no_repairs(frame: Frame) -> None:
    core = process()
    core.receive(frame, 0)
    assert core.drain(0) == []


def test_a_blocked_sender_is_told_when_it_waits_for_another_member() -> None:
    """One burst, and p3 takes nothing: any member may be named first, but p3 is named last."""
    for algorithm in (1, 2, 3):
        cluster = Cluster("p1", "p2", "p3", flow_control=algorithm, window=4, packing=False)
        cluster.stalled.add("p3")
        cluster.send("p1", *[b"x"] * 40)
        cluster.finish(rounds=30)
        told = [effect.by for effect in cluster.effects["p1"] if isinstance(effect, Blocked)]
        assert told[-1] == P3


def test_a_block_that_is_only_named_is_answered_though_its_group_is_silent() -> None:
    """E-63 for a whole process: the null leaves in the other group, and time alone brings it there."""
    for timeout in (0, 50):
        groups = {"x": ["p1", "p2"], "y": ["p1", "p3"]}
        cluster = Cluster(groups=groups, service="causal-relative", silence_timeout_ns=timeout)
        stamp = RelativeStamp((0, 0), ((GroupId("y"), 5),))
        frame = BlockFrame(GroupId("x"), P2, 6, 0, 0, (b"m",), stamp=stamp)
        cluster.core("p1").receive(frame, 0)
        cluster.settle("p1")
        cluster.wait(timeout)
        assert ("y", 5) in [(sent.group, sent.block) for sent in cluster.transmitted["p1"]]


@pytest.mark.parametrize("block_numbered", [frozenset[GroupId](), frozenset({GROUP})])
@pytest.mark.parametrize("algorithm", [1, 2, 3])
def test_a_peer_that_keeps_a_larger_window_is_refused_not_fatal(
    algorithm: int, block_numbered: frozenset[GroupId]
) -> None:
    cluster = Cluster("p1", "p2", "p3", flow_control=algorithm, window=3, block_numbered=block_numbered)
    for number in range(1, 40):
        header = Flow(number, 0, 0, 0)
        with suppress(ProtocolViolation):  # the frame is refused
            cluster.core("p1").receive(BlockFrame(GROUP, P2, number, number - 1, 0, (b"x",), number - 1, header), 0)
        cluster.settle("p1")
    assert cluster.core("p1").unstable(GROUP) <= 3 * 3 + 40  # the pool, and our nulls beside it
    assert cluster.core("p1")._groups[GROUP].holdings.buffers.bounded.frames <= 3 * 3
