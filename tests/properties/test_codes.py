"""Counting gives the same results as sorting and searching, for dense, sparse, negative and no values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.properties.checks.flow import _least_of_largest
from antiphon.properties.tables.codes import IntArray, Ranks, coded, distinct, firsts, parts, sorting

values = st.lists(
    st.one_of(st.integers(0, 30), st.integers(-5, 70_000), st.integers(-(2**62), 2**62)), max_size=40
).map(lambda numbers: np.array(numbers, np.int64))


@settings(deadline=None)
@given(values)
def test_distinct_values_and_their_places(numbers: IntArray) -> None:
    found, first, place = np.unique(numbers, return_index=True, return_inverse=True)
    assert distinct(numbers).tolist() == found.tolist()
    assert [column.tolist() for column in coded(numbers)] == [found.tolist(), place.tolist()]
    assert firsts(numbers).tolist() == first.tolist()


@settings(deadline=None)
@given(values)
def test_sorting_is_stable(numbers: IntArray) -> None:
    assert sorting(numbers).tolist() == np.argsort(numbers, kind="stable").tolist()
    assert [(code, at.tolist()) for code, at in parts(numbers)] == [
        (code, np.flatnonzero(numbers == code).tolist()) for code in np.unique(numbers).tolist()
    ]


@settings(deadline=None)
@given(values, values)
def test_ranks(numbers: IntArray, asked: IntArray) -> None:
    ranks = Ranks(np.sort(numbers))
    assert ranks.below(asked).tolist() == [int((numbers < each).sum()) for each in asked]
    assert ranks.upto(asked).tolist() == [int((numbers <= each).sum()) for each in asked]


@pytest.mark.parametrize("extreme", [-(2**63), 2**63 - 1])
def test_ranks_of_the_extremes(extreme: int) -> None:
    ranks = Ranks(np.arange(5))
    expected = 5 if extreme > 0 else 0
    assert ranks.below(np.array([extreme])).tolist() == ranks.upto(np.array([extreme])).tolist() == [expected]


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 4))
def test_the_least_of_the_largest_in_any_order(numbers: list[int], count: int) -> None:
    """For a stream that counts up no heap is needed; for any other the result must be the same."""
    for stream in (numbers, sorted(numbers)):
        least = _least_of_largest(np.array(stream, np.int64), count).tolist()
        for place, found in enumerate(least):
            largest = sorted(stream[:place])[-count:]
            assert found == (largest[0] if len(largest) == count else np.iinfo(np.int64).min)
