"""Random runs of requests in virtual time: every request ends with the answers it asked for, or with a clear error.

Each run has 3 to 5 members with total order, safe or not, or a sequencer. Applications ask with every number of answers
and with short and long deadlines, and answer most requests. Crashes, restarts, pauses, partitions, one-way cuts, leaves
and merges are drawn from the seed of the run. `tools/lab/request_runs.py` states each check; the trace of each run is
judged too, D14 among the properties. Run from the root; the exit code is 1 if a run breaks a promise:

    python -m benchmarks.request_runs [--runs 5000] [--seed 0] [--jobs 1] [--json FILE]
    python -m benchmarks.request_runs --runs 1 --seed 41 --log
"""

import sys

from tools.lab.random_runs import play_all
from tools.lab.request_runs import play

if __name__ == "__main__":
    sys.exit(play_all(play, "Random runs of requests to a group in virtual time.", 5_000))
