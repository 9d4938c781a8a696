"""The scenario file: one TOML text that describes a whole run. Begin with `model.py`."""
