"""The longest wait of a message for its stability, compared with the bounds of Berket98 §4.

Random latency matrices, periods, phases, and sets of senders and receivers, some of them both; latencies are fixed and
nothing is lost. Every message of every sender is measured against t1 (vector), t2 as printed and t2', the tight form of
T11 (timestamp). Run from the root of the repository:

    python -m benchmarks.acks_latency [--matrices 10000] [--seed 1] [--json FILE]
"""

import argparse
import json
import platform
import sys
import time
from pathlib import Path

import antiphon
from tools.lab.acks_latency import measure


def main() -> int:
    """Measure, show, keep the result where asked to; 1 if any message has waited longer than it may."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--matrices", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the result here")
    arguments = parser.parse_args()
    started = time.perf_counter()
    worst = measure(arguments.matrices, arguments.seed)
    seconds = time.perf_counter() - started
    print(f"{arguments.matrices:,} latency matrices, seed {arguments.seed}, {seconds:.0f} s")
    for name, found in worst.items():
        print(
            f"{name:<4}{found.messages:>9,} messages, {found.above} above the bound, "
            f"at most {found.ratio:.4f} of it ({found.case})"
        )
    if arguments.json:
        result = {
            "question": "stability latency against the bounds of Berket98 section 4",
            "command": " ".join(["python", "-m", "benchmarks.acks_latency", *sys.argv[1:]]),
            "version": antiphon.__version__,
            "machine": f"{platform.machine()}, CPython {platform.python_version()}",
            "matrices": arguments.matrices,
            "seed": arguments.seed,
            "seconds": round(seconds, 1),
            "bounds": {name: vars(found) for name, found in worst.items()},
        }
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")
    return int(any(found.above for found in worst.values()))


if __name__ == "__main__":
    sys.exit(main())
