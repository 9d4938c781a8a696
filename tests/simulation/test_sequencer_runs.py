"""Whole runs with sequencers: their traces, and seeds that once failed."""

from typing import Any

import pytest

from antiphon.campaign.families import FAMILIES
from antiphon.properties.judge import judge
from antiphon.scenario.read import parse_scenario
from antiphon.sim.run import Run, simulate
from antiphon.trace.table import events_table

MIXED = """
name = "mixed"
quiet = "1200ms"
options = { suspect_after = "100ms", idle_probe = "0s" }
group = [
  { name = "x", members = ["a", "b", "c"], mode = "asymmetric" },
  { name = "y", members = ["b", "c", "d"] },
]
workload = [
  { group = "x", messages = 10, interval = "5ms" },
  { group = "y", messages = 10, interval = "5ms" },
]
"""


def rows(run: Run, kind: str, process: str | None = None) -> list[dict[str, Any]]:
    return [
        {**row, "process": history.process}
        for history in run.histories
        for row in history.rows
        if row["kind"] == kind and process in (None, history.process)
    ]


def broken(run: Run) -> list[str]:
    return [verdict.property for verdict in judge(events_table(run.id, run.histories)) if verdict.violations]


def test_the_sender_of_a_message_is_its_origin_and_the_orderer_its_sequencer() -> None:
    run = simulate(parse_scenario(MIXED))
    delivered = [row for row in rows(run, "deliver") if row["group"] == "x"]
    assert {row["sender"] for row in delivered} == {"a", "b", "c"}
    assert {row["orderer"] for row in delivered} == {"a"}
    assert {row["orderer"] for row in rows(run, "deliver") if row["group"] == "y"} == {None}
    assert len(delivered) == 3 * 30
    sends = [row for row in rows(run, "send", "b") if row["group"] == "x"]
    assert [row["number"] for row in sends] == [*range(10)]


def test_the_start_row_tells_the_mode() -> None:
    run = simulate(parse_scenario(MIXED))
    (start,) = rows(run, "start", "b")
    assert '"x":{"members":["a","b","c"],"mode":"asymmetric"' in start["detail"]
    assert start["detail"].count('"mode"') == 1


def test_a_sequencer_that_crashes_is_followed_by_the_next() -> None:
    crash = 'fault = [{ kind = "crash", process = "a", at = "30ms" }]\n'
    run = simulate(parse_scenario(MIXED + crash))
    assert run.quiet
    assert broken(run) == []
    assert {row["orderer"] for row in rows(run, "deliver", "c") if row["group"] == "x"} == {"a", "b"}


@pytest.mark.parametrize(
    ("seed", "why"),
    [
        (90, "where a view changes took a place in the sequencer's window (F1)"),
        (164, "likewise"),
        (1205, "an open window, and no sequencer to submit to: an endless drain"),
        (1788, "a member that was excluded skipped places, and took the gap in the numbers for a violation"),
        (1857, "a new sequencer showed life by the number of the cut before it"),
        (1946, "likewise, on streams"),
        (2687, "signs of life were requested and acknowledged, and a member that missed them for a while seemed deaf"),
    ],
)
def test_seeds_that_failed_once(seed: int, why: str) -> None:
    run = simulate(FAMILIES["sequencer"].draw(seed))
    assert run.quiet
    assert broken(run) == [], why
