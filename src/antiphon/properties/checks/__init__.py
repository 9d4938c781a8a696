"""The checkers: one file for each group of related properties. `registry.py` lists them all.

| file | properties |
|---|---|
| `wellformed.py` | W: can the trace be judged at all? |
| `views.py`, `successors.py` | M1 to M11: views of one process, and of several |
| `primary.py` | M12, M13, L11: primary views that were voted on |
| `delivery.py`, `cuts.py`, `agreement.py`, `states.py`, `answers.py` | D1 to D14 and R2: what is delivered, and where |
| `order.py`, `reliable.py`, `weak_total.py`, `total.py`, `reliable_total.py` | O1 to O8: order |
| `stability.py`, `safe.py`, `acknowledgments.py`, `connected.py` | S1 to S6: stability |
| `flow.py` | F1 and F2: flow control |
| `liveness.py`, `exclusions.py`, `drained.py`, `failure_detection.py` | L1 to L10 and F3: what must happen in the end |
"""
