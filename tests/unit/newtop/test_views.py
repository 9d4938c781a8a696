"""From a detection to the view without the failed: cut, remove, closed, flush (docs/spec/newtop.md 9.6, 9.8)."""

from itertools import permutations
from typing import Any

import pytest

from antiphon.core.effects import Blocked, Confirmed, Deliver, Departure, InstallView, Suspected, Unblocked
from antiphon.protocols.newtop.frames import BlockFrame, Flow, Notice, RequestFrame
from antiphon.protocols.newtop.membership.agreement import Detection
from antiphon.protocols.newtop.membership.views import ClosedChange, FlushChange, RemoveChange, ViewChange
from antiphon.types import ProcessId, first_view, signature
from tests.support.cluster import GROUP, OMEGA_NS, SLOW_NS, Cluster, Lone, accuse, alive, data, null

VIEW = first_view(GROUP, frozenset(map(ProcessId, "abcd")))
MEMBERSHIP = {"suspect_after_ns": OMEGA_NS, "silence_timeout_ns": SLOW_NS}
EVERY = [
    {"service": "total", "view_change": "cut"},
    {"service": "total", "view_change": "remove"},
    {"service": "total", "view_change": "closed"},
    {"service": "causal-slow"},
    {"service": "causal-fast"},
    {"service": "causal-relative"},
    {"service": "causal-vector"},
]


def cluster_of(*names: str, **settings: Any) -> Cluster:
    return Cluster(*names, **{**MEMBERSHIP, **settings})


def detection(**failed: int) -> Detection:
    pairs = tuple(sorted((ProcessId(process), last) for process, last in failed.items()))
    return Detection(pairs, tuple(Departure(*pair, "silent", (), 0, 0) for pair in pairs), 0)


def notice(kind: Any, sender: str, block: int, of: Detection) -> BlockFrame:
    return data(sender, block, payloads=(), notice=Notice(kind, of.failed))


# The ways themselves


def test_a_detection_is_cut_at_its_smallest_last_number() -> None:
    """lbn_mn: a member of Δ may have consumed a message of another that no survivor has."""
    assert detection(a=7, b=3, c=9).last == 3


def test_cut_sends_no_notice_and_holds_no_sender() -> None:
    """F§2.3: the order over all groups is enough."""
    change = ViewChange()
    assert change.confirmed(detection(d=0)) is None
    assert not change.holds_senders


def test_remove_takes_all_detections_below_it_along() -> None:
    """E-46: not only the one it was sent for; a detection with its cut at or above the remove waits for its own."""
    change, first, second, third = RemoveChange(), detection(a=0), detection(b=3), detection(c=4)
    for each in (first, second, third):
        assert change.confirmed(each) == Notice("remove", each.failed)
    assert change.delivered(notice("remove", "d", 4, first), VIEW) == [first, second]
    change.installed([first, second])
    assert change.delivered(notice("remove", "d", 4, third), VIEW) == []
    assert change.delivered(notice("remove", "d", 5, third), VIEW) == [third]


def test_closed_acts_on_the_last_remove() -> None:
    """T§6.4: from every member of V - Δ."""
    change, of = ClosedChange(), detection(d=0)
    change.confirmed(of)
    assert change.delivered(notice("remove", "a", 1, of), VIEW) == []
    assert change.delivered(notice("remove", "c", 1, of), VIEW) == []
    assert change.delivered(notice("remove", "a", 2, of), VIEW) == []  # twice the same counts once
    assert change.delivered(notice("remove", "b", 2, of), VIEW) == [of]


def test_closed_counts_by_detection() -> None:
    """E-28: d needs removes of all members in no detection up to d; d installs the earlier detections with it."""
    change, first, second = ClosedChange(), detection(d=0), detection(c=5)
    change.confirmed(first)
    change.confirmed(second)
    assert change.delivered(notice("remove", "a", 1, first), VIEW) == []
    assert change.delivered(notice("remove", "b", 1, first), VIEW) == []  # that of c is missing
    assert change.delivered(notice("remove", "a", 6, second), VIEW) == []
    assert change.delivered(notice("remove", "b", 6, second), VIEW) == [first, second]


