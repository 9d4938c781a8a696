"""Consensus over algorithm A: all live processes decide once, the same proposed value (Notes; N4)."""

from typing import Final

import pytest

from antiphon.core.effects import Deliver
from antiphon.protocols.classic.consensus import Consensus, Decide
from tests.support.classic_cluster import GROUP, ClassicCluster, Shape, run_schedule

SEEDS: Final = 400


def reach_consensus(cluster: ClassicCluster) -> dict[str, Consensus]:
    """Put the adapter in front of every core, so that each message is a proposal."""
    adapters = {name: Consensus(core, GROUP) for name, core in cluster.cores.items()}
    for name, adapter in adapters.items():
        cluster.drains[name] = adapter.drain
    return adapters


def test_the_first_delivery_decides_and_no_other() -> None:
    cluster = ClassicCluster("p", "q")
    adapters = reach_consensus(cluster)
    adapters["p"].propose(b"tea", 0)
    adapters["q"].propose(b"coffee", 0)
    for name in cluster.names:
        cluster.settle(name)
    cluster.move_all()
    assert adapters["p"].decision == adapters["q"].decision == cluster.decided["p"][0]
    assert [len(cluster.decided[name]) for name in cluster.names] == [1, 1]
    kinds = [type(effect) for effect in cluster.effects["p"] if isinstance(effect, Deliver | Decide)]
    assert kinds == [Deliver, Decide, Deliver]


def _prepare(cluster: ClassicCluster) -> None:
    reach_consensus(cluster)


@pytest.mark.parametrize("streams", [False, True], ids=["datagrams", "streams"])
def test_agreement_under_random_schedules_with_crashes(streams: bool) -> None:
    decided = 0
    for seed in range(SEEDS):
        cluster = run_schedule(seed, Shape("total", streams=streams), prepare=_prepare)
        decisions = {tuple(cluster.decided[name]) for name in cluster.survivors}
        assert len(decisions) == 1, seed
        proposals = {(frame.payloads[0], frame.sender) for frame in cluster.sent.values()}
        for each in cluster.decided.values():
            assert len(each) <= 1, seed
            assert all((decision.value, decision.proposer) in proposals for decision in each), seed
        if any(message.origin not in cluster.crashed for message in cluster.sent):
            assert decisions != {()}, seed  # termination: a live process has proposed
            decided += 1
    assert decided > SEEDS // 2
