"""The deterministic simulator: the same cores, in virtual time. Start with `run.py`."""
