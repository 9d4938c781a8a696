"""Dynamic voting as a pure decision: the worked cases of docs/spec/newtop.md 15, and schedules at random."""

from collections.abc import Callable, Iterable

import pytest

from antiphon.protocols.newtop.primary import lineage
from antiphon.protocols.newtop.primary.lineage import (
    NAMES_MAX,
    Claim,
    ClaimWord,
    Lineage,
    Outcome,
    PrimaryView,
    Rule,
    decide,
    enough,
)
from antiphon.protocols.newtop.wire import words
from antiphon.types import ProcessId, ViewId, split_process_id
from tests.support.lineages import Group, breaks, ids


def primary(number: int, *voters: str, view: str = "") -> PrimaryView:
    return PrimaryView(number, ViewId(view or f"v{number}-{'-'.join(voters)}"), ids(*voters))


def founded(*names: str) -> Group:
    group = Group(*names)
    group.entitle(names[0])
    assert group.meet(*names).rule == "founded"
    return group


def test_only_an_entitled_process_founds_a_lineage() -> None:
    group = Group("a", "b")
    assert group.meet("a", "b").rule is None
    group.entitle("b")
    assert group.meet("a", "b") == Outcome(None, (), 1, "founded")
    assert group.meet("a", "b").number == 2


def test_one_of_two_leaves_gracefully() -> None:
    group = founded("a", "b")
    group.leave("b", "a")
    assert group.meet("a").rule == "majority"


def test_one_of_two_vanishes() -> None:
    group = founded("a", "b")
    assert group.meet("a").rule is None
    assert group.meet("b").rule is None
    assert group.meet("a", "b").rule == "majority"


def test_two_of_three_crash_at_once_and_come_back() -> None:
    group = founded("a", "b", "c")
    assert group.meet("a").rule is None
    group.restart("b")
    assert group.meet("a", "b#2").rule is None, "c may have gone on with b, before b crashed"
    group.restart("c")
    assert group.meet("a", "b#2", "c#2").rule == "everybody"


def test_two_of_three_crash_one_after_the_other_and_come_back() -> None:
    group = founded("a", "b", "c")
    assert group.meet("a", "c").rule == "majority"
    assert group.meet("a").rule is None
    group.restart("b")
    assert group.meet("a", "b#2").rule is None, "c alone may be what is left of the last primary view"
    group.restart("c")
    assert group.meet("a", "c#2").rule == "majority", "half of the voters and the other half restarted"


def test_a_process_met_since_then_must_be_accounted_for() -> None:
    group = founded("a", "b", "c")
    group.lineages[ProcessId("d")] = Lineage()
    assert group.meet("a", "d").rule is None
    group.restart("b")
    group.restart("c")
    assert group.meet("a", "b#2", "c#2").rule is None, "d may have been in a primary view with b and c"
    assert group.meet("a", "b#2", "c#2", "d").rule == "everybody"


def test_voters_that_all_crashed_have_taken_the_lineage_with_them() -> None:
    group = founded("a", "b")
    group.restart("a")
    group.restart("b")
    assert group.meet("a#2", "b#2").rule is None


def test_a_phantom_member_on_two_sides() -> None:
    """docs/spec/errata-newtop.md E-29: x is in {a1, a2, x} and in {b1, b2, x}, and has crashed: it claims nothing."""
    group = founded("a1", "a2", "b1", "b2", "x")
    everybody = ids("a1", "a2", "b1", "b2", "x")
    assert {split_process_id(each)[0] for each in everybody} == group.lineages[ProcessId("a1")].met
    assert group.meet("a1", "a2").rule is None
    assert group.meet("b1", "b2").rule is None
    assert group.meet("a1", "a2", "b1").rule == "majority"


def test_an_attempt_that_was_never_formed_is_dropped() -> None:
    group = founded("a", "b", "c")
    assert group.meet("a", "b", attempted=["a"]).rule == "majority"
    outcome = group.meet("a", "b")
    assert outcome.open == (), "b never attempted it"
    assert outcome.rule == "majority"
    assert outcome.number == 3


def test_an_attempt_that_may_have_been_formed_is_not_bypassed() -> None:
    group = founded("a", "b", "c")
    assert group.meet("a", "b", formed=["a"]).rule == "majority"
    outcome = group.meet("b", "c")
    assert [attempt.voters for attempt in outcome.open] == [ids("a", "b")]
    assert outcome.rule is None, "a may be primary with b"
    group.lineages[ProcessId("c")].attempts.clear()
    assert group.meet("a", "b").rule == "majority"


