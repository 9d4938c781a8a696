"""`antiphon bench` of this tree against another one, in short interleaved turns: throughput and latency as ratios.

A machine that is shared changes its speed by a third within minutes. So the two trees take turns of a few seconds, each
turn gives one ratio, and the median of all turns counts.

    python -m benchmarks.beside OTHER/src [--turns 12] [--members 3] [--bytes 32,10240]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import antiphon

HERE = Path(antiphon.__file__).resolve().parents[1]
COMMAND = "from antiphon.cli.main import main; main()"


def measured(source: Path, members: str, sizes: str) -> dict[str, Any]:
    """One short run of `antiphon bench` with the package in that folder."""
    options = ["--members", members, "--bytes", sizes, "--rounds", "1", "--seconds", "1", "--json"]
    environment = os.environ | {"PYTHONPATH": str(source)}
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "bench", *options], env=environment, capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def figures(found: dict[str, Any]) -> dict[str, float]:
    """The figures that users feel; for all of them, more is better."""
    rates = {
        f"{each['members']} members, {each['bytes']} B, {kind.replace('_', ' ')}": each["messages_per_second"][kind]
        for each in found["throughput"]
        for kind in ("all_active", "one_active")
    }
    quickness = {
        f"{each['members']} members, {each['messages_per_second_and_member']} msg/s, 1 / latency": each["microseconds"][
            "ordered"
        ]
        for each in found["latency"]
    }
    return {name: each["median"] for name, each in rates.items()} | {
        name: 1 / each["median"] for name, each in quickness.items()
    }


def main() -> None:
    """Print, for each figure, this tree over the other one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="the src folder of the other tree")
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--members", default="3")
    parser.add_argument("--bytes", default="32,10240")
    arguments = parser.parse_args()
    ratios: defaultdict[str, list[float]] = defaultdict(list)
    for turn in range(arguments.turns):
        order = [HERE, arguments.other.resolve()]
        found = {
            tree: figures(measured(tree, arguments.members, arguments.bytes))
            for tree in (order if turn % 2 else order[::-1])
        }
        for name, value in found[order[0]].items():
            ratios[name].append(value / found[order[1]][name])
        print(f"\r{turn + 1} of {arguments.turns} turns", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(f"{HERE} over {arguments.other}: median and quartiles of {arguments.turns} turns")
    for name, values in ratios.items():
        low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
        print(f"  {name:<44} x{middle:.2f}  ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
