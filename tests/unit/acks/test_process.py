"""The contract of a core under the acknowledgment protocols; explicit acknowledgments; the printed rules."""

import pytest

from antiphon.core.effects import Channel, Deliver, Discard, Effect, InstallView, Scope, Stable, Transmit
from antiphon.protocols.acks.as_printed import ERRATA, printed
from antiphon.protocols.acks.frames import AckFrame, AcksFrame, CloseFrame, MessageFrame, OpenFrame, VectorAckFrame
from antiphon.protocols.acks.process import AcksProcess
from antiphon.protocols.acks.settings import AcksGroupPlan, AcksSettings, Role
from antiphon.types import GroupId, ProcessId
from tools.lab.acks_cluster import GROUP, NEVER_NS, UNIT, AcksCluster

A, B, C = map(ProcessId, "abc")
OTHER = GroupId("other")
PAIR: dict[str, Role] = {"s": "sender", "r": "receiver"}


def everybody_both(*names: ProcessId) -> AcksGroupPlan:
    return AcksGroupPlan(dict.fromkeys(names, "both"), frozenset(names))


def process(me: ProcessId = A, **settings: object) -> AcksProcess:
    chosen = AcksSettings(**{"tracing": True, "first_send_ns": 10, "first_ack_ns": 20, **settings})  # type: ignore[arg-type]
    return AcksProcess(me, {GROUP: everybody_both(A, B), OTHER: everybody_both(A, C)}, chosen)


def kinds(effects: list[Effect]) -> list[str]:
    return [effect.frame.kind if isinstance(effect, Transmit) else type(effect).__name__ for effect in effects]


def test_a_message_is_sent_then_delivered_and_kept_until_stable() -> None:
    core = process()
    assert kinds(core.drain(0)) == ["InstallView", "InstallView"]
    core.send(GROUP, b"hello", 5, 7)
    transmit, deliver = core.drain(5)
    frame = MessageFrame(GROUP, A, 5, (b"hello",), 7)
    assert transmit == Transmit(frame, Scope.RECEIVERS)
    assert deliver == Deliver(frame)
    assert core.unstable(GROUP) == 1
    core.receive(AckFrame(GROUP, B, 1, 5), 6)
    assert core.drain(6) == [Stable(GROUP, ((A, 7),)), Discard(GROUP, ((A, 7),))]
    assert core.unstable(GROUP) == 0


def test_time_alone_makes_nulls_and_acknowledgments_due() -> None:
    core = process()
    core.drain(0)
    assert core.deadline == 10
    core.tick(10)
    assert kinds(core.drain(10)) == ["null", "null"]
    assert core.deadline == 20
    core.tick(20)
    effects = core.drain(20)
    assert kinds(effects) == ["acknowledgment", "acknowledgment"]
    assert {(effect.to, effect.channel) for effect in effects if isinstance(effect, Transmit)} == {
        (Scope.SENDERS, Channel.DATAGRAM)
    }
    assert core.deadline == 10 + 50_000_000


def test_a_process_that_slept_does_not_catch_up_on_acknowledgments() -> None:
    core = process(ack_every_ns=100)
    core.drain(0)
    core.tick(10_000)
    assert kinds(core.drain(10_000)).count("acknowledgment") == 2  # one per group
    assert core.deadline == 10_100


def test_groups_are_independent() -> None:
    core = process(clock="logical")
    core.drain(0)
    core.receive(MessageFrame(GROUP, B, 99), 1)
    core.send(GROUP, b"", 2)
    core.send(OTHER, b"", 2)
    stamps = {effect.frame.group: effect.frame.clock for effect in core.drain(2) if isinstance(effect, Transmit)}
    assert stamps == {GROUP: 100, OTHER: 1}


def test_frames_for_others_and_unknown_sessions_are_ignored() -> None:
    core = process()
    core.drain(0)
    core.receive(MessageFrame(GroupId("unknown"), B, 1, (b"x",)), 1)
    core.receive(MessageFrame(GROUP, C, 1, (b"x",)), 1)  # of another group
    core.receive(AckFrame(GROUP, C, 1, 1), 1)
    core.receive(VectorAckFrame(GROUP, B, 1, ((C, 1),)), 1)  # of another protocol
    core.receive(CloseFrame(GROUP, C, 1), 1)
    core.receive(CloseFrame(GROUP, B, 2), 1)  # of an unknown session
    core.receive(OpenFrame(GROUP, B, 2, 9, 1, "both", None), 1)  # answers a session that we never had
    core.receive(OpenFrame(GROUP, ProcessId("d"), 1, 0, 1, "both", (C,)), 1)
    assert kinds(core.drain(1)) == ["open"]  # d does not receive from us, but we receive from d


