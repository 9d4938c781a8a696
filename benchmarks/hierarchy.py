"""What the control hierarchy costs with 100, 1,000 and 10,000 control processes, hierarchical against flat.

Virtual time and the real cores, without groups of applications: bytes of control messages per process and second, the
delay of stability, and the number of coordinators over time. `published` is the design of Berket00 with the adopted
errata; `turns`: messages tell of at most 16 processes, in turns; `growing`: the numbers of coordinators grow with the
root of the number of processes. Run from the root of the repository:

    python -m benchmarks.hierarchy [--processes 100,1000,10000] [--designs published,...] [--seconds 60]
        [--bandwidth 390000] [--json FILE]
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from tools.lab.hierarchy_load import DESIGNS, Load, measure, measure_flat

HEADING = (
    f"{'design':16}{'processes':>10}{'received B/s':>14}{'max':>9}{'sent B/s':>10}{'max':>8}{'overheard':>11}"
    f"{'stable after':>14}{'max':>7}{'moments':>9}{'coordinators':>14}{'receptions':>12}{'CPU s':>8}{'MB':>7}"
)


def line(load: Load) -> str:
    delay = "-" if load.delay_mean_s is None else f"{load.delay_mean_s:.1f} s"
    most = "-" if load.delay_max_s is None else f"{load.delay_max_s:.1f}"
    coordinators = f"{load.coordinators[-1]} ({max(load.coordinators)})" if load.coordinators else "-"
    return (
        f"{load.design:16}{load.processes:10,}{load.received_mean:14,.0f}{load.received_max:9,}{load.sent_mean:10,.0f}"
        f"{load.sent_max:8,}{load.overheard_mean:11,.0f}{delay:>14}{most:>7}{load.covered:9.0%}{coordinators:>14}"
        f"{load.receptions:12,}{load.cpu_s:8.0f}{load.memory_mb:7,}"
    )


def main() -> int:
    """Print the table; 1 if a process received more than the bandwidth in a group within a second."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", default="100,1000,10000")
    parser.add_argument("--designs", default=",".join(["flat", *(each.replace(", ", "+") for each in DESIGNS)]))
    parser.add_argument("--seconds", type=int, default=60, help="simulated seconds; the first 30 are not counted")
    parser.add_argument("--bandwidth", type=int, default=390_000, help="of a group, in bytes per second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write every run there")
    chosen = parser.parse_args()
    loads: list[Load] = []
    print(HEADING, flush=True)
    for processes in map(int, chosen.processes.split(",")):
        for name in chosen.designs.split(","):
            figures = {"seconds": chosen.seconds, "bandwidth": chosen.bandwidth, "seed": chosen.seed}
            load = (
                measure_flat(processes, **figures)
                if name == "flat"
                else measure(name.replace("+", ", "), processes, **figures)
            )
            loads.append(load)
            print(line(load), flush=True)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps([asdict(load) for load in loads], indent=1) + "\n")
    return int(any(load.received_max > chosen.bandwidth for load in loads))


if __name__ == "__main__":
    sys.exit(main())
