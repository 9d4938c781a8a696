"""Random runs of the real API in virtual time, judged from outside: writes, primary views, and the return of primary.

Each run has 3 to 5 members, with safe delivery or without. Applications write only while their view is primary. Pauses,
crashes, restarts, wrong peers, partitions, one-way cuts and leaves are drawn from the seed of the run. Checked: no
write that was acknowledged in a primary view is missing in a later one; two primary views never exist at once; at the
end all are together, and primary is back if its rule says so (`tools/lab/api_history.py` states each check). Run from
the root; the exit code is 1 if a run breaks a promise:

    python -m benchmarks.api_runs [--runs 2000] [--seed 0] [--jobs 1] [--json FILE]
    python -m benchmarks.api_runs --runs 1 --seed 41 --log
"""

import sys

from tools.lab.api_runs import play
from tools.lab.random_runs import play_all

if __name__ == "__main__":
    sys.exit(play_all(play, "Random runs of the API in virtual time.", 2_000))