def test_a_message_is_received_once() -> None:
    core = process()
    core.drain(0)
    for _ in range(2):
        core.receive(MessageFrame(GROUP, B, 3, (b"x",)), 1)
    assert kinds(core.drain(1)) == ["Deliver"]


def test_messages_wait_while_the_transport_is_full_nulls_do_not() -> None:
    core = process()
    core.drain(0)
    core.writable(False, 1)
    core.send(GROUP, b"x", 1)
    assert core.drain(1) == []
    core.tick(10)
    assert kinds(core.drain(10)) == ["null", "null"]
    core.writable(True, 11)
    assert kinds(core.drain(11)) == ["data", "Deliver"]


def test_joining_and_leaving_twice_is_once() -> None:
    core = process()
    core.drain(0)
    core.join(GROUP, 1)
    assert core.drain(1) == []
    core.leave(GROUP, 2)
    effects = core.drain(2)
    assert kinds(effects) == ["close", "InstallView"]
    core.leave(GROUP, 3)
    assert core.drain(3) == []
    assert core.deadline == 10  # of the other group
    core.join(GROUP, 4)
    assert kinds(core.drain(4)) == ["InstallView", "open"]


def test_a_process_that_leaves_sends_its_requests_first_and_holds_nothing() -> None:
    core = process()
    core.drain(0)
    core.send(GROUP, b"x", 1)
    core.leave(GROUP, 1)
    effects = core.drain(1)
    assert kinds(effects) == ["data", "Deliver", "close", "InstallView", "Stable", "Discard"]
    view = next(effect.view for effect in effects if isinstance(effect, InstallView))
    assert (view.members, view.receivers, view.senders) == ((A,), (), ())
    assert core.unstable(GROUP) == 0


def test_a_batch_and_one_by_one_give_the_same() -> None:
    frames: list[AcksFrame] = [
        MessageFrame(GROUP, B, 3, (b"x",)),
        AckFrame(GROUP, B, 1, 0),
        MessageFrame(GROUP, B, 4, (b"y",)),
        CloseFrame(GROUP, B, 1),
        OpenFrame(GROUP, B, 2, 0, 2, "both", None),
    ]
    batch, singly, effects = process(), process(), list[Effect]()
    for core in (batch, singly):
        core.drain(0)
    for frame in frames:
        batch.receive(frame, 5)
        singly.receive(frame, 5)
        effects += singly.drain(5)
    assert batch.drain(5) == effects
    assert kinds(effects) == ["Deliver", "Deliver", "InstallView", "open"]


def test_frames_show_their_kind_clock_and_serial_to_traces() -> None:
    message, null = MessageFrame(GROUP, A, 3, (b"x",), 1), MessageFrame(GROUP, A, 4)
    assert [(f.kind, f.clock, f.serial, f.copies, f.orderer) for f in (message, null)] == [
        ("data", 3, 3, (), None),
        ("null", 4, 4, (), None),
    ]
    acks = AckFrame(GROUP, A, 9, 70), VectorAckFrame(GROUP, A, 9, ((B, 1),))
    assert [(f.kind, f.clock, f.serial, f.payloads, f.label) for f in acks] == [
        ("acknowledgment", 70, 9, (), 0),
        ("acknowledgment", 0, 9, (), 0),
    ]
    opening, closing = OpenFrame(GROUP, A, 1, 0, 1, "both", None), CloseFrame(GROUP, A, 1)
    assert [(f.kind, f.serial) for f in (opening, closing)] == [("open", None), ("close", None)]
    assert len({message, null, *acks, opening, closing}) == 6


