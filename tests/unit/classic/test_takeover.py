"""Algorithm A when originators crash: the process that takes over, its stamp, and the memory of the sites."""

from dataclasses import replace

import pytest

from antiphon.core.effects import Deliver, InstallView
from antiphon.protocols.classic.frames import (
    CommitFrame,
    DataFrame,
    InquiryFrame,
    Known,
    MessageName,
    ReportFrame,
    Stamp,
)
from antiphon.protocols.classic.rules import ADOPTED
from antiphon.types import ProcessId
from tests.support.classic_cluster import GROUP, ClassicCluster, faults, only_to


def proposed_by_all(*members: str, outside: tuple[str, ...] = (), originator: str = "p") -> ClassicCluster:
    """The originator has the proposals of all sites for m; its commit is in transit. Its own, 20.p, is the largest."""
    cluster = ClassicCluster(*members, outside=outside, clocks={"p": 20})
    cluster.send(originator, b"m")
    for member in members:
        if member != originator:
            cluster.move(originator, member)
            cluster.move(member, originator)
    return cluster


def finish(cluster: ClassicCluster) -> None:
    cluster.tell()
    cluster.move_all()
    assert not faults(cluster)


def stamps(cluster: ClassicCluster) -> set[Stamp | None]:
    """The stamps under which the survivors delivered."""
    return {frame.stamp for name in cluster.survivors for frame in cluster.delivered[name]}


def test_a_message_that_no_site_has_is_not_asked_for() -> None:
    cluster = ClassicCluster("p", "q", "r")
    cluster.send("p", b"m")
    cluster.crash("p", only_to())
    cluster.travelled.clear()
    finish(cluster)
    assert not cluster.travelled
    assert cluster.payloads("q") == []


def test_a_site_with_the_uncommitted_message_hands_it_to_the_sites_that_lack_it() -> None:
    cluster = ClassicCluster("p", "q", "r", "t")
    cluster.send("p", b"m")
    cluster.crash("p", only_to("r"))
    cluster.move("p", "r")
    cluster.travelled.clear()
    finish(cluster)
    assert cluster.payloads("q") == [b"m"]
    handed = [frame for frame in cluster.travelled if isinstance(frame, InquiryFrame) and frame.handed]
    assert [frame.sender for frame in handed] == ["r", "r"]
    assert cluster.kinds() == {"inquiry": 4, "report": 4, "commit": 2}


def test_all_hold_it_uncommitted_and_the_least_completes_it() -> None:
    """Each asks; the least name is the highest ballot, even if another asked first."""
    cluster = ClassicCluster("p", "q", "r", "t")
    cluster.send("p", b"m")
    for member in ("q", "r", "t"):
        cluster.move("p", member)
    cluster.crash("p")
    cluster.travelled.clear()
    cluster.tell("t", "r")
    cluster.move("r", "t")  # its inquiry: t gives up its own
    cluster.move("t", "r")  # r does not answer: its own ballot is higher
    assert not cluster.links["r", "t"]
    finish(cluster)
    commits = [frame for frame in cluster.travelled if isinstance(frame, CommitFrame)]
    assert {frame.sender for frame in commits} == {"q"}
    assert stamps(cluster) == {Stamp(0, ProcessId("t"))}  # of q, r, t


def test_a_site_that_delivered_by_the_commit_tells_the_others() -> None:
    """p's stamp is used, although p is lost."""
    cluster = proposed_by_all("p", "q", "r")
    cluster.crash("p", only_to("r"))
    cluster.move_kind("commit", "p", "r")
    assert cluster.payloads("r") == [b"m"]
    finish(cluster)
    assert stamps(cluster) == {Stamp(20, ProcessId("p"))}


def test_a_commit_that_is_found_is_sent_again_without_waiting_for_the_rest() -> None:
    cluster = proposed_by_all("p", "q", "r", "t")
    cluster.crash("p", only_to("r"))
    cluster.move_kind("commit", "p", "r")
    cluster.tell("q", "r")
    cluster.move("q", "r")
    cluster.move_kind("report", "r", "q")
    assert cluster.payloads("q") == [b"m"]  # without an answer of t
    finish(cluster)


