"""Sender groups that change, one rule at a time (docs/spec/intergroup.md 7; errata M, J, D)."""

import pytest

from antiphon.core.effects import Left, Reset
from antiphon.protocols.intergroup.membership.claims import NO_END, Claim, Survivor, ends
from antiphon.protocols.intergroup.membership.consensus import Consensus
from antiphon.protocols.intergroup.membership.epoch import Epoch
from antiphon.protocols.intergroup.membership.frames import ProposalFrame, SponsorRequestFrame
from antiphon.protocols.intergroup.membership.states import State
from antiphon.protocols.intergroup.membership.view_ids import Kind, joined_id, view_id
from antiphon.types import GroupId, ProcessId, ViewId
from tests.support.intergroup_oracle import faults
from tests.support.intergroup_world import SUSPECT_MS, Got, World

A, B, C, D = (ProcessId(name) for name in "abcd")
EPOCH = ViewId("epoch")


def states(world: World) -> dict[str, State]:
    return {process: world.standing(process).state for process in world.live()}


def test_7_3_a_process_that_hears_no_sender_begins_alone() -> None:
    world = World(1)
    world.crash("s1")
    world.come("n1", sends=True)
    world.run(10 * SUSPECT_MS)
    assert world.members("n1") == ("n1",)
    world.send("n1")
    world.run(100)
    assert world.got("n1") == [b"n1:0"]


def test_7_3_a_receiver_begins_where_a_sender_says() -> None:
    world = World(2)
    world.send("s1")
    world.run(500)
    world.come("r1", sends=False)
    world.run(500)
    later = world.send("s2")
    world.run(100)
    assert world.got("r1") == [later]
    assert world.views("r1")[0].members == ("s1", "s2")
    assert ".3." in world.views("r1")[0].id


def test_7_4_a_receiver_becomes_a_sender_and_delivery_never_stops() -> None:
    """M12: the view begins at the position of the PAdd, at all."""
    world = World(2, ["r1"])
    world.run(1_000)
    before = len(world.got("s1"))
    world.promote("r1")
    for _ in range(20):
        world.send("s1")
        world.run(10)
    assert states(world) == {"s1": State.SENDER, "s2": State.SENDER, "r1": State.SENDER}
    assert len({world.views(process)[-1].id for process in world.cores}) == 1
    world.send("r1")
    world.run(200)
    assert len(world.got("s2")) == before + 21
    assert world.kinds["proposal"] == 0
    assert faults(world) == []


def test_7_4_a_receiver_that_sends_becomes_a_sender_by_itself() -> None:
    world = World(2, ["r1"])
    world.run(1_000)
    sent = [world.send("r1") for _ in range(5)]
    world.run(500)
    assert world.got("s1") == world.got("r1") == sent
    assert "r1" in world.members("s2")


def test_7_4_a_sender_becomes_a_receiver_without_a_repair() -> None:
    """J3: it is a sender for others until everybody has its last message."""
    world = World(3)
    sent = [world.send("s1") for _ in range(10)]
    world.demote("s1")
    world.run(500)
    assert world.got("s2") == world.got("s3") == sent
    assert states(world) == {"s1": State.RECEIVER, "s2": State.SENDER, "s3": State.SENDER}
    assert world.members("s1") == ("s2", "s3")
    world.send("s2")
    world.run(200)
    assert len(world.got("s1")) == 11
    assert world.kinds["proposal"] == 0


def test_7_4_an_idle_sender_steps_down_and_the_last_one_stays() -> None:
    world = World(3, idle_ms=500)
    for _ in range(30):
        world.send("s2")
        world.run(50)
    assert world.members("s2") == ("s2",)
    world.run(3_000)
    assert states(world) == {"s1": State.RECEIVER, "s2": State.SENDER, "s3": State.RECEIVER}


@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_7_6_a_dead_sender_no_longer_blocks_the_others(loss: float) -> None:
    world = World(3, ["r1"], loss=loss)
    world.run(2_000)
    world.crash("s2")
    sent = [world.send("s1"), world.send("s3")]
    world.run(10 * SUSPECT_MS)
    for process in ("s1", "s3", "r1"):
        assert world.members(process) == ("s1", "s3")
        assert {*world.got(process)} == {*sent}
    assert faults(world) == []


