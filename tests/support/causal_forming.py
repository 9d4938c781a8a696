"""Schedules in which members of a group are in different formations of it (docs/spec/newtop.md 11.6 rules 4 and 5)."""

from antiphon.protocols.newtop.frames import InstallFrame
from antiphon.types import ProcessId
from tests.support.cluster import OMEGA_NS
from tests.support.forming import Forming

PATIENCE_NS = 4 * OMEGA_NS


def move_all_but_installs_to(cluster: Forming, excepted: str) -> None:
    """Deliver frames until only channels to that process are in use, and all of them begin with `install`."""
    for _ in range(1_000):
        waiting = [
            (sender, to)
            for (sender, to), frames in cluster.channels.items()
            if frames and not (to == excepted and isinstance(frames[0], InstallFrame))
        ]
        if not waiting:
            return
        for sender, to in waiting:
            cluster.move(sender, to, 1)
    raise AssertionError("frames never stop")


def told_by_one_that_refused(service: str) -> Forming:
    """k gives a formation up after p has installed the group, sends in the old one, and tells p in another group."""
    cluster = Forming(groups={"x": ["k", "p", "q"], "y": ["k", "p"]}, strangers=["c"], service=service)
    cluster.join("c", "p", group="x")
    move_all_but_installs_to(cluster, "k")
    assert cluster.last_view("p", "x") == "c k p q"
    for sender in "pqc":
        cluster.channels[sender, "k"].clear()
    cluster.now += PATIENCE_NS + 1
    cluster.tick("k")
    cluster.send("k", b"cause", group="x")
    cluster.send("k", b"effect", group="y")
    cluster.move_one_way("k", "p")
    return cluster


def told_by_one_that_went_on(service: str) -> Forming:
    """a and b go on without r, which does not know that yet. a tells r in another group; the message of b is late."""
    cluster = Forming(groups={"x": ["a", "b", "r"], "y": ["a", "r"]}, strangers=["c"], service=service)
    cluster.send("b", b"cause", group="x")
    cluster.move_between("a", "b")
    late = [*cluster.channels["b", "r"]]
    cluster.channels["b", "r"].clear()
    for name in "ab":
        cluster.core(name).suspect(ProcessId("r"), cluster.now)
        cluster.settle(name)
    cluster.move_between("a", "b")
    assert cluster.last_view("a", "x") == "a b"
    cluster.join("c", "a", group="x")
    cluster.move_between("a", "b", "c")
    assert cluster.last_view("a", "x") == "a b c"
    cluster.send("a", b"effect", group="y")
    cluster.move_one_way("a", "r")
    cluster.channels["b", "r"].extendleft(reversed(late))
    return cluster


def told_of_a_group_that_is_being_formed(service: str) -> Forming:
    """a has installed x and sent in it; b has voted for x. c, which is not in x, tells b of a's message."""
    cluster = Forming(groups={"y": "bc", "z": "ac"}, service=service)
    cluster.form("a", "a", "b", group="x")
    cluster.move("a", "b")
    cluster.move("b", "a")
    assert cluster.last_view("a", "x") == "a b"
    cluster.send("a", b"cause", group="x")
    cluster.send("a", b"told", group="z")
    cluster.move_one_way("a", "c")
    cluster.send("c", b"effect", group="y")
    cluster.move_one_way("c", "b")
    return cluster
