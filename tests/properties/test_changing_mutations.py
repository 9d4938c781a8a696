"""Groups that change: good traces raise no alarm, and every seeded fault is caught (docs/spec/properties.md 9)."""

import random
from functools import cache

import pytest

from antiphon.properties.families import PROMISES
from antiphon.properties.promises import JUDGED
from tests.support.traces.changing_mutations import CHANGING_MUTATIONS, details, entries, with_detail
from tests.support.traces.changing_traces import changing_trace
from tests.support.traces.handmade import verdicts, violated
from tests.support.traces.mutations import Log, Mutation

TRACES = 10


@cache
def good_log(seed: int) -> Log:
    return Log(changing_trace(seed))


@pytest.mark.parametrize("seed", range(0, 150, 50))
def test_good_traces_raise_no_alarm(seed: int) -> None:
    for number in range(seed, seed + 50):
        assert violated(changing_trace(number)) == set()


def test_good_traces_give_the_properties_opportunities() -> None:
    seen = {
        verdict.property
        for seed in range(30)
        for verdict in verdicts(changing_trace(seed)).values()
        if verdict.opportunities
    }
    # They have no second group, no flow control, no votes, no requests, and no run in which nothing happens.
    elsewhere = {"O5x", "F1", "F2", "F3", "L7", "L9", "M12", "L11", "D14"}
    assert seen >= (set(JUDGED) & PROMISES["newtop", "total"]) - elsewhere
    assert not seen & elsewhere


@pytest.mark.parametrize("mutation", CHANGING_MUTATIONS, ids=lambda mutation: mutation.name)
def test_each_seeded_fault_is_caught(mutation: Mutation) -> None:
    tried = 0
    for seed in range(1000):
        mutant = mutation.apply(good_log(seed), random.Random(seed))
        if mutant is not None:
            raised = violated(mutant)
            assert mutation.is_caught(raised), f"seed {seed} raised {sorted(raised)}"
            tried += 1
        if tried == TRACES:
            return
    pytest.fail(f"only {tried} traces offered a place for it")


def test_places_of_no_class_are_ignored() -> None:
    """A trace may say that classes are alike that do not exist."""
    log = next(log for log in map(good_log, range(100)) if entries(log))
    told = details(log)
    wrong = {"alike": [[99, -3, "x", [0]], 5]}
    assert violated(with_detail(log, {stay.at: told[stay.at] | wrong for stay in entries(log)})) == set()