@pytest.mark.parametrize("reached", ["nobody", "r", "t"])
def test_the_taker_dies_with_its_commit_under_way(reached: str) -> None:
    """If its commit reached a live member, that stamp is used; otherwise the live members decide again."""
    cluster = ClassicCluster("p", "q", "r", "t", clocks={"q": 9})
    cluster.send("p", b"m")
    for member in ("q", "r", "t"):
        cluster.move("p", member)
    cluster.crash("p")
    cluster.tell()
    for member in ("r", "t"):
        cluster.move_kind("inquiry", "q", member)
        cluster.move_kind("report", member, "q")
    assert cluster.payloads("q") == [b"m"]
    cluster.crash("q", lambda receiver, frame: receiver == reached and frame.kind == "commit")
    if reached != "nobody":
        cluster.move("q", reached)
    finish(cluster)
    assert cluster.payloads("r") == [b"m"]
    assert stamps(cluster) == {Stamp(0, ProcessId("t")) if reached == "nobody" else Stamp(9, ProcessId("q"))}


def test_the_taker_dies_after_it_handed_the_message_over() -> None:
    """Now r holds it too, and completes it with t, which was handed nothing."""
    cluster = ClassicCluster("p", "q", "r", "t")
    cluster.send("p", b"m")
    cluster.crash("p", only_to("q"))
    cluster.move("p", "q")
    cluster.tell()
    for member in ("r", "t"):
        cluster.move("q", member)
        cluster.move(member, "q")
    cluster.crash("q", only_to("r"))
    cluster.move("q", "r")
    finish(cluster)
    assert cluster.payloads("t") == [b"m"]


def test_an_originator_outside_the_group_dies() -> None:
    """It changes no view, but the epoch: a later loss has the next number."""
    cluster = ClassicCluster("p", "q", "r", outside=["s"])
    cluster.send("s", b"m")
    cluster.crash("s", only_to("q"))
    cluster.move("s", "q")
    finish(cluster)
    assert cluster.payloads("r") == [b"m"]
    assert [len(cluster.views[name]) for name in ("p", "q", "r")] == [1, 1, 1]
    cluster.send("p", b"n")
    cluster.crash("p", only_to("r"))
    cluster.move("p", "r")
    finish(cluster)
    assert cluster.payloads("q") == [b"m", b"n"]
    inquiries = [frame for frame in cluster.travelled if isinstance(frame, InquiryFrame)]
    assert {frame.losses for frame in inquiries} == {1, 2}


def test_two_messages_of_one_dead_originator() -> None:
    """q holds the first, r the second, and a third is committed at r alone."""
    cluster = ClassicCluster("p", "q", "r", clocks={"p": 20})
    cluster.send("p", b"committed")
    for member in ("q", "r"):
        cluster.move("p", member)
        cluster.move(member, "p")
    cluster.send("p", b"first")
    cluster.send("p", b"second")
    cluster.move_kind("commit", "p", "r")
    cluster.move("p", "q", 1)
    cluster.move("p", "r", 1)
    cluster.crash("p", only_to())
    finish(cluster)
    assert sorted(cluster.payloads("q")) == [b"committed", b"first", b"second"]


def test_several_orphans_are_asked_about_in_one_frame() -> None:
    cluster = ClassicCluster("p", "q", "r")
    cluster.send("p", b"first")
    cluster.send("p", b"second")
    cluster.move("p", "q")
    cluster.move("p", "q")
    cluster.crash("p", only_to())
    cluster.travelled.clear()
    cluster.tell("q")
    (inquiry,) = cluster.travelled
    assert isinstance(inquiry, InquiryFrame)
    assert inquiry.messages == (MessageName(ProcessId("p"), 1), MessageName(ProcessId("p"), 2))
    finish(cluster)
    assert cluster.payloads("r") == [b"first", b"second"]


