"""Random runs of the control hierarchy, and one with many processes (docs/spec/intergroup.md 3)."""

import pytest

from tools.lab.hierarchy_load import measure, measure_flat
from tools.lab.hierarchy_runs import Run, play

SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS)
def test_stability_is_never_early_and_roles_settle(seed: int) -> None:
    judgement, log = play(seed)
    assert judgement.violations == [], "\n".join(log)
    assert judgement.counts["accepted"] > 0


def test_the_same_seed_gives_the_same_run() -> None:
    runs = [Run(7), Run(7)]
    for run in runs:
        run.play()
    one, other = runs
    assert one.log == other.log
    assert one.net.receptions == other.net.receptions
    assert one.found.counts == other.found.counts


def test_three_hundred_processes_keep_their_bandwidth_and_learn_what_is_stable() -> None:
    load = measure("growing, turns", 300, seconds=45)
    assert load.received_max <= 390_000
    assert load.refused_bytes == 0
    assert load.covered > 0.5
    assert load.delay_mean_s is not None
    assert load.delay_mean_s < 4.5  # three intervals (T10)
    assert load.received_mean < measure_flat(300, seconds=45).received_mean / 2
    assert 9 <= load.coordinators[-1] <= 35  # root of 300: a half of it, and twice


def test_a_small_bandwidth_is_never_exceeded() -> None:
    """The loops and the meter keep each second of each process and group within it (H14)."""
    load = measure("published", 60, seconds=45, bandwidth=4_000)
    assert 1_000 < load.received_max <= 4_000
