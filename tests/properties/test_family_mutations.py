"""Seeded faults in runs of the classic and the acknowledgment family; and runs without faults, which raise nothing."""

import random
from collections.abc import Callable
from functools import cache

import pyarrow as pa
import pytest

from antiphon.properties.families import PROMISES
from antiphon.properties.promises import JUDGED
from tests.support.traces import acks_mutations, classic_mutations
from tests.support.traces.acks_traces import good_acks_trace
from tests.support.traces.classic_traces import SERVICES, good_classic_trace
from tests.support.traces.handmade import verdicts, violated
from tests.support.traces.mutations import Log, Mutation

TRACES = 6
"""Of each fault; `python -m tests.properties.mutants` has more."""
SEEDS_MAX = 1500


@cache
def log_of(seed: int, protocol: str, variant: str) -> Log:
    good = good_classic_trace if protocol == "classic" else good_acks_trace
    return Log(good(seed, variant))


def is_always_caught(mutation: Mutation, protocol: str, variants: tuple[str, ...]) -> None:
    tried = 0
    for seed, variant in ((seed, variant) for seed in range(SEEDS_MAX) for variant in variants):
        mutant = mutation.apply(log_of(seed, protocol, variant), random.Random(seed))
        if mutant is not None:
            raised = violated(mutant)
            assert mutation.is_caught(raised), f"seed {seed} of {variant} raised {sorted(raised)}"
            tried += 1
        if tried == TRACES:
            return
    pytest.fail(f"only {tried} traces offered a place for it")


@pytest.mark.parametrize("fault", classic_mutations.CLASSIC_FAULTS, ids=lambda fault: fault.mutation.name)
def test_each_fault_in_a_classic_run_is_caught(fault: classic_mutations.Fault) -> None:
    is_always_caught(fault.mutation, "classic", fault.services)


@pytest.mark.parametrize("fault", acks_mutations.ACKS_FAULTS, ids=lambda fault: fault.mutation.name)
def test_each_fault_in_a_run_with_acknowledgments_is_caught(fault: acks_mutations.Fault) -> None:
    is_always_caught(fault.mutation, "acks", fault.stability)


@pytest.mark.parametrize("service", SERVICES)
def test_good_classic_runs_raise_no_alarm(service: str) -> None:
    raise_no_alarm("classic", service, lambda seed: good_classic_trace(seed, service))


@pytest.mark.parametrize("stability", ["own", "all"])
def test_good_runs_with_acknowledgments_raise_no_alarm(stability: str) -> None:
    raise_no_alarm("acks", "fifo", lambda seed: good_acks_trace(seed, stability))


def raise_no_alarm(protocol: str, service: str, good: Callable[[int], pa.Table]) -> None:
    """No alarm, and every promised property has an opportunity."""
    seen: set[str] = set()
    promised = (PROMISES[protocol, service] & set(JUDGED)) - {"D14", "L10"}  # no requests, no periods told
    for seed in range(100):
        if seed >= 25 and seen == promised:
            return
        found = verdicts(good(seed))
        assert not [verdict for verdict in found.values() if verdict.violations], seed
        seen |= {name for (name, _), verdict in found.items() if verdict.opportunities}
    assert seen == promised
