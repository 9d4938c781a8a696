"""What a process owes when it changes between sending and receiving, or leaves in the middle of such a change."""

from antiphon.core.effects import Left, Reset
from antiphon.protocols.intergroup.frames import JoinRequestFrame
from antiphon.protocols.intergroup.membership.frames import ChangeFrame, EpochEnd, Numbers
from antiphon.protocols.intergroup.membership.states import State
from antiphon.types import ProcessId, ViewId
from tests.support.intergroup_world import GROUP, Got, World


def base_epoch(world: World) -> ViewId:
    return world.views("s1")[0].id


def numbers(each: int) -> Numbers:
    return (ProcessId("s1"), each), (ProcessId("s2"), each)


def test_j19_a_receiver_does_not_follow_a_change_that_began_before_it_joined() -> None:
    """It joined through a member that this change left behind: its views would go back in time."""
    world = World(2, ["r1"])
    world.send("s1")
    world.run(500)
    assert world.standing("r1").state is State.RECEIVER
    old = ChangeFrame(
        GROUP,
        ProcessId("s2"),
        ViewId("00000000000000000005.1.s2.0.000001"),
        5,
        "proposal",
        0,
        ((ProcessId("s2"), base_epoch(world)),),
        (EpochEnd(base_epoch(world), numbers(9), numbers(1), 1),),
        ((ProcessId("s2"), 10),),
    )
    world.hand("r1", old)
    assert [each for each in world.log[ProcessId("r1")] if isinstance(each, Reset)] == [Reset(GROUP, "beyond")]
    assert old.epoch not in [view.id for view in world.views("r1")]
    world.run(2_000)
    assert world.members("r1") == ("s1", "s2")


def test_j20_a_process_that_leaves_while_it_is_being_added_leaves_in_order() -> None:
    """Otherwise the message that adds it would add a process that is gone, and the group would need a repair."""
    world = World(2, ["r1"])
    world.run(500)
    world.promote("r1")
    world.run(1)
    assert world.standing("r1").state is State.TO_SENDER
    world.leave("r1")
    world.run(2_000)
    assert world.standing("r1").state is State.ABSENT
    assert isinstance(world.log[ProcessId("r1")][-1], Left)
    assert world.members("s1") == ("s1", "s2")
    assert world.kinds["proposal"] == 0  # no repair


def test_a_process_that_leaves_before_it_could_send_drops_its_messages_and_says_so() -> None:
    world = World(2)
    world.split(["late"], ["s1", "s2"])
    late = world.come("late", sends=False)
    payload = world.send(late)
    world.leave(late)
    assert world.log[late] == [Left(GROUP, graceful=False)]
    world.heal()
    world.cores[late].join(GROUP, world.clock(late))
    world.run(3_000)
    assert payload not in world.got("s1")


def test_j21_a_receiver_in_source_order_that_begins_to_send_shows_a_view_of_itself_alone_between() -> None:
    """Its private views and those of the senders promise different things; nothing is delivered twice."""
    world = World(2, ["f"], services={"f": "fifo"})
    for _ in range(5):
        world.send("s1")
        world.run(50)
    world.promote("f")
    for _ in range(5):
        world.send("s1")
        world.run(50)
    world.run(1_000)
    world.demote("f")
    world.run(2_000)
    for _ in range(5):
        world.send("s1")
        world.run(50)
    world.run(500)
    views = world.views("f")
    alone = [place for place, view in enumerate(views) if view.members == ("f",)]
    joined = next(place for place, view in enumerate(views) if ".3." in view.id)
    assert joined - 1 in alone
    assert [view.id for view in views] == sorted({view.id for view in views})
    got = [each.seq for each in world.log[ProcessId("f")] if isinstance(each, Got) and each.sender == "s1"]
    assert got == sorted({*got})
    assert len(got) > 10


def test_j21_the_floor_of_a_process_is_above_its_private_views() -> None:
    """A join must begin above everything that its application has seen, in whatever service."""
    world = World(1, ["u"], services={"u": "unreliable"})
    world.send("s1")
    world.run(200)
    world.requests.clear()
    world.promote("u")
    world.run(300)
    floors = [frame.floor for frame in world.requests if isinstance(frame, JoinRequestFrame)]
    assert floors
    assert min(floors) >= max(each.stamp for each in world.log[ProcessId("u")] if isinstance(each, Got))


def test_a_framed_receiver_that_becomes_a_sender_delivers_nothing_twice() -> None:
    world = World(2, ["f"], services={"f": "framed"}, loss=0.2, duplicate=0.2)
    for _ in range(10):
        world.send("s1")
        world.run(20)
    world.promote("f")
    for _ in range(10):
        world.send("s2")
        world.run(20)
    world.run(2_000)
    world.demote("f")
    world.run(2_000)
    got = world.got("f")
    assert len(got) == len({*got})


def test_a_source_that_left_and_sends_again_is_asked_again() -> None:
    """Its keep-alives repeat the number of its last message, as those of a leaver do (D9)."""
    world = World(2, ["f"], services={"f": "fifo"})
    world.run(500)
    world.demote("s2")
    world.run(1_000)
    assert world.members("f") == ("s1",)
    world.promote("s2")
    world.run(3_000)
    assert world.members("f") == ("s1", "s2")
