"""What a correct run is: pure functions of one run's Arrow table. Start with `judge.py`."""
