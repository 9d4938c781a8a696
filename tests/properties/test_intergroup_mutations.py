"""Every seeded fault in a run of InterGroup is found by its checker (properties.md 9), at senders and at receivers."""

import random
from functools import cache

import pytest

from antiphon.properties.families import PROMISES
from antiphon.properties.promises import JUDGED
from tests.support.traces.handmade import verdicts, violated
from tests.support.traces.intergroup_mutations import INTERGROUP_MUTATIONS
from tests.support.traces.intergroup_traces import good_intergroup_trace
from tests.support.traces.mutations import Log, Mutation

SEEDS = 80
TRACES = 2
RARE = 40
"""After this number of seeds one trace is enough: places for this fault are rare, and each run takes long."""
ROWS_MAX = 20_000
"""Longer runs show nothing more, and take long."""


@cache
def good_log(seed: int) -> Log:
    return Log(good_intergroup_trace(seed))


def test_good_runs_raise_no_alarm_and_put_every_promise_to_the_test() -> None:
    seen: set[str] = set()
    promised = {name for (protocol, _), names in PROMISES.items() if protocol == "intergroup" for name in names}
    for seed in range(60):
        found = verdicts(good_intergroup_trace(seed))
        assert not [verdict for verdict in found.values() if verdict.violations], seed
        seen |= {name for (name, _), verdict in found.items() if verdict.opportunities}
        if seed >= 10 and seen == promised & set(JUDGED):
            return
    assert seen == promised & set(JUDGED)


@pytest.mark.parametrize("mutation", INTERGROUP_MUTATIONS, ids=lambda mutation: mutation.name)
def test_each_seeded_fault_is_caught(mutation: Mutation) -> None:
    tried = 0
    for seed in range(SEEDS):
        if good_intergroup_trace(seed).num_rows > ROWS_MAX:
            continue
        mutant = mutation.apply(good_log(seed), random.Random(seed))
        if mutant is not None:
            raised = violated(mutant)
            assert mutation.is_caught(raised), f"seed {seed} raised {sorted(raised)}"
            tried += 1
        if tried == TRACES or (tried and seed >= RARE):
            return
    pytest.fail(f"only {tried} traces offered a place for it")
