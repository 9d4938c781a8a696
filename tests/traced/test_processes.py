"""Real processes trace themselves into one directory; commands can read it even if processes were killed."""

import _thread
import asyncio
import json
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow.compute as pc
import pytest

from tests.support.console import Console
from tests.support.traced import collected
from tools.lab.processes import Process

SETTINGS: dict[str, Any] = {"suspect_after": 1.0, "idle_probe": 1.0, "merge_every": 1.0}
"""Long enough that a busy machine seldom causes a suspicion; the test also passes with one."""


async def started(name: str, trace: Path, peers: list[str]) -> tuple[Process, str]:
    process = Process("tests.support.traced_member", name, peers=peers, trace=str(trace), settings=SETTINGS)
    await process.start()
    return process, (await process.heard("address"))["address"]


async def together(*processes: Process) -> None:
    names = [process.name for process in processes]
    for process in processes:
        await process.heard("view", lambda report: report["members"] == names)


async def delivered(messages: int, *processes: Process) -> None:
    for process in processes:
        await process.heard("delivered", lambda report: report["messages"] >= messages)


async def one_is_killed_and_one_joins(trace: Path) -> None:
    first, address = await started("p1", trace, [])
    second, _ = await started("p2", trace, [address])
    third, _ = await started("p3", trace, [address])
    await together(first, second, third)
    for process in (first, second, third):
        await process.tell("send", first=0, messages=200)
    await delivered(600, first, second, third)
    await third.tell("send", first=200, messages=1_000_000, pause_s=0.001)  # it is killed before the end
    await delivered(700, first, second)
    third.signal(signal.SIGKILL)
    await together(first, second)
    await second.tell("send", first=200, messages=100)
    fourth, _ = await started("p4", trace, [address])
    await together(first, second, fourth)
    await fourth.heard("state", lambda report: report["messages"] >= 700)
    for process, begin in ((first, 200), (fourth, 0)):
        await process.tell("send", first=begin, messages=100)
    await delivered(1_000, first, second, fourth)
    for process in (fourth, second, first):
        assert await process.close() == 0
        await process.heard("left")
    assert await third.close() == -signal.SIGKILL


@contextmanager
def meanwhile(scenario: Coroutine[Any, Any, None]) -> Iterator[None]:
    """Play the scenario while this thread does something else, which is interrupted if the scenario fails."""
    failed: list[BaseException] = []

    def play() -> None:
        try:
            asyncio.run(scenario)
        except BaseException as error:
            failed.append(error)
            _thread.interrupt_main()

    thread = Thread(target=play)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        if failed:
            raise failed[0]


@pytest.mark.usefixtures("spark")
def test_check_holds_after_one_process_was_killed_and_one_joined_with_a_state_while_watch_followed(
    antiphon: Console, tmp_path: Path
) -> None:
    trace = tmp_path / "run"
    with meanwhile(one_is_killed_and_one_joins(trace)):
        watched = antiphon("watch", trace, "--json")
    assert len([*(trace / "journals").iterdir()]) == 4
    result = antiphon("check", trace, "--json")
    told = json.loads(result.out)
    assert (result.code, told["verdict"]) == (0, "hold"), told
    judged = {each["property"]: each for each in told["properties"]}
    for property_id in ("W", "M3", "M10", "D1", "D8", "D12", "O6", "S1", "F2"):
        assert judged[property_id]["opportunities"] > 0, property_id
    for property_id in ("L2", "L3", "L6", "L8"):
        assert judged[property_id]["opportunities"] == 0, property_id
    assert [*(trace / "journals").iterdir()] == []
    events = collected(trace)
    ends = {kind: sorted(_of_kind(events, kind)) for kind in ("start", "stop", "crash", "join", "leave")}
    assert ends["start"] == ends["join"] == ["p1", "p2", "p3", "p4"]
    assert ends["stop"] == ends["leave"] == ["p1", "p2", "p4"]
    assert ends["crash"] == ["p3"]
    seen = json.loads(watched.out)
    assert (watched.code, seen["violated"], seen["waiting"]) == (0, False, 0)
    assert seen["runs"][0]["events"] == events.num_rows
    afterwards = antiphon("watch", trace, "--json", "--once")
    assert json.loads(afterwards.out)["runs"] == seen["runs"]
    assert antiphon("stats", trace, "--json").code == 0
    assert antiphon("report", trace).code == 0


def _of_kind(events: Any, kind: str) -> list[str]:
    found: list[str] = events.filter(pc.equal(events["kind"], kind))["process"].to_pylist()
    return found
