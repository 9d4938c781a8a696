"""InterGroup with one rule of its membership left out: schedules for cases that random runs do not reach.

Each schedule is played without the bug, when nothing is wrong, and with it (docs/design/planted.md).
"""

from collections.abc import Callable

import pytest

from antiphon.core.effects import Reset, Transmit
from antiphon.protocols.intergroup.membership.frames import SponsorRequestFrame
from antiphon.protocols.intergroup.membership.states import State
from antiphon.types import ProcessId, View
from tests.planted import intergroup_membership as bugs
from tests.planted import intergroup_roles as roles
from tests.planted.newtop import Plant
from tests.support.intergroup_oracle import faults
from tests.support.intergroup_world import GROUP, World

SETTLED_MS = 3_000


class Censored(World):
    """A world that drops all frames of some kinds for a while."""

    dropped: frozenset[str] = frozenset()

    def _transmit(self, sender: ProcessId, effect: Transmit) -> None:
        if effect.frame.kind not in self.dropped:
            super()._transmit(sender, effect)


def _until(world: World, holds: Callable[[], bool]) -> None:
    """Let time pass, in small steps, until this holds."""
    for _ in range(SETTLED_MS):
        if holds():
            return
        world.run(1)
    raise AssertionError("it never came to that")


def _came_apart(world: World) -> list[str]:
    """M7 as docs/spec/properties.md 2 states it: members of both views that install the second come from the first."""
    before = {
        (process, after.id): view
        for process in world.cores
        for view, after in zip(world.views(process), world.views(process)[1:], strict=False)
    }
    found = []
    for (process, after), view in before.items():
        for other in view.members:
            theirs = before.get((other, after))
            both = theirs is not None and other in _named(world, process, after).members
            if theirs is not None and both and theirs.id != view.id:
                found.append(f"{process} came from {view.id} to {after}, {other} from {theirs.id}")
    return found


def _named(world: World, process: ProcessId, view: str) -> View:
    return next(each for each in world.views(process) if each.id == view)


# -------------------------------------------------------------------------------- schedules


def two_crash_after_a_cause() -> list[str]:
    """s1 and s2 crash. The survivors have a message of s2, and not the message of s1 that s2 had delivered before."""
    world = World(4)
    world.run(100)
    world.send("s1")
    world.run(60)
    world.cut |= {("s1", "s3"), ("s1", "s4")}
    world.send("s1")
    world.run(60)
    world.send("s2")
    world.run(6)
    world.crash("s1")
    world.crash("s2")
    world.run(SETTLED_MS)
    return faults(world)


def one_of_two_misses_a_merge() -> list[str]:
    """s1 is in a view with s2, which s2 never installed: it went on alone."""
    world = Censored(2)
    world.run(100)
    world.split(["s1"], ["s2"])
    world.run(600)
    world.heal()
    world.dropped = frozenset({"change"})
    _until(world, lambda: len(world.members("s1")) == 2)
    world.run(3)
    world.suspect("s2", "s1")
    world.run(3)
    world.dropped = frozenset()
    world.run(SETTLED_MS)
    return _came_apart(world)


def heard_and_not_hearing() -> list[str]:
    """s2 does not hear s1, and goes on alone. s1 hears s2 and must go on too, in one view."""
    world = World(2)
    world.run(100)
    world.cut |= {("s1", "s2")}
    world.run(1_500)
    views, payload = len(world.views("s1")), world.send("s1")
    world.run(SETTLED_MS)
    stuck = [] if payload in world.got("s1") else ["s1 delivers nothing"]
    return stuck if len(world.views("s1")) == views else [*stuck, "s1 begins one view after the other"]


def asking_and_not_heard() -> list[str]:
    """r1 wants to send and hears the senders, but they do not hear it: it must begin alone."""
    world = World(2, ["r1"])
    world.run(300)
    world.cut |= {("r1", "s1"), ("r1", "s2")}
    world.promote("r1")
    world.run(5_000)
    return [] if world.standing("r1").state is State.SENDER else ["r1 asks forever"]


def asked_for_twice() -> list[str]:
    """r1 is added and leaves. A delayed request of it reaches s2, which knows of neither."""
    world = World(2, ["r1"])
    world.run(400)
    epoch = world.views("s1")[0].id
    world.cut |= {("s1", "s2")}
    world.promote("r1")
    _until(world, lambda: world.standing("r1").state is State.SENDER)
    world.demote("r1")
    world.run(8)
    late = ProcessId("s2")
    world.cores[late].receive(SponsorRequestFrame(GROUP, ProcessId("r1"), epoch, 1), world.clock(late))
    world.heal()
    world.run(SETTLED_MS)
    again = sum("r1" in view.members for view in world.views("s1")) > 1
    return [*faults(world), *(["r1 was added again"] if again else [])]


def claimed_by_a_receiver_that_crashes() -> list[str]:
    """Only r1 has the last message of s1, says so, and crashes."""
    world = World(3, ["r1"])
    world.run(300)
    world.cut |= {("s1", "s2"), ("s1", "s3")}
    world.send("s1")
    world.run(20)
    world.crash("s1")
    _until(world, lambda: world.standing("s2").state is State.REPAIR)
    world.split(["s2"], ["s3"])
    world.run(20)
    world.heal()
    world.run(2)
    world.crash("r1")
    world.run(SETTLED_MS)
    together = [*world.members("s2")] == [*world.members("s3")] == ["s2", "s3"]
    return faults(world) if together else ["s2 and s3 stay in a view with s1"]


