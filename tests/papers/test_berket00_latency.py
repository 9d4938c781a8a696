"""Berket00 §7.1.2: the latency of group timestamp order without loss.

From docs/spec/experiments-intergroup.md 3; erratum X1.
"""

import pytest

from tools.lab.intergroup_latency import IDEAL, LONGEST_MS, means, worst_share


@pytest.mark.parametrize(("senders", "runs"), [(2, 100), (4, 50), (8, 15), (16, 6)])
def test_means_are_those_of_an_ideal_network(senders: int, runs: int) -> None:
    mean, median, longest = means(senders, runs)
    assert mean == pytest.approx(IDEAL[senders][0], rel=0.03)
    assert median == pytest.approx(IDEAL[senders][1], rel=0.04)
    assert longest <= LONGEST_MS + 0.01


def test_no_message_takes_longer_than_the_corrected_bound_and_some_nearly_as_long() -> None:
    shares = [worst_share(seed) for seed in range(15)]
    assert 0.97 < max(shares) <= 1
