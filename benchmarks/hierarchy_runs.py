"""Random runs of the control hierarchy in virtual time: roles, faults and stability, judged from outside.

Coordinators and children join, end, crash, start again and move, with up to 25 % loss, duplicates, reordering and
partitions; `tools/lab/hierarchy_runs.py` states each check. Run from the root; the exit code is 1 if a run fails:

    python -m benchmarks.hierarchy_runs [--runs 5000] [--seed 0] [--jobs 1] [--json FILE]
    python -m benchmarks.hierarchy_runs --runs 1 --seed 41 --log
"""

import sys

from tools.lab.hierarchy_runs import play
from tools.lab.random_runs import play_all

if __name__ == "__main__":
    sys.exit(play_all(play, "Random runs of the control hierarchy in virtual time.", 5_000))
