"""The sentences of `simulate` about the views of a run."""

import pytest

from antiphon.cli.shared.views import sentences, view_changes
from antiphon.core.effects import Departure
from antiphon.scenario.read import parse_scenario
from antiphon.sim.run import Run
from antiphon.trace.recorder import Recorder
from antiphon.types import Company, GroupId, ProcessId, View, first_view, formed_group, formed_view, shrunk_view

G, P1, P2, P3, P4 = GroupId("g"), ProcessId("p1"), ProcessId("p2"), ProcessId("p3"), ProcessId("p4#1")
FORMED = formed_group("g", 1, P1, 0)
SECOND = 1_000_000_000


def run_of(*installed: tuple[ProcessId, View, tuple[Departure, ...]]) -> Run:
    """Views as they were installed, a second apart."""
    histories = {process: Recorder(process, {G: "total"}, signed=True) for process in (P1, P2, P3, P4)}
    for second, (process, view, left) in enumerate(installed):
        histories[process].installed(view, second * SECOND, left)
    scenario = parse_scenario('name = "x"\n[[group]]\nname = "g"\nmembers = 3')
    return Run("x", scenario, tuple(histories.values()), 0, True, 0, 0, 0)


def formed(*companies: tuple[tuple[ProcessId, ...], View | None], at: ProcessId) -> View:
    told = tuple(
        Company(members, None if view is None else view.id, len(members), primary=view is not None)
        for members, view in companies
    )
    return formed_view(FORMED, 7, told, at)


PAIR, SINGLE = first_view(G, frozenset({P1, P2})), first_view(G, frozenset({P3}))


@pytest.mark.parametrize(
    ("companies", "told"),
    [
        ([((P1, P2), PAIR), ((P4,), None)], "p4#1 joins → p1 p2 p4#1"),
        ([((P1, P2), PAIR), ((P3,), None), ((P4,), None)], "p3 p4#1 join → p1 p2 p3 p4#1"),
        ([((P1, P2), PAIR), ((P3,), SINGLE)], "p1 p2 and p3 merge → p1 p2 p3"),
        ([((P1, P2), PAIR), ((P3,), SINGLE), ((P4,), None)], "p1 p2 and p3 merge; p4#1 joins → p1 p2 p3 p4#1"),
        ([((P1,), None), ((P2,), None)], "p1 p2 form it → p1 p2"),
        ([((P1, P2), PAIR)], "p1 p2 form it again → p1 p2"),
    ],
)
def test_a_formed_group_is_told_by_how_its_members_came_together(
    companies: list[tuple[tuple[ProcessId, ...], View | None]], told: str
) -> None:
    members = [member for crowd, _ in companies for member in crowd]
    run = run_of(*((member, formed(*companies, at=member), ()) for member in members))
    (change,) = view_changes(run)
    assert (change.epoch, change.installed_by, change.last_seconds) == (1, members, len(members) - 1)
    assert [*sentences([change])] == [f"0.000 s  g: {told}"]


def test_a_leave_is_told_as_a_leave() -> None:
    why = Departure(P2, 9, "left", (P1,), silent_ns=0, agreed_ns=0)
    (change,) = view_changes(run_of((P1, PAIR, ()), (P1, shrunk_view(PAIR, [(P2, 9)]), (why,))))
    assert [*sentences([change])] == ["1.000 s  g: p2 has left → p1, not primary"]
    assert (change.epoch, change.merged, change.joined) == (None, [], [])


def test_the_configured_view_is_no_change() -> None:
    assert view_changes(run_of((P1, PAIR, ()), (P2, PAIR, ()))) == []
