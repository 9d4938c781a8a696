"""Worked examples of Macedo94 chapters 2 and 6: which processes failed, and after which number.

Names of cases are those of the specification (newtop.md 10): figures of the thesis, and M1 to M6, which are ours.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

from antiphon.core.effects import Blocked, InstallView, Refuted, Suspected, Unblocked
from antiphon.protocols.newtop.frames import BlockFrame, ConfirmedFrame, RefuteFrame, SuspectFrame
from antiphon.protocols.newtop.membership.agreement import Agreement
from antiphon.types import ProcessId, View, signature
from tests.support.cluster import OMEGA_NS, SLOW_NS, Cluster

MODES = ["cut", "remove", "closed", "halted"]


def cluster_of(*names: str, **settings: Any) -> Cluster:
    return Cluster(*names, **{"suspect_after_ns": OMEGA_NS, "silence_timeout_ns": SLOW_NS, **settings})


def number_up(cluster: Cluster, name: str, last: int, first: int = 1) -> None:
    """Let a process send its messages with these numbers, one frame each."""
    for number in range(first, last + 1):
        cluster.send(name, b"%s%d" % (name.encode(), number))
        assert cluster.transmitted[name][-1].block == number


def rows(first: int, last: int, **highest: int) -> list[bytes]:
    """The messages with these numbers, in the total order, of senders that have sent so far."""
    return [
        b"%s%d" % (name.encode(), number)
        for number in range(first, last + 1)
        for name, end in sorted(highest.items())
        if number <= end
    ]


def reasons(cluster: Cluster, name: str) -> dict[str, str]:
    """The reasons of all departures."""
    return {left.process: left.reason for effect in cluster.found(name, InstallView) for left in effect.left}


def suspected(cluster: Cluster, name: str) -> list[tuple[str, int]]:
    return [(effect.process, effect.last_block) for effect in cluster.found(name, Suspected)]


def refutations(cluster: Cluster, name: str) -> list[RefuteFrame]:
    return [frame for frame in cluster.control[name] if isinstance(frame, RefuteFrame)]


def count_excluded(views: Sequence[View]) -> list[int]:
    """The e of the thesis' signatures (§6.4): the number of processes excluded by each view."""
    return [len(view.excluded) for view in views]


def messages_of_a_dead_sender(*holders: str, view_change: str = "cut") -> Cluster:
    """4 sends m1 to all and m2, which reaches only some; then it crashes, and owes nothing but answers to probes."""
    cluster = cluster_of("1", "2", "3", "4", view_change=view_change, idle_probe_ns=2 * OMEGA_NS)
    cluster.send("4", b"m1")
    for receiver in ("1", "2", "3"):
        cluster.move("4", receiver)
    cluster.send("4", b"m2")
    for receiver in holders:
        cluster.move("4", receiver)
    for receiver in ("1", "2", "3"):
        cluster.drop("4", receiver)
    cluster.crash("4")
    return cluster


@pytest.mark.parametrize("view_change", MODES)
def test_figure_2_6_a_message_that_some_have_is_delivered_by_all_in_the_old_view(view_change: str) -> None:
    """Case 2.6: m2 of 4 reaches only 1 and 2; 3 suspects {4, m1.b}, is refuted with m2, and all agree on {4, m2.b}."""
    cluster = messages_of_a_dead_sender("1", "2", view_change=view_change)
    cluster.suspect("3", "4")
    assert suspected(cluster, "3") == [("4", 1)]
    cluster.move_between("1", "2", "3")
    refuted = [frame for name in ("1", "2") for frame in refutations(cluster, name)]
    assert {(frame.suspect, frame.last_block) for frame in refuted} == {("4", 1)}
    assert all([message.payloads for message in frame.messages] == [(b"m2",)] for frame in refuted)
    assert [effect.process for effect in cluster.found("3", Refuted)] == ["4"]
    cluster.finish(rounds=16)
    for name in ("1", "2", "3"):
        assert suspected(cluster, name)[-1] == ("4", 2)
        assert cluster.detections(name) == [(("4", 2),)]
        assert cluster.story(name) == ["1 2 3 4", b"m1", b"m2", "1 2 3"]
        assert count_excluded(cluster.views[name]) == [0, 1]
    assert len({cluster.views[name][-1] for name in ("1", "2", "3")}) == 1


