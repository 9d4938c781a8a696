"""How long group timestamp order takes without loss: Berket00's table 7.4 without its machines, and the bound X1.

Means: n senders, 10 messages a second each at random phases, keep-alives after 25 to 75 ms, a network without latency,
synchronous clocks: the ideal column of docs/spec/experiments-intergroup.md 3. Bound: random distances, clocks that
differ. No message may take longer than the maximum over q of min(lag of q's clock, d(s, q)) + keep-alive + d(q, r).
Run from the root of the repository:

    python -m benchmarks.intergroup_latency [--runs 400] [--json FILE]
"""

import argparse
import json
import sys
from pathlib import Path

from tools.lab.intergroup_latency import IDEAL, LONGEST_MS, means, worst_share


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400, help="of each number of senders, and with clocks apart")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = {}
    print("senders   mean  ideal  median  ideal  longest (ms)")
    for senders, (mean, median) in IDEAL.items():
        found = means(senders, max(arguments.runs * 2 // senders, 20))
        rows[senders] = found
        print(f"{senders:7}  {found[0]:5.1f}  {mean:5.1f}   {found[1]:5.1f}  {median:5.1f}  {found[2]:7.2f}")
    shares = [worst_share(seed) for seed in range(arguments.runs)]
    print(f"clocks apart, {arguments.runs} runs: a message took at most {max(shares):.4f} of its bound")
    if arguments.json:
        arguments.json.write_text(json.dumps({"means": rows, "worst_share": max(shares)}, indent=2) + "\n")
    near = all(abs(rows[senders][0] / ideal[0] - 1) <= 0.02 for senders, ideal in IDEAL.items())
    return 0 if near and max(shares) <= 1 and all(row[2] <= LONGEST_MS + 0.01 for row in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
