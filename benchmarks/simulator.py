"""How many protocol events a second one core simulates, and where the time goes.

A protocol event is one of the papers' three: a message sent, a frame received, a message delivered. Tracing is off;
members send at a steady pace, so there is little packing and every message costs its nulls. Rounds of all cases are
interleaved and the median is reported, because machines are noisy; a bare loop of the same length on the same core
gives a ratio that survives a change of machine. Flow control is off, unless the case says otherwise: so the cases of
all versions are the same scenario.

    python benchmarks/simulator.py [--rounds 5] [--messages 20000] [--json FILE] [--against FILE]
    python benchmarks/simulator.py --beside OTHER/src   # cost per event against another tree, in interleaved pairs
"""

import argparse
import cProfile
import json
import os
import platform
import pstats
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, Final

import antiphon
from antiphon.scenario.model import Scenario
from antiphon.scenario.read import parse_scenario
from antiphon.sim.network import Carry
from antiphon.sim.run import simulate

MEMBERS: Final = (3, 10, 50)
MODES: Final[tuple[Carry, ...]] = ("frames", "bytes")
Case = tuple[int, Carry, int]
"""Members, the unit that the network carries, algorithm of flow control."""
CASES: Final[tuple[Case, ...]] = (
    *((members, mode, 0) for members in MEMBERS for mode in MODES),
    *((members, "frames", 3) for members in MEMBERS),
)


TEXT: Final = """
name = "benchmark"
duration = "1h"
trace = "off"
options = {{ suspect_after = "0s", flow_control = {flow_control} }}
[[group]]
name = "g"
members = {members}
[[workload]]
group = "g"
messages = {each}
interval = "1ms"
jitter = 0.5
"""


