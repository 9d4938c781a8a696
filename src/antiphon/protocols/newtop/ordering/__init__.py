"""When a frame may be delivered, over all groups of a process: one small part per service. See `contract.py`."""