@pytest.mark.parametrize("view_change", MODES)
def test_figure_2_6_a_message_that_no_survivor_has_is_not_delivered(view_change: str) -> None:
    """Case 2.6, second variant: m2 reached no process; the cut is at m1.b, and no process delivers m2."""
    cluster = messages_of_a_dead_sender(view_change=view_change)
    cluster.finish(rounds=16)
    for name in ("1", "2", "3"):
        assert cluster.detections(name) == [(("4", 1),)]
        assert cluster.story(name) == ["1 2 3 4", b"m1", "1 2 3"]
    assert all(not cluster.found(name, Refuted) for name in ("1", "2", "3"))


def split_five(view_change: str = "cut") -> Cluster:
    """Fig. 6.1 up to the partition: all suspect {m,10}; the suspicions of i and j reach k and l, not the reverse.

    At that moment all have 10 of m, 12 of k, 11 of l, and 13 and 14 of i and j.
    """
    cluster = cluster_of("i", "j", "k", "l", "m", view_change=view_change)
    for name, last in (("i", 13), ("j", 14), ("k", 12), ("l", 11), ("m", 10)):
        number_up(cluster, name, last)
    cluster.move_all()
    cluster.crash("m")
    for name in "ijkl":
        cluster.suspect(name, "m")
    assert all(suspected(cluster, name) == [("m", 10)] for name in "ijkl")
    for sender, receiver in product("ij", "kl"):
        cluster.move_one_way(sender, receiver)
    return cluster


def partition(cluster: Cluster) -> None:
    """{i,j} and {k,l} for ever: frames in transit are lost."""
    for one, other in product("ij", "kl"):
        cluster.drop(one, other)
        cluster.drop(other, one)


OLD = "i j k l m"
LAST = {"i": 13, "j": 14, "k": 12, "l": 11, "m": 10}


def test_figure_6_1_two_sides_of_a_partition_each_go_their_way() -> None:
    """Case 6.1: i, j detect {(m,10),(k,12),(l,11)} at once, cut at 10; k, l detect {(m,10)}, then {(i,·),(j,·)}.

    Signatures of the thesis: i and j (·,3); k and l (·,1), then (·,3).
    """
    cluster = split_five()
    partition(cluster)
    cluster.finish(rounds=16)
    for name in "ij":
        assert cluster.detections(name) == [(("k", 12), ("l", 11), ("m", 10))]
        assert cluster.story(name) == [OLD, *rows(1, 10, **LAST), "i j", *rows(11, 14, i=13, j=14)]
        assert count_excluded(cluster.views[name]) == [0, 3]
        assert reasons(cluster, name) == {"k": "mute", "l": "mute", "m": "injected"}
    for name in "kl":
        assert cluster.detections(name) == [(("m", 10),), (("i", 13), ("j", 14))]
        assert cluster.story(name) == [OLD, *rows(1, 10, **LAST), "i j k l", *rows(11, 13, **LAST), "k l"]
        assert b"j14" not in cluster.delivered[name]  # above 13, the smaller number of i and j
        assert count_excluded(cluster.views[name]) == [0, 1, 3]
        assert reasons(cluster, name) == {"m": "injected", "i": "silent", "j": "mute"}


def test_figure_6_1_signatures_tell_the_sides_apart_where_counts_do_not() -> None:
    """Case 6.1 with §6.4 and E-29: both sides end with (·,3), but have excluded different processes."""
    cluster = split_five()
    partition(cluster)
    cluster.finish(rounds=16)
    for one, other in (("i", "j"), ("k", "l")):
        assert cluster.views[one] == cluster.views[other]  # ids, excluded, primary: the whole chain
    ours, theirs = cluster.views["i"], cluster.views["k"]
    assert ours[0] == theirs[0]
    assert {view.id for view in ours[1:]}.isdisjoint(view.id for view in theirs[1:])
    assert (ours[-1].excluded, theirs[-1].excluded) == (("k", "l", "m"), ("i", "j", "m"))
    assert len({signature(view) for view in (*ours, *theirs)}) == 4  # V0 in common, one of i and j, two of k and l
    assert [view.primary for view in ours] == [True, False]
    assert [view.primary for view in theirs] == [True, True, False]
    assert [view.previous for view in theirs] == [None, theirs[0].id, theirs[1].id]


