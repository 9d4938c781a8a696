"""Runs by the thousand, of which one may break or go on for ever: it is given up, and why is told in one line."""

import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

WORKERS_DIE: Final = "every worker that tried it was killed, perhaps for want of memory"
_REASON_MAX: Final = 300


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Whatever takes longer is an error."""

    def expire(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"still at it after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def reason(error: Exception) -> str:
    """The error, and the innermost place it comes from: a bare assertion says nothing else."""
    text = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")
    places = traceback.extract_tb(error.__traceback__)
    place = next(place for place in reversed(places) if place.filename != __file__)
    text = text if len(text) <= _REASON_MAX else f"{text[:_REASON_MAX]}…"
    return f"{text} ({Path(place.filename).name}:{place.lineno}, {place.name})"
