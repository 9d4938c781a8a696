"""The papers' flow-control experiment (Macedo95 Figs 2, 3 = Macedo94 Figs 8.2, 8.3): trends, not values.

One member of six sends faster than three hosts can serve. Maximum unstable blocks and average delay are those of
experiments-newtop.md 1: the delay of the sender's own messages from transmission to delivery, without the time they
waited for permission.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean

import msgspec
import pytest

from antiphon.properties.judge import judge
from antiphon.scenario.model import Scenario
from antiphon.scenario.read import read_scenario
from antiphon.sim.run import Run, simulate
from antiphon.trace.table import events_table

SCENARIOS = Path(__file__).parents[2] / "scenarios"
WINDOW = 50
SENDER = "p1"


@dataclass(frozen=True, slots=True)
class Experiment:
    """The values of one run that the figures show."""

    unstable_blocks: int
    """The most at any member."""
    frames_of_sender: int
    delay_ns: float
    quiet: bool
    violated: tuple[str, ...]


@cache
def experiment(algorithm: int) -> Experiment:
    """The figures' workload under one algorithm, 0 for none."""
    run = simulate(scenario(algorithm))
    verdicts = judge(events_table(run.id, run.histories))
    return Experiment(
        unstable_blocks=highest(run, "unstable_blocks"),
        frames_of_sender=highest(run, "unstable_frames_of_sender"),
        delay_ns=own_delay_ns(run),
        quiet=run.quiet,
        violated=tuple(verdict.property for verdict in verdicts if verdict.violations),
    )


def scenario(algorithm: int) -> Scenario:
    """As shipped without flow control and with algorithm 1; the others are the same under another number."""
    if algorithm == 0:
        return read_scenario(SCENARIOS / "macedo95-figure-2.toml")
    shipped = read_scenario(SCENARIOS / "macedo95-figure-3.toml")
    return msgspec.structs.replace(shipped, options=msgspec.structs.replace(shipped.options, flow_control=algorithm))


def highest(run: Run, gauge: str) -> int:
    rows = [row for history in run.histories for row in history.rows if row["kind"] == "gauge"]
    told = [json.loads(row["detail"]) for row in rows]
    return max(int(detail["value"]) for detail in told if detail["name"] == gauge)


def own_delay_ns(run: Run) -> float:
    """From the transmission of a message of the sender to its delivery there."""
    (rows,) = (history.rows for history in run.histories if history.process == SENDER)
    sent = {row["number"]: row["time"] for row in rows if row["kind"] == "send"}
    return fmean(
        row["time"] - sent[row["number"]] for row in rows if row["kind"] == "deliver" and row["sender"] == SENDER
    )


def test_the_two_figures_differ_in_flow_control_alone() -> None:
    off, on = scenario(0), scenario(1)
    assert (on.options.flow_control, on.options.window) == (1, WINDOW)
    same = msgspec.structs.replace(off.options, flow_control=1, window=WINDOW)
    assert msgspec.structs.replace(off, name=on.name, options=same) == on


@pytest.mark.parametrize("algorithm", [0, 1, 2, 3])
def test_every_promise_holds_under_overload(algorithm: int) -> None:
    found = experiment(algorithm)
    assert found.quiet
    assert not found.violated


def test_figure_2_without_flow_control_unstable_blocks_pile_up() -> None:
    assert experiment(0).unstable_blocks > WINDOW


def test_figure_3_algorithm_1_keeps_them_within_the_window() -> None:
    assert 0.8 * WINDOW < experiment(1).unstable_blocks <= WINDOW


def test_figure_3_the_delay_is_a_fraction_of_that_of_figure_2() -> None:
    assert experiment(1).delay_ns < experiment(0).delay_ns / 4


@pytest.mark.parametrize("algorithm", [2, 3])
def test_algorithms_2_and_3_keep_their_own_bound(algorithm: int) -> None:
    """At most N unstable frames of one sender (docs/spec/flow-control.md 4, I5); the window is used up, too."""
    assert 0.8 * WINDOW < experiment(algorithm).frames_of_sender <= WINDOW
