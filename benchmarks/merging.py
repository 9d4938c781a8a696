"""How long reconnected members need to be in one view again, compared with the bound of L1.

Runs of the family `changes` in which members look for lost peers. Counted are runs with a view after the last
fault. Measured is the virtual time from that fault to the last view of a stable component, as a share of the bound
(`uniting`). Run from the root of the repository:

    python -m benchmarks.merging [--runs 400] [--first 1] [--json FILE]
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from antiphon.campaign.families import FAMILIES
from antiphon.protocols.newtop.options import asymmetric, uniting
from antiphon.scenario.model import Scenario
from antiphon.sim.run import Run, simulate


@dataclass(frozen=True, slots=True)
class Merged:
    """One run."""

    seed: int
    mode: str
    took_ms: float
    bound_ms: float

    @property
    def share(self) -> float:
        """Of the bound."""
        return self.took_ms / self.bound_ms


def main() -> None:
    """Simulate, and print a table by mode."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write every run measured there")
    arguments = parser.parse_args()
    merged = [*_measured(range(arguments.first, arguments.first + arguments.runs))]
    print(f"{'':12}{'runs':>6}{'median':>9}{'99 %':>9}{'largest':>9}   share of the bound")
    for mode in ("symmetric", "sequenced"):
        of_mode = sorted((each for each in merged if each.mode == mode), key=lambda each: each.share)
        if of_mode:
            shares = [each.share for each in of_mode]
            chosen = [shares[len(shares) // 2], shares[len(shares) * 99 // 100], shares[-1]]
            print(f"{mode:12}{len(shares):6}" + "".join(f"{share:9.2f}" for share in chosen), end="")
            print(f"   seed {of_mode[-1].seed}: {of_mode[-1].took_ms:.0f} of {of_mode[-1].bound_ms:.0f} ms")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([asdict(each) for each in merged], indent=1))


def _measured(seeds: range) -> Iterator[Merged]:
    for seed in seeds:
        scenario = FAMILIES["changes"].draw(seed)
        if sys.stderr.isatty():
            print(f"\rseed {seed}", end="", file=sys.stderr)
        if not scenario.options.merge_every:
            continue
        took = _uniting_ns(simulate(scenario, "frames"))
        if took:
            yield Merged(seed, _mode(scenario), took / 1e6, uniting(scenario) / 1e6)


def _mode(scenario: Scenario) -> str:
    return "sequenced" if asymmetric(scenario) else "symmetric"


def _uniting_ns(run: Run) -> int:
    """The time from the last fault to the last view of a connected member; 0 without such a view."""
    world = run.histories[-1].rows
    ended = next(row for row in world if row["kind"] == "faults_end")
    connected = {process for component in json.loads(ended["detail"])["components"] for process in component}
    views = [
        row["time"]
        for history in run.histories
        if history.process in connected
        for row in history.rows
        if row["kind"] == "view"
    ]
    return max(0, max(views, default=0) - int(ended["time"]))


if __name__ == "__main__":
    main()
