"""Whole runs of the classic multicasts and of the acknowledgment protocols, judged from outside."""

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from antiphon.campaign.families import FAMILIES
from antiphon.properties.judge import judge
from antiphon.scenario.model import Scenario
from antiphon.scenario.read import parse_scenario, read_scenario, with_seed
from antiphon.sim.run import Run, simulate
from antiphon.trace.table import events_table

SCENARIOS = Path(__file__).parents[2] / "scenarios"
LADDER = SCENARIOS / "ladder"
ONCE_FAILED = {
    "classic": (29, 216, 284),
    "two-phase": (),
    "combined": (),
    "synchronous": (),
    "acks": (4, 5, 29, 109, 328, 521),
}
"""Seeds that failed, did not settle or broke a promise at one time."""


def events(run: Run) -> pa.Table:
    return events_table(run.id, run.histories)


def rows(run: Run, kind: str) -> list[dict[str, object]]:
    return [row for history in run.histories for row in history.rows if row["kind"] == kind]


def violated(run: Run, *required: str) -> set[str]:
    return {verdict.property for verdict in judge(events(run), frozenset(required)) if verdict.violations}


def told(row: dict[str, object]) -> dict[str, object]:
    detail = json.loads(str(row["detail"]))
    assert isinstance(detail, dict)
    return detail


@pytest.mark.parametrize(
    ("family", "runs"), [("classic", 40), ("two-phase", 50), ("combined", 30), ("synchronous", 25), ("acks", 12)]
)
def test_random_scenarios_keep_every_promise(family: str, runs: int) -> None:
    """A few seeds of the campaign; a failing one is `FAMILIES[family].draw(seed)`, and becomes one of `ONCE_FAILED`."""
    for seed in (*range(runs), *ONCE_FAILED[family]):
        run = simulate(FAMILIES[family].draw(seed))
        assert run.quiet, f"seed {seed} did not settle"
        assert not violated(run), f"seed {seed}"


@pytest.mark.parametrize(
    ("service", "breaks", "keeps"),
    [
        ("reliable", "O1", "D13"),
        ("fifo", "O3", "O1"),
        ("causal", "O6", "O3"),
        ("total", "O1", "O6"),
    ],
)
def test_each_rung_of_the_ladder_breaks_what_the_next_promises(service: str, breaks: str, keeps: str) -> None:
    run = simulate(read_scenario(LADDER / f"{service}.toml"))
    assert not violated(run)
    assert violated(run, breaks, keeps) == {breaks}


@pytest.mark.parametrize(("service", "keeps"), [("fifo-total", "O1 O2 O6"), ("causal-total", "O3 O4 O6 O8")])
def test_total_order_can_be_combined_with_a_rung_of_the_ladder(service: str, keeps: str) -> None:
    run = simulate(read_scenario(LADDER / f"{service}.toml"))
    assert not violated(run, *keeps.split())


@pytest.mark.parametrize(("name", "breaks"), [("in-time", set()), ("too-slow", {"D13", "L2", "O4"})])
def test_rounds_need_a_network_that_is_fast_enough_for_agreement_but_not_for_order(name: str, breaks: set[str]) -> None:
    run = simulate(read_scenario(SCENARIOS / "rounds" / f"{name}.toml"))
    assert run.quiet
    assert violated(run) == breaks