@pytest.mark.parametrize("originator", ["p", "s"], ids=["inside", "outside"])
def test_an_inquiry_of_a_later_epoch_waits(originator: str) -> None:
    """r was not told of the loss. If it answered now that it knows no commit, the commit could still reach it later.

    So the loss of a sender outside begins an epoch too, but no view.
    """
    cluster = proposed_by_all("p", "q", "r", outside=("s",), originator=originator)
    cluster.crash(originator, only_to("r"))
    cluster.tell("q")
    cluster.move_kind("inquiry", "q", "r")
    assert not [frame for frame in cluster.links["r", "q"] if frame.kind == "report"]
    cluster.move_kind("commit", originator, "r")
    assert cluster.payloads("r") == [b"m"]
    finish(cluster)
    assert stamps(cluster) == {Stamp(20, ProcessId("p"))}


def test_an_inquiry_of_an_earlier_epoch_is_void() -> None:
    """r knows of two losses, q of one: q's inquiry is answered when q asks again."""
    cluster = ClassicCluster("p", "q", "r", "t")
    cluster.send("p", b"m")
    cluster.move("p", "q")
    cluster.crash("p", only_to())
    cluster.crash("t")
    cluster.tell_next("q")
    cluster.tell("r")
    cluster.move("q", "r")
    assert not cluster.links["r", "q"]
    finish(cluster)
    assert cluster.payloads("r") == [b"m"]


@pytest.mark.parametrize("refuses", [True, False], ids=["ours", "as specified"])
def test_a_commit_of_the_lost_that_comes_late_is_refused(refuses: bool) -> None:
    """The gap in docs/spec/multicast.md 4: sites answer for the lost originator, and its commit arrives later.

    r tells q that it knows no commit, so q commits 0.r. Then p's own commit, 20.p, reaches r. If r accepts it, it
    delivers m after n, and q delivers m before n.
    """
    cluster = ClassicCluster("p", "q", "r", clocks={"p": 20}, rules=replace(ADOPTED, refuses_the_lost=refuses))
    cluster.send("p", b"m")
    for member in ("q", "r"):
        cluster.move("p", member)
        cluster.move(member, "p")
    cluster.crash("p", only_to("r"))
    cluster.tell()
    cluster.move_kind("inquiry", "q", "r")
    cluster.send("q", b"n")
    cluster.move_kind("data", "q", "r")
    cluster.move_kind("commit", "p", "r")  # too late
    cluster.move_all()
    assert cluster.payloads("q") == [b"m", b"n"]
    assert cluster.payloads("r") == ([b"m", b"n"] if refuses else [b"n", b"m"])


def test_data_of_the_lost_that_come_late_are_refused() -> None:
    """r has answered that it lacks m; q hands it m, and r proposes to q."""
    cluster = ClassicCluster("p", "q", "r")
    cluster.send("p", b"m")
    cluster.move("p", "q")
    cluster.crash("p")
    cluster.tell()
    cluster.move_kind("data", "p", "r")
    assert cluster.queue("r") == []
    finish(cluster)
    assert cluster.payloads("r") == [b"m"]


def test_a_lost_site_is_not_waited_for_and_its_proposal_may_still_be_the_stamp() -> None:
    cluster = ClassicCluster("p", "q", "r", clocks={"r": 7})
    cluster.send("p", b"m")
    cluster.move("p", "r")
    cluster.move("r", "p")
    cluster.crash("r")
    cluster.move("p", "q")
    cluster.move("q", "p")
    assert cluster.payloads("p") == [b"m"]  # all three have proposed
    cluster.send("p", b"n")
    finish(cluster)  # r never proposes for n
    assert cluster.delivered["q"][0].stamp == Stamp(7, ProcessId("r"))
    assert cluster.payloads("q") == [b"m", b"n"]


def test_the_view_changes_before_the_consequences_of_the_loss() -> None:
    """p waits only for r; the loss of r completes m, in the new view."""
    cluster = ClassicCluster("p", "q", "r")
    cluster.send("p", b"m")
    cluster.move("p", "q")
    cluster.move("q", "p")
    cluster.crash("r")
    cluster.tell("p")
    kinds = [type(effect) for effect in cluster.effects["p"] if isinstance(effect, InstallView | Deliver)]
    assert kinds == [InstallView, InstallView, Deliver]
    finish(cluster)
    assert [view.members for view in cluster.views["q"]] == [("p", "q", "r"), ("p", "q")]
    assert cluster.views["p"] == cluster.views["q"]


