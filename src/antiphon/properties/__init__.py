"""The properties of a correct run, judged by pure functions of one run's Arrow table. Start with `judge.py`.

`registry.py` lists the checkers (`checks/`) with the rows that each needs. Their parameters name the tables that they
read (`run_tables.py`, `tables/`). They report `verdicts/`. `promises.py` says which service promises which property,
`families.py` what the checkers must know about each protocol family.
"""
