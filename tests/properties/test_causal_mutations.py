"""Seeded faults in runs of the causal services, with views that change and groups that overlap (properties.md 9)."""

import random
from functools import cache

import pytest

from tests.support.traces.causal_traces import good_causal_trace
from tests.support.traces.handmade import verdicts, violated
from tests.support.traces.mutations import CAUSAL_MUTATIONS, Log, Mutation
from tests.support.traces.scoped_oracle import Scoped

TRACES = 20


@cache
def good_log(seed: int) -> Log:
    return Log(good_causal_trace(seed))


def test_good_traces_raise_no_alarm() -> None:
    for seed in range(TRACES):
        assert violated(good_causal_trace(seed)) == set(), seed


def test_some_good_traces_lose_causes_with_their_senders() -> None:
    excused = 0
    for seed in range(TRACES):
        run = Scoped(good_causal_trace(seed))
        excused += any(
            run.causes(cause, effect)
            for process in run.logs
            for cause in set(run.sent) - set(run.delivered(process))
            if any(row["kind"] == "view" and row["group"] == cause[0] for row in run.rows[process])
            for effect in run.delivered(process)
        )
    assert excused > 5


def test_total_order_is_not_promised() -> None:
    found = verdicts(good_causal_trace(1))
    outcomes = {name: {told.outcome for (other, _), told in found.items() if other == name} for name, _ in found}
    assert all(outcomes[name] == {"not promised"} for name in ("O5", "O5x", "O6", "O8"))
    assert all("not promised" not in outcomes[name] for name in ("D8", "O1", "O2", "O3", "O4", "L2"))


@pytest.mark.parametrize("mutation", CAUSAL_MUTATIONS, ids=lambda mutation: mutation.name)
def test_each_seeded_fault_is_caught(mutation: Mutation) -> None:
    tried = 0
    for seed in range(500):
        mutant = mutation.apply(good_log(seed), random.Random(seed))
        if mutant is not None:
            raised = violated(mutant)
            assert mutation.is_caught(raised), f"seed {seed} raised {sorted(raised)}"
            tried += 1
        if tried == TRACES:
            return
    pytest.fail(f"only {tried} traces offered a place for it")
