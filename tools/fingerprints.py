"""Print one hash per simulated run as JSON: every scenario file of a tree, and seeds of every campaign family.

`same.py` runs this file against two revisions. So it imports only modules whose names stay the same between them.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from antiphon.campaign.families import FAMILIES
from antiphon.errors import AntiphonError
from antiphon.scenario.model import Scenario
from antiphon.scenario.read import read_scenario
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table


def fingerprint(scenario: Scenario) -> str:
    """The hash of everything that the trace of a run says."""
    run = simulate(scenario)
    events = events_table(run.id, run.histories).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, events.schema) as writer:
        writer.write_table(events)
    return hashlib.sha256(sink.getvalue()).hexdigest()


def runs(tree: Path, families: list[str], seeds: int) -> Iterator[tuple[str, str]]:
    """Name and hash of every run."""
    for path in sorted((tree / "scenarios").rglob("*.toml")):
        try:
            scenario = read_scenario(path)
        except AntiphonError:
            continue  # a sweep, which is not one scenario
        yield str(path.relative_to(tree)), fingerprint(scenario)
    for family in families or sorted(FAMILIES):
        for seed in range(1, seeds + 1):
            yield f"{family} {seed}", fingerprint(FAMILIES[family].draw(seed))


def main() -> None:
    """Print the hashes of a tree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--seeds", type=int, default=200, help="runs of each campaign family")
    parser.add_argument("--family", action="append", default=[], help="only this family; may be repeated")
    arguments = parser.parse_args()
    found = {}
    for name, value in runs(arguments.tree, arguments.family, arguments.seeds):
        found[name] = value
        print(name, file=sys.stderr)
    json.dump(found, sys.stdout, indent=0)


if __name__ == "__main__":
    main()