def test_figure_6_1t_after_a_transient_partition_the_others_word_is_enough() -> None:
    """Case 6.1t: the partition heals; k and l suspect i and j because their `confirmed` names them, not by timeout."""
    cluster = split_five()
    cluster.move_between("i", "j")
    cluster.now += SLOW_NS
    for name in "ij":
        cluster.tick(name)  # nulls 14: the D of all would reach 13 without k and l
    for _ in range(8):
        cluster.now += OMEGA_NS // 4
        for name in "ij":  # only their clocks advance: k and l must not suspect by timeout
            cluster.tick(name)
        cluster.move_between("i", "j")
    assert all(cluster.detections(name) == [(("k", 12), ("l", 11), ("m", 10))] for name in "ij")
    cluster.move_between("k", "l")
    assert all(cluster.detections(name) == [(("m", 10),)] for name in "kl")
    assert cluster.views_of("k") == [OLD, "i j k l"]
    cluster.move_all()
    for name in "kl":
        assert suspected(cluster, name) == [("m", 10), ("i", 14), ("j", 14)]
        assert cluster.detections(name) == [(("m", 10),), (("i", 14), ("j", 14))]
    cluster.finish()
    for name in "ij":
        assert cluster.views_of(name) == [OLD, "i j"]
        assert count_excluded(cluster.views[name]) == [0, 3]
    for name in "kl":
        assert cluster.views_of(name) == [OLD, "i j k l", "k l"]
        assert count_excluded(cluster.views[name]) == [0, 1, 3]
        assert reasons(cluster, name) == {"m": "injected", "i": "parted", "j": "parted"}
    assert cluster.story("k") == cluster.story("l")


def test_figure_6_1c_a_closed_view_waits_for_the_last_remove() -> None:
    """Case 6.1c: k and l need four removes for {m} and get two; the two for {i,j} then install {k,l} directly."""
    cluster = split_five(view_change="closed")
    partition(cluster)
    cluster.move_all()
    cluster.wait(2 * SLOW_NS)
    cluster.move_all()
    for name in "kl":
        assert cluster.detections(name) == [(("m", 10),)]
        assert cluster.views_of(name) == [OLD]
    removes = [[f for f in cluster.transmitted[name] if f.kind == "remove"] for name in "kl"]
    assert [[frame.notice.failed for frame in sent if frame.notice] for sent in removes] == [[(("m", 10),)]] * 2
    assert all(frame.block > 10 for sent in removes for frame in sent)
    cluster.send("k", b"waits")
    assert cluster.found("k", Blocked)[-1].by == "m"
    assert b"waits" not in [payload for frame in cluster.transmitted["k"] for payload in frame.payloads]
    cluster.finish(rounds=16)
    for name in "ij":
        assert cluster.detections(name) == [(("k", 12), ("l", 11), ("m", 10))]
        assert cluster.views_of(name) == [OLD, "i j"]
        assert count_excluded(cluster.views[name]) == [0, 3]
    for name in "kl":
        assert cluster.detections(name) == [(("m", 10),), (("i", 13), ("j", 14))]
        assert cluster.views_of(name) == [OLD, "k l"]
        assert cluster.story(name)[-2:] == ["k l", b"waits"]  # sent in the view in which it is delivered
        assert count_excluded(cluster.views[name]) == [0, 3]
    assert len(cluster.found("k", Unblocked)) == 1
    assert cluster.views["k"] == cluster.views["l"]


def waits(cluster: Cluster, payload: bytes) -> bool:
    """Whether a message that i has sent has not left."""
    return payload not in [each for frame in cluster.transmitted["i"] for each in frame.payloads]


@pytest.mark.parametrize("view_change", ["closed", "halted"])
def test_6_4_halted_senders_wait_whenever_a_member_is_suspected_closed_ones_only_after_the_agreement(
    view_change: str,
) -> None:
    """§6.4: "halt multicasting whenever either suspicions or failed becomes non-empty"; the view is the same."""
    cluster = cluster_of("i", "j", "k", view_change=view_change)
    halted = view_change == "halted"
    cluster.suspect("i", "k")
    cluster.send("i", b"first")
    assert waits(cluster, b"first") is halted
    assert [effect.by for effect in cluster.found("i", Blocked)] == (["k"] if halted else [])
    cluster.finish()  # k lives, and its next number refutes the suspicion
    assert cluster.found("i", Refuted)
    assert len(cluster.found("i", Unblocked)) == halted
    cluster.crash("k")
    for name in "ij":
        cluster.suspect(name, "k")
    cluster.send("i", b"second")
    assert waits(cluster, b"second") is halted
    cluster.move("j", "i")
    assert len(cluster.detections("i")) == 1
    cluster.send("i", b"third")
    assert waits(cluster, b"third")
    cluster.finish()
    for name in "ij":
        assert [each for each in cluster.story(name) if each != b"second"] == ["i j k", b"first", "i j", b"third"]
        assert (cluster.story(name).index(b"second") > cluster.story(name).index("i j")) is halted


