"""Whole runs in which groups change: the shipped scenarios are judged, and their traces examined."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from antiphon.campaign.families import FAMILIES, Family
from antiphon.cli.shared.views import sentences, view_changes
from antiphon.properties.judge import judge
from antiphon.protocols.newtop.scenarios.changes import draw_symmetric_changes
from antiphon.scenario.read import parse_scenario, read_scenario, scenario_toml
from antiphon.sim.run import Run, simulate
from antiphon.trace.table import events_table
from antiphon.types import process_id

SCENARIOS = Path(__file__).parents[2] / "scenarios"
NAMES = ("join", "merge", "restart", "migration")
RUNS: dict[str, Run] = {}


def run_of(name: str) -> Run:
    if name not in RUNS:
        RUNS[name] = simulate(read_scenario(SCENARIOS / f"{name}.toml"), "frames")
    return RUNS[name]


def rows(run: Run, *kinds: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for history in run.histories:
        for row in history.rows:
            if row["kind"] in kinds:
                yield process_id(history.process, history.incarnation), row


def end_together(run: Run, *processes: str) -> bool:
    """True if the last view of each of these processes has exactly these members."""
    last = {process: row["members"] for process, row in rows(run, "view")}
    return all(last[process] == [*processes] for process in processes)


def delivered(run: Run, process: str) -> list[tuple[str, int, int]]:
    named = [row for other, row in rows(run, "deliver") if other == process]
    return [(row["sender"], row["sender_incarnation"], row["number"]) for row in named]


def states(run: Run, role: str) -> list[tuple[str, str, int]]:
    """The process, its first view, and the digest of its state."""
    told = [(process, row) for process, row in rows(run, "state") if json.loads(row["detail"])["role"] == role]
    return [(process, row["view"], row["digest"]) for process, row in told]


def story(run: Run) -> list[str]:
    return [line.partition("  ")[2] for line in sentences(view_changes(run))]


@pytest.mark.parametrize("name", NAMES)
def test_all_that_is_promised_holds(name: str) -> None:
    run = run_of(name)
    verdicts = judge(events_table(run.id, run.histories))
    assert {verdict.property for verdict in verdicts if verdict.violations} == set()
    assert run.quiet
    asked = {verdict.property for verdict in verdicts if verdict.opportunities}
    assert {"D2", "D8", "D12", "L1", "L3", "O6", "S1"} <= asked


@pytest.mark.parametrize("name", NAMES)
def test_frames_and_their_bytes_give_the_same_run_and_so_does_its_own_scenario(name: str) -> None:
    run = run_of(name)
    again = simulate(parse_scenario(scenario_toml(run.scenario)), "bytes")
    assert [history.rows for history in again.histories] == [history.rows for history in run.histories]


def test_a_joiner_has_in_its_state_or_gets_delivered_each_message_once() -> None:
    run = run_of("join")
    (_, view, digest), *none = states(run, "merged")
    assert none == []
    snapshots = states(run, "snapshot")
    assert {process for process, _, _ in snapshots} == {"p1", "p2", "p3"}
    assert {(at, other) for _, at, other in snapshots} == {(view, digest)}
    old, new = delivered(run, "p2"), delivered(run, "p4")
    assert old[-len(new) :] == new
    assert len(new) < len(old)
    assert story(run) == ["orders: p4 joins → p1 p2 p3 p4", "orders: p1 has left → p2 p3 p4"]
    ((process, row),) = rows(run, "join")
    assert (process, row["detail"]) == ("p4", '{"contacts":["p1","p2","p3"]}')
    ((process, row),) = rows(run, "leave")
    assert (process, row["detail"]) == ("p1", '{"graceful":true}')
    assert end_together(run, "p2", "p3", "p4")
    assert run.requests < 4 * 300  # a process outside the group requests nothing


def test_a_state_travels_in_pieces_among_the_messages() -> None:
    run = run_of("join")
    kinds = [json.loads(row["detail"])["type"] for _, row in rows(run, "transmit")]
    assert kinds.count("state") == 1
    assert "fragment" in kinds


def test_sides_that_were_apart_go_on_from_one_state() -> None:
    run = run_of("merge")
    assert end_together(run, "p1", "p2", "p3", "p4", "p5")
    merged = states(run, "merged")
    assert [process for process, _, _ in merged] == ["p1", "p2", "p3", "p4", "p5"]
    assert len({(view, digest) for _, view, digest in merged}) == 1
    assert len({digest for _, _, digest in states(run, "snapshot")}) == 2
    assert story(run)[-1] == "orders: p1 p2 p3 and p4 p5 merge → p1 p2 p3 p4 p5"
    (row,) = (row for _, row in rows(run, "faults_end"))
    assert json.loads(row["detail"])["components"] == [["p1", "p2", "p3", "p4", "p5"]]


def test_a_process_that_recovers_is_a_new_incarnation_each_time() -> None:
    run = run_of("restart")
    named = [(history.process, history.incarnation) for history in run.histories]
    assert named[2:5] == [("p3", 0), ("p3", 1), ("p3", 2)]
    assert end_together(run, "p1", "p2", "p3#2", "p4")
    assert {process for process, _, _ in states(run, "merged")} == {"p3#1", "p3#2"}
    for incarnation in range(3):  # each counts its messages from 0
        own = [number for sender, which, number in delivered(run, "p1") if (sender, which) == ("p3", incarnation)]
        assert own == [*range(len(own))]
        assert own


def test_a_server_moves_and_its_client_loses_nothing() -> None:
    run = run_of("migration")
    of_client = [number for sender, _, number in delivered(run, "other") if sender == "client"]
    assert of_client == [*range(1000)]
    assert end_together(run, "client", "new", "other")
    moved = delivered(run, "new")
    assert delivered(run, "other")[-len(moved) :] == moved


ONCE_FAILED = (
    15, 60, 122, 216, 264, 366, 397, 460, 572, 593, 649, 750, 825, 1106,
    2128, 2450, 2767, 2837, 3415, 3760, 4355, 4711, 4713, 6847, 6981,
)  # fmt: skip
"""Seeds of the family `changes` that broke a promise once (docs/track-record.md), before it had sequencers."""
SYMMETRIC = Family("changes", "", draw_symmetric_changes)
LATELY_FAILED = (
    498, 501, 5017, 5078, 6145, 6496, 7933, 9335, 11314, 11421, 12800, 13535, 14312, 27295, 27963, 50_243, 504_172,
    504_504,
)  # fmt: skip
"""Seeds of the family as it is."""


@pytest.mark.parametrize("seed", ONCE_FAILED)
def test_seeds_that_failed_once_hold(seed: int) -> None:
    _holds(simulate(SYMMETRIC.draw(seed), "frames"))


@pytest.mark.parametrize("seed", LATELY_FAILED)
def test_seeds_that_failed_lately_hold(seed: int) -> None:
    _holds(simulate(FAMILIES["changes"].draw(seed), "frames"))


def _holds(run: Run) -> None:
    assert run.quiet
    verdicts = judge(events_table(run.id, run.histories))
    assert {verdict.property for verdict in verdicts if verdict.violations} == set()


IDLE = """
name = "idle"
quiet = "2s"
duration = "20s"
[options]
suspect_after = "120ms"
idle_probe = "0s"
[[group]]
name = "g"
members = ["p1", "p2", "p3"]
service = "total"
[network]
transport = "stream"
latency = {{ kind = "fixed", value = "2ms" }}
[[workload]]
group = "g"
senders = ["p2"]
messages = 3
interval = "10ms"
[[fault]]
at = "100ms"
kind = "join"
process = "p3"
group = "g"
via = ["p2"]
[[fault]]
at = "{crash}ms"
kind = "crash"
process = "p1"
"""


@pytest.mark.parametrize("crash", [90, 101, 103, 105, 107, 109, 111, 113])
def test_e95_an_unnoticed_crash_does_not_keep_a_joiner_out_or_waiting(crash: int) -> None:
    """Nothing is sent, idle groups are not probed: only the vote, or the state, that p1 owes can tell."""
    run = simulate(parse_scenario(IDLE.format(crash=crash)), "frames")
    _holds(run)
    assert end_together(run, "p2", "p3")
