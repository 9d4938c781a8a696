"""What checkers report: `verdict.py`. How they report it: `findings.py`, `phrases.py`.

`summary.py` adds verdicts up over runs. `wording.py` explains each property to people.
"""
