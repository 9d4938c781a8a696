"""How long tests wait for what must come: long enough for a machine on which every core is busy with other things."""

import time
from collections.abc import Callable

SECONDS_MAX = 300.0


def until(holds: Callable[[], object], what: str) -> None:
    """Wait for something that another thread or process brings about; a failure says what did not come."""
    give_up = time.monotonic() + SECONDS_MAX
    while not holds():
        assert time.monotonic() < give_up, f"{what} did not come in {SECONDS_MAX:.0f} s"
        time.sleep(0.02)
