"""Guards for thousands of runs: a run that fails or never ends is aborted, with the reason in one line."""

import signal
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
    """A call that takes longer is an error."""

    def expire(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"not finished after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def reason(error: Exception) -> str:
    """The error and the innermost source line, because a bare assertion has no message."""
    text = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")
    places = traceback.extract_tb(error.__traceback__)
    place = next(place for place in reversed(places) if place.filename != __file__)
    text = text if len(text) <= _REASON_MAX else f"{text[:_REASON_MAX]}…"
    return f"{text} ({Path(place.filename).name}:{place.lineno}, {place.name})"
