"""Random scenarios by the thousand, each judged. Start with `families.py`."""