def test_closed_a_last_remove_above_a_later_cut_is_left_to_the_later_detection() -> None:
    """E-46: installing both at the earlier remove would break closure."""
    change, first, second = ClosedChange(), detection(d=0), detection(c=1)
    change.confirmed(first)
    change.confirmed(second)
    for sender, block in (("c", 1), ("a", 2), ("b", 2)):
        assert change.delivered(notice("remove", sender, block, first), VIEW) == []
    assert change.delivered(notice("remove", "a", 3, second), VIEW) == []
    assert change.delivered(notice("remove", "b", 3, second), VIEW) == [first, second]


def test_closed_a_last_remove_below_a_later_cut_closes_its_view() -> None:
    """E-28, E-46: then the members of the second detection are in the view in between."""
    change, first, second = ClosedChange(), detection(d=0), detection(c=1)
    change.confirmed(first)
    for sender in "ab":
        assert change.delivered(notice("remove", sender, 1, first), VIEW) == []
    change.confirmed(second)
    assert change.delivered(notice("remove", "c", 1, first), VIEW) == [first]


def test_flush_waits_for_the_line_of_every_live_member() -> None:
    """9.8 rule 3.5: wait while the line of a live process is missing."""
    change, of = FlushChange(), detection(d=0)
    change.confirmed(of)
    failed = frozenset({ProcessId("d")})
    for sender in "ab":
        change.flushed(notice("flush", sender, 2, of))
        assert change.complete(VIEW, failed) == []
    change.flushed(notice("flush", "c", 3, of))
    assert change.complete(VIEW, failed) == [of]


def test_flush_holds_what_follows_a_line_until_it_is_passed() -> None:
    """9.8 rule 3.3: block above the sender's first line that is not installed here."""
    change, first, second = FlushChange(), detection(d=0), detection(c=3)
    change.flushed(notice("flush", "a", 2, first))  # it may come before we have confirmed anything
    change.flushed(notice("flush", "a", 5, second))
    assert [change.holds(data("a", block)) for block in (1, 3, 6)] == [False, True, True]
    assert not change.holds(data("b", 9))
    change.confirmed(first)
    change.installed([first])
    assert [change.holds(data("a", block)) for block in (3, 6)] == [False, True]


def test_flush_a_line_that_only_the_failed_owe_is_passed_over() -> None:
    """E-62: it will never come and no survivor has it, so the next detection takes this one along."""
    change, first, second = FlushChange(), detection(d=0), detection(c=3)
    change.confirmed(first)
    for sender in "ab":
        change.flushed(notice("flush", sender, 4, first))
    change.confirmed(second)
    failed = frozenset(map(ProcessId, "cd"))
    assert change.complete(VIEW, failed) == []
    for sender in "ab":
        change.flushed(notice("flush", sender, 5, second))
    assert change.complete(VIEW, failed) == [first, second]


def test_flush_a_late_line_of_a_passed_detection_holds_nothing() -> None:
    """A refutation may bring it after the view."""
    change, of = FlushChange(), detection(d=0)
    change.confirmed(of)
    change.installed([of])
    change.flushed(notice("flush", "a", 2, of))
    assert not change.holds(data("a", 3))


# Views as members see them


@pytest.mark.parametrize("settings", EVERY)
def test_survivors_install_the_same_chain_of_views(settings: dict[str, Any]) -> None:
    """VC1, M-ids: same ids, same members, same predecessors; a digest per set of excluded (E-29)."""
    cluster = cluster_of("1", "2", "3", "4", "5", **settings)
    for name in "12345":
        cluster.send(name, b"by " + name.encode())
    cluster.move_all()
    cluster.crash("5")
    cluster.send("1", b"one")
    cluster.finish(rounds=12)
    cluster.crash("4")
    cluster.send("2", b"two")
    cluster.finish(rounds=12)
    assert cluster.views["1"] == cluster.views["2"] == cluster.views["3"]
    assert cluster.views_of("1") == ["1 2 3 4 5", "1 2 3 4", "1 2 3"]
    views = cluster.views["1"]
    assert [view.previous for view in views] == [None, views[0].id, views[1].id]
    assert [view.excluded for view in views] == [(), ("5",), ("4", "5")]
    assert [view.primary for view in views] == [True, True, True]
    assert len({signature(view) for view in views}) == 3
    assert [view.id for view in views] == sorted(view.id for view in views)
    for name in "123":
        assert sorted(cluster.delivered[name]) == sorted([b"by 1", b"by 2", b"by 3", b"by 4", b"by 5", b"one", b"two"])
        assert all(isinstance(effect.frame, BlockFrame) for effect in cluster.found(name, Deliver))


