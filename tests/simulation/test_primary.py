"""Votes on primary views in the simulator: the cases of docs/spec/newtop.md 15, each as a schedule."""

import json
from pathlib import Path

import pytest

from antiphon.campaign.families import FAMILIES
from antiphon.errors import ConfigurationError
from antiphon.properties.judge import judge
from antiphon.scenario.read import parse_scenario
from antiphon.sim.run import Run, simulate
from antiphon.trace.table import events_table

ERRATA = Path(__file__).parents[2] / "scenarios/errata"


def played(members: int, *faults: str, service: str = "total-safe", **options: str) -> Run:
    """A group in which all members send all the time; `faults`: `3s crash p2`, `5s leave p1`, …"""
    tables = []
    for fault in faults:
        at, kind, process = fault.split()
        group = 'group = "g"\n' if kind in ("leave", "join") else ""
        tables.append(f'[[fault]]\nat = "{at}"\nkind = "{kind}"\nprocess = "{process}"\n{group}')
    chosen = "".join(f"{name} = {value}\n" for name, value in {"primary": '"dynamic"', **options}.items())
    return simulate(
        parse_scenario(
            f'name = "votes"\nseed = 3\nduration = "40s"\nquiet = "8s"\n[options]\nmerge_every = "1s"\n{chosen}'
            f'[[group]]\nname = "g"\nmembers = {members}\nservice = "{service}"\n'
            f'[[workload]]\ngroup = "g"\nmessages = 200\ninterval = "50ms"\n{"".join(tables)}'
        )
    )


def broken(run: Run) -> dict[str, str | None]:
    verdicts = judge(events_table(run.id, run.histories))
    return {each.property: each.note for each in verdicts if each.outcome == "violated"}


def stretches(run: Run, process: str) -> list[tuple[str, tuple[str, ...]]]:
    """The events that a process reads, in order: (`view`, members), (`primary`, rule), (`transitional`, members)."""
    found = []
    for history in run.histories:
        for row in history.rows if history.process == process else ():
            if row["kind"] in ("view", "transitional"):
                found.append((row["kind"], tuple(row["members"])))
            elif row["kind"] == "primary":
                detail = json.loads(row["detail"])
                found.append(("primary" if detail["holds"] else "formed", (detail["rule"],)))
    return found


def test_one_of_two_leaves_gracefully_and_the_other_is_primary_again() -> None:
    run = played(2, "3s leave p2")
    assert broken(run) == {}
    assert stretches(run, "p1")[-2:] == [("view", ("p1",)), ("primary", ("majority",))]


def test_one_of_two_crashes_and_the_other_is_not_primary() -> None:
    run = played(2, "3s crash p2")
    assert broken(run) == {}
    assert stretches(run, "p1")[-1] == ("view", ("p1",))


def test_two_of_three_crash_at_once_and_come_back() -> None:
    run = played(3, "2s crash p2", "2s crash p3", "5s recover p2", "7s recover p3")
    assert broken(run) == {}
    told = stretches(run, "p1")
    assert told[-2:] == [("view", ("p1", "p2#1", "p3#1")), ("primary", ("everybody",))]
    assert told.count(("primary", ("everybody",))) == 1, "with one of them it is not primary"
    assert stretches(run, "p3")[-1] == ("primary", ("everybody",))


def test_two_of_three_crash_one_after_the_other_and_come_back() -> None:
    run = played(3, "2s crash p2", "5s crash p3", "8s recover p3", "10s recover p2")
    assert broken(run) == {}
    told = stretches(run, "p1")
    lone = told.index(("view", ("p1",)))
    assert told[lone + 1 :] == [
        ("view", ("p1", "p3#1")),
        ("primary", ("majority",)),
        ("view", ("p1", "p2#1", "p3#1")),
        ("primary", ("majority",)),
    ]


def test_primary_ends_at_the_notice() -> None:
    told = stretches(played(3, "2s crash p3"), "p1")
    assert told[1:5] == [
        ("primary", ("majority",)),
        ("transitional", ("p1", "p2")),
        ("view", ("p1", "p2")),
        ("primary", ("majority",)),
    ]


@pytest.mark.parametrize("moment", ["3010ms", "3030ms", "3050ms", "3080ms", "3200ms"])
def test_a_member_that_leaves_during_a_vote_passes_its_vote_on(moment: str) -> None:
    """p1 and p2 of the last primary view leave as soon as p3 has joined; a leave waits for the vote."""
    run = played(3, "3s join p3", f"{moment} leave p1", f"{moment} leave p2")
    assert broken(run) == {}
    assert stretches(run, "p3")[-2:] == [("view", ("p3",)), ("primary", ("majority",))]


@pytest.mark.parametrize(
    "seed",
    [
        500_867,  # the first primary view was formed at a member that was cut off then: the others may wait for it
        910_101,  # suspected by each other, both showed life beyond their window and stood still (E-101)
    ],
)
def test_seeds_that_failed_once_hold(seed: int) -> None:
    run = simulate(FAMILIES["primary"].draw(seed))
    assert run.quiet
    assert not broken(run)


def test_a_size_decides_where_it_is_configured() -> None:
    run = played(3, "2s crash p2", "2s crash p3", "5s recover p2", primary="3")
    assert broken(run) == {}
    assert stretches(run, "p1")[-2:] == [("view", ("p1", "p2#1")), ("primary", ("static",))]


@pytest.mark.parametrize("service", ["total", "total-safe"])
def test_a_sequencer_and_datagrams_carry_votes_too(service: str) -> None:
    run = simulate(
        parse_scenario(
            'name = "votes"\nseed = 3\nduration = "40s"\nquiet = "8s"\n[options]\nprimary = "dynamic"\n'
            '[network]\ntransport = "datagram"\nloss = 0.1\n'
            f'[[group]]\nname = "g"\nmembers = 3\nservice = "{service}"\n'
            + ('mode = "asymmetric"\n' if service == "total" else "")
            + '[[workload]]\ngroup = "g"\nmessages = 100\ninterval = "50ms"\n'
            '[[fault]]\nat = "2s"\nkind = "crash"\nprocess = "p1"\n'
        )
    )
    assert broken(run) == {}
    assert stretches(run, "p2")[-2:] == [("view", ("p2", "p3")), ("primary", ("majority",))]


def test_a_phantom_member_makes_no_view_primary() -> None:
    """E-29: {a1, a2, x} and {b1, b2, x} both hold three of five, and x has crashed."""
    text = (ERRATA / "E-29.toml").read_text(encoding="utf-8")
    run = simulate(parse_scenario(text.replace('literal = ["E-29"]', 'primary = "dynamic"')))
    assert "M12" not in broken(run)
    assert [each for each in stretches(run, "a1") if each[0] == "primary"] == [("primary", ("majority",))]
    assert [each for each in stretches(run, "b1") if each[0] == "primary"] == [("primary", ("majority",))]


@pytest.mark.parametrize(
    ("service", "options", "key"),
    [
        ("causal-fast", 'primary = "dynamic"', "options.primary"),
        ("total", "primary = 0", "options.primary"),
        ("total", 'primary = "dynamic"\nsuspect_after = "0s"', "options.primary"),
    ],
)
def test_settings_that_exclude_votes_are_refused(service: str, options: str, key: str) -> None:
    group = f'[[group]]\nname = "g"\nmembers = 3\nservice = "{service}"\n'
    with pytest.raises(ConfigurationError, match=key):
        parse_scenario(f'name = "v"\nduration = "5s"\n[options]\n{options}\n{group}')
