"""Message stability by acknowledgments (Berket98): timestamp, and the three baselines it is compared with.

Start with `group.py`, which all four share; `contract.py` says where they differ.
"""
