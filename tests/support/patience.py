"""Timeouts of tests for events that must happen: long enough for a machine on which every core is busy."""

import time
from collections.abc import Callable

SECONDS_MAX = 300.0


def until(holds: Callable[[], object], what: str) -> None:
    """Wait for a condition that another thread or process makes true; a timeout names the missing condition."""
    give_up = time.monotonic() + SECONDS_MAX
    while not holds():
        assert time.monotonic() < give_up, f"{what} did not come in {SECONDS_MAX:.0f} s"
        time.sleep(0.02)
