"""The parts of the control hierarchy, by worked numbers (Berket00 ch. 2; docs/spec/intergroup.md 3)."""

import random
from collections.abc import Callable

import pytest

from antiphon.protocols.intergroup.as_printed_hierarchy import PairsOfTheSender, ThirdPartiesRefresh
from antiphon.protocols.intergroup.hierarchy import appropriateness as tables
from antiphon.protocols.intergroup.hierarchy.appropriateness import Position, SelfDetermination, Value
from antiphon.protocols.intergroup.hierarchy.cuts import CLAIMS_MAX, CUTS_MAX, Cuts
from antiphon.protocols.intergroup.hierarchy.frames import CutRecord, LocalFrame, Pair, SearchResponseFrame
from antiphon.protocols.intergroup.hierarchy.groups import Turns
from antiphon.protocols.intergroup.hierarchy.pacing import URGENT_NS, Meter, Pace, interval
from antiphon.protocols.intergroup.hierarchy.peers import DISTANCE_MAX, Peers, sample
from antiphon.protocols.intergroup.hierarchy.search import LAST_RING_TRIES, RingSearch, next_ring_above
from antiphon.protocols.intergroup.hierarchy.settings import HierarchySettings, Thresholds
from antiphon.protocols.intergroup.hierarchy.states import TABLE, Input, State, StateMachine
from antiphon.protocols.intergroup.membership.claims import Claim
from antiphon.protocols.intergroup.settings import DISTANCE_MIN
from antiphon.types import GroupId, ProcessId, ViewId

MS, SECOND = 1_000_000, 1_000_000_000
A, B, C, D = (ProcessId(name) for name in "abcd")
G = GroupId("g")
SHARES = (0.0, 0.5, 0.999999)

Table = Peers[LocalFrame]


# -------------------------------------------------------------------------------- distances


def exchange(tables: tuple[Table, Table], offsets: tuple[int, int], rounds: int) -> None:
    """A and B send in turn, 5 s after they have heard the other; the ways take 20 and 40 ms."""
    names, ways = (A, B), (20 * MS, 40 * MS)
    now = 2_000 * SECOND
    for turn in range(rounds):
        one, other = turn % 2, 1 - turn % 2
        sent = now + offsets[one]
        pairs = tables[one].pairs(tables[one].entries(), sent)
        now += ways[one]
        tables[other].heard(names[one], sent, pairs, now + offsets[other])
        now += 5 * SECOND


@pytest.mark.parametrize("offset", [-1000 * SECOND, 0, 1000 * SECOND])
def test_h2_distances_need_no_synchronised_clocks(offset: int) -> None:
    """One-way delays of 20 and 40 ms and a clock that is 1000 s off: both ends find 30 ms."""
    found: tuple[Table, Table] = Peers(A), Peers(B)
    exchange(found, (0, offset), 6)
    for table, other in zip(found, (B, A), strict=True):
        peer = table.get(other)
        assert peer is not None
        assert peer.distance == 30 * MS


@pytest.mark.parametrize("offset", [-1000 * SECOND, 1000 * SECOND])
def test_h2_as_printed_the_distance_contains_the_offset(offset: int) -> None:
    found: tuple[Table, Table] = PairsOfTheSender(A), PairsOfTheSender(B)
    exchange(found, (0, offset), 8)
    known = [table.get(other) for table, other in zip(found, (B, A), strict=True)]
    assert all(peer is None or peer.distance != 30 * MS for peer in known)


def test_h3_a_sample_is_clamped_and_an_impossible_one_is_dropped() -> None:
    now = 100 * SECOND
    assert sample(Pair(A, now - 10, 5), 5 + 10, now) == DISTANCE_MIN
    assert sample(Pair(A, now - 50 * SECOND, 5), 5, now) == DISTANCE_MAX
    assert sample(Pair(A, now - 61 * SECOND, 5), 5, now) is None  # old
    assert sample(Pair(A, now + 1, 5), 5, now) is None  # from the future
    assert sample(Pair(A, now - 10, 6), 5, now) is None  # received after it was sent on
    assert sample(Pair(A, now - 10, 0), 61 * SECOND, now) is None


