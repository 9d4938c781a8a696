"""Distributions that can be added up: exact, and in bins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.pipeline.figures.spreads import Spread, binned

VALUES = st.lists(st.integers(-(2**40), 2**62), min_size=1, max_size=60)


def spread(*parts: list[int], exact: bool) -> Spread:
    whole = Spread(exact=exact)
    for part in parts:
        own = Spread(exact=exact)
        own.add(np.array(part, np.int64))
        whole.merge(Spread.unpacked(own.packed()))
    return whole


@given(st.lists(st.lists(st.integers(0, 2**40), max_size=30), min_size=1, max_size=80))
def test_an_exact_spread_has_the_percentiles_of_all_values(parts: list[list[int]]) -> None:
    values = [value for part in parts for value in part]
    latency = spread(*parts, exact=True).latency()
    if not values:
        assert latency is None
        return
    assert latency is not None
    assert (latency.count, latency.max_ns) == (len(values), max(values))
    assert latency.mean_ns == pytest.approx(np.mean(values))
    found = (latency.p50_ns, latency.p90_ns, latency.p99_ns)
    assert found == pytest.approx(np.quantile(values, (0.5, 0.9, 0.99)))


@given(VALUES)
def test_a_bin_is_at_most_a_two_thousandth_away(values: list[int]) -> None:
    given = np.array(values, np.int64)
    found = binned(given)
    wrong = np.abs(found - given) > np.maximum(np.abs(given) / 2_000, 0)
    assert not wrong.any(), (given[wrong], found[wrong])
    small = given[np.abs(given) < 2_048]
    assert (binned(small) == small).all()


@given(VALUES)
def test_exact_values_can_be_counted_in_bins(values: list[int]) -> None:
    there = Spread(exact=False)
    there.merge(spread(values, exact=True))
    assert there.latency() == spread(values, exact=False).latency()
