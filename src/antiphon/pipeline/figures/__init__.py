"""Statistics of one run and of many: `measures.py` declares them.

`statistics.py` computes them with Spark for many runs, `single.py` and `one_run.py` without Spark for one run;
`summing.py` adds both up. `histograms.py` are distributions, `configurations.py` means over seeds.
"""
