"""What several commands share.

`output.py` consoles, JSON, progress bars; `pool.py` worker processes; `sessions.py` Spark sessions; `verdicts.py` the
verdict table and exit codes; `views.py` view changes in words; `story.py` a run told step by step; `run_table.py` and
`watch_table.py` live tables.
"""