def test_forgetting_attempts_would_let_two_views_be_primary() -> None:
    group = founded("a", "b", "c")
    group.meet("a", "b", formed=["a"])
    group.lineages[ProcessId("b")].attempts.clear()  # the bug
    assert group.meet("b", "c").rule == "majority", "and a believes to be primary with b"


def test_a_partition_during_a_join_of_many() -> None:
    group = founded("a")
    for name in "bcde":
        group.lineages[ProcessId(name)] = Lineage()
    assert group.meet(*"abcde", formed=[]).rule == "majority"
    assert group.meet("a", "b").rule is None, "the others may be primary together"
    assert group.meet("c", "d", "e").rule is None, "a may be primary alone, if a member did not attempt"
    assert group.meet("a", "c", "d").rule == "majority"


def test_a_partition_during_a_join_of_many_that_was_not_attempted_by_all() -> None:
    group = founded("a")
    for name in "bcde":
        group.lineages[ProcessId(name)] = Lineage()
    group.meet(*"abcde", attempted="acde")
    assert group.meet("a", "b").rule == "majority", "b shows that it was never formed"
    assert group.meet("c", "d", "e").rule is None


def test_a_member_that_left_and_joins_again_does_not_vote_for_the_view_that_it_left() -> None:
    group = founded("a", "b", "c")
    group.meet("a", "b", formed=["b"])
    group.leave("a", "b")
    assert group.meet("a", "c").rule is None, "a passed its vote on to b"
    assert group.meet("b").rule == "majority"


def test_a_member_that_leaves_abruptly_and_joins_again_remembers_its_attempts() -> None:
    group = founded("a", "b", "c")
    group.meet("a", "b", formed=["b"])
    assert group.meet("a", "c").rule is None


def test_a_leave_counts_for_the_views_before_it_alone() -> None:
    group = founded("a", "b", "z")
    group.leave("a", "b", "z")
    group.meet("b", "z")
    group.lineages[ProcessId("y")] = Lineage()
    group.lineages[ProcessId("y")].learn(group.meet("b", "z", "y"))
    group.meet("a", "b", "z", "y")  # a is back, with the identity that it had
    stale = group.lineages[ProcessId("z")]
    stale.last = PrimaryView(1, ViewId("view 1"), ids("a", "b", "z"), ids("a"))
    assert group.meet("b", "z").rule is None, "two of four: that a left an earlier view says nothing here"


def test_the_last_voter_cannot_pass_its_vote_on() -> None:
    """Otherwise every process that has heard of the leave could continue alone."""
    group = founded("a", "b")
    for name in "cd":
        group.lineages[ProcessId(name)] = Lineage()
    group.meet(*"abcd", attempted=[])
    group.leave("a", "b", "c", "d")
    group.leave("b", "c", "d")
    assert group.meet("c").rule is None
    assert group.meet("d").rule is None
    assert group.meet("b", "c").rule is None, "b is back, but its state is gone, and d has not lost it"
    assert group.meet("b", "c", "d").rule == "lost"


def test_lapsed_voters_do_not_outvote_the_one_that_has_the_state() -> None:
    group = founded("a", "b", "c", "d")
    assert group.meet("a", "b", "c").rule == "majority"
    group.lapse("a", "b")
    assert group.meet("a", "b", "d").rule is None, "c has the state of the last primary view, and d an older one"
    assert group.meet("a", "b").rule is None
    assert group.meet("a", "c").rule == "majority", "a votes, and c has the state"


def test_lapsed_voters_count_with_any_voter_that_has_the_state() -> None:
    group = founded("a", "b", "c", "d", "e")
    group.lapse("a", "b")
    assert group.meet("a", "b", "c").rule == "majority"


def test_a_lapsed_voter_breaks_no_tie_without_the_state() -> None:
    group = founded("a", "b")
    group.restart("b")
    group.lapse("a")
    assert group.meet("a").rule is None
    assert group.meet("a", "b#2").rule == "lost", "nobody has the state any more"


def test_the_last_member_leaves_and_joins_again() -> None:
    group = founded("a", "b")
    group.leave("b", "a")
    assert group.meet("a").rule == "majority"
    group.lapse("a")
    assert group.meet("b").rule is None
    assert group.meet("a", "b").rule == "lost", "all that had the state have left"


def test_all_voters_have_lapsed_and_one_that_they_met_may_have_the_state() -> None:
    group = founded("a", "b")
    group.lineages[ProcessId("c")] = Lineage()
    group.meet("a", "b", "c", attempted=[])
    group.lapse("a", "b")
    assert group.meet("a", "b").rule is None
    assert group.meet("a", "b", "c").rule == "lost", "c is no voter, but it has the state"


