"""Changes of state that only few random runs reach (`benchmarks.intergroup_states`), each by its own schedule."""

from antiphon.protocols.intergroup.frames import GoneFrame
from antiphon.protocols.intergroup.membership.frames import ProposalFrame
from antiphon.protocols.intergroup.membership.states import Event, State
from antiphon.protocols.intergroup.membership.steps import Cause, Step
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId
from tests.support.intergroup_oracle import faults
from tests.support.intergroup_world import SUSPECT_MS, World

S1, R1 = ProcessId("s1"), ProcessId("r1")


def test_7_6_a_change_that_fits_counts_also_after_a_restart() -> None:
    """The change reaches one of two members; the other one has given up the leader when the first one repeats it."""
    world = World(4)
    world.run(300)
    world.crash("s4")
    while world.standing("s1").repair.step is not Step.READY or world.standing("s3").repair.step is not Step.WAIT:
        world.run(0.1)
    world.cut.add(("s1", "s3"))
    while world.standing("s2").state is not State.SENDER:
        world.run(0.1)
    world.suspect("s3", "s1")
    assert world.standing("s3").repair.step is Step.CONSENSUS
    world.run(20)
    world.heal()
    world.run(10 * SUSPECT_MS)
    assert world.standing("s3").repair.taken[Step.CONSENSUS, Cause.DECIDED] == 1
    assert world.members("s3") == ("s1", "s2", "s3")
    assert not faults(world)


def test_7_4_a_process_that_waits_takes_part_if_a_member_has_its_addition() -> None:
    world = World(3, ["r1"])
    world.run(500)
    epoch = world.views("s1")[-1].id
    senders = tuple(world.senders)
    world.promote("r1")
    assert world.standing("r1").state is State.TO_SENDER
    world.hand("r1", ProposalFrame(world.group, senders[1], 1, 1, epoch, 1, senders, ()))
    assert world.standing("r1").state is State.WAIT
    world.hand("r1", ProposalFrame(world.group, senders[0], 1, 1, epoch, 1, (R1, *senders), ()))
    assert world.standing("r1").taken[State.WAIT, Event.REPAIR] == 1
    world.run(10 * SUSPECT_MS)
    assert world.members("s1") == (R1, *senders)
    assert not faults(world)


def test_r9_a_leaver_that_is_behind_begins_again() -> None:
    world = World(3)
    world.run(500)
    world.cut.add(("s1", "s3"))
    world.send("s1")
    world.run(6)
    world.heal()
    world.cut |= {("s2", "s3"), ("s3", "s1"), ("s3", "s2")}  # no process repairs it
    world.demote("s3")
    world.send("s1")
    lost = Ticket(S1, 1)
    world.run(6)
    assert world.standing("s3").state is State.TO_RECEIVER
    world.hand("s3", GoneFrame(world.group, S1, lost, world.views("s1")[-1].id, 1))
    assert world.standing("s3").taken[State.TO_RECEIVER, Event.RESET] == 1
    world.heal()
    world.run(10 * SUSPECT_MS)
    assert world.standing("s3").state is State.RECEIVER
    assert not faults(world)
