"""Dynamic voting as a pure decision: the worked cases of docs/spec/newtop.md 15, and schedules at random."""

import random
from collections.abc import Callable, Iterable

import pytest

from antiphon.protocols.newtop.primary import lineage
from antiphon.protocols.newtop.primary.lineage import Claim, Lineage, Outcome, PrimaryView, Rule, decide, enough
from antiphon.types import ProcessId, ViewId, split_process_id


def ids(*names: str) -> frozenset[ProcessId]:
    return frozenset(map(ProcessId, names))


def primary(number: int, *voters: str, view: str = "") -> PrimaryView:
    return PrimaryView(number, ViewId(view or f"v{number}-{'-'.join(voters)}"), ids(*voters))


class Group:
    """Processes that meet in views; each view decides, and all or some of its members learn the outcome."""

    def __init__(self, *names: str) -> None:
        self.lineages = {ProcessId(name): Lineage() for name in names}
        self._views = 0

    def entitle(self, name: str) -> None:
        self.lineages[ProcessId(name)].entitled = True

    def restart(self, name: str, incarnation: int = 2) -> None:
        for process in [each for each in self.lineages if split_process_id(each)[0] == name]:
            del self.lineages[process]
        self.lineages[ProcessId(f"{name}#{incarnation}")] = Lineage()

    def leave(self, name: str, *survivors: str) -> None:
        for process in (name, *survivors):
            self.lineages[ProcessId(process)].pass_on(ProcessId(name))

    def meet(
        self, *members: str, attempted: Iterable[str] | None = None, formed: Iterable[str] | None = None
    ) -> Outcome:
        """A view of these. `attempted`: by which, if not by all; `formed`: which of them hear all attempts."""
        self._views += 1
        view, processes = ViewId(f"view {self._views}"), ids(*members)
        for process in processes:
            self.lineages[process].meet(processes)
        outcome = decide({process: self.lineages[process].claim for process in sorted(processes)})
        for process in processes:
            self.lineages[process].learn(outcome)
        if outcome.rule is None:
            return outcome
        tried = PrimaryView(outcome.number, view, processes)
        trying = processes if attempted is None else ids(*attempted)
        for process in trying:
            self.lineages[process].attempt(tried)
        if trying == processes:
            for process in processes if formed is None else ids(*formed):
                self.lineages[process].form(tried)
        return outcome


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
    assert group.meet("b", "c").rule == "majority", "b is back"


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


def test_a_static_majority_needs_no_lineage() -> None:
    claims = {process: Claim() for process in ids("a", "b")}
    assert decide(claims, size=3).rule == "static"
    assert decide(claims, size=4).rule is None


def test_one_of_two_separately_founded_lineages_continues() -> None:
    group = Group("a", "b")
    group.entitle("a")
    group.entitle("b")
    assert group.meet("a").rule == group.meet("b").rule == "founded"
    assert group.meet("a", "b").rule == "majority"


def forks(seed: int) -> bool:
    """Random views, attempts and leaves, without restarts: True if a formed view does not follow an earlier one."""
    rng = random.Random(seed)
    names = [chr(97 + place) for place in range(rng.randint(2, 6))]
    group = Group(*names)
    group.entitle("a")
    after: dict[ViewId, set[ViewId]] = {}
    formed: dict[ViewId, int] = {}
    for turn in range(40):
        members = rng.sample(names, rng.randint(1, len(names)))
        whole, heard = rng.random() < 0.7, rng.sample(members, rng.randint(1, len(members)))
        attempted = members if whole else rng.sample(members, rng.randint(0, len(members) - 1))
        outcome = group.meet(*members, attempted=attempted, formed=heard)
        view = ViewId(f"view {turn + 1}")
        after[view] = {*outcome.after}.union(*(after[each] for each in outcome.after))
        if outcome.rule is not None and whole:
            if not formed.keys() <= after[view] or any(number >= outcome.number for number in formed.values()):
                return True
            formed[view] = outcome.number
        if rng.random() < 0.2:
            group.leave(rng.choice(members), *members)
    return False


def test_formed_views_make_one_chain() -> None:
    assert not any(map(forks, range(400)))


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

    def enough_or_no_voters(members: frozenset[ProcessId], before: PrimaryView, met: frozenset[str]) -> Rule | None:
        return enough(members, before, met) if before.voters - before.left else "majority"

    patch.setattr(lineage, "_without", without)
    patch.setattr(lineage, "enough", enough_or_no_voters)


@pytest.mark.parametrize(
    ("bug", "seeds"),
    [
        (attempts_are_forgotten, range(50)),
        (a_vote_is_inherited_without_the_attempts, [5_778]),
        (the_last_voter_passes_its_vote_on, range(200)),
    ],
)
def test_a_rule_that_is_left_out_forks_the_chain(
    bug: Callable[[pytest.MonkeyPatch], None], seeds: Iterable[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    assert any(map(forks, seeds))