@pytest.mark.parametrize("view_change", MODES)
def test_m1_a_member_that_has_more_refutes_although_it_suspects_too(view_change: str) -> None:
    """Case M1: j has k up to 5, i up to 3, both suspect; j refutes {k,3} with 4 and 5, i re-suspects {k,5}."""
    cluster = cluster_of("i", "j", "k", view_change=view_change)
    number_up(cluster, "k", 5)
    cluster.move("k", "i", 3)
    cluster.move("k", "j", 5)
    cluster.drop("k", "i")
    cluster.crash("k")
    cluster.suspect("i", "k")
    cluster.suspect("j", "k")
    assert (suspected(cluster, "i"), suspected(cluster, "j")) == ([("k", 3)], [("k", 5)])
    cluster.move_all()
    (refuted,) = refutations(cluster, "j")
    assert (refuted.suspect, refuted.last_block) == ("k", 3)
    assert [message.block for message in refuted.messages] == [4, 5]
    assert len(cluster.found("i", Refuted)) == 1
    assert not cluster.found("j", Refuted)  # it goes on suspecting {k,5}
    cluster.finish()
    assert suspected(cluster, "i") == [("k", 3), ("k", 5)]
    assert suspected(cluster, "j") == [("k", 5)]
    for name in "ij":
        assert cluster.detections(name) == [(("k", 5),)]
        assert cluster.story(name) == ["i j k", *rows(1, 5, k=5), "i j"]


def suspicion_cycle() -> Cluster:
    """0 suspects 1, 1 suspects 3, 3 suspects 0; only the member that suspects the accuser can clear the suspect."""
    cluster = cluster_of("0", "1", "3")
    for sender, holder in (("1", "3"), ("3", "0"), ("0", "1")):
        cluster.send(sender, b"of " + sender.encode())
        cluster.move(sender, holder)
    for name, other in (("0", "1"), ("1", "3"), ("3", "0")):
        cluster.suspect(name, other)
        assert suspected(cluster, name) == [(other, 0)]
    return cluster


def test_m2_a_cycle_of_stale_suspicions_dissolves() -> None:
    """Case M2: accusations of the suspected are looked at for refutation (9.3); all are alive, and none is excluded."""
    cluster = suspicion_cycle()
    cluster.move_all()
    assert all(len(cluster.found(name, Refuted)) == 1 for name in "013")
    cluster.finish()
    for name in "013":
        assert cluster.story(name) == ["0 1 3", b"of 0", b"of 1", b"of 3"]
        assert cluster.detections(name) == []
        assert not cluster.core(name)._groups[cluster.views[name][0].group].agreement.active


