"""Runs that differ in their seed alone: means, and how sure they are."""

from pathlib import Path

import pyarrow as pa
import pytest

from antiphon.errors import TraceError
from antiphon.pipeline.figures.configurations import configurations, interval, student_t
from antiphon.pipeline.figures.measures import Interval
from antiphon.pipeline.figures.one_run import figures
from antiphon.trace.directory import RunRecord, write_index
from tests.support.datasets import of_run, table, two_members


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.706), (4, 2.776), (10, 2.228), (11, 2.201), (15, 2.131), (30, 2.042), (60, 2.000), (120, 1.980)],
)
def test_students_t_is_that_of_the_tables(degrees: int, quantile: float) -> None:
    assert student_t(degrees) == pytest.approx(quantile, abs=6e-4)


def test_an_interval_is_the_mean_and_half_its_width() -> None:
    told = interval([2.0, 4.0, 6.0])
    assert (told.count, told.mean, told.least, told.most) == (3, 4.0, 2.0, 6.0)
    assert told.half_width == pytest.approx(4.3027 * 2 / 3**0.5)
    assert interval([7]) == Interval(1, 7.0, None, 7, 7)


def record(run: str, seed: int) -> RunRecord:
    return RunRecord(run, "trial", seed, "0", "virtual", finished=True)


def scenario(seed: int, window: int) -> str:
    return f'name = "trial"\nseed = {seed}\n[options]\nwindow = {window}\n[[workload]]\nname = "w1"\npayload = 32\n'


def measured(**runs: int) -> pa.Table:
    """The figures of these runs; the rows of each are `later` than usual."""
    rows = {
        run: [{**row, "time": row["time"] + later} for row in of_run(two_members(), run)] for run, later in runs.items()
    }
    return pa.Table.from_pylist([{"run": run, **figures(table(own))} for run, own in rows.items()])


def test_runs_that_differ_in_their_seed_alone_are_one(tmp_path: Path) -> None:
    runs = {"r1": (1, 8), "r2": (1, 16), "r3": (2, 8), "untraced": (3, 8)}
    write_index(tmp_path, [(record(run, seed), scenario(seed, window)) for run, (seed, window) in runs.items()])
    narrow, wide = configurations(tmp_path, measured(r1=0, r2=70, r3=100))
    assert (narrow.scenario, narrow.settings, narrow.runs) == ("trial", {"options.window": 8}, ("r1", "r3"))
    assert (wide.settings, wide.runs) == ({"options.window": 16}, ("r2",))
    assert narrow.figures["latency_mean_ns"] == interval([1050.0, 1150.0])
    assert wide.figures["latency_mean_ns"].half_width is None
    assert "unstable_blocks_max" not in narrow.figures  # no gauge tells it


def test_events_alone_are_of_no_known_configuration(tmp_path: Path) -> None:
    assert configurations(tmp_path, measured(r1=0)) == ()


def test_a_scenario_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    write_index(tmp_path, [(record("r1", 1), "seed = ")])
    with pytest.raises(TraceError, match="the scenario of run r1 cannot be read"):
        configurations(tmp_path, measured(r1=0))