def test_a_founder_that_left_says_that_the_state_of_its_attempt_is_lost() -> None:
    group = Group("a", "b", "c")
    group.entitle("a")
    assert group.meet("a", "b", formed=["b"]).rule == "founded"
    group.leave("b", "a")
    group.lapse("a")
    assert group.meet("a", "c").rule == "lost", "b has formed it"


def test_a_lapsed_process_remembers_its_attempts() -> None:
    group = founded("a", "b", "c")
    group.meet("a", "b", formed=["b"])
    group.lapse("a")
    assert group.meet("a", "c").rule is None, "b may be primary with a"


def test_a_member_that_may_attempt_a_view_has_the_state_again() -> None:
    """Otherwise primary would never return here, although a and b have everything that c had."""
    group = founded("a", "b", "c")
    group.lapse("a", "b")
    assert group.meet("a", "b", "c", formed=["c"]).rule == "majority"
    group.restart("c")
    assert group.meet("a", "b").rule == "majority"


def test_a_state_alone_does_not_end_a_lapse() -> None:
    group = founded("a", "b", "c", "d", "e")
    group.lapse("a")
    assert group.meet("a", "b").rule is None
    assert group.lineages[ProcessId("a")].lapsed
    assert group.meet("a", "b", "c").rule == "majority"
    assert not group.lineages[ProcessId("a")].lapsed


def test_a_process_that_leaves_holds_no_state() -> None:
    group = founded("a", "b")
    assert group.lineages[ProcessId("a")].held == 1
    group.lapse("a")
    assert group.lineages[ProcessId("a")].held == 0


def test_an_heir_of_a_vote_inherits_the_attempts() -> None:
    group = founded("a", "b", "c", "d", "f")
    group.lineages[ProcessId("e")] = Lineage()
    assert group.meet("a", "b", "e", "f", formed=["b"]).rule == "majority"
    group.leave("b", "a", "e", "f")
    group.leave("f", "e")
    assert group.meet("c", "d", "f").rule is None, "f comes back and tells that b and f have left"
    assert group.meet("c", "d").rule is None, "two of three that did not leave, but what f attempted has been formed"


def test_attempts_without_a_founder_found_nothing() -> None:
    group = Group("a", "b", "c", "d")
    group.entitle("a")
    assert group.meet("a", "b", "d", attempted=["b", "d"]).rule == "founded"
    assert group.meet("b", "c", "d").rule is None, "a may have founded the lineage elsewhere"


def test_one_of_several_entitled_processes_founds_the_lineage() -> None:
    group = Group("a", "b", "c")
    group.entitle("a")
    group.entitle("c")
    assert group.meet("a", "b", "c", attempted=[]).rule == "founded"
    assert group.meet("a", "b").rule is None, "c may found it without them"
    assert group.meet("c").rule is None, "a may"
    group.restart("b")
    assert group.meet("a", "b#2", "c").rule == "founded"
    assert group.meet("a", "c").rule == "majority"


def test_a_lineage_is_founded_without_a_process_that_left_gracefully() -> None:
    group = Group("a", "b")
    group.entitle("a")
    assert group.meet("a", "b", attempted=[]).rule == "founded"
    group.leave("b", "a")
    assert group.meet("a").rule == "founded"


@pytest.mark.parametrize(
    ("members", "rule"),
    [
        (ids("a", "b"), "majority"),
        (ids("a", "b#1"), None),
        (ids("a", "b#1", "c#1"), "everybody"),
        (ids("a#1", "b#1", "c#1"), None),
        (ids("a", "b#1", "c#1", "d"), "everybody"),
        (ids("d", "e", "f"), None),
    ],
)
def test_enough_of_three(members: frozenset[ProcessId], rule: str | None) -> None:
    assert enough(members, primary(1, "a", "b", "c"), frozenset("abc")) == rule


def test_an_earlier_incarnation_is_no_restart() -> None:
    assert enough(ids("a#3", "b"), primary(1, "a#3", "b#2"), frozenset("ab")) is None


@pytest.mark.parametrize(
    ("members", "lapsed", "rule"),
    [
        (ids("a", "b"), ids("a"), "majority"),
        (ids("a", "b"), ids("a", "b"), None),
        (ids("a", "b", "c"), ids("a", "b"), "majority"),
        (ids("a", "b", "c"), ids("a", "b", "c"), "lost"),
        (ids("a", "b", "d"), ids("a", "b"), None),
        (ids("a", "b#1", "c#1"), ids("a"), "lost"),
        (ids("a", "b#1"), ids("a"), None),
    ],
)
def test_enough_of_three_with_lapsed_voters(
    members: frozenset[ProcessId], lapsed: frozenset[ProcessId], rule: str | None
) -> None:
    assert enough(members, primary(1, "a", "b", "c"), frozenset("abc"), lapsed) == rule


