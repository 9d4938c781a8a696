"""Concerns: problems with members that stay in the view, told only to the application (newtop.md 9.9)."""

from typing import Any

import pytest

from antiphon.core.effects import Concern, Evicted, InstallView, Suspected
from antiphon.protocols.newtop.frames import LeavingFrame, RepairFrame, StatusFrame
from antiphon.types import ProcessId
from tests.support.cluster import (
    GROUP,
    OMEGA_NS,
    Cluster,
    Lone,
    accuse,
    alive,
    data,
    null,
    refute,
)

LIMIT_NS = OMEGA_NS // 2
LOOK_NS = OMEGA_NS // 4
SETTINGS: dict[str, Any] = {"suspect_after_ns": OMEGA_NS, "idle_probe_ns": 2 * OMEGA_NS}


def told(effects: list[Concern]) -> list[tuple[str, str, bool]]:
    return [(effect.process, effect.reason, effect.over) for effect in effects]


def run_on(cluster: Cluster, duration_ns: int) -> None:
    """Let time pass in small steps, and all frames arrive."""
    for _ in range(duration_ns // 10_000_000):
        cluster.move_all()
        cluster.wait(10_000_000)


@pytest.mark.parametrize("algorithm", [1, 2, 3])
@pytest.mark.parametrize("blocks", [False, True])
def test_every_member_names_the_one_whose_application_does_not_read(algorithm: int, blocks: bool) -> None:
    """Only p1 sends, but p2 and p3 itself are told too: once at the beginning, and once at the end.

    With block numbering p3 may not even send nulls, so it says that it is stalled.
    """
    numbering: dict[str, Any] = {"block_numbered": frozenset({GROUP})} if blocks else {}
    cluster = Cluster("p1", "p2", "p3", flow_control=algorithm, window=4, packing=False, **SETTINGS, **numbering)
    cluster.stalled.add("p3")
    cluster.send("p1", *[b"x"] * 20)
    run_on(cluster, 20 * OMEGA_NS)
    for name in ("p1", "p2", "p3"):
        stalls = [each for each in told(cluster.found(name, Concern)) if each[1] == "stalled"]
        assert stalls == [("p3", "stalled", False)], name
    assert [each for each in told(cluster.found("p1", Concern)) if each[1] == "blocking"] == [("p3", "blocking", False)]
    cluster.wake("p3")
    run_on(cluster, 4 * OMEGA_NS)
    for name in ("p1", "p2", "p3"):
        stalls = [each for each in told(cluster.found(name, Concern)) if each[1] == "stalled"]
        assert stalls == [("p3", "stalled", False), ("p3", "stalled", True)], name
    assert cluster.delivered["p3"] == [b"x"] * 20
    assert not cluster.found("p1", Suspected)


def test_one_unread_message_in_an_idle_group_is_enough() -> None:
    """No sender is blocked yet; the next probe of the idle group detects the stall."""
    cluster = Cluster("p1", "p2", "p3", flow_control=3, **SETTINGS)
    cluster.stalled.add("p3")
    cluster.send("p1", b"x")
    run_on(cluster, 6 * OMEGA_NS)
    for name in ("p1", "p2", "p3"):
        assert told(cluster.found(name, Concern)) == [("p3", "stalled", False)], name


def test_in_a_group_with_a_sequencer_the_stalled_member_says_so_itself() -> None:
    cluster = Cluster("p1", "p2", "p3", flow_control=3, asymmetric=frozenset({GROUP}), **SETTINGS)
    cluster.stalled.add("p3")
    cluster.send("p2", b"x")
    run_on(cluster, 6 * OMEGA_NS)
    for name in ("p1", "p2", "p3"):
        assert told(cluster.found(name, Concern)) == [("p3", "stalled", False)], name


def test_members_that_read_raise_no_concern() -> None:
    """Windows are full again and again, and open again: that is no blockage."""
    cluster = Cluster("p1", "p2", "p3", flow_control=3, window=2, packing=False, **SETTINGS)
    for _ in range(30):
        cluster.send("p1", *[b"x"] * 10)
        run_on(cluster, LOOK_NS)
    assert not [effect for name in ("p1", "p2", "p3") for effect in cluster.found(name, Concern)]


def test_a_member_that_answers_late_lags_and_a_lag_that_repeats_is_one() -> None:
    member = Lone("me", "a", "b", silence_timeout_ns=0)
    for number in range(1, 6):
        member.send(b"x")
        member.feed(null("b", number, complete_block=number - 1))
        member.wait(LIMIT_NS + LOOK_NS)
        member.feed(null("a", number, complete_block=number - 1))
        member.feed(alive("a", number, number), alive("b", number, number))
    assert told(member.found(Concern)) == [("a", "lagging", False)]
    assert not member.found(Suspected)
    member.wait(20 * OMEGA_NS)
    assert told(member.found(Concern))[1:] == [("a", "lagging", True)]


def test_a_member_that_only_others_hear_is_relayed_until_it_is_heard() -> None:
    """A cut in one direction: a's messages come in refutations alone."""
    member = Lone("me", "a", "b", silence_timeout_ns=0)
    for number in range(1, 4):
        member.feed(data("b", number, complete_block=number - 1))
        for _ in range(6):
            member.wait(LOOK_NS)
            member.feed(alive("b"))
        assert member.suspicions == {"a": number - 1}
        member.feed(refute("b", "a", number - 1, null("a", number)))
    reasons = [each for each in told(member.found(Concern)) if each[1] == "relayed"]
    assert reasons == [("a", "relayed", False)]
    member.wait(1)
    member.feed(null("a", 4))
    member.wait(LOOK_NS)
    reasons = [each for each in told(member.found(Concern)) if each[1] == "relayed"]
    assert reasons == [("a", "relayed", False), ("a", "relayed", True)]


def test_a_member_that_accuses_us_again_and_again_does_not_hear_us() -> None:
    """The other end of such a cut: one accusation may follow from a pause, two do not."""
    member = Lone("me", "a", "b", silence_timeout_ns=0, idle_probe_ns=OMEGA_NS)
    member.feed(accuse("a", "me", 0))
    member.feed(null("a", 1), null("b", 1))
    member.wait(LOOK_NS)
    assert not [each for each in told(member.found(Concern)) if each[1] == "deaf"]
    member.feed(accuse("a", "me", 1))
    member.wait(LOOK_NS)
    assert [each for each in told(member.found(Concern)) if each[1] == "deaf"] == [("a", "deaf", False)]


def test_on_datagrams_frames_that_only_others_repair_are_relayed() -> None:
    member = Lone("me", "a", "b", datagrams=True, silence_timeout_ns=0)
    member.feed(StatusFrame(GROUP, ProcessId("a"), 3))
    for place in range(1, 4):
        copy = null("a", place, sequence=place)
        member.feed(RepairFrame(GROUP, ProcessId("b"), (copy,)))
    member.wait(LOOK_NS)
    assert ("a", "relayed", False) in told(member.found(Concern))
    member.feed(null("a", 4, sequence=4))
    member.wait(LOOK_NS)
    assert ("a", "relayed", True) in told(member.found(Concern))


# A member that is heard and never advances


@pytest.mark.parametrize("others", [("a",), ("a", "b")])
def test_a_member_that_is_heard_and_never_advances_is_excluded(others: tuple[str, ...]) -> None:
    """It says again and again that it lives, and owes a number all the time; in a view of two that must not save it."""
    member = Lone("me", *others, stuck_after_ns=8 * OMEGA_NS)
    member.send(b"x")
    if "b" in others:
        member.feed(null("b", 1, 0))
    for _ in range(7 * OMEGA_NS // LOOK_NS):
        member.wait(LOOK_NS)
        member.feed(*(alive(other) for other in others))
    assert not member.found(Suspected)
    for _ in range(3 * OMEGA_NS // LOOK_NS):
        member.wait(LOOK_NS)
        member.feed(*(alive(other) for other in others))
    assert {(effect.process, effect.reason) for effect in member.found(Suspected)} == {("a", "stuck")}
    if "b" in others:
        member.feed(accuse("b", "a", 0))
    assert "a" not in member.view.members


def test_a_member_that_says_that_it_is_stalled_is_not_stuck() -> None:
    member = Lone("me", "a", "b", silence_timeout_ns=0, stuck_after_ns=8 * OMEGA_NS)
    member.send(b"x")
    for _ in range(20 * OMEGA_NS // LOOK_NS):
        member.wait(LOOK_NS)
        member.feed(alive("a", stalled=True), alive("b", stalled=True))
    assert not member.found(Suspected)
    assert {each[:2] for each in told(member.found(Concern))} == {("a", "stalled"), ("b", "stalled")}


def test_a_member_that_advances_slowly_is_not_stuck() -> None:
    """It always owes numbers, but not the same: a slow link is no reason to exclude."""
    member = Lone("me", "a", "b", stuck_after_ns=8 * OMEGA_NS)
    for number in range(1, 31):
        member.send(b"x")
        member.feed(null("b", number))
        if number % 6 == 0:
            member.feed(null("a", number // 6))
        for _ in range(4):
            member.wait(LOOK_NS)
            member.feed(alive("a"), alive("b"))
    assert not member.found(Suspected)


# Exclusion


def test_an_application_that_does_not_read_is_evicted_only_if_the_setting_says_so() -> None:
    for limit_ns in (0, 5 * OMEGA_NS):
        cluster = Cluster("p1", "p2", "p3", flow_control=3, exclude_stalled_after_ns=limit_ns, **SETTINGS)
        cluster.stalled.add("p3")
        cluster.send("p1", b"x")
        run_on(cluster, 4 * OMEGA_NS)
        assert not cluster.found("p3", Evicted)
        run_on(cluster, 16 * OMEGA_NS)
        evicted = cluster.found("p3", Evicted)
        assert bool(evicted) is bool(limit_ns)
        assert all(effect.idle_ns >= limit_ns and effect.reason == "stalled" for effect in evicted)
        assert len(evicted) <= 1
        assert not cluster.found("p1", Evicted)


def test_a_slow_application_that_still_reads_is_not_evicted() -> None:
    cluster = Cluster("p1", "p2", "p3", flow_control=3, exclude_stalled_after_ns=2 * OMEGA_NS, **SETTINGS)
    cluster.stalled.add("p3")
    for _ in range(10):
        cluster.send("p1", b"x")
        run_on(cluster, OMEGA_NS)
        cluster.wake("p3")
        cluster.stalled.add("p3")
    assert not cluster.found("p3", Evicted)


def test_a_member_that_leaves_because_it_is_stalled_is_listed_with_that_reason() -> None:
    member = Lone("me", "a", "b")
    member.feed(LeavingFrame(GROUP, ProcessId("a"), 0, stalled=True))
    member.feed(accuse("b", "a", 0))
    (departure,) = member.found(InstallView)[-1].left
    assert (departure.process, departure.reason) == ("a", "stalled")
