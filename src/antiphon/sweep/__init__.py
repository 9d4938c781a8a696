"""One scenario with lists of values: every combination, with many seeds, and the figures of each run.

`plan.py` reads the `[sweep]` table, `run.py` does one run, `summary.py` adds the results up.
"""
