from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.vectors import MinVector

updates = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30)), max_size=60)


@given(updates)
def test_minimum_is_always_the_minimum_and_entries_only_rise(steps: list[tuple[int, int]]) -> None:
    vector, model = MinVector(5), [0] * 5
    for rank, value in steps:
        vector.raise_to(rank, value)
        model[rank] = max(model[rank], value)
        assert vector.values == model
        assert vector.minimum == min(model)
