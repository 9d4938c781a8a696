"""The suspector: which members are suspected, and after which time (docs/spec/newtop.md 9.2)."""

from typing import Any

import pytest

from antiphon.core.effects import Blocked, Suspected
from antiphon.protocols.newtop.frames import AliveFrame, BlockFrame, Flow, RepairFrame, StatusFrame
from antiphon.types import ProcessId
from tests.support.cluster import GROUP, NEVER_NS, OMEGA_NS, SLOW_NS, Cluster, Lone, accuse, alive, data, null, refute

LOOK_NS = OMEGA_NS // 4
"""The period of the suspector: a suspicion may be late by this time."""


def suspected(member: Lone) -> list[tuple[str, int, str]]:
    return [(effect.process, effect.last_block, effect.reason) for effect in member.found(Suspected)]


def keep_talking(member: Lone, duration_ns: int, *speakers: str, **flags: Any) -> None:
    """Let time pass while these members send periodic signs of life."""
    for _ in range(duration_ns // LOOK_NS):
        member.wait(LOOK_NS)
        member.feed(*(alive(speaker, **flags) for speaker in speakers))


# Clause a: a number is owed


def test_a_silent_member_that_owes_a_number_is_suspected_after_the_timeout() -> None:
    """Clause a: a row older than ω has RV[k] too small; at the last number that we have of it."""
    member = Lone("me", "a", "b")
    member.feed(data("a", 1))
    member.send(b"1", b"2")
    member.feed(null("b", 2, 0))
    keep_talking(member, OMEGA_NS - LOOK_NS, "b")
    member.wait(LOOK_NS - 1)
    assert suspected(member) == []
    member.wait(1 + LOOK_NS)
    assert suspected(member) == [("a", 1, "silent")]


def test_a_number_of_another_member_is_owed_to_us_too() -> None:
    """Clause a: b sent it; a has not answered it. b itself owes nothing, although it is silent."""
    member = Lone("me", "a", "b")
    member.feed(data("b", 1))
    member.wait(OMEGA_NS + LOOK_NS)
    assert suspected(member) == [("a", 0, "silent")]


def test_a_number_counts_from_when_it_was_there_not_from_the_first_row() -> None:
    """Clause a: a answers everything after less than ω, though never all of it."""
    member = Lone("me", "a", "b")
    for number in range(1, 20):
        member.send(b"x")
        member.feed(null("b", number))
        if number > 1:
            member.feed(null("a", number - 1))
        member.wait(OMEGA_NS // 2)
    assert suspected(member) == []


@pytest.mark.parametrize("flags", [{}, {"stalled": True}, {"blocked": True}])
def test_a_member_that_speaks_is_not_suspected(flags: dict[str, bool]) -> None:
    """Any message restarts the clock, control included: a null may be held back by flow control (E-36)."""
    member = Lone("me", "a", "b")
    member.send(b"x")
    keep_talking(member, 6 * OMEGA_NS, "a", "b", **flags)
    assert suspected(member) == []
    member.wait(OMEGA_NS + LOOK_NS)
    assert [suspect for suspect, *_ in suspected(member)] == ["a", "b"]


def test_a_member_that_owes_nothing_may_be_silent_for_ever() -> None:
    """No row, no agreement, nothing refused: silence means nothing (E-19)."""
    member = Lone("me", "a", "b")
    member.send(b"x")
    member.feed(null("a", 1), null("b", 1))
    member.wait(100 * OMEGA_NS)
    assert suspected(member) == []


def test_a_relayed_copy_is_no_sign_of_life() -> None:
    """9.2 with 9.4 iv: a message of a that others have does not prove that a lives."""
    member = Lone("me", "a", "b")
    member.send(b"1", b"2")
    member.feed(null("b", 2, 0))
    member.wait(OMEGA_NS - 1)
    member.feed(refute("b", "a", 0, null("a", 1, 0)))
    member.wait(1 + LOOK_NS)
    assert suspected(member) == [("a", 1, "silent")]


def test_a_repaired_copy_is_no_sign_of_life() -> None:
    """4, rule 7: on datagrams copies come from any holder; only the holder has shown that it lives."""
    member = Lone("me", "a", "b", datagrams=True)
    member.send(b"1", b"2")
    member.feed(StatusFrame(GROUP, ProcessId("a"), 1))
    member.wait(OMEGA_NS - 1)
    copy = null("a", 1, 0, sequence=1)
    member.feed(RepairFrame(GROUP, ProcessId("b"), (copy,)))
    member.wait(1 + LOOK_NS)
    assert suspected(member) == [("a", 1, "silent")]


def test_a_direct_message_that_we_have_already_is_a_sign_of_life() -> None:
    """9.2: any message from k restarts its clocks, also one that a refutation has brought before."""
    member = Lone("me", "a", "b")
    member.send(b"1", b"2")
    member.feed(null("b", 2, 0))
    member.wait(OMEGA_NS // 2)
    member.feed(refute("b", "a", 0, null("a", 1, 0)))
    member.wait(OMEGA_NS // 2 - 1)
    member.feed(null("a", 1, 0))
    member.wait(1 + LOOK_NS)
    assert suspected(member) == []


def test_a_severed_peer_counts_as_silent_although_frames_come() -> None:
    """E-47: it may not know its debts, so its frames prove nothing."""
    member = Lone("me", "a", "b")
    member.send(b"x")
    keep_talking(member, OMEGA_NS, "a", "b")
    member.core.severed(ProcessId("a"), member.now)
    keep_talking(member, OMEGA_NS - LOOK_NS, "a", "b")
    assert suspected(member) == []
    keep_talking(member, 2 * LOOK_NS, "a", "b")
    assert suspected(member) == [("a", 0, "silent")]


def test_a_severed_peer_that_owes_nothing_is_not_suspected() -> None:
    """E-47 is silence, not guilt."""
    member = Lone("me", "a", "b")
    member.core.severed(ProcessId("a"), member.now)
    member.wait(20 * OMEGA_NS)
    assert suspected(member) == []


def test_where_groups_merge_a_broken_connection_is_reason_enough() -> None:
    """E-89: in an idle group nothing else would ever bring the two over to a connection that works."""
    member = Lone("me", "a", "b", merge_every_ns=100 * OMEGA_NS)
    member.core.severed(ProcessId("a"), member.now)
    member.settle()
    member.wait(OMEGA_NS - LOOK_NS)
    assert suspected(member) == []
    member.wait(2 * LOOK_NS)
    assert suspected(member) == [("a", 0, "severed")]


def test_after_a_refutation_the_clock_starts_again() -> None:
    """Otherwise the same silence would accuse it at once."""
    member = Lone("me", "a", "b")
    member.send(b"1", b"2")
    member.feed(null("b", 2, 0))
    keep_talking(member, OMEGA_NS + LOOK_NS, "b")
    assert [suspect for suspect, *_ in suspected(member)] == ["a"]
    member.feed(refute("b", "a", 0, null("a", 1, 0)))
    at = member.now
    while len(suspected(member)) == 1:
        keep_talking(member, LOOK_NS, "b")
    assert suspected(member)[-1] == ("a", 1, "silent")
    assert member.now - at >= OMEGA_NS


def test_without_membership_no_member_is_suspected() -> None:
    """ω = 0: the failure-free model of the papers; no timer either."""
    member = Lone("me", "a", "b", suspect_after_ns=0, idle_probe_ns=OMEGA_NS, silence_timeout_ns=0)
    member.send(b"x")
    member.feed(data("a", 1))
    member.wait(100 * OMEGA_NS)
    assert suspected(member) == []
    assert member.core.deadline is None


# Clause b: a vote is owed


def test_b_a_second_crash_during_an_agreement_is_found() -> None:
    """Clause b, E-19: c is silent and owes no number, but a vote on our suspicion."""
    member = Lone("me", "a", "b", "c")
    member.suspect("a")
    member.feed(accuse("b", "a", 0))
    keep_talking(member, OMEGA_NS - LOOK_NS, "b")
    assert [suspect for suspect, *_ in suspected(member)] == ["a"]
    keep_talking(member, 2 * LOOK_NS, "b")
    assert suspected(member) == [("a", 0, "injected"), ("c", 0, "mute")]


def test_b_long_silence_before_the_suspicion_is_no_charge() -> None:
    """Clause b: an idle group was silent for an hour; no member could owe a vote before the suspicion."""
    member = Lone("me", "a", "b", "c")
    member.wait(100 * OMEGA_NS)
    member.suspect("a")
    member.wait(OMEGA_NS - 1)
    assert [suspect for suspect, *_ in suspected(member)] == ["a"]


def test_b_a_voter_is_not_suspected_for_silence() -> None:
    """Clause b: only members that owe a vote. b has voted, c has spoken."""
    member = Lone("me", "a", "b", "c")
    member.suspect("a")
    member.feed(accuse("b", "a", 0))
    keep_talking(member, 6 * OMEGA_NS, "c")
    assert [suspect for suspect, *_ in suspected(member)] == ["a"]


def test_b_an_agreement_of_others_makes_no_member_owe_us_a_vote() -> None:
    """E-50: not "while any agreement runs", or two broken links keep each other's agreement alive for ever."""
    member = Lone("me", "a", "b", "c")
    member.feed(accuse("b", "a", 0))
    member.wait(OMEGA_NS - 1)
    assert suspected(member) == []


# Clause c: others accuse the member


@pytest.mark.parametrize("last", [0, 3])
def test_c_a_member_accused_by_others_and_not_refuted_is_suspected_though_it_is_heard(last: int) -> None:
    """Clause c, E-50: a live suspect with nothing newer to show is neither refuted nor voted out otherwise."""
    member = Lone("me", "a", "b", "c")
    member.feed(accuse("b", "a", last))
    keep_talking(member, OMEGA_NS - LOOK_NS, "a", "b", "c")
    assert suspected(member) == []
    keep_talking(member, 2 * LOOK_NS, "a", "b", "c")
    assert suspected(member) == [("a", 0, "accused")]


def test_c_a_message_of_the_accused_ends_it() -> None:
    """Clause c: refuted within ω, by ourselves as soon as we have something newer."""
    member = Lone("me", "a", "b", "c")
    member.feed(accuse("b", "a", 0))
    keep_talking(member, OMEGA_NS // 2, "a", "b", "c")
    member.feed(null("a", 1), null("b", 1), null("c", 1))
    member.send(b"x")
    keep_talking(member, 3 * OMEGA_NS, "a", "b", "c")
    assert suspected(member) == []


# Clause d: flow control waits for the member


def flow(number: int, complete: int, stable: int = 0, super_stable: int = 0) -> Flow:
    return Flow(number, complete, stable, super_stable)


def full_window(algorithm: int, **settings: Any) -> Lone:
    """Our messages fill the window: b has said that it completed all, a has answered all rows and said no more."""
    member = Lone("me", "a", "b", flow_control=algorithm, window=3, packing=False, **settings)
    member.send(b"1", b"2", b"3", b"4")
    while (answered := member.group.complete_block) < (sent := member.group.numbers.sent):
        member.feed(null("a", sent, answered, flow=flow(sent, 0)), null("b", sent, answered, flow=flow(sent, sent)))
    assert member.group.gate.blocked
    return member


@pytest.mark.parametrize(("algorithm", "sent"), [(1, 2), (2, 3), (3, 3)])
def test_d_a_dead_member_that_fills_the_window_is_found(algorithm: int, sent: int) -> None:
    """Clause d, E-51: it answered all rows and died before it announced its completion; no other clause finds it."""
    member = full_window(algorithm)
    assert {effect.by for effect in member.found(Blocked)} == {"a"}
    keep_talking_with_flow(member, OMEGA_NS - LOOK_NS, sent)
    assert suspected(member) == []
    keep_talking_with_flow(member, 2 * LOOK_NS, sent)
    assert suspected(member) == [("a", sent, "blocking")]


def keep_talking_with_flow(member: Lone, duration_ns: int, number: int) -> None:
    for _ in range(duration_ns // LOOK_NS):
        member.wait(LOOK_NS)
        member.feed(alive("b", number, number, flow(number, number)))


@pytest.mark.parametrize("algorithm", [1, 2, 3])
def test_d_a_slow_member_that_answers_is_not_suspected(algorithm: int) -> None:
    """Clause d: its application is slow, but it answers our `alive`."""
    member = full_window(algorithm)
    sent = member.group.numbers.sent
    for _ in range(24):
        member.wait(LOOK_NS)
        member.feed(alive("a", sent, 0, flow(sent, 0)), alive("b", sent, 0, flow(sent, 0)))
    assert suspected(member) == []
    assert member.group.gate.blocked


def test_d_a_blocked_sender_asks_and_is_answered_once_a_period() -> None:
    """9.2: an `alive` that says `blocked` is answered by an `alive`, at most one per τ."""
    member = full_window(2)
    member.wait(LOOK_NS)
    asked = member.frames(AliveFrame)[-1]
    assert (asked.blocked, asked.sender) == (True, "me")
    other = Lone("me", "a", "b", repair_max_ns=LOOK_NS)
    other.wait(LOOK_NS)
    for _ in range(3):
        other.feed(alive("a", blocked=True))
    assert [frame.blocked for frame in other.frames(AliveFrame)] == [False]
    other.wait(LOOK_NS)
    other.feed(alive("a", blocked=True), alive("a"))
    assert len(other.frames(AliveFrame)) == 2


def test_d_in_a_cluster_the_window_opens_again() -> None:
    """Clause d in full, flow control counting blocks: 3 dies with the window full, 1 and 2 go on without it."""
    cluster = Cluster(
        "1", "2", "3", suspect_after_ns=OMEGA_NS, silence_timeout_ns=SLOW_NS, flow_control=2, window=3, packing=False,
        block_numbered=frozenset({GROUP}),
    )  # fmt: skip
    for number in range(3):
        cluster.send("1", b"%d" % number)
    cluster.move_all()
    cluster.wait(SLOW_NS)
    cluster.move_one_way("2", "1", "3")
    cluster.move_one_way("3", "1", "2")
    cluster.crash("3")
    for number in range(3, 12):
        cluster.send("1", b"%d" % number)
    cluster.finish(rounds=24)
    for name in "12":
        assert cluster.views_of(name) == ["1 2 3", "1 2"]
        assert len(cluster.delivered[name]) == 12


# Signs of our own life


def test_while_an_agreement_runs_every_member_says_that_it_lives() -> None:
    """9.2: each τ < ω, if otherwise silent, even if it only knows of the accusation. Nothing after the agreement."""
    member = Lone("me", "a", "b", "c")
    member.feed(accuse("b", "a", 0))
    member.wait(OMEGA_NS - 1)
    assert len(member.frames(AliveFrame)) >= 2
    member.feed(null("a", 1), null("b", 1), null("c", 1))
    member.send(b"x")
    member.wait(2 * OMEGA_NS)
    count = len(member.frames(AliveFrame))
    member.wait(20 * OMEGA_NS)
    assert len(member.frames(AliveFrame)) == count


def test_the_accused_shows_a_number_that_clears_it() -> None:
    """9.4 ii, E-50: a null with b = BC + 1, if a member has all our messages and still suspects us."""
    member = Lone("me", "a", "b", "c")
    member.send(b"x")
    member.feed(accuse("a", "me", 1))
    assert [frame.block for frame in member.frames(BlockFrame)] == [1, 2]
    member.feed(accuse("b", "me", 1))  # members that have 2 refute that; we need not send anything
    assert [frame.block for frame in member.frames(BlockFrame)] == [1, 2]


# Idle groups


@pytest.mark.parametrize(("me", "rank"), [("a", 0), ("b", 1), ("c", 2)])
def test_an_idle_group_is_probed_by_rank(me: str, rank: int) -> None:
    """9.2: no row for τ_idle: the member of rank r sends, r·ε later, a null with b = BC + 1."""
    others = sorted({"a", "b", "c"} - {me})
    member = Lone(me, *others, idle_probe_ns=OMEGA_NS)
    due = OMEGA_NS + rank * 10_000_000
    member.wait(due - 1)
    assert member.frames(BlockFrame) == []
    member.wait(1)
    assert [(frame.kind, frame.block) for frame in member.frames(BlockFrame)] == [("null", 1)]


def test_one_probe_is_enough() -> None:
    """9.2: a member that hears the probe answers it, and does not probe."""
    cluster = Cluster("1", "2", "3", suspect_after_ns=OMEGA_NS, idle_probe_ns=OMEGA_NS, silence_timeout_ns=0)
    cluster.wait(OMEGA_NS)
    cluster.move_all()
    cluster.wait(30_000_000)
    assert [[frame.block for frame in sent] for sent in cluster.transmitted.values()] == [[1]] * 3


def test_a_probe_finds_a_crash_in_an_idle_group() -> None:
    """E-19: no member owes anything before the probe."""
    cluster = Cluster("1", "2", "3", suspect_after_ns=OMEGA_NS, idle_probe_ns=OMEGA_NS, silence_timeout_ns=0)
    cluster.crash("1")  # also the one that would probe first
    cluster.finish(rounds=20, pause_ns=LOOK_NS)
    assert cluster.views_of("2") == cluster.views_of("3") == ["1 2 3", "2 3"]


def test_with_the_probe_off_no_timer_is_left() -> None:
    """9.2: with it off a crash in an idle group stays unnoticed, and a driver sleeps for ever."""
    cluster = Cluster("1", "2", "3", suspect_after_ns=OMEGA_NS, silence_timeout_ns=SLOW_NS)
    cluster.send("1", b"x")
    cluster.rest()
    cluster.crash("3")
    cluster.finish(rounds=20)
    assert all(core.deadline is None for core in cluster.cores.values())
    assert cluster.views_of("1") == ["1 2 3"]


def test_a_member_alone_does_not_probe() -> None:
    """No member would answer."""
    member = Lone("me", idle_probe_ns=OMEGA_NS, silence_timeout_ns=NEVER_NS)
    member.wait(20 * OMEGA_NS)
    assert member.core.deadline is None
    assert member.frames(BlockFrame) == []


# A view change waits for the member

WAITING = [{"view_change": "closed"}, {"service": "causal-fast"}, {"service": "causal-relative"}]


def changing(**settings: Any) -> Lone:
    """c has failed; a and b have answered our notice by nulls, and owe notices of their own."""
    member = Lone("me", "a", "b", "c", **settings)
    member.suspect("c")
    member.feed(accuse("a", "c", 0), accuse("b", "c", 0))
    (sent,) = [frame for frame in member.frames(BlockFrame) if frame.notice is not None]
    member.feed(null("a", sent.block, 0), null("b", sent.block, 0))
    return member


@pytest.mark.parametrize("settings", WAITING)
def test_a_silent_member_whose_notice_is_missing_is_found(settings: dict[str, Any]) -> None:
    """It may have died between its vote and its notice, and owe no number: senders would wait for ever."""
    member = changing(**settings)
    keep_talking(member, OMEGA_NS - LOOK_NS, "b")
    assert [suspect for suspect, *_ in suspected(member)] == ["c"]
    keep_talking(member, 2 * LOOK_NS, "b")
    assert suspected(member)[1:] == [("a", 1, "unready")]


@pytest.mark.parametrize("settings", WAITING)
def test_a_member_that_speaks_may_take_its_time_with_its_notice(settings: dict[str, Any]) -> None:
    """Flow control may hold it back: silence is the charge."""
    member = changing(**settings)
    keep_talking(member, 6 * OMEGA_NS, "a", "b")
    assert [suspect for suspect, *_ in suspected(member)] == ["c"]