def scenario(members: int, flow_control: int, messages: int) -> Scenario:
    """All members send at 1 ms intervals over a lognormal network."""
    return parse_scenario(TEXT.format(members=members, flow_control=flow_control, each=max(1, messages // members)))


def events_per_second(case: Case, messages: int) -> float:
    """One run of one case."""
    members, mode, flow_control = case
    plan = scenario(members, flow_control, messages)
    started = time.perf_counter()
    run = simulate(plan, mode)
    return (run.inputs + run.deliveries) / (time.perf_counter() - started)


def floor_per_second(events: int = 300_000) -> float:
    """A queue of this number of empty events: the cost of virtual time itself."""
    started = time.perf_counter()
    heap: list[tuple[int, int]] = []
    for number in range(events):
        heappush(heap, (number * 7919 % 1_000, number))
        if len(heap) > 100:
            heappop(heap)
    return events / (time.perf_counter() - started)


def where_the_time_goes(case: Case, messages: int) -> dict[str, float]:
    """Share of the time spent in each package, by a profile (which overstates small functions)."""
    members, mode, flow_control = case
    profile = cProfile.Profile()
    profile.enable()
    simulate(scenario(members, flow_control, messages), mode)
    profile.disable()
    rooms: dict[str, float] = defaultdict(float)
    stats: Any = pstats.Stats(profile)
    for (file, _, name), (_, _, own, _, _) in stats.stats.items():
        rooms[_room(file, name)] += own
    total = sum(rooms.values())
    return {room: own / total for room, own in sorted(rooms.items(), key=lambda item: -item[1]) if own / total > 0.01}


def _room(file: str, name: str) -> str:
    parts = Path(file).parts
    if "antiphon" in parts:
        return "/".join(parts[len(parts) - parts[::-1].index("antiphon") : -1]) or "antiphon"
    if "heap" in name:
        return "event queue (heapq)"
    return "randomness" if Path(file).name == "random.py" else "Python itself"


def measure(rounds: int, messages: int) -> dict[str, Any]:
    """Every case, rounds interleaved."""
    rates: dict[Case, list[float]] = defaultdict(list)
    floors = []
    for _ in range(rounds):
        floors.append(floor_per_second())
        for case in CASES:
            rates[case].append(events_per_second(case, messages))
    floor = statistics.median(floors)
    return {
        "question": "protocol events per second per core, tracing off",
        "command": " ".join(["python", *sys.argv]),
        "version": antiphon.__version__,
        "machine": f"{platform.machine()}, CPython {platform.python_version()}",
        "empty_queue_per_second": round(floor),
        "cases": [
            {
                "members": case[0],
                "carries": case[1],
                "flow_control": case[2],
                "events_per_second": round(statistics.median(rates[case])),
                "spread": [round(min(rates[case])), round(max(rates[case]))],
                "of_empty_queue": round(statistics.median(rates[case]) / floor, 3),
                "time": {room: round(share, 3) for room, share in where_the_time_goes(case, messages).items()},
            }
            for case in CASES
        ],
    }


def show(result: dict[str, Any], before: dict[str, Any] | None) -> None:
    """A table for people."""
    print(f"{result['question']} ({result['machine']}; empty queue {result['empty_queue_per_second']:,}/s)")
    earlier = {_key(case): case for case in before["cases"]} if before else {}
    for case in result["cases"]:
        known = earlier.get(_key(case))
        change = f"  x{case['of_empty_queue'] / known['of_empty_queue']:.2f} of before" if known else ""
        time_in = ", ".join(f"{room} {share:.0%}" for room, share in list(case["time"].items())[:5])
        print(
            f"{case['members']:>3} members, {case['carries']:<6} flow control {case['flow_control']} "
            f"{case['events_per_second']:>9,}/s{change}  {time_in}"
        )


def _key(case: dict[str, Any]) -> tuple[Any, ...]:
    return case["members"], case["carries"], case.get("flow_control", 0)


def compare(other: Path, rounds: int, messages: int) -> None:
    """The cost of an event here over its cost in another source tree: the median of pairs run one after the other."""
    trees = {"here": Path(antiphon.__file__).parents[1], "there": other.resolve()}
    print(f"cost per event, {trees['here']} over {trees['there']}; median and spread of {rounds} interleaved pairs")
    for members, mode, flow_control in CASES[: len(MEMBERS) * len(MODES)]:
        ratios = []
        for _ in range(rounds):
            rate = {name: _rate_in(tree, members, mode, messages) for name, tree in trees.items()}
            ratios.append(rate["there"] / rate["here"])
        print(
            f"{members:>3} members, {mode:<6} flow control {flow_control}  x{statistics.median(ratios):.2f}"
            f"  ({min(ratios):.2f} to {max(ratios):.2f})"
        )


def _rate_in(tree: Path, members: int, mode: Carry, messages: int) -> float:
    """Events per second of CPU time in a process of its own; 0 is the flow control that every version has."""
    command = [sys.executable, "-c", _ONE_RUN, str(members), mode, str(messages)]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


_ONE_RUN: Final = f"""
import sys, time
from antiphon.scenario.read import parse_scenario
from antiphon.sim.run import simulate
members, mode, messages = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
plan = parse_scenario({TEXT!r}.format(members=members, flow_control=0, each=max(1, messages // members)))
started = time.process_time()
run = simulate(plan, mode)
print((run.inputs + run.deliveries) / (time.process_time() - started))
"""


def main() -> None:
    """Measure, show, and keep the result where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=20_000, help="application messages per run")
    parser.add_argument("--json", type=Path, help="write the result here")
    parser.add_argument("--against", type=Path, help="compare with an earlier result")
    parser.add_argument("--beside", type=Path, metavar="SRC", help="measure against this source tree instead")
    arguments = parser.parse_args()
    if arguments.beside:
        compare(arguments.beside, arguments.rounds, arguments.messages)
        return
    before = json.loads(arguments.against.read_text()) if arguments.against else None
    result = measure(arguments.rounds, arguments.messages)
    show(result, before)
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