def test_after_the_majority_is_lost_neither_the_view_nor_a_later_one_is_primary() -> None:
    """Half is not a majority, and a minority view never becomes primary again."""
    cluster = cluster_of("1", "2", "3", "4")
    for name in "34":
        cluster.crash(name)
    for name in "12":
        cluster.suspect(name, "3", "4")
    cluster.finish()
    assert [view.primary for view in cluster.views["1"]] == [True, False]
    cluster.crash("2")
    cluster.send("1", b"x")
    cluster.finish(rounds=16)
    assert cluster.views_of("1") == ["1 2 3 4", "1 2", "1"]
    assert not cluster.views["1"][-1].primary


def test_cuts_go_by_number_then_by_confirmation() -> None:
    """E-26n: a later detection with a smaller number is installed first; no member can have installed the other."""
    member = Lone("me", "a", "b", "c")
    for number in range(1, 6):
        member.feed(data("a", number, payload=b"a%d" % number))
    member.feed(null("b", 3, 0), null("c", 9, 0))
    for number in range(1, 9):
        member.send(b"me%d" % number)
    member.suspect("a")
    member.feed(accuse("b", "a", 5), accuse("c", "a", 5))
    assert [effect.failed for effect in member.found(Confirmed)] == [(("a", 5),)]
    assert member.view is member.found(InstallView)[0].view
    member.suspect("b")
    member.feed(accuse("c", "b", 3))
    views = [effect.view.members for effect in member.found(InstallView)]
    assert views == [("a", "b", "c", "me"), ("a", "c", "me"), ("c", "me")]
    story = [e.frame.payloads[0] if isinstance(e, Deliver) else "view" for e in member.effects if not _other(e)]
    first = [b"a1", b"me1", b"a2", b"me2", b"a3", b"me3"]
    assert story == ["view", *first, "view", b"a4", b"me4", b"a5", b"me5", "view", b"me6", b"me7", b"me8"]


def _other(effect: Any) -> bool:
    return not isinstance(effect, Deliver | InstallView)


def test_a_cut_comes_before_anything_larger_in_any_group() -> None:
    """E-31: r's m is known only to s, which sends m' in another group; r is excluded before any delivery of m'."""
    cluster = Cluster(groups={"x": ["p", "q", "r", "s"], "y": ["p", "q", "s"]}, **MEMBERSHIP)  # type: ignore[arg-type]
    for name in "pqr":
        cluster.send(name, b"of " + name.encode(), group="x")
    for sender, receiver in (("p", "s"), ("q", "s"), ("p", "q"), ("q", "p")):
        cluster.move_one_way(sender, receiver)
    cluster.move("r", "s")
    for receiver in "pq":
        cluster.drop("r", receiver)
    cluster.crash("r")
    cluster.now += SLOW_NS
    cluster.tick("s")
    cluster.move_between("p", "q", "s")
    cluster.now += SLOW_NS
    for name in "pqs":
        cluster.tick(name)
    cluster.move_between("p", "q", "s")
    assert b"of r" in cluster.delivered["s"]
    cluster.send("s", b"m'", group="y")
    cluster.crash("s")
    cluster.finish(rounds=16)
    for name in "pq":
        events = [effect for effect in cluster.effects[name] if isinstance(effect, Deliver | InstallView)]
        gone = next(n for n, e in enumerate(events) if isinstance(e, InstallView) and "r" in e.view.excluded)
        late = [n for n, e in enumerate(events) if isinstance(e, Deliver) and e.frame.payloads == (b"m'",)]
        assert all(gone < place for place in late)
        assert b"of r" not in cluster.delivered[name]


# Senders that wait


