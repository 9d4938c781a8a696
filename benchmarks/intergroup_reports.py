"""How many reports of receivers arrive at a sender, by the number of receivers: the interval of RTCP.

Receivers in group timestamp order join one after another. When their reports have reached their pace, the reports that
arrive at one sender are counted for a while, in virtual time. All receivers together report once in `report_every`, so
the rate must not depend on their number (docs/spec/intergroup.md 4.5). The real cores run, without messages of
applications and with few keep-alives: every frame costs time at every receiver. Run from the root of the repository:

    python -m benchmarks.intergroup_reports [--receivers 1,10,100,1000] [--seeds 3] [--json FILE]
"""

import argparse
import json
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from antiphon.cli.shared.output import progress
from antiphon.protocols.intergroup.settings import InterGroupSettings
from tools.lab.intergroup_network import MS, InterGroupNetwork

SENDERS: Final = 2
REPORT_EVERY_MS: Final = 20
KEEP_ALIVE_MS: Final = 500
SUSPECT_MS: Final = 2_000
MEASURED_MS: Final = 20_000
SLACK: Final = 0.15
"""Allowed deviation of a mean from the rate that was set."""


@dataclass(frozen=True, slots=True)
class Rate:
    """One run."""

    receivers: int
    seed: int
    reports_per_s: float
    reporters: int
    """Receivers whose reports were heard while it was measured."""
    real_s: float


def measure(receivers: int, seed: int) -> Rate:
    """The rate of reports at the first sender."""
    began = time.monotonic()
    settings = InterGroupSettings(
        keep_alive_ns=(KEEP_ALIVE_MS * MS, KEEP_ALIVE_MS * MS),
        report_every_ns=REPORT_EVERY_MS * MS,
        suspect_after_ns=SUSPECT_MS * MS,
    )
    interval_ms = receivers * REPORT_EVERY_MS
    joining_ms = max(interval_ms, 1_000)  # as long as an interval: else all reports of a round come together
    network = InterGroupNetwork(SENDERS, receivers, seed=seed, settings=settings, joining_ms=joining_ms)
    network.run(joining_ms + max(interval_ms, 4_000))
    while not network.all_receive():
        network.run(100)
    start = network.now
    measured_ms = max(interval_ms, MEASURED_MS)
    network.run(measured_ms)
    reports = [each.sender for each in network.arrived if each.kind == "report" and each.at > start]
    return Rate(receivers, seed, len(reports) * 1000 / measured_ms, len({*reports}), time.monotonic() - began)


def main() -> int:
    """Print the table; 1 if a mean differs from the rate that was set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--receivers", default="1,10,100,1000", help="numbers of receivers")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each number")
    parser.add_argument("--json", type=Path, help="write every run there")
    arguments = parser.parse_args()
    numbers = [int(each) for each in arguments.receivers.split(",")]
    cases = [(number, seed) for number in numbers for seed in range(1, arguments.seeds + 1)]
    runs: list[Rate] = []
    with progress("runs") as show:
        for case in cases:
            show(len(runs), len(cases))
            runs.append(measure(*case))
    target = 1000 / REPORT_EVERY_MS
    print(f"{SENDERS} senders, a report every {REPORT_EVERY_MS} ms of all receivers together: {target:.0f} a second;")
    print(f"keep-alives every {KEEP_ALIVE_MS} ms, latency 1 to 3 ms, no loss, {arguments.seeds} seeds")
    print(f"{'receivers':>10}{'reports/s at a sender':>24}{'least-greatest':>18}{'of receivers':>14}{'real s/run':>12}")
    flat = True
    for number in numbers:
        of_number = [run for run in runs if run.receivers == number]
        rates = [run.reports_per_s for run in of_number]
        mean, real_s = statistics.mean(rates), statistics.mean(run.real_s for run in of_number)
        heard = min(run.reporters for run in of_number)
        flat &= abs(mean / target - 1) <= SLACK
        print(f"{number:10}{mean:24.1f}{f'{min(rates):.1f}-{max(rates):.1f}':>18}{heard:14}{real_s:12.1f}")
    print("flat" if flat else f"not flat: a mean differs by more than {SLACK:.0%} from the rate that was set")
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(run) for run in runs], indent=2) + "\n")
    return 0 if flat else 1


if __name__ == "__main__":
    sys.exit(main())
