"""How many protocol events a second one core simulates, and where the time goes.

A protocol event is one of the papers' three: a message sent, a frame received, a message delivered. Tracing is off;
members send at a steady pace, so there is little packing and every message costs its nulls. Rounds of all cases are
interleaved and the median is reported, because machines are noisy; a bare loop of the same length on the same core
gives a ratio that survives a change of machine.

    python benchmarks/simulator.py [--rounds 5] [--messages 20000] [--json FILE] [--against FILE]
"""

import argparse
import cProfile
import json
import platform
import pstats
import statistics
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
Case = tuple[int, Carry]


def scenario(members: int, messages: int) -> Scenario:
    """All members send at 1 ms intervals over a lognormal network."""
    return parse_scenario(f"""
name = "benchmark"
duration = "1h"
trace = "off"
[[group]]
name = "g"
members = {members}
[[workload]]
group = "g"
messages = {max(1, messages // members)}
interval = "1ms"
jitter = 0.5
""")


def events_per_second(case: Case, messages: int) -> float:
    """One run of one case."""
    members, mode = case
    plan = scenario(members, messages)
    started = time.perf_counter()
    run = simulate(plan, mode)
    return (run.inputs + run.deliveries) / (time.perf_counter() - started)


def floor_per_second(events: int = 300_000) -> float:
    """A queue of that many events that do nothing: what virtual time itself costs here."""
    started = time.perf_counter()
    heap: list[tuple[int, int]] = []
    for number in range(events):
        heappush(heap, (number * 7919 % 1_000, number))
        if len(heap) > 100:
            heappop(heap)
    return events / (time.perf_counter() - started)


def where_the_time_goes(case: Case, messages: int) -> dict[str, float]:
    """Share of the time spent in each room, by a profile (which overstates small functions)."""
    members, mode = case
    profile = cProfile.Profile()
    profile.enable()
    simulate(scenario(members, messages), mode)
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
    cases = [(members, mode) for members in MEMBERS for mode in MODES]
    rates: dict[Case, list[float]] = defaultdict(list)
    floors = []
    for _ in range(rounds):
        floors.append(floor_per_second())
        for case in cases:
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
                "members": members,
                "carries": mode,
                "events_per_second": round(statistics.median(rates[members, mode])),
                "spread": [round(min(rates[members, mode])), round(max(rates[members, mode]))],
                "of_empty_queue": round(statistics.median(rates[members, mode]) / floor, 3),
                "time": {
                    room: round(share, 3) for room, share in where_the_time_goes((members, mode), messages).items()
                },
            }
            for members, mode in cases
        ],
    }


def show(result: dict[str, Any], before: dict[str, Any] | None) -> None:
    """A table for people."""
    print(f"{result['question']} ({result['machine']}; empty queue {result['empty_queue_per_second']:,}/s)")
    earlier = {(case["members"], case["carries"]): case for case in before["cases"]} if before else {}
    for case in result["cases"]:
        known = earlier.get((case["members"], case["carries"]))
        change = f"  x{case['of_empty_queue'] / known['of_empty_queue']:.2f} of before" if known else ""
        time_in = ", ".join(f"{room} {share:.0%}" for room, share in list(case["time"].items())[:5])
        print(
            f"{case['members']:>3} members, {case['carries']:<6} {case['events_per_second']:>9,}/s{change}  {time_in}"
        )


def main() -> None:
    """Measure, show, and keep the result where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=20_000, help="application messages per run")
    parser.add_argument("--json", type=Path, help="write the result here")
    parser.add_argument("--against", type=Path, help="compare with an earlier result")
    arguments = parser.parse_args()
    before = json.loads(arguments.against.read_text()) if arguments.against else None
    result = measure(arguments.rounds, arguments.messages)
    show(result, before)
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