@pytest.mark.parametrize("lapsed", [False, True])
def test_a_static_majority_needs_no_lineage(lapsed: bool) -> None:
    claims = {process: Claim(lapsed=lapsed) for process in ids("a", "b")}
    assert decide(claims, size=3).rule == "static"
    assert decide(claims, size=4).rule is None


def test_one_of_two_separately_founded_lineages_continues() -> None:
    group = Group("a", "b")
    group.entitle("a")
    group.entitle("b")
    assert group.meet("a").rule == group.meet("b").rule == "founded"
    assert group.meet("a", "b").rule == "majority"


@pytest.mark.parametrize("lapses", [False, True])
def test_formed_views_make_one_chain_and_each_has_the_state_of_the_last_one(lapses: bool) -> None:
    assert not any(breaks(seed, lapses=lapses) for seed in range(400))


def attempts_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lineage, "attempt", lambda _self, _primary: None)


def a_vote_is_inherited_without_the_attempts(patch: pytest.MonkeyPatch) -> None:
    def learn(self: Lineage, outcome: Outcome) -> None:
        if outcome.latest is not None:
            self.last = outcome.latest
        possible = {attempt.view: attempt for attempt in outcome.open}
        self.attempts = {view: possible[view] for view in self.attempts if view in possible}

    patch.setattr(Lineage, "learn", learn)


def the_last_voter_passes_its_vote_on(patch: pytest.MonkeyPatch) -> None:
    def without(primary: PrimaryView, process: ProcessId) -> PrimaryView:
        return primary._replace(left=primary.left | {process} & primary.voters)

    def enough_or_no_voters(
        members: frozenset[ProcessId], before: PrimaryView, met: frozenset[str], lapsed: frozenset[ProcessId]
    ) -> Rule | None:
        return enough(members, before, met, lapsed) if before.voters - before.left else "majority"

    patch.setattr(lineage, "_without", without)
    patch.setattr(lineage, "enough", enough_or_no_voters)


def lapsed_voters_count_as_those_that_kept_the_state(patch: pytest.MonkeyPatch) -> None:
    def enough_of_all(
        members: frozenset[ProcessId], before: PrimaryView, met: frozenset[str], _lapsed: frozenset[ProcessId]
    ) -> Rule | None:
        return enough(members, before, met)

    patch.setattr(lineage, "enough", enough_of_all)


def any_state_ends_a_lapse(patch: pytest.MonkeyPatch) -> None:
    def meet(self: Lineage, members: Iterable[ProcessId]) -> None:
        self.met |= {split_process_id(member)[0] for member in members}
        self.lapsed = self.lapsed and len(self.met) == 1

    patch.setattr(Lineage, "meet", meet)


def lapsed_voters_need_not_look_for_those_that_they_met(patch: pytest.MonkeyPatch) -> None:
    def enough_of_voters(
        members: frozenset[ProcessId], before: PrimaryView, _met: frozenset[str], lapsed: frozenset[ProcessId]
    ) -> Rule | None:
        return enough(members, before, frozenset(), lapsed)

    patch.setattr(lineage, "enough", enough_of_voters)


@pytest.mark.parametrize(
    ("bug", "lapses", "seeds", "broken"),
    [
        (attempts_are_forgotten, False, range(50), "fork"),
        (a_vote_is_inherited_without_the_attempts, False, [5_778], "fork"),
        (the_last_voter_passes_its_vote_on, False, range(200), "fork"),
        (lapsed_voters_count_as_those_that_kept_the_state, True, range(50), "lost"),
        (any_state_ends_a_lapse, True, range(50), "lost"),
        (lapsed_voters_need_not_look_for_those_that_they_met, True, [139], "lost"),
    ],
)
def test_a_rule_that_is_left_out_forks_the_chain_or_loses_the_state(
    bug: Callable[[pytest.MonkeyPatch], None],
    lapses: bool,
    seeds: Iterable[int],
    broken: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bug(monkeypatch)
    assert any(broken in breaks(seed, lapses=lapses) for seed in seeds)


def test_a_claim_has_room_for_all_names_that_it_tells() -> None:
    met = Lineage()
    for number in range(NAMES_MAX + 100):
        met.meet([ProcessId(f"p{number}")])
    word = ClaimWord(ViewId("0000.000000.0123456789abcdef"), met.claim)
    assert words.decode(words.encode(word), 0) == word
