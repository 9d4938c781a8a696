"""The shipped ring (Macedo94 Fig. 5.1): a causal order that says more in its stamps delivers earlier (§5.4-5.6)."""

from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from antiphon.pipeline.figures.measures import RunStatistics
from antiphon.pipeline.figures.statistics import statistics
from antiphon.properties.judge import judge
from antiphon.scenario.model import Scenario
from antiphon.scenario.read import read_scenario
from antiphon.sim.run import simulate
from antiphon.trace.directory import write_events
from antiphon.trace.table import events_table

RING = Path(__file__).parents[2] / "scenarios" / "ring"
ORDERS = ("slow", "relative", "fast", "vector")
LITTLE = 1.02
"""Relative and Fast see other numbers of nulls on the network, hence other latencies; this share is chance."""


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> dict[str, RunStatistics]:
    """The figures of each order, from one directory that holds all four runs."""
    directory = tmp_path_factory.mktemp("ring")
    ids = {}
    for order in ORDERS:
        run = simulate(read_scenario(RING / f"{order}.toml"))
        events = events_table(run.id, run.histories)
        assert run.quiet
        assert not [verdict for verdict in judge(events) if verdict.violations]
        write_events(events, directory, run.id)
        ids[run.id] = order
    return {ids[run.run]: run for run in statistics(spark, directory).runs if run.run is not None}


def test_the_four_differ_in_their_service_alone() -> None:
    def without_service(order: str) -> Scenario:
        scenario = read_scenario(RING / f"{order}.toml")
        assert {group.service for group in scenario.group} == {f"causal-{order}"}
        groups = tuple(msgspec.structs.replace(group, service="total") for group in scenario.group)
        return msgspec.structs.replace(scenario, name="ring", group=groups)

    assert len({without_service(order) for order in ORDERS}) == 1


def test_a_larger_stamp_buys_an_earlier_delivery(figures: dict[str, RunStatistics]) -> None:
    slow, relative, fast, vector = (figures[order].traffic.stamp_bytes_per_data_frame or 0.0 for order in ORDERS)
    assert slow < relative < fast <= vector
    slow, relative, fast, vector = (mean_latency_ns(figures[order]) for order in ORDERS)
    assert slow > 1.5 * relative
    assert fast <= LITTLE * relative
    assert vector == pytest.approx(fast)


def test_slow_pays_in_nulls_what_it_saves_in_stamps(figures: dict[str, RunStatistics]) -> None:
    slow, relative, fast = (figures[order].traffic for order in ("slow", "relative", "fast"))
    assert (slow.nulls_per_message or 0) > 1.5 * (fast.nulls_per_message or 0)
    assert (slow.header_bytes_per_message or 0) > (relative.header_bytes_per_message or 0)


def test_every_group_has_its_figures(figures: dict[str, RunStatistics]) -> None:
    for run in figures.values():
        stamps = [group.traffic.stamp_bytes_per_data_frame or 0.0 for group in run.groups]
        assert len(stamps) == 4
        assert min(stamps) <= (run.traffic.stamp_bytes_per_data_frame or 0.0) <= max(stamps)


def mean_latency_ns(run: RunStatistics) -> float:
    assert run.latency is not None
    return run.latency.mean_ns