@pytest.mark.parametrize("settings", EVERY)
def test_senders_wait_for_the_view_in_closed_mode_and_where_orders_flush(settings: dict[str, Any]) -> None:
    """9.6, 9.8: in closed mode and where orders flush, applications wait from the agreement to the view."""
    waits = settings.get("view_change") == "closed" or settings["service"] in (
        "causal-fast",
        "causal-relative",
        "causal-vector",
    )
    cluster = cluster_of("1", "2", "3", **settings)
    cluster.send("3", b"of 3")
    cluster.move("3", "1")
    cluster.move("3", "2")
    cluster.crash("3")
    for name in "12":
        cluster.suspect(name, "3")
    cluster.move("2", "1")
    assert cluster.detections("1") == [(("3", 1),)]
    assert len(cluster.views["1"]) == 1
    cluster.send("1", b"asked for meanwhile")
    left = [payload for frame in cluster.transmitted["1"] for payload in frame.payloads]
    assert left == ([] if waits else [b"asked for meanwhile"])
    assert [effect.by for effect in cluster.found("1", Blocked)] == (["3"] if waits else [])
    cluster.finish()
    assert len(cluster.found("1", Unblocked)) == len(cluster.found("1", Blocked))
    for name in "12":
        story = cluster.story(name)
        assert sorted(each for each in story if isinstance(each, bytes)) == [b"asked for meanwhile", b"of 3"]
        if waits:
            assert story == ["1 2 3", b"of 3", "1 2", b"asked for meanwhile"]


def test_remove_installs_where_the_first_remove_is_delivered() -> None:
    """T§6.3.2 (ix): a message numbered like the cut or below is delivered before, one above the remove after it."""
    cluster = cluster_of("1", "2", "3", view_change="remove")
    cluster.send("1", b"1")
    cluster.move_between("1", "2")
    cluster.crash("3")
    for name in "12":
        cluster.suspect(name, "3")
    cluster.move_between("1", "2")
    cluster.send("1", b"2")
    cluster.finish()
    removes = [frame.block for name in "12" for frame in cluster.transmitted[name] if frame.kind == "remove"]
    assert removes == [2, 1]
    for name in "12":
        assert cluster.story(name) == ["1 2 3", b"1", "1 2", b"2"]


def test_closed_two_crashes_in_a_row_are_counted_alike() -> None:
    """E-28: d then c crash; a delivers the third remove before its confirm of c, b after it: both end with {a,b}."""
    cluster = cluster_of("a", "b", "c", "d", view_change="closed")
    cluster.crash("d")
    for name in "abc":
        cluster.suspect(name, "d")
    for sender in "abc":
        for receiver in "abc":
            if sender != receiver:
                cluster.move(sender, receiver)
    removes = {name: cluster.transmitted[name][-1] for name in "abc"}
    assert {frame.kind for frame in removes.values()} == {"remove"}
    cluster.move_one_way("c", "a", "b")
    cluster.crash("c")
    cluster.move_one_way("b", "a")  # a has all removes: it closes the view
    assert cluster.views_of("a") == ["a b c d", "a b c"]
    for name in "ab":
        cluster.suspect(name, "c")
    while cluster.channels["a", "b"] and not cluster.detections("b")[1:]:
        cluster.move("a", "b")
    cluster.send("a", b"next")
    cluster.finish()
    for name in "ab":
        assert cluster.story(name) == ["a b c d", "a b c", b"next", "a b"]  # sent before a confirmed c


# Large messages


@pytest.mark.parametrize("settings", EVERY)
@pytest.mark.parametrize("holders", ["1", "12"])
def test_a_message_cut_in_the_middle_is_dropped_by_all_alike(holders: str, settings: dict[str, Any]) -> None:
    """README 14: two of three pieces came, at some or all members; no member delivers or keeps any of it."""
    cluster = cluster_of("1", "2", "3", frame_bytes_max=4, idle_probe_ns=OMEGA_NS, **settings)
    cluster.send("3", b"whole")
    for receiver in "12":
        cluster.move("3", receiver, 2)
    cluster.send("3", b"torn in three")
    for receiver in holders:
        cluster.move("3", receiver, 2)
    for receiver in "12":
        cluster.drop("3", receiver)
    cluster.crash("3")
    cluster.send("1", b"a")
    cluster.finish(rounds=16)
    for name in "12":
        assert cluster.views_of(name) == ["1 2 3", "1 2"]
        assert sorted(cluster.delivered[name]) == [b"a", b"whole"]
        assert cluster.core(name)._groups[GROUP].fragments.open == {}
    assert cluster.detections("1") == cluster.detections("2") == [(("3", 4),)]
    cluster.send("2", b"larger than a frame")
    cluster.finish()
    assert [cluster.delivered[name][-1] for name in "12"] == [b"larger than a frame"] * 2


