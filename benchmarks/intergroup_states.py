"""Which changes of state random runs reach: the states of processes, and the steps of repairs.

Runs seeds of the campaign family `intergroup` in the simulator, and counts the changes of all processes: those of
`membership/states.py` (Berket00 Figs 5.1 to 5.3 and 5.7) and of `membership/steps.py` (Figs 5.4 to 5.6). The same seeds
give the same table. Run from the root of the repository:

    python -m benchmarks.intergroup_states [--runs 700] [--first 1] [--json FILE]

Exit code: 0 every allowed change was made, 1 some were never made.
"""

import argparse
import json
import sys
from collections import Counter
from enum import Enum
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from antiphon.campaign.families import FAMILIES
from antiphon.cli.shared.output import progress
from antiphon.core.contract import Core
from antiphon.protocols.intergroup.membership.states import TABLE
from antiphon.protocols.intergroup.membership.steps import STEPS
from antiphon.protocols.intergroup.process import InterGroupProcess
from antiphon.sim.run import simulate
from antiphon.types import GroupId

Change = tuple[Enum, Enum]
OF_PROCESSES: Final[dict[Change, Enum]] = {(state, event): to for (state, event), to in TABLE.items()}
OF_REPAIRS: Final[dict[Change, Enum]] = {(step, cause): to for (step, cause), to in STEPS.items()}
ALLOWED: Final = OF_PROCESSES | OF_REPAIRS


def taken(seed: int) -> Counter[Change]:
    """How often each change was made in one run, by all processes."""
    scenario = replace(FAMILIES["intergroup"].draw(seed), trace="off")
    cores: list[Core] = []
    simulate(scenario, "frames", cores.append)
    found: Counter[Change] = Counter()
    for core in cores:
        assert isinstance(core, InterGroupProcess)
        for group in scenario.group:
            standing = core.standing(GroupId(group.name))
            found.update(standing.taken)
            found.update(standing.repair.taken)
    return found


def _words(change: Change) -> str:
    return f"{change[0].value:28}{change[1].value:30}{ALLOWED[change].value:28}"


def main() -> int:
    """Print how often each change was made, and which never."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=700)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--json", type=Path, help="write the table there")
    arguments = parser.parse_args()
    times: Counter[Change] = Counter()
    runs: Counter[Change] = Counter()
    with progress("runs") as show:
        for number in range(arguments.runs):
            show(number, arguments.runs)
            found = taken(arguments.first + number)
            times.update(found)
            runs.update(dict.fromkeys(found, 1))
    print(f"{arguments.runs} runs of the family intergroup, from seed {arguments.first}")
    for title, table in (("states of processes", OF_PROCESSES), ("steps of repairs", OF_REPAIRS)):
        print(f"\n{f'{title}: from':28}{'event':30}{'to':28}{'times':>9}{'runs':>7}")
        for change in table:
            if times[change]:
                print(f"{_words(change)}{times[change]:9}{runs[change]:7}")
    never = [change for change in ALLOWED if not times[change]]
    print(f"\nnever: {len(never)} of {len(ALLOWED)}")
    for change in never:
        print(_words(change))
    if arguments.json:
        rows = [
            {
                "from": change[0].value,
                "event": change[1].value,
                "to": to.value,
                "times": times[change],
                "runs": runs[change],
            }
            for change, to in ALLOWED.items()
        ]
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n")
    return 1 if never else 0


if __name__ == "__main__":
    sys.exit(main())