def test_the_last_survivor_decides_alone() -> None:
    cluster = ClassicCluster("p", "q", "r")
    cluster.send("p", b"m")
    cluster.move("p", "q")
    cluster.crash("p")
    cluster.crash("r")
    cluster.tell()
    assert cluster.payloads("q") == [b"m"]


def test_a_commit_without_its_data_is_ignored() -> None:
    """No correct peer causes it, because a commit needs our proposal."""
    cluster = ClassicCluster("p", "q")
    name = MessageName(ProcessId("p"), 1)
    cluster.hand("q", CommitFrame(GROUP, ProcessId("p"), name, Stamp(5, ProcessId("p"))))
    cluster.hand("q", DataFrame(GROUP, ProcessId("p"), 1, (b"m",)))
    assert cluster.payloads("q") == []
    assert [frame.kind for frame in cluster.links["q", "p"]] == ["proposal"]


def test_a_report_that_says_the_same_twice_does_no_harm() -> None:
    cluster = ClassicCluster("p", "q", "r", service="fifo")
    gap = MessageName(ProcessId("p"), 1)
    cluster.hand("q", DataFrame(GROUP, ProcessId("p"), 2, (b"m",)))
    cluster.crash("p", only_to())
    cluster.tell()
    cluster.hand("q", ReportFrame(GROUP, ProcessId("r"), 1, (Known(gap, held=False), Known(gap, held=False))))
    assert cluster.cores[ProcessId("q")].unstable(GROUP) == 0


def test_everything_may_come_twice() -> None:
    cluster = ClassicCluster("p", "q", "r", outside=["s"], clocks={"p": 3})
    cluster.send("s", b"orphan")
    cluster.move("s", "r", again=True)
    cluster.move("s", "r")
    cluster.crash("s", only_to())
    cluster.send("p", b"m")
    for _ in range(100):
        for name in cluster.living:
            if cluster.untold(name) and not cluster.links["q", name]:
                cluster.tell_next(name)
        for (sender, receiver), link in list(cluster.links.items()):
            if link:
                cluster.move(sender, receiver, again=True)
                cluster.move(sender, receiver)
    finish(cluster)
    assert sorted(cluster.payloads("q")) == [b"m", b"orphan"]


def test_stamps_are_forgotten_once_all_sites_know_them() -> None:
    """Proposals tell which stamps a site knows, commits tell which stamps all sites know: only the last is kept."""
    cluster = ClassicCluster("p", "q", "r", outside=["s"])
    for originator in ("p", "s"):
        for _ in range(50):
            cluster.send(originator, b"m")
            cluster.move_all()
    assert [cluster.total(name).remembered for name in ("p", "q", "r")] == [1, 2, 2]  # no site keeps its own
    cluster.send("p", b"a burst")
    cluster.send("p", b"at once")
    cluster.move_all()
    assert [cluster.total(name).remembered for name in ("p", "q", "r")] == [1, 3, 3]


def test_a_site_that_was_lost_does_not_keep_stamps_alive() -> None:
    cluster = ClassicCluster("p", "q", "r")
    cluster.send("p", b"1")
    cluster.crash("r")
    cluster.tell()
    for payload in (b"2", b"3", b"4"):
        cluster.send("p", payload)
        cluster.move_all()
    assert cluster.total("q").remembered == 1


def test_a_group_that_is_lost_leaves_nothing_behind_outside() -> None:
    cluster = ClassicCluster("p", outside=["s"])
    cluster.send("s", b"m")
    cluster.crash("p")
    cluster.tell()
    cluster.send("s", b"n")
    assert cluster.cores["s"].unstable(GROUP) == 0
    assert [view.members for view in cluster.views["s"]] == [("p",)]
