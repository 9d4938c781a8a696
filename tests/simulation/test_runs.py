"""Whole runs: judged from outside, repeated byte for byte, fed one by one and in batches."""

from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from antiphon.properties.judge import judge
from antiphon.properties.verdict import Verdict
from antiphon.scenario.model import Scenario
from antiphon.scenario.read import parse_scenario, read_scenario, with_seed
from antiphon.sim.run import Run, simulate
from antiphon.trace.table import events_table
from tests.simulation.families import fixed_group

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SEEDS = range(200)


def events(run: Run) -> pa.Table:
    return events_table(run.id, run.histories)


def broken(verdicts: list[Verdict]) -> list[str]:
    return [f"{verdict.property}: {verdict.example}" for verdict in verdicts if verdict.violations]


def check(scenario: Scenario) -> dict[str, int]:
    """Simulate and judge; gives the opportunities of each property."""
    run = simulate(scenario)
    verdicts = judge(events(run))
    assert run.quiet
    assert not broken(verdicts), f"seed {scenario.seed}"
    return {verdict.property: verdict.opportunities for verdict in verdicts}


def test_random_scenarios_keep_every_promise_and_give_them_a_chance() -> None:
    """A failing seed is replayed with `fixed_group(seed)`; it then becomes a test of its own."""
    chances = [check(fixed_group(seed)) for seed in SEEDS]
    for name in ("W", "D1", "D2", "D8", "O1", "O3", "O6", "L2", "L3"):
        assert sum(found[name] > 0 for found in chances) >= len(SEEDS) / 10, name


@pytest.mark.parametrize("seed", range(0, 200, 10))
def test_carrying_frames_instead_of_bytes_changes_nothing(seed: int) -> None:
    scenario = fixed_group(seed)
    assert events(simulate(scenario, "frames")).equals(events(simulate(scenario, "bytes")))


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    scenario = read_scenario(SCENARIOS / "troubled.toml")
    first = events(simulate(scenario))
    assert events(simulate(scenario)).equals(first)
    other = events(simulate(with_seed(scenario, 4)))
    assert not other.select(["time", "kind"]).equals(first.select(["time", "kind"]))


@pytest.mark.parametrize("wake", ["0s", "1ms", "30ms"])
@pytest.mark.parametrize("silence", ["0s", "10ms"])
def test_feeding_one_by_one_and_in_batches_keep_every_promise(wake: str, silence: str) -> None:
    text = f"""
name = "feeding"
[options]
time_silence = "{silence}"
[[group]]
name = "g"
members = 4
[hosts]
wake = "{wake}"
[[workload]]
group = "g"
messages = 60
interval = "3ms"
jitter = 0.9
"""
    assert check(parse_scenario(text))["D1"] == 4 * 4 * 60


def test_batches_cost_fewer_nulls() -> None:
    def nulls(wake: str) -> int:
        text = f"""
name = "batches"
[[group]]
name = "g"
members = 5
[hosts]
wake = "{wake}"
[[workload]]
group = "g"
messages = 100
interval = "3ms"
jitter = 0.9
"""
        kinds = events(simulate(parse_scenario(text))).column("detail").to_pylist()
        return sum('"null"' in detail and '"count"' in detail for detail in kinds if detail)

    assert nulls("10ms") < nulls("0s") / 2


def test_a_full_line_packs_messages_together() -> None:
    text = """
name = "packing"
[[group]]
name = "g"
members = 3
[network]
latency = { kind = "fixed", value = "1ms" }
bandwidth = "1Mbit"
[[workload]]
group = "g"
senders = ["p1"]
messages = 400
interval = "500us"
payload = 200
"""
    scenario = parse_scenario(text)
    check(scenario)
    table = events(simulate(scenario)).filter(pa.compute.field("kind") == "transmit")
    largest = max(table.column("payload_bytes").to_pylist())
    unpacked = msgspec.structs.replace(scenario, options=msgspec.structs.replace(scenario.options, packing=False))
    assert largest > 20 * 200
    assert simulate(unpacked).virtual_ns > simulate(scenario).virtual_ns


def test_a_paused_member_holds_everybody_up_until_it_resumes() -> None:
    text = """
name = "pause"
[[group]]
name = "g"
members = 3
[[workload]]
group = "g"
senders = ["p1"]
messages = 5
interval = "10ms"
[[fault]]
at = "0s"
until = "900ms"
kind = "pause"
process = "p3"
"""
    table = events(simulate(parse_scenario(text)))
    deliveries = table.filter(pa.compute.field("kind") == "deliver")
    assert deliveries.num_rows == 15
    assert min(deliveries.column("time").to_pylist()) == 900_000_000