def test_rounds_deliver_on_time_without_news_of_a_crash() -> None:
    """p4 crashes at 50 ms, and its last message is delivered at 75 ms by each clock; views tell of it after 500 ms."""
    run = simulate(read_scenario(SCENARIOS / "rounds" / "in-time.toml"))
    assert {int(str(row["time"])) // 1_000 % 25_000 for row in rows(run, "deliver")} == {0, 20_000}
    assert max(int(str(row["time"])) for row in rows(run, "deliver") if row["sender"] == "p4") == 75_000_000
    assert min(int(str(row["time"])) for row in rows(run, "view") if row["time"]) > 500_000_000


@pytest.mark.parametrize("family", ["classic", "synchronous", "acks"])
@pytest.mark.parametrize("seed", range(0, 40, 8))
def test_carrying_frames_instead_of_bytes_changes_nothing(family: str, seed: int) -> None:
    plan = FAMILIES[family].draw(seed)
    assert events(simulate(plan, "frames")).equals(events(simulate(plan, "bytes")))


CRASH = """
name = "crash"
protocol = "classic"
duration = "10s"
options = {{ suspect_after = "100ms" }}
group = [{{ name = "g", members = 4, service = "{service}" }}]
network = {{ transport = "{transport}", latency = {{ kind = "uniform", low = "0ms", high = "20ms" }} }}
workload = [{{ group = "g", senders = ["p1"], messages = 30, interval = "1ms" }}]
fault = [{{ kind = "crash", at = "15ms", process = "p1" }}]
"""


def crash(service: str, transport: str) -> Scenario:
    return parse_scenario(CRASH.format(service=service, transport=transport))


def direct(run: Run) -> dict[object, set[int]]:
    """By receiver, the messages of p1 that came from p1 itself."""
    found: dict[object, set[int]] = {}
    for history in run.histories:
        for row in history.rows:
            if row["kind"] == "receive" and row["peer"] == row["sender"] == "p1":
                found.setdefault(history.process, set()).add(int(row["number"]))
    return found


@pytest.mark.parametrize("transport", ["stream", "datagram"])
def test_a_crash_takes_a_part_of_what_was_under_way_with_it(transport: str) -> None:
    cut_short, holes = 0, 0
    for seed in range(20):
        run = simulate(with_seed(crash("reliable", transport), seed))
        sent = len(rows(run, "send"))
        for numbers in direct(run).values():
            cut_short += len(numbers) < sent
            holes += numbers != set(range(len(numbers)))
        assert not violated(run)
    assert cut_short > 20
    assert (holes > 0) is (transport == "datagram")


def test_a_crashed_process_does_nothing_more_and_all_others_are_informed_once() -> None:
    run = simulate(crash("total", "datagram"))
    victim = next(history for history in run.histories if history.process == "p1")
    assert victim.rows[-1]["kind"] == "crash"
    assert victim.rows[-1]["time"] == 15_000_000
    installed = Counter(str(row["members"]) for row in rows(run, "view") if row["time"])
    times = sorted(int(str(row["time"])) for row in rows(run, "view") if row["time"])
    assert installed == {"['p2', 'p3', 'p4']": 3}
    assert 115_000_000 <= times[0] < times[-1] < 165_000_000
    end = rows(run, "faults_end")[-1]
    assert (end["time"], told(end)["components"]) == (times[-1], [["p2", "p3", "p4"]])


OPEN = """
name = "open"
protocol = "classic"
group = [{{ name = "g", members = ["p1", "p2", "p3", "c"] }}]
member = [{{ process = "c", group = "g", role = "sender" }}]
network = {{ transport = "datagram", latency = {{ kind = "fixed", value = "5ms" }} }}
workload = [{{ group = "g", senders = ["c"], messages = 4, interval = "30ms", answers = "{answers}" }}]
"""


@pytest.mark.parametrize(
    ("answers", "by", "milliseconds"), [("any", 1, 10), ("first", 1, 20), ("majority", 2, 20), ("all", 3, 20)]
)
def test_a_client_outside_the_group_has_as_many_answers_as_it_asked_for(
    answers: str, by: int, milliseconds: int
) -> None:
    """One hop there and one back; in total order three before the request is delivered."""
    run = simulate(parse_scenario(OPEN.format(answers=answers)))
    found = rows(run, "answer")
    assert [told(row)["request"] for row in found] == [0, 1, 2, 3]
    assert {told(row)["mode"] for row in found} == {answers}
    assert {len(told(row)["by"]) for row in found} == {by}  # type: ignore[arg-type]
    assert {row["time"] - row["requested"] for row in found} == {milliseconds * 1_000_000}  # type: ignore[operator]
    assert not violated(run)
    assert len(rows(run, "deliver")) == (0 if answers == "any" else 12)


def test_a_run_that_never_falls_silent_ends_a_quiet_time_after_its_last_request_and_fault() -> None:
    text = """
        name = "long"
        protocol = "acks"
        quiet = "2s"
        group = [{ name = "g", members = 3 }]
        workload = [{ group = "g", messages = 3, interval = "1s" }]
    """
    run = simulate(parse_scenario(text))
    assert (run.quiet, run.virtual_ns) == (True, 5_000_000_000)
    fault = 'fault = [{ kind = "leave", at = "4s", process = "p3", group = "g" }]'
    assert simulate(parse_scenario(f"{text}\n{fault}")).virtual_ns == 6_000_000_000
    cut = simulate(parse_scenario(text.replace('quiet = "2s"', 'quiet = "2s"\nduration = "4s"')))
    assert (cut.quiet, cut.virtual_ns) == (False, 4_000_000_000)


def test_the_trace_tells_private_views_costs_and_the_senders_of_each_acknowledgment() -> None:
    run = simulate(FAMILIES["acks"].draw(7))
    assert all({"receivers", "senders"} == told(row).keys() for row in rows(run, "view"))
    acks = [told(row) for row in rows(run, "transmit") if told(row)["type"] == "acknowledgment"]
    assert acks
    assert all(isinstance(each["senders"], list) and str(each["frame"]).count("/") == 3 for each in acks)
    assert all(told(row)["costs"]["receiver_work"] > 0 for row in rows(run, "stop"))  # type: ignore[index]


ACKS = """
name = "odd"
protocol = "acks"
group = [{{ name = "g", members = {members} }}]
network = {{ latency = {{ kind = "fixed", value = "{latency}" }} }}
workload = [{{ group = "g", senders = ["p1"], messages = 20, interval = "10ms" }}]
{more}
"""


@pytest.mark.parametrize(
    ("members", "latency", "more"),
    [
        (1, "1ms", 'fault = [{ kind = "leave", at = "10ms", process = "p1", group = "g" }]'),
        (
            2,
            "1ms",
            'fault = [{ kind = "crash", at = "1ms", process = "p1" }, { kind = "crash", at = "5ms", process = "p2" }]',
        ),
        (2, "10s", ""),
        (2, "1ms", 'hosts = { consume = "1s" }'),
        (2, "1ms", 'fault = [{ kind = "skew", at = "0s", process = "p1", offset = "10s" }]'),
        (
            2,
            "1ms",
            """fault = [
                { kind = "stall", at = "15ms", until = "400ms", process = "p2" },
                { kind = "leave", at = "101ms", process = "p1", group = "g" },
                { kind = "join", at = "105ms", process = "p1", group = "g" },
            ]""",
        ),
    ],
    ids=["the last one leaves", "all crash", "far apart", "slow application", "clocks apart", "stalled over a return"],
)
def test_runs_of_acks_end_and_messages_under_way_are_no_violation(members: int, latency: str, more: str) -> None:
    run = simulate(parse_scenario(ACKS.format(members=members, latency=latency, more=more)))
    assert run.quiet
    assert not violated(run)
