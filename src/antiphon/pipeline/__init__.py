"""Spark: the same judgement over many runs, and their statistics. Start with `verify.py`."""
