"""Thousands of random scenarios, each simulated and judged. Begin with `families.py`."""