def test_m2_without_the_exception_it_stalls_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Case M2 as printed: each possible refuter holds the accusation pending, so none refutes it (E-23)."""
    monkeypatch.setattr(Agreement, "_examine", lambda *_: None)
    cluster = suspicion_cycle()
    cluster.finish(rounds=40)
    assert all(not cluster.found(name, Refuted) and not cluster.detections(name) for name in "013")
    assert all(cluster.story(name) == ["0 1 3"] for name in "013")


@pytest.mark.parametrize("view_change", MODES)
def test_m3_a_message_that_may_depend_on_a_lost_one_is_discarded(view_change: str) -> None:
    """Case M3: m of r reached only s, which delivered it and sent m' to all; both crash: no process delivers m'."""
    cluster = cluster_of("p", "q", "r", "s", view_change=view_change)
    for name in "pqr":
        number_up(cluster, name, 1)
    for sender, receiver in (("p", "q"), ("q", "p"), ("p", "s"), ("q", "s"), ("r", "s")):
        cluster.move(sender, receiver)
    for receiver in "pq":
        cluster.drop("r", receiver)
    cluster.crash("r")
    cluster.now += SLOW_NS
    cluster.tick("s")
    assert cluster.delivered["s"] == [b"p1", b"q1", b"r1"]
    cluster.send("s", b"m'")
    assert cluster.transmitted["s"][-1].block == 2
    for receiver in "pq":
        cluster.move_one_way("s", receiver)
    cluster.crash("s")
    cluster.finish(rounds=16)
    for name in "pq":
        assert cluster.detections(name) == [(("r", 0), ("s", 2))]
        assert b"m'" not in cluster.delivered[name]
        assert b"r1" not in cluster.delivered[name]
    cut = ["p q r s", "p q", b"p1", b"q1"] if view_change == "cut" else ["p q r s", b"p1", b"q1", "p q"]
    assert cluster.story("p") == cluster.story("q") == cut


def slow_pair() -> Cluster:
    """Two members, both alive; a message of 1 has reached 2, everything after that is late."""
    cluster = cluster_of("1", "2")
    cluster.send("1", b"m")
    cluster.move("1", "2")
    return cluster


def test_m4_in_a_view_of_two_a_late_message_saves_the_other() -> None:
    """Case M4 with grace: the link is slower than ω; a late message within the grace cancels the suspicion."""
    cluster = slow_pair()
    for _ in range(6):
        cluster.wait(OMEGA_NS // 4)
    assert suspected(cluster, "1") == [("2", 0)]
    assert cluster.detections("1") == []
    cluster.finish()
    assert [effect.process for effect in cluster.found("1", Refuted)] == ["2"]
    for name in "12":
        assert cluster.story(name) == ["1 2", b"m"]
        assert cluster.detections(name) == []


def test_m4_without_grace_two_live_members_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Case M4 without grace: condition (v) holds at once in a view of two: two singleton views."""
    monkeypatch.setattr(Agreement, "_in_grace", lambda *_: False)
    cluster = slow_pair()
    for _ in range(6):
        cluster.wait(OMEGA_NS // 4)
    assert cluster.detections("1") == [(("2", 0),)]
    assert cluster.story("1") == ["1 2", "1", b"m"]
    cluster.finish()
    assert cluster.views_of("2") == ["1 2", "2"]
    assert cluster.detections("2") == [(("1", 1),)]
    assert reasons(cluster, "2") == {"1": "parted"}
    assert cluster.story("2") == ["1 2", b"m", "2"]  # m is below the cut of 2


def test_m4_a_message_that_comes_after_the_grace_comes_too_late() -> None:
    """Case M4 with grace: nothing came within it either, so each goes on alone."""
    cluster = slow_pair()
    for _ in range(12):
        cluster.wait(OMEGA_NS // 4)
    assert cluster.views_of("1") == ["1 2", "1"]
    cluster.finish()
    assert cluster.views_of("2") == ["1 2", "2"]
    assert cluster.views["1"][-1].id != cluster.views["2"][-1].id
    assert [cluster.views[name][-1].primary for name in "12"] == [False, False]


def exclude_one_after_the_other(view_change: str) -> Cluster:
    """M5: 1 and 2 confirm {(0,0)}; 2 has 3 of 1 when it suspects it, 1 has 5 of 2; data 4 of 1 is under way to 2."""
    cluster = cluster_of("0", "1", "2", view_change=view_change)
    cluster.crash("0")
    for name in "12":
        number_up(cluster, name, 3)
    cluster.move_between("1", "2")
    for name in "12":
        cluster.suspect(name, "0")
    cluster.send("1", b"14")
    assert cluster.transmitted["1"][-1].block == 4
    cluster.move("1", "2")  # its vote; data 4 stays in transit
    assert cluster.detections("2") == [(("0", 0),)]
    if view_change == "cut":
        cluster.send("2", b"24")
    assert cluster.transmitted["2"][-1].block == 4
    assert cluster.transmitted["2"][-1].kind == ("remove" if view_change != "cut" else "data")
    cluster.send("2", b"25")
    assert cluster.transmitted["2"][-1].block == 5
    cluster.suspect("2", "1")
    return cluster


def test_m5_a_remove_above_a_later_cut_installs_both() -> None:
    """Case M5, `remove`: 2 goes V0, {2} at its remove 4, never {1,2}; 1 goes V0, {1,2}, {1} (E-46)."""
    cluster = exclude_one_after_the_other("remove")
    assert cluster.detections("2") == [(("0", 0),), (("1", 3),)]
    assert cluster.story("2") == ["0 1 2", b"11", b"21", b"12", b"22", b"13", b"23", "2", b"25"]
    cluster.finish()
    assert cluster.detections("1") == [(("0", 0),), (("2", 5),)]
    assert cluster.story("1") == ["0 1 2", b"11", b"21", b"12", b"22", b"13", b"23", b"14", "1 2", b"25", "1"]
    assert cluster.views_of("2") == ["0 1 2", "2"]
    assert [left.process for left in cluster.found("2", InstallView)[-1].left] == ["0", "1"]


def test_m5_cuts_never_merge() -> None:
    """Case M5, `cut`: both V0 to {1,2} at 0, then {2} at 3 and {1} at 5."""
    cluster = exclude_one_after_the_other("cut")
    cluster.now += OMEGA_NS  # they are two already: 2 waits for grace
    cluster.tick("2")
    assert cluster.detections("2") == [(("0", 0),), (("1", 3),)]
    assert cluster.story("2") == ["0 1 2", "1 2", b"11", b"21", b"12", b"22", b"13", b"23", "2", b"24", b"25"]
    cluster.finish()
    assert cluster.detections("1") == [(("0", 0),), (("2", 5),)]
    story = ["0 1 2", "1 2", b"11", b"21", b"12", b"22", b"13", b"23", b"14", b"24", b"25", "1"]
    assert cluster.story("1") == story


def test_m6_messages_that_their_sender_marked_against_us_refute_nothing() -> None:
    """Case M6: j confirmed Δ with i in it; h, not yet confirmed, refutes i's suspicion of j with j's later message.

    h has that message from h2, which refuted h's own wrong suspicion of j: so h has it before j's `confirmed`.
    """
    cluster = cluster_of("h", "h2", "i", "j")
    number_up(cluster, "i", 1)
    number_up(cluster, "j", 5)
    cluster.move_all()
    for name in ("h", "h2", "j"):
        cluster.suspect(name, "i")
    cluster.move("h", "j")
    cluster.move("h2", "j")
    assert cluster.detections("j") == [(("i", 1),)]
    cluster.send("j", b"marked")
    marked = cluster.transmitted["j"][-1]
    assert (marked.block, marked.excluded) == (6, ("i",))
    cluster.move("h", "h2")
    cluster.move_one_way("j", "h2")  # its vote, its `confirmed`, the marked message
    assert cluster.detections("h2") == [(("i", 1),)]
    cluster.suspect("h", "j")
    cluster.move("h", "h2")
    assert [frame.messages for frame in refutations(cluster, "h2")] == [(marked,)]
    cluster.move_one_way("j", "i")
    assert suspected(cluster, "i") == [("j", 5)]
    cluster.move("i", "h", len(cluster.channels["i", "h"]))
    assert cluster.detections("h") == []
    cluster.move_one_way("h2", "h")  # its vote, its `confirmed`, and the message that clears j
    assert [frame.messages for frame in refutations(cluster, "h")][-1] == (marked,)
    cluster.move_one_way("h", "i")
    agreement = cluster.core("i")._groups[cluster.views["i"][0].group].agreement
    assert agreement.suspicions[ProcessId("j")] == 5
    assert not cluster.found("i", Refuted)
    cluster.finish(rounds=16)
    assert b"marked" not in cluster.delivered["i"]
    assert cluster.views_of("i")[-1] == "i"
    for name in ("h", "h2", "j"):
        assert cluster.views_of(name) == ["h h2 i j", "h h2 j"]
        assert cluster.story(name)[-1] == b"marked"


def test_section_6_3_2_members_agree_by_suspects_and_confirmations_alone() -> None:
    """§6.3.2, the plain case: a crash; each member sends one suspicion and one confirmation."""
    cluster = cluster_of("1", "2", "3")
    cluster.send("1", b"m")
    cluster.crash("3")
    cluster.finish()
    for name in "12":
        kinds = [type(f) for f in cluster.control[name] if isinstance(f, SuspectFrame | RefuteFrame | ConfirmedFrame)]
        assert kinds == [SuspectFrame, ConfirmedFrame]
        assert cluster.story(name) == ["1 2 3", "1 2", b"m"]
        assert all(isinstance(frame, BlockFrame) for frame in cluster.transmitted[name])
