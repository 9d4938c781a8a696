"""`antiphon run` with InterGroup: real processes multicast, lose a tenth of all datagrams, and repair the losses."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from antiphon.node.supervisor import run_locally
from antiphon.properties.judge import judge
from antiphon.scenario.read import parse_scenario, read_scenario, with_transport
from antiphon.scenario.units import Duration
from antiphon.sim.run import Run
from antiphon.trace.table import events_table
from antiphon.types import ProcessId, process_id
from tests.support.console import Console
from tools.lab.evidence import evidence_in
from tools.lab.netlab_runs import adapted, lossless
from tools.lab.real_runs import SCENARIOS, transports_of

MARKET = """
name = "market"
protocol = "intergroup"
duration = "30s"
quiet = "7s"
[network]
transport = "datagram"
loss = 0.1
duplicate = 0.05
reorder = 0.05
latency = { kind = "fixed", value = "5ms" }
[options]
suspect_after = "1100ms"
keep_alive = { kind = "uniform", low = "100ms", high = "500ms" }
[[group]]
name = "prices"
members = ["a", "b", "t1", "t2", "f1", "u1", "n1"]
[[group]]
name = "alerts"
members = ["b", "t1"]
[[member]]
process = "t1"
group = "prices"
role = "receiver"
[[member]]
process = "t2"
group = "prices"
role = "receiver"
[[member]]
process = "f1"
group = "prices"
role = "receiver"
service = "fifo"
[[member]]
process = "u1"
group = "prices"
role = "receiver"
service = "unreliable"
[[member]]
process = "n1"
group = "prices"
role = "receiver"
service = "framed"
[[workload]]
group = "prices"
messages = 275
interval = "20ms"
[[workload]]
group = "alerts"
senders = ["b"]
messages = 20
interval = "50ms"
[[fault]]
at = "200ms"
kind = "join"
process = "t2"
group = "prices"
[[fault]]
at = "300ms"
until = "500ms"
kind = "partition"
sides = [["a"], ["b", "f1"]]
[[fault]]
at = "600ms"
until = "800ms"
kind = "stall"
process = "b"
[[fault]]
at = "2s"
until = "3s"
kind = "stall"
process = "t2"
[[fault]]
at = "2300ms"
kind = "leave"
process = "t2"
group = "prices"
[[fault]]
at = "2600ms"
kind = "join"
process = "t2"
group = "prices"
[[fault]]
at = "5s"
kind = "leave"
process = "u1"
group = "prices"
"""


def test_members_that_lose_a_tenth_deliver_in_one_order_and_all_holds(antiphon: Console, tmp_path: Path) -> None:
    (tmp_path / "market.toml").write_text(MARKET)
    result = antiphon("run", tmp_path / "market.toml", "--out", tmp_path / "run", "--check", "--json")
    assert result.code == 0, result.out + result.err
    told = json.loads(result.out)
    assert told["check"]["verdict"] == "hold"
    assert told["runs"][0]["quiet"]
    rows = pq.read_table(tmp_path / "run/events").to_pylist()
    orders = _deliveries(rows, "prices")
    assert len(orders["a"]) == 550
    assert orders["b"] == orders["a"]
    for receiver in ("t1", "t2"):
        assert orders[receiver] == [each for each in orders["a"] if each in orders[receiver]]
        assert orders[receiver][-1] == orders["a"][-1]
    assert len(orders["t2"]) < 550, "it was let in while others sent"
    for sender in ("a", "b"):
        numbers = [number for author, number in orders["f1"] if author == sender]
        assert numbers == list(range(numbers[0], 275))
    assert len({*orders["u1"]}) < 500, "losses of an unreliable service are not repaired"
    assert len({*orders["n1"]}) > 520, "framed data that is missing is requested by name"
    moves = [row for row in rows if row["process"] == "t2" and row["kind"] in ("join", "leave")]
    assert [row["kind"] for row in moves] == ["join", "leave", "join"]
    assert moves[1]["time"] >= 2_900_000_000, "a stalled application reads its leave late, and joins again only then"
    sent = [row for row in rows if row["kind"] == "transmit"]
    assert {json.loads(row["detail"])["copies"] for row in sent} == {1}
    assert {"request", "repair"} <= {json.loads(row["detail"])["type"] for row in sent if row["process"] in "ab"}


def _deliveries(rows: list[dict[str, Any]], group: str) -> dict[str, list[tuple[str, int]]]:
    found = defaultdict(list)
    for row in rows:
        if row["kind"] == "deliver" and row["group"] == group:
            found[row["process"]].append((row["sender"], row["number"]))
    return found


KILLED = """
name = "killed"
protocol = "intergroup"
duration = "30s"
quiet = "1800ms"
network = { transport = "datagram", loss = 0.05, latency = { kind = "fixed", value = "5ms" } }
options = { suspect_after = "300ms" }
group = [{ name = "prices", members = ["a", "b", "t1"] }]
member = [{ process = "t1", group = "prices", role = "receiver" }]
workload = [{ group = "prices", messages = 220, interval = "20ms" }]
[[fault]]
at = "4s"
kind = "crash"
process = "t1"
[[fault]]
at = "500ms"
until = "900ms"
kind = "partition"
sides = [["a"], ["b"]]
"""


def test_a_receiver_that_is_killed_is_waited_for_no_longer_than_the_protocol_says() -> None:
    """The run becomes quiet only when the senders stop counting the killed receiver and free its messages (J16)."""
    run = run_locally(parse_scenario(KILLED))
    assert run.quiet
    assert not [*evidence_in(run).missing()]
    freed_at = [row["time"] for history in run.histories for row in history.rows if row["kind"] == "discard"]
    assert max(freed_at) > 5_000_000_000, "five times 300 ms after it last reported; the last message is of 4.4 s"


def test_senders_are_killed_come_back_are_promoted_and_demoted_and_partitions_merge() -> None:
    """The new incarnation learns all addresses, and the others learn its own: they answer it by unicast."""
    scenario = read_scenario(SCENARIOS / "intergroup-senders.toml")
    run = run_locally(msgspec.structs.replace(scenario, quiet=Duration.parse("7s")))
    assert not [*evidence_in(run).missing()]
    assert _violated(run) == []
    assert _last_views(run) == dict.fromkeys(("a", "b#1", "c", "d", "t1", "t2", "f1"), ("a", "b#1", "d", "t2"))
    numbers = [row["number"] for row in _rows(run, "b#1", "send")]
    assert numbers == [*range(len(numbers))]
    assert len(numbers) < 290, "what was due before it started again is left out"


MOVES = """
name = "moves"
protocol = "intergroup"
duration = "60s"
quiet = "7s"
[network]
transport = "datagram"
loss = 0.05
latency = { kind = "fixed", value = "5ms" }
[options]
suspect_after = "1s"
keep_alive = { kind = "uniform", low = "100ms", high = "300ms" }
[[group]]
name = "prices"
members = ["a", "b", "c", "d", "t1"]
[[member]]
process = "t1"
group = "prices"
role = "receiver"
[[workload]]
group = "prices"
senders = ["a", "b", "c"]
messages = 250
interval = "40ms"
[[fault]]
at = "1s"
kind = "leave"
process = "c"
group = "prices"
[[fault]]
at = "1100ms"
kind = "join"
process = "c"
group = "prices"
[[fault]]
at = "3s"
kind = "suspect"
process = "b"
by = "a"
[[fault]]
at = "4s"
kind = "crash"
process = "d"
[[fault]]
at = "6s"
until = "9s"
kind = "partition"
sides = [["a", "d"], ["b", "c", "t1"]]
[[fault]]
at = "6500ms"
kind = "recover"
process = "d"
"""


def test_senders_leave_in_order_return_are_suspected_and_start_again_in_a_partition() -> None:
    """A leaver listens until it is out. A process that starts in a partition does not hear the other side."""
    run = run_locally(parse_scenario(MOVES))
    assert not [*evidence_in(run).missing()]
    assert _violated(run) == []
    assert _last_views(run) == dict.fromkeys(("a", "b", "c", "d#1", "t1"), ("a", "b", "c", "d#1"))
    (left,) = _rows(run, "c", "leave")
    assert [row["time"] >= left["time"] for row in _rows(run, "c", "join")] == [True]
    healed_at = next(row["time"] for row in _rows(run, "world", "faults_end"))
    heard = {row["peer"] for row in _rows(run, "d#1", "receive") if row["time"] < healed_at}
    assert heard <= {"a"}, "a slow machine may start it late"


def _violated(run: Run) -> list[str]:
    verdicts = judge(events_table(run.id, run.histories))
    return [f"{each.property}: {each.example and each.example.sentence}" for each in verdicts if each.violations]


def _rows(run: Run, process: str, kind: str) -> list[dict[str, Any]]:
    histories = {process_id(each.process, each.incarnation): each for each in run.histories}
    return [row for row in histories[ProcessId(process)].rows if row["kind"] == kind]


def _last_views(run: Run) -> dict[str, tuple[str, ...]]:
    """The members of the last view of each process that is present at the end."""
    names = [process_id(each.process, each.incarnation) for each in run.histories]
    present = [name for name in names if _rows(run, name, "stop")]
    return {name: tuple(_rows(run, name, "view")[-1]["members"]) for name in present}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            ("messages = 275", "messages = 275\npayload = 70000"),
            "one datagram, of at most 60,000 bytes; 70,000 are more",
        ),
        (('kind = "stall"\nprocess = "b"', 'kind = "loss"\nrate = 0.5'), "'loss' needs a simulated network"),
    ],
)
def test_scenarios_that_sockets_cannot_carry_are_refused(
    antiphon: Console, tmp_path: Path, change: tuple[str, str], sentence: str
) -> None:
    (tmp_path / "s.toml").write_text(MARKET.replace(*change))
    result = antiphon("run", tmp_path / "s.toml", "--out", tmp_path / "run")
    assert result.code == 2
    assert sentence in result.err
    assert not (tmp_path / "run").exists()


def test_it_runs_over_udp_and_over_nothing_else(antiphon: Console) -> None:
    result = antiphon("run", SCENARIOS / "intergroup-lossy.toml", "--transport", "tcp")
    assert result.code == 2
    assert "intergroup runs over udp only" in result.err
    assert transports_of(SCENARIOS / "intergroup-lossy.toml") == ["udp"]
    assert transports_of(SCENARIOS / "crash.toml") == ["tcp", "udp"]


def test_losses_of_a_scenario_stay_in_force_on_sockets_where_members_inject_them() -> None:
    market = parse_scenario(MARKET)
    assert with_transport(market, "datagram") == market
    crash = read_scenario(SCENARIOS / "crash.toml")
    assert with_transport(crash, "datagram").network.loss == 0


def test_between_namespaces_the_network_loses_and_members_do_not() -> None:
    scenario = adapted(parse_scenario(MARKET), loss=0.2, delay_ms=5)
    assert (scenario.network.loss, scenario.network.duplicate, scenario.network.reorder) == (0.2, 0, 0)
    assert lossless(scenario).network.loss == 0