def test_a_stalled_application_takes_its_deliveries_later_and_nobody_else_notices() -> None:
    text = """
name = "stall"
[[group]]
name = "g"
members = 3
[[workload]]
group = "g"
messages = 5
interval = "10ms"
[[fault]]
at = "0s"
until = "900ms"
kind = "stall"
process = "p3"
"""
    scenario = parse_scenario(text)
    check(scenario)
    deliveries = events(simulate(scenario)).filter(pa.compute.field("kind") == "deliver")
    times = {
        name: deliveries.filter(pa.compute.field("process") == name).column("time").to_pylist() for name in ("p1", "p3")
    }
    assert max(times["p1"]) < 200_000_000
    assert set(times["p3"]) == {900_000_000}


def test_a_member_that_never_resumes_is_no_member_of_the_stable_component() -> None:
    text = """
name = "for-ever"
[[group]]
name = "g"
members = 3
[[workload]]
group = "g"
messages = 5
interval = "10ms"
[[fault]]
at = "1s"
kind = "stall"
process = "p3"
"""
    run = simulate(parse_scenario(text))
    world = events(run).filter(pa.compute.field("kind") == "faults_end")
    assert world.column("detail").to_pylist() == ['{"components":[["p1","p2"]]}']


def test_replies_come_from_everyone_but_the_first_sender() -> None:
    text = """
name = "replies"
[[group]]
name = "g"
members = 4
[[workload]]
group = "g"
senders = ["p2"]
messages = 10
interval = "1ms"
replies = true
"""
    sends = events(simulate(parse_scenario(text))).filter(pa.compute.field("kind") == "send")
    senders = sends.column("process").to_pylist()
    assert {name: senders.count(name) for name in senders} == {"p1": 1, "p2": 10, "p3": 1, "p4": 1}


def test_a_run_that_is_cut_off_does_not_judge_liveness() -> None:
    text = """
name = "cut-off"
duration = "50ms"
[[group]]
name = "g"
members = 3
[[workload]]
group = "g"
messages = 100
interval = "5ms"
"""
    run = simulate(parse_scenario(text))
    outcomes = {verdict.property: verdict.outcome for verdict in judge(events(run))}
    assert not run.quiet
    assert (outcomes["L2"], outcomes["L3"], outcomes["O6"]) == ("vacuous", "vacuous", "pass")


def test_overlapping_faults_on_one_process_end_one_by_one() -> None:
    text = """
name = "overlap"
[[group]]
name = "g"
members = 2
[[workload]]
group = "g"
messages = 5
interval = "10ms"
[[fault]]
at = "0s"
until = "2s"
kind = "pause"
process = "p2"
[[fault]]
at = "100ms"
until = "200ms"
kind = "pause"
process = "p2"
"""
    deliveries = events(simulate(parse_scenario(text))).filter(pa.compute.field("kind") == "deliver")
    assert min(deliveries.column("time").to_pylist()) == 2_000_000_000


def test_a_paused_process_delivers_nothing_even_when_its_application_recovers() -> None:
    text = """
name = "pause-and-stall"
[[group]]
name = "g"
members = 2
[[workload]]
group = "g"
messages = 5
interval = "10ms"
[[fault]]
at = "0s"
until = "500ms"
kind = "stall"
process = "p2"
[[fault]]
at = "400ms"
until = "900ms"
kind = "pause"
process = "p2"
"""
    deliveries = events(simulate(parse_scenario(text))).filter(
        (pa.compute.field("kind") == "deliver") & (pa.compute.field("process") == "p2")
    )
    assert set(deliveries.column("time").to_pylist()) == {900_000_000}


def test_replies_wait_for_their_own_workload_only() -> None:
    text = """
name = "two-workloads"
[[group]]
name = "g"
members = 2
[[workload]]
group = "g"
senders = ["p1"]
messages = 5
interval = "1s"
replies = true
[[workload]]
group = "g"
senders = ["p1"]
messages = 5
interval = "10ms"
"""
    table = events(simulate(parse_scenario(text)))
    replies = table.filter((pa.compute.field("kind") == "send") & (pa.compute.field("process") == "p2"))
    assert [time > 5_000_000_000 for time in replies.column("time").to_pylist()] == [True]


@pytest.mark.parametrize(
    "slowness",
    [
        'network = { bandwidth = "1kbit", latency = { kind = "fixed", value = "1ms" } }',
        'hosts = { count = 1, service = "500ms" }',
        'fault = [{ kind = "delay", at = "0s", extra = "30s" }]',
    ],
    ids=["line", "CPU", "links"],
)
def test_a_run_cut_off_with_frames_under_way_is_not_quiet(slowness: str) -> None:
    text = f"""
name = "slow"
duration = "20s"
group = [{{ name = "g", members = 3 }}]
workload = [{{ group = "g", messages = 20, interval = "10ms", payload = 500 }}]
{slowness}
"""
    run = simulate(parse_scenario(text))
    assert not run.quiet
    assert not broken(judge(events(run)))
