import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from antiphon.node.remote import Remote
from antiphon.node.supervisor import run_locally
from antiphon.properties.judge import judge
from antiphon.properties.verdicts.summary import summarise
from antiphon.scenario.read import parse_scenario
from antiphon.trace.table import events_table
from tests.support.console import Console
from tests.support.patience import SECONDS_MAX, until
from tools.lab.real_runs import SCENARIOS, play

TROUBLE = """
name = "trouble"
duration = "20s"
quiet = "4s"
[options]
suspect_after = "400ms"
idle_probe = "400ms"
merge_every = "800ms"
flow_control = 3
window = 8
[[group]]
name = "orders"
members = ["p1", "p2", "p3", "p4"]
[[group]]
name = "audit"
members = ["p2", "p3", "p4"]
[[workload]]
group = "orders"
senders = ["p1", "p2", "p3"]
messages = 60
interval = "10ms"
[[workload]]
group = "audit"
senders = ["p2", "p3"]
messages = 40
interval = "15ms"
[[fault]]
at = "100ms"
until = "400ms"
kind = "stall"
process = "p2"
[[fault]]
at = "300ms"
kind = "crash"
process = "p4"
[[fault]]
at = "1s"
kind = "recover"
process = "p4"
[[fault]]
at = "600ms"
kind = "leave"
process = "p3"
group = "audit"
[[fault]]
at = "700ms"
until = "760ms"
kind = "pause"
process = "p1"
"""


@pytest.mark.parametrize("transport", ["stream", "datagram"])
def test_real_processes_keep_what_a_simulation_would(antiphon: Console, tmp_path: Path, transport: str) -> None:
    (tmp_path / "trouble.toml").write_text(f'{TROUBLE}\n[network]\ntransport = "{transport}"\n')
    result = antiphon("run", tmp_path / "trouble.toml", "--out", tmp_path / "run", "--check", "--json")
    assert result.code == 0, result.out
    told = json.loads(result.out)
    assert told["check"]["verdict"] == "hold"
    (run,) = told["runs"]
    assert run["quiet"]
    assert any(member == "p4#1" for view in run["views"] for member in view["members"])
    assert json.loads((tmp_path / "run/run.json").read_text())["clock"] == "wall"


CAUSAL = """
name = "causal"
duration = "20s"
quiet = "3500ms"
[options]
suspect_after = "400ms"
idle_probe = "0s"
[network]
transport = "datagram"
[[group]]
name = "orders"
members = 4
service = "causal-relative"
[[group]]
name = "audit"
members = ["p1", "p2"]
service = "causal-relative"
[[workload]]
group = "orders"
messages = 20
interval = "10ms"
[[workload]]
group = "audit"
messages = 10
interval = "20ms"
[[fault]]
at = "50ms"
kind = "join"
process = "p4"
group = "orders"
[[fault]]
at = "300ms"
kind = "leave"
process = "p1"
group = "orders"
"""


def test_real_processes_change_a_group_in_causal_order(antiphon: Console, tmp_path: Path) -> None:
    (tmp_path / "causal.toml").write_text(CAUSAL)
    result = antiphon("run", tmp_path / "causal.toml", "--out", tmp_path / "run", "--check", "--json")
    assert result.code == 0, result.out
    told = json.loads(result.out)
    assert told["check"]["verdict"] == "hold"
    members = [view["members"] for view in told["runs"][0]["views"] if view["group"] == "orders"]
    assert ["p1", "p2", "p3", "p4"] in members
    assert members[-1] == ["p2", "p3", "p4"]


RETURN = """
name = "return"
duration = "20s"
quiet = "3500ms"
[options]
suspect_after = "400ms"
idle_probe = "0s"
[[group]]
name = "orders"
members = 4
[[workload]]
group = "orders"
messages = 30
interval = "10ms"
[[fault]]
at = "100ms"
kind = "crash"
process = "p3"
[[fault]]
at = "100ms"
kind = "crash"
process = "p4"
[[fault]]
at = "120ms"
kind = "recover"
process = "p3"
[[fault]]
at = "120ms"
kind = "recover"
process = "p4"
"""


def test_processes_that_start_again_at_the_same_time_find_one_another(antiphon: Console, tmp_path: Path) -> None:
    (tmp_path / "return.toml").write_text(RETURN)
    result = antiphon("run", tmp_path / "return.toml", "--check", "--json")
    assert result.code == 0, result.out + result.err
    (run,) = json.loads(result.out)["runs"]
    assert any({"p3#1", "p4#1"} <= {*view["members"]} for view in run["views"])