# Flow control


@pytest.mark.parametrize("settings", EVERY)
@pytest.mark.parametrize("algorithm", [1, 2, 3])
@pytest.mark.parametrize("blocks", [False, True])
def test_an_exclusion_frees_the_window(algorithm: int, settings: dict[str, Any], blocks: bool) -> None:
    """9.4 vii: CV, SV of the failed count as ∞; senders that waited for them continue, and buffers are freed."""
    if blocks and settings.get("service", "total") not in ("total", "causal-slow"):
        pytest.skip("a flush is in no window, so blocks cannot be counted: scenarios refuse it")
    cluster = cluster_of(
        "1", "2", "3", flow_control=algorithm, window=3, packing=False,
        block_numbered=frozenset({GROUP} if blocks else ()), **settings,
    )  # fmt: skip
    cluster.crash("3")
    for number in range(10):
        cluster.send("1", b"1:%d" % number)
        cluster.send("2", b"2:%d" % number)
    cluster.move_all()
    assert cluster.core("1")._groups[GROUP].gate.blocked
    cluster.finish(rounds=40)
    for name in "12":
        assert cluster.views_of(name) == ["1 2 3", "1 2"]
        assert len(cluster.delivered[name]) == 20
        assert cluster.core(name).unstable(GROUP) == 0
        assert not cluster.core(name)._groups[GROUP].gate.blocked


@pytest.mark.parametrize("algorithm", [1, 2, 3])
def test_unstable_messages_of_failed_members_leave_the_window(algorithm: int) -> None:
    """9.4 vii with E-18: no application takes discarded messages, and they block nothing."""
    cluster = cluster_of("1", "2", "3", "4", flow_control=algorithm, window=3, packing=False)
    for _ in range(2):
        cluster.send("4", b"above the cut")
    cluster.move_one_way("4", "1", "2")
    cluster.crash("3")
    cluster.crash("4")
    for name in "12":
        cluster.suspect(name, "3", "4")
    cluster.finish()
    assert cluster.detections("1")[0][0] == ("3", 0)
    for number in range(10):
        cluster.send("1", b"%d" % number)
    cluster.finish(rounds=20)
    for name in "12":
        assert cluster.views_of(name) == ["1 2 3 4", "1 2"]
        assert cluster.delivered[name] == [b"%d" % number for number in range(10)]
        assert cluster.core(name).unstable(GROUP) == 0


