"""Message stability by acknowledgments (Berket98): timestamp acknowledgments, and the three baselines of the paper.

Begin with `group.py`, which all four share. `acknowledging/contract.py` tells where they differ.
"""
