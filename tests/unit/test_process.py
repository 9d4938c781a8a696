"""One Newtop process and its peers, one step at a time."""

import pytest

from antiphon.core.effects import Deliver, Discard, Effect, InstallView, Stable, Transmit
from antiphon.core.newtop.frames import BlockFrame
from antiphon.core.newtop.process import NewtopProcess
from antiphon.core.newtop.settings import NewtopSettings
from antiphon.types import GroupId, ProcessId, first_view
from tests.cluster import GROUP, SLOW_NS, Cluster

P1, P2, P3 = ProcessId("p1"), ProcessId("p2"), ProcessId("p3")


def process(settings: NewtopSettings | None = None, *members: ProcessId) -> NewtopProcess:
    view = first_view(GROUP, frozenset(members or (P1, P2)))
    core = NewtopProcess(P1, {GROUP: view}, settings or NewtopSettings())
    assert core.drain(0) == [InstallView(view)]
    return core


def kinds(effects: list[Effect]) -> list[str]:
    return [type(effect).__name__ for effect in effects]


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
    effects = core.drain(0)
    assert [(effect.frame.clock, effect.frame.kind) for effect in effects if isinstance(effect, Transmit)] == [
        (8, "null")
    ]


def test_a_silent_member_speaks_when_its_timeout_expires_and_not_before() -> None:
    core = process(NewtopSettings(silence_timeout_ns=50))
    core.receive(BlockFrame(GROUP, P2, 1, 0, 0, (b"x",)), 10)
    assert core.drain(10) == []
    assert core.deadline == 60
    core.tick(59)  # a spurious tick is harmless
    assert core.drain(59) == []
    core.tick(60)
    assert kinds(core.drain(60)) == ["Transmit", "Deliver"]
    assert core.deadline is None


def test_a_data_message_below_the_received_number_does_not_pay_the_duty() -> None:
    core = process()
    core.receive(BlockFrame(GROUP, P2, 9, 0, 0, (b"x",)), 0)
    core.send(GROUP, b"a", 0)
    frames = [effect.frame for effect in core.drain(0) if isinstance(effect, Transmit)]
    assert [(frame.kind, frame.clock) for frame in frames] == [("data", 1), ("null", 9)]


@pytest.mark.parametrize(
    "frame",
    [
        BlockFrame(GROUP, ProcessId("stranger"), 1, 0, 0, (b"x",)),
        BlockFrame(GroupId("other"), P2, 1, 0, 0, (b"x",)),
        BlockFrame(GROUP, P1, 1, 0, 0, (b"x",)),
        BlockFrame(GROUP, P2, 4, 2, 0, (b"x",)),
        BlockFrame(GROUP, P2, 0, 0, 0, (b"x",)),
    ],
    ids=["stranger", "other group", "echo of ourselves", "gap", "number not above the last"],
)
def test_what_no_correct_peer_sends_is_refused(frame: BlockFrame) -> None:
    core = process()
    core.receive(frame, 0)
    assert core.drain(0) == []
    assert core.unstable(GROUP) == core.unstable(frame.group) == 0


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
