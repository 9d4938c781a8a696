"""The `antiphon` command: one place for errors and exit codes.

0 done; 1 the answer is no; 2 the question was wrong, said in one sentence; 70 a fault of our own; 130 interrupted.
"""

import logging
import signal
import sys
import traceback
from contextlib import suppress
from types import FrameType
from typing import Final, NoReturn

from antiphon.errors import AntiphonError

INTERRUPTED: Final = 130
OWN_FAULT: Final = 70


class _Interrupts:
    """Ctrl-C, once: silence what libraries would log about it, and remember, whatever they make of it."""

    def __init__(self) -> None:
        self.seen = False
        signal.signal(signal.SIGINT, self._interrupt)

    def _interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        self.seen = True
        logging.disable()
        raise KeyboardInterrupt


def main() -> None:
    """Entry point of the console script."""
    interrupts = _Interrupts()
    try:
        from antiphon.cli.app import app  # noqa: PLC0415 - half a second, which may be interrupted too

        app()
    except (SystemExit, KeyboardInterrupt):
        if not interrupts.seen:
            raise
    except ModuleNotFoundError as error:
        if not interrupts.seen:
            _explain(error)
    except (AntiphonError, OSError) as error:
        if not interrupts.seen:
            _say(str(error))
            sys.exit(2)
    except Exception:
        if not interrupts.seen:
            _own_fault()
    _say("interrupted; nothing was left half-written")
    sys.exit(INTERRUPTED)


def _explain(error: ModuleNotFoundError) -> NoReturn:
    """A module of ours is a fault of our own, another belongs to what was not installed."""
    if (error.name or "antiphon").startswith("antiphon"):
        _own_fault()
    _say(f"the command line needs {error.name}: install it with `pip install antiphon[cli]`")
    sys.exit(2)


def _own_fault() -> NoReturn:
    traceback.print_exc()
    _say("this is a fault of antiphon itself; please report it with the lines above")
    sys.exit(OWN_FAULT)


def _say(sentence: str) -> None:
    with suppress(OSError, AttributeError):  # nobody listens, which changes nothing of the exit code
        sys.stderr.write(f"antiphon: {sentence}\n")


if __name__ == "__main__":
    main()
