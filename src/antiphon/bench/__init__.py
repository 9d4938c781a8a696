"""The speed of ordered messages on real sockets, compared with the same processes without any order.

`measure.py` plans rounds and ratios; `team.py` starts the processes; each runs `worker.py`, with a group
(`ordered.py`) and the baseline of bare sockets (`bare.py`).
"""
