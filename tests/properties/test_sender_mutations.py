"""Sender groups that change: good runs raise no alarm, and every seeded fault is caught (docs/spec/properties.md 9)."""

import random
from functools import cache

import pytest

from antiphon.properties.families import PROMISES
from antiphon.properties.promises import JUDGED
from tests.support.traces.handmade import verdicts, violated
from tests.support.traces.mutations import Log, Mutation
from tests.support.traces.sender_mutations import SENDER_MUTATIONS, changing_senders_trace, judged_in

SEEDS = 60
TRACES = 2


@cache
def good_log(seed: int) -> Log:
    return Log(changing_senders_trace(seed))


def test_good_runs_raise_no_alarm_and_put_every_promise_to_the_test() -> None:
    seen = set()
    for seed in range(25):
        found = verdicts(changing_senders_trace(seed))
        assert not [verdict for verdict in found.values() if verdict.violations], seed
        seen |= {name for (name, _), verdict in found.items() if verdict.opportunities}
    assert seen == (PROMISES["intergroup", "total"] & {*JUDGED}) - {"L9"}  # every run has faults


@pytest.mark.parametrize("mutation", SENDER_MUTATIONS, ids=lambda mutation: mutation.name)
def test_each_seeded_fault_is_caught(mutation: Mutation) -> None:
    tried = 0
    for seed in range(SEEDS):
        mutant = mutation.apply(good_log(seed), random.Random(seed))
        if mutant is not None and all(wanted & judged_in(seed) for wanted in mutation.one_of):
            raised = violated(mutant)
            assert mutation.is_caught(raised), f"seed {seed} raised {sorted(raised)}"
            tried += 1
        if tried == TRACES:
            return
    pytest.fail(f"only {tried} traces offered a place for it")
