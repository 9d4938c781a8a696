"""Spark: judge and measure many runs. Start with `jobs/verify.py`.

`dataset.py` finds and reads event files. `spark/` starts sessions and runs jobs; `jobs/` verifies runs, and runs any
work as resumable tasks; `tables/` are the silver and gold tables; `figures/` are statistics, of many runs with Spark
and of one run without; `live/` watches runs while they go on.
"""
