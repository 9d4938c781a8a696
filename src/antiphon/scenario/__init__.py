"""The scenario file: one TOML text that says all of a run. Start with `model.py`."""
