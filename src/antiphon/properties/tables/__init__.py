"""The tables that checkers read, derived from the events of one run and computed once (`run_tables.py`).

`columns.py` decodes the Arrow table; `history.py` builds messages, deliveries and stays in views from it. Start there.

| file | what it tells |
|---|---|
| `membership.py`, `survivors.py`, `suspectors.py`, `notices.py` | views, suspicions, failure detection |
| `causality.py`, `past.py`, `cycles.py`, `stamps.py`, `sequencers.py` | happened-before and order |
| `arrivals.py`, `audience.py`, `receipts.py`, `marks.py`, `spans.py` | which process must have what, and since when |
| `delivered.py`, `quiet_end.py`, `receive_only.py` | deliveries by view; duties at a quiet end; receivers |
| `frames.py`, `rows_by_time.py`, `windows.py` | frames, and the settings of flow control |
| `codes.py` | fast distinct values, sorting and bisection over columns of codes |
"""