def test_7_6_two_sides_of_a_partition_go_on_and_merge() -> None:
    world = World(4, ["r1", "r2"])
    world.run(1_000)
    world.split(["s1", "s2", "r1"], ["s3", "s4", "r2"])
    world.run(5 * SUSPECT_MS)
    left, right = world.send("s1"), world.send("s3")
    world.run(200)
    assert world.got("r1") == [left]
    assert world.got("r2") == [right]
    world.heal()
    world.run(10 * SUSPECT_MS)
    assert {world.members(process) for process in world.cores} == {("s1", "s2", "s3", "s4")}
    both = world.send("s2")
    world.run(200)
    assert all(world.got(process)[-1] == both for process in world.cores)
    assert faults(world) == []


def test_7_6_independent_beginnings_merge() -> None:
    world = World(1)
    world.crash("s1")
    world.split(["n1"], ["n2"])
    world.come("n1", sends=True)
    world.come("n2", sends=True)
    world.run(10 * SUSPECT_MS)
    assert world.members("n1") == ("n1",)
    world.heal()
    world.run(10 * SUSPECT_MS)
    assert world.members("n1") == world.members("n2") == ("n1", "n2")


def test_j12_a_process_that_does_not_hear_us_starts_no_repair() -> None:
    world = World(3)
    world.run(200)
    world.cut.add(("s1", "s3"))
    world.cut.add(("s2", "s3"))
    world.run(20 * SUSPECT_MS)
    assert world.members("s1") == world.members("s2") == ("s1", "s2")
    seen = len(world.views("s1"))
    world.run(20 * SUSPECT_MS)
    assert len(world.views("s1")) == seen
    assert world.kinds["probe"] > 0


def test_m22_a_pause_shorter_than_the_timeout_changes_nothing() -> None:
    world = World(2)
    world.run(200)
    world.split(["s1"], ["s2"])
    world.run(SUSPECT_MS - 50)
    world.heal()
    world.run(1_000)
    assert len(world.views("s1")) == 1


def test_m24_a_sender_leaves_the_group_in_order() -> None:
    world = World(3)
    sent = [world.send("s1") for _ in range(5)]
    world.leave("s1")
    world.run(500)
    assert isinstance(world.log[ProcessId("s1")][-1], Left)
    assert world.got("s2") == sent
    assert world.members("s2") == ("s2", "s3")
    assert world.kinds["proposal"] == 0


def test_m16_a_receiver_that_cannot_follow_says_so_and_begins_again() -> None:
    world = World(2, ["r1"])
    world.run(1_000)
    world.split(["s1", "s2"], ["r1"])
    for _ in range(50):
        world.send("s1")
        world.run(40)
    world.heal()
    world.run(10 * SUSPECT_MS)
    resets = [each.reason for each in world.log[ProcessId("r1")] if isinstance(each, Reset)]
    assert resets == ["stalled"]
    last = world.send("s2")
    world.run(200)
    assert world.got("r1")[-1] == last
    assert faults(world) == []


def test_d12_numbers_go_on_when_a_process_is_added_again() -> None:
    world = World(2)
    for turn in range(3):
        world.send("s1")
        world.run(200)
        world.demote("s1")
        world.run(500)
        assert world.members("s2") == ("s2",), turn
    numbers = [each.seq for each in world.log[ProcessId("s2")] if isinstance(each, Got)]
    assert numbers == [1, 3, 5]  # a leave has a number too


def test_frames_of_changing_groups_travel_as_bytes() -> None:
    world = World(3, ["r1"], coded=True, loss=0.1)
    world.run(1_500)
    world.promote("r1")
    world.demote("s1")
    world.run(500)
    world.split(["s2", "r1"], ["s3"])
    world.run(5 * SUSPECT_MS)
    world.heal()
    world.run(10 * SUSPECT_MS)
    process = world.come("n1", sends=True)
    world.crash("s3")
    world.run(10 * SUSPECT_MS)
    assert world.members("s2") == (process, "r1", "s2")
    assert {"add", "leave", "proposal", "recovery-info", "ready", "change", "probe", "cut"} <= world.kinds.keys()
    assert faults(world) == []


# -------------------------------------------------------------------------------- the parts


def proposal(sender: ProcessId, processes: str, failed: str = "", run: int = 1) -> ProposalFrame:
    named = tuple(ProcessId(name) for name in processes)
    gone = tuple(ProcessId(name) for name in failed)
    return ProposalFrame(GroupId("g"), sender, 1, run, EPOCH, 1, named, gone)


