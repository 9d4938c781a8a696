"""The measures of Macedo94 §7.3, one active member of three, against the specification's reference values.

Those come from an event model of another hand: 500 or 1000 messages of 32 bytes, latency 2 ms, no service time. Our
runs end with one null of the sender more and with the two replies; hence a little is left open.
"""

from functools import cache

import pytest

from antiphon.pipeline.figures.one_run import Figures, figures
from antiphon.scenario.read import parse_scenario
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table

ONE_ACTIVE = """
name = "one-active"
duration = "500s"
options = {{ time_silence = "{silence}ms", packing = false, flow_control = 0, suspect_after = "0s", idle_probe = "0s" }}
group = [{{ name = "g", members = 3 }}]
network = {{ latency = {{ kind = "fixed", value = "2ms" }} }}
workload = [
  {{ group = "g", senders = ["p1"], messages = {messages}, interval = "{period}ms", payload = 32, replies = true }}
]
"""


@cache
def measured(silence: int, period: int, messages: int) -> Figures:
    text = ONE_ACTIVE.format(silence=silence, period=period, messages=messages)
    run = simulate(parse_scenario(text))
    assert run.quiet
    return figures(events_table(run.id, run.histories))


def ms(value_ns: float | None) -> float:
    assert value_ns is not None
    return value_ns / 1e6


@pytest.mark.parametrize(
    ("silence", "blocks", "nulls", "delay_ms"),
    [(50, 2, 1000, 52.7), (100, 3, 1000, 102.7), (200, 5, 500, 152.7), (400, 9, 250, 252.7), (800, 17, 126, 454.3)],
)
def test_blocks_nulls_and_delay_by_the_time_silence(silence: int, blocks: int, nulls: int, delay_ms: float) -> None:
    """Figures 7.3, 7.4 and 7.5: with a longer silence more blocks, fewer nulls, a longer delay."""
    told = measured(silence, 100, 500)
    assert told["unstable_blocks_max"] == blocks
    assert told["nulls"] == pytest.approx(nulls, abs=1)
    assert told["nulls_per_inactive_member"] == pytest.approx(nulls / 2, abs=1)
    assert ms(told["delay_overhead_ns"]) == pytest.approx(delay_ms, rel=0.005)


@pytest.mark.parametrize(
    ("period", "blocks", "delay_ms"), [(50, 5, 77.7), (25, 9, 65.2), (12, 18, 54.7), (6, 35, 54.8)]
)
def test_blocks_delay_and_throughput_by_the_period(period: int, blocks: int, delay_ms: float) -> None:
    """Figures 7.9, 7.10 and 7.12: the quicker the sender, the more blocks; without service time nothing queues."""
    told = measured(100, period, 1000)
    assert told["unstable_blocks_max"] == blocks
    assert ms(told["delay_overhead_ns"]) == pytest.approx(delay_ms, rel=0.005)
    assert told["first_sender_per_second"] == pytest.approx(1000 / period, rel=0.03)


def test_an_inactive_member_sends_one_null_per_silence_and_period() -> None:
    """Relation 2 of the specification: with p ≪ ts, about duration / (ts + p) nulls of each inactive member."""
    told = measured(100, 6, 1000)
    assert told["nulls_per_inactive_member"] == pytest.approx(1000 * 6 / (100 + 6), rel=0.05)
