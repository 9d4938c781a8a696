"""Spark jobs over many runs: verification, and any work as resumable tasks.

`verify.py` judges every run of a dataset. A large run is surveyed (`survey.py`), split into tasks (`split.py`) and
distributed (`shares.py`). `spread.py` runs any work as tasks that can be resumed.
"""