@pytest.mark.parametrize("view_change", ["remove", "closed"])
def test_a_remove_that_the_window_refuses_finds_the_dead_member_that_fills_it(view_change: str) -> None:
    """9.2 d: an own send refused for ω; a `remove` is one, and goes through flow control like data (E-26l)."""
    member = Lone("me", "a", "b", "c", flow_control=2, window=3, packing=False, view_change=view_change)
    member.send(b"1", b"2", b"3")
    while (answered := member.group.complete_block) < (sent := member.group.numbers.sent):
        for name, complete in (("a", 0), ("b", sent), ("c", sent)):
            member.feed(null(name, sent, answered, flow=Flow(sent, complete, 0, 0)))
    member.suspect("c")
    member.feed(accuse("a", "c", sent), accuse("b", "c", sent))
    assert member.found(Confirmed)
    assert not [frame for frame in member.frames(BlockFrame) if frame.kind == "remove"]
    for _ in range(8):
        member.wait(OMEGA_NS // 4)
        member.feed(alive("b", sent, sent, Flow(sent, sent, 0, 0)))
    assert [effect.process for effect in member.found(Suspected)] == ["c", "a"]


def test_slow_the_null_of_the_cut_waits_for_the_window_and_is_not_forgotten() -> None:
    """9.8 rule 2: null c at once; flow control that counts blocks may refuse it then, but no other member owes it."""
    member = Lone(
        "me", "a", "b", "c", service="causal-slow", flow_control=2, window=3, packing=False,
        block_numbered=frozenset({GROUP}), silence_timeout_ns=SLOW_NS,
    )  # fmt: skip
    member.send(b"1", b"2", b"3")
    while (answered := member.group.complete_block) < (sent := member.group.numbers.sent):
        member.feed(*(null(name, sent, answered, flow=Flow(sent, 0, 0, 0)) for name in "abc"))
    assert sent == 3
    member.suspect("c")
    member.feed(accuse("a", "c", 3), accuse("b", "c", 3))
    assert member.found(Confirmed)
    assert member.group.numbers.sent == 3  # 4 does not fit into the window: no member has said that 1 is complete
    member.feed(*(alive(name, 3, 3, Flow(3, 3, 0, 0)) for name in "ab"))
    assert member.group.flow is not None
    assert member.group.flow.permits(4, 0)
    member.wait(OMEGA_NS // 2)
    assert [(frame.kind, frame.block) for frame in member.frames(BlockFrame)][3:] == [("null", 4)]


@pytest.mark.parametrize(("flow_control", "begins_anew"), [(0, False), (2, True)])
def test_closed_a_large_message_is_of_the_view_in_which_its_last_piece_left(
    flow_control: int, begins_anew: bool
) -> None:
    """README 14, D6: pieces may have left in the old view; they are kept over the change, as its sender stays."""
    cluster = cluster_of("1", "2", "3", view_change="closed", frame_bytes_max=4, flow_control=flow_control, window=3)
    message = b"a message of many pieces, of which some wait"
    cluster.crash("3")
    cluster.send("1", message)
    pieces = [frame for frame in cluster.transmitted["1"] if frame.payloads]
    assert pieces[-1].more is begins_anew
    cluster.finish(rounds=30)
    for name in "12":
        assert cluster.story(name) == (["1 2 3", "1 2", message] if begins_anew else ["1 2 3", message, "1 2"])


@pytest.mark.parametrize("service", ["causal-fast", "causal-relative", "causal-vector"])
@pytest.mark.parametrize("algorithm", [2, 3])
def test_flush_is_not_refused_for_messages_that_wait_for_it(algorithm: int, service: str) -> None:
    """9.8 rule 3 with E-18: applications cannot take messages behind b's line before their own flush.

    c fails; b alone gets a's flush, and sends in the new view. a and b crash: 1 and 2 hold messages of a view that
    they will never see. These must not keep them from flushing for a and b.
    """
    cluster = cluster_of("1", "2", "a", "b", "c", service=service, flow_control=algorithm, window=3, packing=False)
    cluster.crash("c")
    for name in "12ab":
        cluster.suspect(name, "c")
    for sender, receiver in permutations("12ab", 2):
        cluster.move(sender, receiver)
    for name in "12":
        cluster.drop("a", name)
        cluster.move_one_way(name, "b")
    cluster.move_one_way("a", "b")
    assert cluster.views_of("b") == ["1 2 a b c", "1 2 a b"]
    for payload in (b"x", b"y", b"z"):
        cluster.send("b", payload)
    cluster.move_one_way("b", "1", "2")
    cluster.crash("a")
    cluster.crash("b")
    cluster.finish(rounds=40)
    for name in "12":
        assert cluster.story(name) == ["1 2 a b c", "1 2"]
        assert not cluster.core(name)._groups[GROUP].outgoing.notices


# Datagrams


def test_excluded_processes_are_neither_asked_nor_served() -> None:
    """4, rule 8: nothing is kept for a removed process, and it is asked for nothing."""
    cluster = cluster_of("1", "2", "3", datagrams=True)
    cluster.send("1", b"x")
    cluster.crash("3")
    cluster.finish(rounds=30)
    assert cluster.views_of("1") == cluster.views_of("2") == ["1 2 3", "1 2"]
    cluster.control["1"].clear()
    cluster.core("1").receive(RequestFrame(GROUP, ProcessId("3"), ProcessId("1"), (1,)), cluster.now)
    cluster.settle("1")
    cluster.finish(rounds=10)
    assert cluster.control["1"] == []
