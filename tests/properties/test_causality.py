"""Causality does not depend on time: where clocks prove nothing, the logs give the same result."""

import numpy as np
import pyarrow as pa
import pytest

from antiphon.properties.tables.causality import establish
from antiphon.properties.tables.history import History, load
from antiphon.properties.tables.past import Past
from tests.support.traces.handmade import good_trace, ring


def at_once(events: pa.Table) -> pa.Table:
    """The same events, all at one time."""
    place = events.schema.get_field_index("time")
    return events.set_column(place, events.schema.field(place), pa.array(np.zeros(len(events), np.int64)))


def past(history: History) -> Past:
    return Past(history, establish(history), np.zeros(len(history.groups), np.int64))


@pytest.mark.parametrize("events", [good_trace(1), good_trace(2), ring()])
def test_without_clocks_the_past_is_the_same(events: pa.Table) -> None:
    timed, untimed = load(events), load(at_once(events))
    assert establish(timed).circles == establish(untimed).circles == []
    assert np.array_equal(establish(timed).row, establish(untimed).row)
    assert np.array_equal(past(timed).reach, past(untimed).reach)


def test_the_past_is_what_chains_of_causes_reach() -> None:
    """x -> m exactly if x < reach[m, stream of x], against a closure over direct causes."""
    for seed in range(1, 6):
        history = load(good_trace(seed))
        found = past(history)
        total = len(history.messages.number)
        before = np.zeros((total, total), np.bool_)
        cause, effect = found.direct()
        before[cause, effect] = True
        for middle in range(total):
            before |= before[:, [middle]] & before[[middle], :]
        reached = np.arange(total)[:, None] < found.reach[:, found.stream].T
        assert np.array_equal(before & ~np.eye(total, dtype=np.bool_), reached & ~np.eye(total, dtype=np.bool_))
