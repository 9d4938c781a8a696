"""The checkers against naive ones that compare all pairs, on random traces that are mostly wrong."""

import random
import re

import pytest

from tests.support.traces.handmade import verdict, verdicts
from tests.support.traces.order_oracle import Naive, wild_trace


@pytest.mark.parametrize("block", range(5))
def test_checkers_agree_with_naive_ones(block: int) -> None:
    for seed in range(block * 30, block * 30 + 30):
        events = wild_trace(random.Random(seed))
        naive, found = Naive(events), verdicts(events)
        unsent = any(mid not in naive.sent for log in naive.logs.values() for _, mid, _ in log)
        integrity = any(found["D1", group].violations for group in ("a", "b", "c") if ("D1", group) in found)
        assert integrity == (unsent or naive.circular()), seed
        assert bool(found["O6", None].violations) == naive.cyclic_order(), seed
        if not naive.circular():
            assert found["O3", None].violations == naive.late(), seed
            assert found["O3", None].opportunities == naive.dependent(), seed


def test_wild_traces_are_of_every_sort() -> None:
    naive = [Naive(wild_trace(random.Random(seed))) for seed in range(300)]
    assert sum(run.circular() for run in naive) > 5
    assert sum(run.cyclic_order() for run in naive) > 50
    assert sum(bool(run.late()) for run in naive if not run.circular()) > 50


def test_the_witness_of_total_order_is_a_cycle() -> None:
    for seed in range(150):
        events = wild_trace(random.Random(seed))
        example = verdict(events, "O6").example
        if example is not None:
            naive, mids = Naive(events), [as_mid(name) for name in example.messages]
            for process, before, then in zip(example.processes, mids, [*mids[1:], mids[0]], strict=True):
                log = naive.delivered(process)
                assert log.index(before) < log.index(then), seed


def as_mid(name: str) -> tuple[str, str, int]:
    group, sender, number = re.split("[/:]", name)
    return group, sender, int(number)
