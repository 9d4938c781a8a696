"""Newtop: total order by causal blocks (Macedo94, Macedo95). Start with `process.py`, then `group.py`."""