def test_a_process_that_begins_late_dates_what_came_before_by_the_clock_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = parse_scenario("""
        name = "late"
        options = { suspect_after = "0s" }
        group = [{ name = "orders", members = 2 }]
        workload = [{ group = "orders", messages = 20, interval = "10ms" }]
    """)
    order = Remote.order

    def with_delay(remote: Remote, **what: Any) -> None:
        wait_s = 0.4 if (remote.id, what["do"]) == ("p2", "go") else 0.0
        asyncio.get_running_loop().call_later(wait_s, lambda: order(remote, **what))

    monkeypatch.setattr(Remote, "order", with_delay)
    run = run_locally(scenario)
    late = next(history.rows for history in run.histories if history.process == "p2")
    times = [row["time"] for row in late]
    assert [row["kind"] for row in late][:2] == ["start", "receive"]
    assert times == sorted(times)
    assert all("view" in row for row in late if row["kind"] == "send")  # its first messages were due before its view
    assert summarise(judge(events_table(run.id, run.histories))) == "hold"


def test_a_process_that_ends_late_sees_no_crash_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = parse_scenario("""
        name = "slow-end"
        options = { suspect_after = "30s" }
        quiet = "100ms"
        group = [{ name = "orders", members = 3 }]
        workload = [{ group = "orders", messages = 20, interval = "10ms" }]
    """)
    finish = Remote.finish

    async def late(remote: Remote) -> None:
        if remote.id == "p2":
            while len(finished) < 2:
                await asyncio.sleep(0.005)
            seen = {remote.status["now"]}
            while len(seen) < 10:  # it runs on for a while, alone
                await asyncio.sleep(0.005)
                seen.add(remote.status["now"])
        await finish(remote)
        finished.append(remote)

    finished: list[Remote] = []
    monkeypatch.setattr(Remote, "finish", late)
    run = run_locally(scenario)
    assert all(history.rows[-1]["kind"] == "stop" for history in run.histories[:-1])
    assert [row["members"] for row in run.histories[1].rows if row["kind"] == "view"] == [["p1", "p2", "p3"]]
    assert summarise(judge(events_table(run.id, run.histories))) == "hold"


def test_the_transport_can_be_chosen(antiphon: Console, tmp_path: Path) -> None:
    result = antiphon("run", SCENARIOS / "crash.toml", "--transport", "udp", "--out", tmp_path / "run", "--check")
    assert result.code == 0, result.out + result.err
    assert 'transport = "datagram"' in (tmp_path / "run/scenario.toml").read_text()


def test_datagrams_wait_for_an_application_that_stalls() -> None:
    result = play(SCENARIOS / "flow-3.toml", "udp")
    assert result.holds, (result.missing, result.violated)
    assert result.views == 1  # no member was excluded for it


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (('kind = "pause"', 'kind = "delay"\nextra = "5ms"'), "'delay' needs a simulated network, or clock"),
        (
            ('interval = "10ms"', 'interval = "10ms"\nreplies = true'),
            "replies and answers are played in the simulator only",
        ),
    ],
)
def test_scenarios_for_the_simulator_only_are_refused(
    antiphon: Console, tmp_path: Path, change: tuple[str, str], sentence: str
) -> None:
    (tmp_path / "s.toml").write_text(TROUBLE.replace(*change))
    result = antiphon("run", tmp_path / "s.toml", "--out", tmp_path / "run")
    assert result.code == 2
    assert sentence in result.err
    assert not (tmp_path / "run").exists()


def _interrupted_run(directory: Path, moment: Callable[[], bool]) -> tuple[str, list[str]]:
    """Interrupt a long run once the condition is true; return what it says and the processes of the members."""
    (directory / "s.toml").write_text(TROUBLE.replace("messages = 60", "messages = 6000"))
    command = [sys.executable, "-m", "antiphon.cli.main", "run", str(directory / "s.toml"), "--out", "r"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=directory
    ) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        until(lambda: process.poll() is not None or len(children.read_text().split()) == 4, "the fourth process")
        until(lambda: process.poll() is not None or moment(), "the moment to interrupt")
        assert process.poll() is None
        workers = children.read_text().split()
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 130
    return err, workers


def test_a_run_that_is_interrupted_before_it_begins_leaves_no_process_and_no_directory(tmp_path: Path) -> None:
    told, workers = _interrupted_run(tmp_path, lambda: True)
    assert told == "antiphon: interrupted; no unfinished files were left\n"
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def test_an_interrupted_run_keeps_its_trace(tmp_path: Path) -> None:
    told, workers = _interrupted_run(tmp_path, lambda: any(tmp_path.glob(".r-*/live/events/*.parquet")))
    assert told == "antiphon: interrupted; the trace up to the interrupt is in r\n"
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
    events = pq.read_table(tmp_path / "r/events")
    assert summarise(judge(events)) == "hold"
    ends = [json.loads(row["detail"]) for row in events.to_pylist() if row["kind"] == "end"]
    assert ends == [{"quiet": False, "reason": "interrupted"}]


def test_a_process_that_cannot_start_ends_the_run_with_one_sentence(
    antiphon: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s.toml").write_text(TROUBLE)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    result = antiphon("run", tmp_path / "s.toml", "--out", tmp_path / "run")
    assert result.code == 2
    assert "ended by itself" in result.err
    assert not (tmp_path / "run").exists()