def test_without_tracing_nothing_is_told_and_everything_freed() -> None:
    core = process(tracing=False)
    core.drain(0)
    core.send(GROUP, b"x", 1)
    core.drain(1)
    core.receive(AckFrame(GROUP, B, 1, 1), 2)
    assert core.drain(2) == []
    assert core.unstable(GROUP) == 0


@pytest.mark.parametrize("kind", ["timestamp", "vector", "transitive"])
def test_where_all_is_watched_each_tells_of_all(kind: str) -> None:
    """Theorem 2 of Berket98; our own messages are freed, and messages of others are not kept."""
    cluster = AcksCluster("a", "b", "c", kind=kind, stability="all")
    freed: list[Discard] = []
    cluster.watch = lambda _, effect: freed.append(effect) if isinstance(effect, Discard) else None
    for name in cluster.names:
        cluster.send(name)
    cluster.run(12 * UNIT)
    assert {key[:2] for key in cluster.stable_at} == {(one, other) for one in "abc" for other in "abc"}
    assert sorted(discard.upto for discard in freed) == [((A, 0),), ((B, 0),), ((C, 0),)]


def test_explicit_acknowledgments_answer_every_message_and_repeat_the_last() -> None:
    cluster = AcksCluster(roles=PAIR, kind="explicit", ack_every_ns=5 * UNIT, first_acks={"r": 5 * UNIT})
    cluster.send("s", 3)
    cluster.run(4 * UNIT)
    stamps = [frame.stamp for frame in cluster.spoken["s"] if frame.payloads]
    assert [frame.clock for frame in cluster.acked["r"]] == stamps  # nulls are not answered
    assert cluster.stable_after("s") == 2 * UNIT
    cluster.run(20 * UNIT)
    assert len(cluster.acked["r"]) == 3 + 4
    assert cluster.acked["r"][-1].clock == 19 * UNIT  # a null, which arrived before the acknowledgment left


def test_an_explicit_acknowledgment_that_is_lost_is_made_up_for_by_the_repetition() -> None:
    cluster = AcksCluster(roles=PAIR, kind="explicit", ack_every_ns=5 * UNIT, first_acks={"r": 5 * UNIT})
    cluster.datagram = lambda *_: [] if cluster.now < 5 * UNIT else [UNIT]
    cluster.send("s")
    cluster.run(9 * UNIT)
    assert cluster.stable_after("s") == 6 * UNIT


def test_a_sender_without_receivers_keeps_nothing() -> None:
    cluster = AcksCluster(roles={"s": "sender", "also": "sender"})
    cluster.send("s")
    assert cluster.stable_at == {("s", "s", 0): 0}


def test_costs_count_the_work() -> None:
    work = {}
    for kind in ("timestamp", "vector", "explicit", "transitive"):
        cluster = AcksCluster("a", "b", "c", kind=kind)
        cluster.send("a", 5)
        cluster.run(20 * UNIT)
        work[kind] = cluster.cores["a"].costs()
        assert set(work[kind]) == {"sender_work", "receiver_work"}
        assert min(work[kind].values()) > 0
    assert work["vector"]["receiver_work"] < work["timestamp"]["receiver_work"]


def test_every_erratum_can_be_followed() -> None:
    assert ERRATA == ("T6", "T8", "T9", "T12", "FIG-4")
    assert printed(()) == printed(())
    assert all(printed((erratum,)) != printed(()) for erratum in ERRATA)


def test_fig_4_a_sender_that_joins_is_missing_from_the_sets_of_the_others() -> None:
    """The rules of section 6 are broken, configuration is correct: r acknowledges more than it has of the joiner."""
    roles: dict[str, Role] = {"old": "sender", "new": "sender", "r": "receiver"}
    cluster = AcksCluster(roles=roles, absent=["new"], literal=("FIG-4",), first_sends={"new": NEVER_NS})
    cluster.run(3 * UNIT)
    cluster.join("new")
    cluster.run(8 * UNIT)
    assert cluster.group("new").connections.receivers == {"r"}
    assert cluster.group("r").connections.senders == {"old"}
    cluster.held.add(("new", "r"))
    cluster.send("new")
    cluster.run(12 * UNIT)
    assert ("new", "new", 0) in cluster.stable_at
    assert ("r", "new", 0) not in cluster.delivered_at
    cluster.release("new", "r")
    assert ("r", "new", 0) in cluster.delivered_at