def test_m4_all_that_are_proposed_must_propose_the_same() -> None:
    consensus = Consensus(A, EPOCH, 1, frozenset({A, B, C}))
    consensus.hear(proposal(B, "abc"))
    assert consensus.unmatched == [C]
    consensus.fail(C)
    assert consensus.unmatched == [B]
    consensus.hear(proposal(B, "abc", "c"))
    assert consensus.unmatched == []
    assert consensus.proposed == [A, B]


def test_m5_the_same_sets_in_another_run_are_another_proposal() -> None:
    found = set()
    for run in (1, 2):
        consensus = Consensus(A, EPOCH, 1, frozenset({A, B}))
        consensus.hear(proposal(B, "ab", run=run))
        found.add(consensus.proposal)
    assert len(found) == 2


def test_m5_both_ends_get_the_same_id() -> None:
    one, other = Consensus(A, EPOCH, 3, frozenset({A, B})), Consensus(B, EPOCH, 5, frozenset({A, B}))
    one.hear(proposal(B, "ab", run=5))
    other.hear(proposal(A, "ab", run=3))
    assert one.proposal == other.proposal


def test_m26_a_process_never_takes_itself_for_failed() -> None:
    consensus = Consensus(A, EPOCH, 1, frozenset({A, B}))
    consensus.incorporate(proposal(B, "abc", "ac"))
    assert consensus.proposed == [A, B]


def survivor(process: ProcessId, last: int, gate: int, **claims: Claim) -> Survivor:
    told = tuple((ProcessId(name), claim) for name, claim in claims.items())
    return Survivor(process, last, 1, gate, told, (), 0)


def test_m15_of_lost_senders_only_what_is_stamped_early_enough_counts() -> None:
    """Two senders are lost: the horizon of the one that is known less limits both."""
    found = ends(
        [
            survivor(A, 7, 40, b=Claim(1, 9, 90), c=Claim(1, 3, 50), d=Claim(1, 8, 80)),
            survivor(B, 9, 45, a=Claim(1, 7, 70), c=Claim(1, 4, 60), d=Claim(1, 5, 55)),
        ]
    )
    assert found.survivors == {A: 7, B: 9}
    assert found.lost == {C: Claim(1, 4, 60), D: Claim(1, 8, 80)}
    assert found.last_stamp == 60
    assert found.gate == 45


def test_j2_a_process_that_left_limits_nobody() -> None:
    found = ends([survivor(A, 7, 40, c=Claim(1, 9, NO_END), d=Claim(1, 5, 70)), survivor(B, 9, 45, c=Claim(1, 8, 50))])
    assert found.last_stamp == 70


def test_j2_a_later_stint_counts_more_than_a_higher_number() -> None:
    found = ends([survivor(A, 1, 1, c=Claim(1, 9, NO_END)), survivor(B, 1, 1, c=Claim(10, 9, 50))])
    assert found.lost[C] == Claim(10, 9, 50)


def test_j11_a_second_add_of_the_same_stint_has_no_effect() -> None:
    epoch = Epoch(EPOCH, 0, 0, {A: 1}, EPOCH, 0)
    assert epoch.add(B, 4, by=A, seq=2, stamp=10)
    assert not epoch.add(B, 4, by=A, seq=3, stamp=11)
    assert epoch.leave(B, 6, 20)
    assert not epoch.add(B, 4, by=A, seq=4, stamp=21)
    assert not epoch.add(B, 6, by=A, seq=5, stamp=22)
    assert epoch.add(B, 7, by=A, seq=6, stamp=23)
    assert epoch.members == (A, B)


def test_m7_and_j10_ids_sort_in_the_order_of_installation() -> None:
    base = view_id(5, Kind.CONSENSUS, ProcessId("z#3"), 2)
    ids = [base, joined_id(5, base, A), view_id(6, Kind.CONSENSUS, A, 1), view_id(6, Kind.CHANGE, A, 1)]
    ids += [joined_id(6, base, A), view_id(6, Kind.RESET, A, 1), view_id(10, Kind.CONSENSUS, A, 2)]
    assert ids == sorted(ids)
    assert len({*ids}) == len(ids)


def test_7_4_a_receiver_that_is_added_late_becomes_a_sender_and_leaves() -> None:
    """Its question was late: it has begun again since, and no longer wants to send."""
    world = World(3, ["r1"])
    world.run(500)
    question = SponsorRequestFrame(world.group, ProcessId("r1"), world.views("s1")[-1].id, 1)
    world.hand("s1", question)
    world.run(500)
    assert [len(view.members) for view in world.views("s2")[-2:]] == [4, 3]
    assert world.standing("r1").state is State.RECEIVER
    assert not faults(world)