def test_h3_a_distance_follows_new_samples_by_a_quarter() -> None:
    table: Table = Peers(A)
    table.heard(B, 1, (Pair(A, SECOND - 20 * MS, 1),), SECOND)
    table.heard(B, 2, (Pair(A, 2 * SECOND - 60 * MS, 2),), 2 * SECOND)
    peer = table.get(B)
    assert peer is not None
    assert peer.distance == 15 * MS


def test_a_late_or_doubled_message_changes_nothing() -> None:
    table: Table = Peers(A)
    assert table.heard(B, 5, (), 10) is not None
    assert table.heard(B, 5, (), 20) is None
    assert table.heard(B, 4, (), 30) is None
    assert table.expire(10 + SECOND, SECOND // 2) == [B]


# -------------------------------------------------------------------------------- third parties


def relay(kind: type[Table], rounds: int, timeout: int) -> int:
    """A and B tell each other of C, which is dead; the number of seconds until both have forgotten it."""
    one, other = kind(A), kind(B)
    one.heard(C, 1, (), 0)
    one.get(C).distance = 5 * MS  # type: ignore[union-attr]
    for second in range(1, rounds):
        now = second * SECOND
        for speaker, listener in ((one, other), (other, one)):
            for process, peer in speaker.entries():
                listener.told(process, peer.distance or 1, now)
        for table in (one, other):
            table.expire(now, timeout)
        if C not in one and C not in other:
            return second
    return rounds


def test_h9_a_ghost_lives_for_at_most_two_timeouts() -> None:
    assert 5 < relay(Peers, 100, 5 * SECOND) <= 12


def test_h9_as_printed_two_coordinators_keep_a_ghost_for_ever() -> None:
    assert relay(ThirdPartiesRefresh, 100, 5 * SECOND) == 100


def test_h9_a_direct_entry_is_refreshed_by_its_own_process_only() -> None:
    table: Table = Peers(A)
    table.heard(C, 1, (), 0)
    table.told(C, 7 * MS, 4 * SECOND)
    assert table.expire(6 * SECOND, 5 * SECOND) == [C]
    table.told(C, 7 * MS, 7 * SECOND)
    assert not table.entries()  # learned: not told on
    table.heard(C, 2, (), 8 * SECOND)
    assert len(table.entries()) == 1


def test_a_table_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.protocols.intergroup.hierarchy.peers.PEERS_MAX", 3)
    table: Table = Peers(A)
    for number in range(5):
        table.heard(ProcessId(f"p{number}"), 1, (), 0)
        table.told(ProcessId(f"q{number}"), 1, 0)
    assert len(table) == 3


# -------------------------------------------------------------------------------- pacing


@pytest.mark.parametrize("share", SHARES)
def test_the_rtcp_interval(share: float) -> None:
    """§2.3, Fig. 2.2: 100 members, 1,000 B, 10,000 B/s."""
    assert interval(100, 10_000, 1_000, share) == pytest.approx((5 + 10 * share) * SECOND)
    assert interval(3, 10_000, 1_000, share) == pytest.approx((0.5 + share) * SECOND)
    assert interval(1, 10_000, 128, share, initial=True) == pytest.approx((0.25 + 0.5 * share) * SECOND)


def test_a_group_that_has_grown_waits_longer() -> None:
    pace = Pace(10_000, lambda: 0.5)
    pace.start(0)
    pace.sent(1_000, 1, 0)
    assert pace.next_at == SECOND
    for _ in range(60):
        pace.heard(1_000)
    assert pace.has_ended(SECOND)
    assert not pace.is_due(SECOND, 100)
    assert pace.next_at == pytest.approx(25 * SECOND, rel=0.05)  # 0.4 of the bandwidth is aimed at (H14)


def test_urgent_messages_leave_at_most_five_times_a_second() -> None:
    pace = Pace(1_000_000, lambda: 0.5)
    pace.start(0)
    pace.sent(100, 1, 0)
    pace.hurry(1)
    assert pace.next_at == URGENT_NS
    assert pace.is_due(URGENT_NS, 1_000_000)  # not reconsidered


def test_h14_no_second_takes_more_than_the_bandwidth() -> None:
    draw, meter, taken = random.Random(1), Meter(10_000), list[tuple[int, int]]()
    now = 0
    for _ in range(20_000):
        now += draw.randrange(2 * MS)
        size = draw.randrange(50, 1_500)
        if meter.take(size, now):
            taken.append((now, size))
    begin, total, most = 0, 0, 0
    for at, size in taken:
        total += size
        while taken[begin][0] <= at - SECOND:
            total -= taken[begin][1]
            begin += 1
        most = max(most, total)
    assert 6_000 < most <= 10_000
    assert meter.refused > 0


def test_h14_a_process_waits_until_there_is_room() -> None:
    meter = Meter(10_000)
    assert meter.room_at(2_000, 0) == 0
    assert meter.take(3_000, 0)
    later = meter.room_at(2_000, 0)
    assert later == pytest.approx(SECOND / 3, rel=1e-3)
    assert meter.room_at(2_000, later) == later


def test_h14_a_giant_message_leaves_when_the_bucket_is_empty() -> None:
    meter = Meter(10_000)
    meter.take(3_000, 0)
    assert meter.room_at(9_000, 0) == pytest.approx(SECOND / 2, rel=1e-3)


def test_a_timeout_is_five_intervals_of_the_present_group() -> None:
    pace = Pace(10_000, lambda: 0.5)
    assert pace.timeout(2, 5 * SECOND) == 5 * SECOND
    for _ in range(100):
        pace.heard(1_000)
    assert pace.timeout(100, 5 * SECOND) == pytest.approx(125 * SECOND, rel=0.02)


# -------------------------------------------------------------------------------- Tables 2.2 to 2.4

THRESHOLDS = Thresholds(2, 8, 8)


def position(coordinator: bool, coordinators: int, locals_: int, near: bool) -> Position:
    return Position(coordinator, coordinators, locals_, 20, near, reaction_ns=1)


ROWS = [
    # coordinator?, numCoords, numLocals, close or near -> value, may continue
    (True, 2, 0, True, Value.NO_CHANGE, False),  # H6: at THL
    (True, 1, 0, True, Value.NO_CHANGE, False),
    (True, 3, 0, True, Value.APPROPRIATE, True),
    (True, 3, 7, True, Value.NEUTRAL, False),
    (True, 6, 7, True, Value.NEUTRAL, False),
    (True, 7, 7, True, Value.NEUTRAL, True),  # above (2 + 3 * 8) / 4
    (True, 8, 8, True, Value.INAPPROPRIATE, False),
    (True, 8, 0, False, Value.INAPPROPRIATE, False),
    (True, 9, 0, False, Value.INAPPROPRIATE, True),
    (False, 20, 9, False, Value.APPROPRIATE, True),
    (False, 3, 8, False, Value.NEUTRAL, True),  # below (3 * 2 + 8) / 4
    (False, 4, 8, False, Value.NEUTRAL, False),
    (False, 1, 9, True, Value.INAPPROPRIATE, True),
    (False, 2, 9, True, Value.INAPPROPRIATE, False),
]


@pytest.mark.parametrize(("coordinator", "coordinators", "locals_", "near", "value", "continues"), ROWS)
def test_every_row_of_tables_2_2_and_2_3(
    coordinator: bool,
    coordinators: int,
    locals_: int,
    near: bool,
    value: Value,
    continues: bool,
) -> None:
    where = position(coordinator, coordinators, locals_, near)
    row = tables.row_for(where, THRESHOLDS)
    assert row.value is value
    assert row.may_continue(where, THRESHOLDS) is continues


@pytest.mark.parametrize(
    ("where", "bounds"),
    [
        (position(True, 3, 0, True), [5, 10]),
        (position(True, 7, 7, True), [15, 25]),
        (position(True, 9, 0, False), [25, 35]),
        (position(False, 20, 9, False), [5, 10]),
        (position(False, 3, 8, False), [15, 25]),
        (position(False, 1, 9, True), [25, 35]),
    ],
)
def test_every_row_of_table_2_4(where: Position, bounds: list[int]) -> None:
    row = tables.row_for(where, THRESHOLDS)
    seconds = (5 * SECOND, 10 * SECOND)
    assert tables.timer_bounds(row, where, THRESHOLDS, seconds) == [bound * SECOND for bound in bounds]


def test_h11_many_candidates_wait_in_a_wider_interval() -> None:
    """A thousand children and one coordinator too few: the first is expected two seconds after the lower bound."""
    where = Position(False, 1, 900, 1_001, near=True, reaction_ns=2 * SECOND)
    row = tables.row_for(where, THRESHOLDS)
    assert tables.timer_bounds(row, where, THRESHOLDS, (5 * SECOND, 10 * SECOND)) == [25 * SECOND, 2_025 * SECOND]


def test_a_change_is_made_only_if_the_tables_still_allow_it() -> None:
    many, few = position(True, 9, 1, False), position(True, 8, 1, False)
    for at_the_end, changes in ((many, True), (few, False)):
        determination = SelfDetermination((5 * SECOND, 10 * SECOND), lambda: 0.0)
        assert not determination.review(many, THRESHOLDS, 0)
        assert not determination.review(many, THRESHOLDS, 24 * SECOND)
        assert determination.review(at_the_end, THRESHOLDS, 25 * SECOND) is changes


def test_a_coordinator_that_a_child_has_contacted_stays() -> None:
    many = position(True, 9, 1, False)
    determination = SelfDetermination((5 * SECOND, 10 * SECOND), lambda: 0.0)
    determination.review(many, THRESHOLDS, 0)
    determination.contacted()
    assert not determination.review(many, THRESHOLDS, 25 * SECOND)
    assert determination.review(many, THRESHOLDS, 50 * SECOND)  # a new timer, and nobody came


def test_h6_the_thresholds_must_be_in_order() -> None:
    with pytest.raises(AssertionError):
        HierarchySettings(thresholds=Thresholds(8, 8, 8))
    with pytest.raises(AssertionError):
        HierarchySettings(state_change_ns=(10, 5))


def test_thresholds_grow_with_the_root_of_the_population() -> None:
    settings = HierarchySettings(grows=True)
    assert settings.thresholds_for(10) == Thresholds(2, 8, 8)
    assert settings.thresholds_for(10_000) == Thresholds(50, 200, 100)
    assert HierarchySettings().thresholds_for(10_000) == Thresholds(2, 8, 8)
    assert HierarchySettings(grows=True, expected=10_000).thresholds_for(1) == Thresholds(50, 200, 100)


# -------------------------------------------------------------------------------- ring search


def answer(search: RingSearch, sender: ProcessId, locals_: int, now: int, nonce: int | None = None) -> None:
    number = search.nonce if nonce is None else nonce
    search.answered(SearchResponseFrame(G, sender, A, number, 1, locals_), now)


def rings_of(search: RingSearch, answered: Callable[[int, int], None] = lambda _ring, _now: None) -> list[int]:
    now, rings = 0, []
    search.begin(now)
    while search.runs:
        assert search.next_at is not None
        now = search.next_at
        if search.chosen() is None and (ring := search.next_ring(now)) is not None:
            rings.append(ring)
            answered(ring, now)
    return rings


def test_the_ring_search_expands_and_h15_asks_the_last_ring_three_times() -> None:
    search = RingSearch(127, SECOND // 2)
    assert rings_of(search) == [1, 2, 4, 8, 16, 32, 64] + [127] * LAST_RING_TRIES
    assert search.found is None


def test_the_first_ring_with_an_answer_wins_then_the_distance_then_the_children() -> None:
    def answers(ring: int, now: int) -> None:
        if ring >= 8:
            answer(search, B, 0, now + 60 * MS)
            answer(search, C, 5, now + 20 * MS)
            answer(search, D, 4, now + 21 * MS)  # the same distance in milliseconds
            answer(search, B, 0, now, nonce=search.nonce - 1)  # to an earlier question

    search = RingSearch(127, SECOND // 2)
    assert rings_of(search, answers) == [1, 2, 4, 8]
    assert search.found is not None
    assert (search.found.coordinator, search.found.ttl) == (D, 8)


def test_h7_an_answer_after_the_search_changes_nothing() -> None:
    search = RingSearch(127, SECOND // 2)
    rings_of(search, lambda _ring, now: answer(search, B, 0, now))
    answer(search, C, 0, 10 * SECOND)
    assert search.found is not None
    assert search.found.coordinator == B


def test_h8_the_next_ring_is_the_one_above() -> None:
    assert [next_ring_above(ttl, 127) for ttl in (1, 3, 16, 64, 127)] == [2, 4, 32, 127, 127]


# -------------------------------------------------------------------------------- states, turns and cuts


def test_every_change_of_the_table_and_no_other() -> None:
    for state in State:
        for what in Input:
            machine = StateMachine()
            machine.state = state
            action = machine.take(what)
            if (state, what) in TABLE:
                assert (action, machine.state) == TABLE[state, what]
                assert machine.taken == {(state, what): 1}
            else:
                assert (action, machine.state) == (None, state)


def test_h7_a_failed_search_counts_before_joining_only() -> None:
    assert (State.TO_CHILD, Input.NOT_FOUND) in TABLE
    assert (State.LEAVING, Input.NOT_FOUND) not in TABLE
    assert TABLE[State.LEAVING, Input.LOST][1] is State.COORDINATOR


def test_h13_entries_take_turns() -> None:
    turns: Turns[int] = Turns(3)
    assert turns.of([1, 2]) == [1, 2]
    seen = [list(turns.of(range(7))) for _ in range(3)]
    assert seen == [[0, 1, 2], [3, 4, 5], [6, 0, 1]]


def cut(group: str, gate: int, **claims: int) -> CutRecord:
    found = tuple((ProcessId(name), Claim(1, seq, 0)) for name, seq in sorted(claims.items()))
    return CutRecord(GroupId(group), ViewId("v"), gate, found)


def test_m18_cuts_keep_the_greatest_claims_and_only_news_is_urgent() -> None:
    cuts = Cuts(SECOND)
    assert cuts.add([cut("g", 5, a=1, b=9)], 0)
    assert cuts.add([cut("g", 4, a=3)], 0)
    assert not cuts.add([cut("g", 5, a=2, b=9)], SECOND // 2)
    assert cuts.records() == (cut("g", 5, a=3, b=9),)
    cuts.expire(SECOND)
    assert cuts.records() == ()


def test_cuts_are_bounded() -> None:
    cuts = Cuts(SECOND)
    cuts.add([cut(f"g{number}", 1) for number in range(2 * CUTS_MAX)], 0)
    assert len(cuts.records()) == CUTS_MAX
    assert not cuts.add([cut("g0", 9, **{f"p{number}": 1 for number in range(CLAIMS_MAX + 1)})], 0)
    for group in ("g0", "g1"):
        cuts.add([cut(group, 9, **{f"p{number}": 1 for number in range(CLAIMS_MAX - 5)})], 0)
    assert sum(len(each.claims) for each in cuts.records()) == CLAIMS_MAX
