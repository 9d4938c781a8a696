"""Warnings that may repeat without end: each subject is logged once in a while, with the number that was left out.

Warnings that a peer, a stranger or a slow application can cause repeatedly are logged through here. So no sender of
invalid frames can fill a disk.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

PAUSE_S: Final = 30.0
"""Pause between two warnings about one subject."""
_SUBJECTS_MAX: Final = 256
"""Subjects that are remembered. A stranger may invent names, so the oldest subject is forgotten first."""


class LimitedLog:
    """Passes the first warning about a subject on, and one in each pause after it."""

    def __init__(self, name: str, *, pause_s: float = PAUSE_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = logging.getLogger(name)
        self._pause_s = pause_s
        self._clock = clock
        self._subjects: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """By subject, when it was last logged, and the number of warnings that were left out since."""

    def warn(self, subject: str, message: str, *arguments: object) -> bool:
        """Log a warning about this subject, unless there was one just before; True if it was logged."""
        now = self._clock()
        logged_at, left_out = self._subjects.get(subject, (None, 0))
        if logged_at is not None and now - logged_at < self._pause_s:
            self._subjects[subject] = logged_at, left_out + 1
            return False
        self._subjects[subject] = now, 0
        self._subjects.move_to_end(subject)
        if len(self._subjects) > _SUBJECTS_MAX:
            self._subjects.popitem(last=False)
        if left_out:
            text = message % arguments if arguments else message
            self._log.warning("%s (%s more since the last such line)", text, left_out)
        else:
            self._log.warning(message, *arguments)
        return True
