"""Random runs of the API with applications that write while primary; `benchmarks.api_runs` plays many more."""

from collections.abc import Iterable

import pytest

from antiphon.types import process_id
from tests.planted.primary import failed_members_pass_their_votes_on
from tools.lab.api_history import Acknowledged, Ending, Entry, History, Stay, judge
from tools.lab.api_runs import play

P1, P2, P3 = (Stay(process_id(name, 0), 0) for name in ("p1", "p2", "p3"))


@pytest.mark.parametrize("seed", [*range(20), 32])
def test_no_acknowledged_write_is_lost_and_one_view_is_primary(seed: int) -> None:
    judgement, log = play(seed)
    assert not judgement.violations, "\n".join(log)
    assert judgement.counts["ends with primary"] >= judgement.counts["ends with primary due"]


def test_a_bug_in_the_votes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    failed_members_pass_their_votes_on(monkeypatch)
    found = {violation.kind for seed in (7, 9, 13) for violation in play(seed)[0].violations}
    assert {"lost write", "two primaries"} <= found


# The judge


def history(*, safe: bool = True) -> History:
    """Three processes in a primary view, in which p1 has acknowledged write 1."""
    made = History(safe, begun=dict.fromkeys((P1, P2, P3), 0.0))
    enter(made, 1.0, 1, (P1, P2, P3), {})
    made.held(P1, {1})
    made.acknowledged.append(Acknowledged(2.0, 1, P1, 1, "view 1"))
    return made


def enter(made: History, at_s: float, number: int, stays: Iterable[Stay], states: dict[Stay, set[int]]) -> None:
    members = frozenset(stay.process for stay in stays)
    for stay in stays:
        made.views.append((at_s, members))
        state = frozenset(states.get(stay, ()))
        made.held(stay, state)
        made.entries.append(Entry(at_s, stay, number, f"view {number}", members, state))


def ending(*stays: Stay, primary: bool = True) -> Ending:
    members = frozenset(stay.process for stay in stays)
    return Ending(
        dict.fromkeys(stays, members),
        dict.fromkeys(stays, primary),
        dict.fromkeys(stays, frozenset()),
        (),
        frozenset({"p1", "p2", "p3"}),
    )


def kinds(made: History, end: Ending) -> list[str]:
    return [violation.kind for violation in judge(made, end).violations]


def test_a_write_that_a_later_primary_view_has_is_not_lost() -> None:
    made = history()
    enter(made, 3.0, 2, (P2, P3), {P2: {1}, P3: {1}})
    assert kinds(made, ending(P1, P2, P3)) == []


def test_a_write_that_a_member_of_a_later_primary_view_lacks_is_lost() -> None:
    made = history()
    enter(made, 3.0, 2, (P2, P3), {P2: {1}})
    assert kinds(made, ending(P1, P2, P3)) == ["lost write"]


def test_a_write_without_a_holder_is_counted() -> None:
    made = history()
    made.ended[P1] = 2.5
    enter(made, 3.0, 2, (P2, P3), {})
    judgement = judge(made, ending(P2, P3))
    assert not judgement.violations
    assert judgement.counts["writes without a holder"] == 1


def test_with_total_a_write_counts_if_its_process_goes_on() -> None:
    without, along = history(safe=False), history(safe=False)
    enter(without, 3.0, 2, (P2, P3), {})
    enter(along, 3.0, 2, (P1, P2), {P1: {1}})
    assert kinds(without, ending(P1, P2, P3)) == []
    assert kinds(along, ending(P1, P2, P3)) == ["lost write"]


def test_a_new_write_in_an_old_primary_view_is_one_of_two_primaries() -> None:
    made = history()
    enter(made, 1.5, 2, (P2, P3), {})
    assert kinds(made, ending(P1, P2, P3)) == ["two primaries"]


def test_a_number_belongs_to_one_view_while_its_members_live() -> None:
    made, ended = history(), history()
    ended.ended |= {P1: 2.5, P2: 2.5, P3: 2.5}
    for each in (made, ended):
        later = Stay(process_id("p3", 1), 0)
        each.begun[later] = 2.6
        each.entries.append(Entry(3.0, later, 1, "another", frozenset({later.process}), frozenset()))
    assert kinds(made, ending(P1, P2)) == ["two primaries"]
    judgement = judge(ended, ending(later))
    assert not judgement.violations
    assert judgement.counts["numbers used again"] == 1


def test_primary_is_due_with_most_of_the_last_primary_view() -> None:
    assert kinds(history(), ending(P1, P2, primary=False)) == ["not primary"]
    assert kinds(history(), ending(P1, primary=False)) == []


def test_primary_is_not_due_if_no_voter_there_has_kept_the_state() -> None:
    made = history()
    later = [Stay(stay.process, 1) for stay in (P1, P2, P3)]
    made.ended |= {P1: 2.5, P2: 2.5}
    made.begun |= dict.fromkeys(later[:2], 2.6)
    assert kinds(made, ending(*later[:2], primary=False)) == []
    assert kinds(made, ending(later[0], P3, primary=False)) == ["not primary"], "p3 has the state"
    made.ended[P3] = 2.5
    made.begun[later[2]] = 2.6
    assert kinds(made, ending(*later, primary=False)) == ["not primary"], "nobody has it, and all are there"


def test_members_that_see_other_views_are_not_together() -> None:
    end = ending(P1, P2)
    end.views[P2] = frozenset({P2.process})
    assert kinds(history(), end) == ["not together"]
