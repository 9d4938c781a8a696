"""Guards for thousands of runs: a run that fails or never ends is aborted, with the reason in one line."""

import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

WORKERS_DIE: Final = "every worker that tried it was killed; perhaps memory ran out"
_REASON_MAX: Final = 300


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """A call that takes more CPU time is an error. Wall time would depend on what else the machine does.

    The kernel counts this timer in scheduler ticks of several milliseconds, so a short call may end before the timer
    expires. The clock is read at the end too, so that the same limit gives the same answer for every call.
    """
    too_long = TimeoutError(f"not finished after {seconds:g} s of CPU time")

    def expire(_signal: int, _frame: FrameType | None) -> None:
        raise too_long

    started = time.process_time()
    before = signal.signal(signal.SIGPROF, expire)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    if time.process_time() - started > seconds:
        raise too_long


def reason(error: Exception) -> str:
    """The error and the innermost source line, because a bare assertion has no message."""
    text = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")
    places = traceback.extract_tb(error.__traceback__)
    place = next(place for place in reversed(places) if place.filename != __file__)
    text = text if len(text) <= _REASON_MAX else f"{text[:_REASON_MAX]}…"
    return f"{text} ({Path(place.filename).name}:{place.lineno}, {place.name})"
