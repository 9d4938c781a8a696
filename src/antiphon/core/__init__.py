"""Protocol cores: pure state machines, standard library only. Start with `contract.py`."""
