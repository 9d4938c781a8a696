"""Runs that are watched while they go on. Start with `state.py`; `stream.py` feeds it with Spark.

`places.py` finds the events; `rows.py` decodes them; `logs.py`, `numbers.py`, `sequences.py` and `latencies.py` keep
what is known of each process; `figures.py` derives what a watch shows.
"""
