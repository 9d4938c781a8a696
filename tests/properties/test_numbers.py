"""A column with nulls becomes the same numbers as one value after the other, whatever its type, slice and chunks."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.properties.tables.columns import NO_CLOCK
from antiphon.properties.tables.numbers import whole

TYPES = {pa.int64(): 2**63, pa.int32(): 2**31}


@pytest.mark.parametrize("type_", TYPES)
@given(data=st.data())
def test_nulls_become_the_number_asked_for(type_: pa.DataType, data: st.DataObject) -> None:
    limit = TYPES[type_]
    numbers = st.one_of(st.none(), st.integers(-3, 3), st.integers(-limit, limit - 1))
    chunks = data.draw(st.lists(st.lists(numbers, max_size=20), max_size=3))
    skipped = data.draw(st.integers(0, 9))
    null = data.draw(st.sampled_from([-1, 0, NO_CLOCK, 10**18]))
    column = pa.chunked_array([pa.array(each, type_)[skipped:] for each in chunks], type_)
    expected = [null if value is None else value for value in column.to_pylist()]
    assert whole(column, null).tolist() == expected
    for chunk in column.chunks:
        assert whole(chunk, null).tolist() == [null if value is None else value for value in chunk.to_pylist()]
