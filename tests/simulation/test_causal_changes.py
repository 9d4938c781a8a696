"""Whole runs of groups without total order that change: seeds that once failed, and one of each service."""

import pytest

from antiphon.campaign.families import FAMILIES
from antiphon.properties.judge import judge
from antiphon.scenario.read import parse_scenario
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table

FAMILY = FAMILIES["causal-changes"]


@pytest.mark.parametrize(
    "seed",
    [
        1862,  # a process that was still leaving left twice: M3
        2033,  # Relative, datagrams: a view overtook an own message that a formation held back (D8)
        2328,  # the same over streams
        9071,  # a process left in the nanosecond in which it installed its first view: M3
        8447,  # alone in a group, a process was told so, and of its leave, after a state of another group: L10
        2846,
    ],
)
def test_a_seed_that_once_failed(seed: int) -> None:
    run = simulate(FAMILY.draw(seed))
    assert run.quiet
    verdicts = judge(events_table(run.id, run.histories))
    assert not [verdict for verdict in verdicts if verdict.violations]


WAITS_FOR_A_STATE = """
name = "waits-for-a-state"
quiet = "2s"
duration = "20s"
[options]
suspect_after = "100ms"
idle_probe = "100ms"
time_silence = "5ms"
window = 4
frame_bytes = 64
[[group]]
name = "g"
members = ["p1", "p2", {others}]
service = "causal-relative"
[[group]]
name = "h"
members = ["p1", "p3", "p4"]
service = "causal-relative"
state_bytes = 4000
[network]
transport = "stream"
latency = {{ kind = "fixed", value = "10ms" }}
[[workload]]
group = "h"
senders = ["p4"]
messages = 20
interval = "10ms"
[[fault]]
at = "100ms"
kind = "join"
process = "p1"
group = "h"
via = ["p3"]
[[fault]]
at = "200ms"
kind = "leave"
process = "{leaver}"
group = "g"
[[fault]]
at = "1100ms"
kind = "join"
process = "{leaver}"
group = "g"
via = ["{via}"]
"""
"""p1 buffers the deliveries of both groups (E-84) for half a second, until it has the state of h."""


@pytest.mark.parametrize(("leaver", "via", "others"), [("p1", "p2", '"p5"'), ("p2", "p1", "")])
def test_l10_where_an_application_learns_later_than_its_peers_that_they_have_parted(
    leaver: str, via: str, others: str
) -> None:
    """The cores part at once. The application is told in the one order of all its groups, after the state of h."""
    run = simulate(parse_scenario(WAITS_FOR_A_STATE.format(leaver=leaver, via=via, others=others)))
    assert run.quiet
    log = run.histories[0].rows
    parted = max(
        row["time"] for row in log if row["kind"] == "transmit" and row.get("group") == "g" and row["time"] < 1e9
    )
    state = next(row["time"] for row in log if row["kind"] == "state")
    told = next(row for row in log if row.get("group") == "g" and row["time"] >= state)
    bound = 2 * (100 + 5) + 100
    assert told["kind"] == ("leave" if leaver == "p1" else "transitional")
    assert told["time"] == state > parted + bound * 1_000_000
    verdicts = judge(events_table(run.id, run.histories))
    assert not [verdict for verdict in verdicts if verdict.violations]
    assert all(verdict.opportunities for verdict in verdicts if verdict.property == "L10")


def test_the_family_draws_every_service_without_total_order() -> None:
    drawn = {FAMILY.draw(seed).group[0].service for seed in range(60)}
    causal = {"causal-slow", "causal-fast", "causal-relative", "causal-vector"}
    assert drawn == {*causal, "fifo", "reliable"}