def _one_that_is_left_out(*, is_delivered: bool) -> list[str]:
    """Only r1 has the last message of s1, and the senders do not know. It has delivered the message, or not."""
    world = World(4, ["r1"])
    world.run(300)
    world.crash("s4")
    _until(world, lambda: all(len(world.members(each)) == 3 for each in ("s1", "s2", "s3", "r1")))
    world.run(300)
    world.cut |= {("s1", "s2"), ("s1", "s3"), ("r1", "s2"), ("r1", "s3")}
    if not is_delivered:
        world.cut |= {("s2", "r1")}
    world.send("s1")
    world.run(60)
    world.crash("s1")
    _until(world, lambda: len(world.members("s2")) == 2)
    world.heal()
    world.run(SETTLED_MS)
    return faults(world)


def delivered_and_left_out() -> list[str]:
    return _one_that_is_left_out(is_delivered=True)


def held_and_left_out() -> list[str]:
    return _one_that_is_left_out(is_delivered=False)


def added_at_two_ends() -> list[str]:
    """r1 is added while the senders separate; one side lacks a message of the other that is stamped before that."""
    world = World(4, ["r1"])
    world.run(400)
    world.cut |= {("s3", "s1"), ("s3", "s2"), ("s3", "r1")}
    world.send("s3")
    world.run(8)
    world.promote("r1")
    world.run(40)
    world.split(["s1", "s2", "r1"], ["s3", "s4"])
    world.run(SETTLED_MS)
    return faults(world)


def added_late() -> list[str]:
    """r1 is added and leaves in order. s3 hears it before the messages that say so: no repair is needed."""
    world = World(3, ["r1"])
    world.run(400)
    world.cut |= {("s1", "s3")}
    world.promote("r1")
    _until(world, lambda: world.standing("r1").state is State.SENDER)
    world.run(60)
    world.heal()
    world.run(300)
    world.demote("r1")
    world.run(SETTLED_MS)
    return [f"{view.id} ends a repair" for view in world.views("s1") if ".1." in view.id]


def the_only_sender_does_not_want_to() -> list[str]:
    """Nobody wants to send. A process that joins must be admitted all the same."""
    world = World(1, ["r1"])
    world.run(300)
    world.demote("s1")
    world.run(1_000)
    late = world.come("n1", sends=False)
    world.run(SETTLED_MS)
    return [] if world.views(late) else ["n1 is never admitted"]


def added_and_cut_off() -> list[str]:
    """r1 is a sender, and does not receive a message before the others have long had it."""
    world = World(2, ["r1"])
    world.run(400)
    world.promote("r1")
    _until(world, lambda: all(len(world.members(each)) == 3 for each in ("s1", "s2", "r1")))
    world.run(100)
    world.cut |= {("s1", "r1"), ("s2", "r1")}
    payload = world.send("s1")
    world.run(120)
    world.heal()
    world.run(SETTLED_MS)
    return [] if payload in world.got("r1") else ["r1 lacks a message"]


def behind_a_change() -> list[str]:
    """r1 lacks a message of an epoch that ends, and hears nothing before the next one has begun."""
    world = World(3, ["r1"])
    world.run(400)
    world.crash("s3")
    world.run(150)
    world.cut |= {("s1", "r1"), ("s2", "r1")}
    world.send("s1")
    _until(world, lambda: len(world.members("s1")) == 2)
    world.run(20)
    world.heal()
    world.run(SETTLED_MS)
    return ["r1 begins again" for each in world.log[ProcessId("r1")] if isinstance(each, Reset)]


Schedule = Callable[[], list[str]]


@pytest.mark.parametrize(
    ("plant", "schedule"),
    [
        (bugs.longest_prefix, two_crash_after_a_cause),
        (bugs.the_parted_are_merged, one_of_two_misses_a_merge),
        (bugs.other_epochs_show_life, heard_and_not_hearing),
        (bugs.foreign_senders_are_not_probed, heard_and_not_hearing),
        (roles.the_unsponsored_wait, asking_and_not_heard),
        (roles.the_added_are_added_again, asked_for_twice),
        (bugs.the_mute_are_awaited, claimed_by_a_receiver_that_crashes),
        (bugs.receivers_are_believed_forever, claimed_by_a_receiver_that_crashes),
        (roles.receivers_go_beyond, delivered_and_left_out),
        (roles.cut_by_time, held_and_left_out),
        (bugs.all_changes_take_effect_at_the_end, added_at_two_ends),
        (bugs.no_grace_for_the_added, added_late),
        (bugs.leavers_are_foreign, added_late),
        (roles.the_last_sender_leaves, the_only_sender_does_not_want_to),
        (roles.the_added_do_not_count, added_and_cut_off),
        (roles.old_messages_are_dropped, behind_a_change),
        (bugs.changes_are_told_once_and_not_asked_for, behind_a_change),
    ],
)
def test_a_planted_bug_is_found(plant: Plant, schedule: Schedule, monkeypatch: pytest.MonkeyPatch) -> None:
    assert schedule() == []
    plant(monkeypatch)
    if plant is roles.the_added_are_added_again:
        with pytest.raises(KeyError):  # its messages have the numbers of those before, and are freed twice
            schedule()
    else:
        assert schedule()
