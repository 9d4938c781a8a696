"""The minimum of a vector whose entries come and go."""

import random

from antiphon.protocols.acks.acknowledging.minimum import Minimum
from antiphon.types import ProcessId


def test_against_the_builtin() -> None:
    chance, minimum, model = random.Random(1), Minimum(), dict[ProcessId, int]()
    for _ in range(20_000):
        key = ProcessId(f"p{chance.randrange(9)}")
        if key not in model:
            model[key] = chance.randrange(100)
            minimum.add(key, model[key])
        elif chance.random() < 0.05:
            del model[key]
            minimum.remove(key)
        else:
            value = chance.randrange(100) + chance.choice([0, 0, model[key]])
            model[key] = max(model[key], value)
            minimum.raise_to(key, value)
        assert minimum.smallest == min(model.values(), default=None)
        assert len(minimum) == len(model)
        assert {*minimum} == {*model}


def test_a_round_of_n_entries_costs_n_log_n() -> None:
    """Berket98 §4: the number of steps per period that the paper counts, not N squared."""
    cost = {}
    for size in (16, 256):
        minimum = Minimum()
        for number in range(size):
            minimum.add(ProcessId(f"p{number}"), 0)
        before = minimum.steps
        for period in range(1, 11):
            for number in range(size):
                minimum.raise_to(ProcessId(f"p{number}"), period * 1_000 + number)
                assert minimum.smallest is not None
        cost[size] = (minimum.steps - before) / 10
    assert cost[16] <= 16 * 3 * 5
    assert cost[256] <= 256 * 3 * 9
