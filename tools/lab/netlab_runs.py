"""A scenario between network namespaces: faults of the switch, and the plan for the members (`tools/netlab.py`)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from antiphon.node.remote import Place
from antiphon.scenario.model import Fixed, Scenario
from antiphon.scenario.read import judged
from antiphon.scenario.units import Duration
from tools.netlab import Fates, Lab

MS: Final = 1_000_000


def adapted(scenario: Scenario, loss: float, delay_ms: float) -> Scenario:
    """The same group, with the distances of its members and the losses of the links."""
    latency = Fixed(value=Duration(int(delay_ms * MS)))
    network = msgspec.structs.replace(scenario.network, latency=latency, loss=loss, duplicate=0.0, reorder=0.0)
    return judged(msgspec.structs.replace(scenario, network=network, site=(), path=()))


@contextmanager
def hosts(scenario: Scenario, jitter_ms: float) -> Iterator[tuple[dict[str, Place], Fates]]:
    """A host for each process, its links as the scenario's network says; gives where they are, and the links."""
    network = scenario.network
    assert isinstance(network.latency, Fixed)
    with Lab(len(scenario.processes), seed=scenario.seed) as lab:
        lab.all_links(delay=network.latency.value / 1e9, jitter=jitter_ms / 1e3, loss=network.loss)
        yield (
            {name: Place(lab.ip(rank), lab.prefix(rank)) for rank, name in enumerate(scenario.processes)},
            lab.switch.fates,
        )


def lossless(scenario: Scenario) -> Scenario:
    """The scenario for the members: they lose nothing, because the switch does that."""
    return msgspec.structs.replace(scenario, network=msgspec.structs.replace(scenario.network, loss=0.0))
