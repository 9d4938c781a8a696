"""The `antiphon` command: one place for errors and exit codes.

0 done; 1 the answer is no; 2 the question was wrong, said in one sentence; 3 cannot tell (a trace could not be judged);
70 a fault of our own; 130 interrupted.
"""

import logging
import os
import signal
import sys
import threading
import traceback
from contextlib import suppress
from types import FrameType
from typing import Final, NoReturn

from antiphon import __version__
from antiphon.errors import AntiphonError

INTERRUPTED: Final = 130
OWN_FAULT: Final = 70
_AGAIN_S: Final = 0.02
"""Time for a finalizer to end before an interrupt that it swallowed is repeated."""


class _Interrupts:
    """The first Ctrl-C unwinds the program. It silences the log messages of libraries, and is remembered in any case.

    The second Ctrl-C ends this process at once, because code that waits for another process or Java may wait forever.
    """

    def __init__(self) -> None:
        self.seen = False
        signal.signal(signal.SIGINT, self._interrupt)
        sys.unraisablehook = self._unraisable

    def _interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        if self.seen:
            _end_at_once()
        self.seen = True
        logging.disable()
        raise KeyboardInterrupt

    def _unraisable(self, error: "sys.UnraisableHookArgs") -> None:
        """A finalizer or a weak reference's callback cannot raise: interrupt again when it is over."""
        if error.exc_type is not KeyboardInterrupt:
            sys.__unraisablehook__(error)
            return
        self.seen = False
        again = threading.Timer(_AGAIN_S, os.kill, (os.getpid(), signal.SIGINT))
        again.daemon = True
        again.start()


def _end_at_once() -> NoReturn:
    if "multiprocessing" in sys.modules:
        for child in sys.modules["multiprocessing"].active_children():
            child.kill()  # it ignores Ctrl-C, and does not notice that its parent is gone
    with suppress(OSError):  # no lock of `sys.stderr` here: the interrupted code may hold it
        os.write(2, b"antiphon: interrupted twice; ended at once, unfinished files may remain\n")
    os._exit(INTERRUPTED)


def main() -> None:
    """Entry point of the console script."""
    interrupts, kept = _Interrupts(), "no unfinished files were left"
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"antiphon {__version__}\n")  # also on the base install, which has no command line
        sys.exit(0)
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of processes that an interrupt ended in their start
    try:
        from antiphon.cli.app import app  # noqa: PLC0415 - takes half a second, and may be interrupted too

        app()
    except SystemExit as end:
        if isinstance(end.code, str):
            kept = end.code  # `Interrupted`
        elif not interrupts.seen and end.code != INTERRUPTED:
            raise
    except KeyboardInterrupt:
        pass  # a run of real processes takes the signal itself
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
    _say(f"interrupted; {kept}")
    sys.exit(INTERRUPTED)


def _explain(error: ModuleNotFoundError) -> NoReturn:
    """A missing module of antiphon is our own fault; any other one was not installed."""
    if error.name is None or error.name.startswith("antiphon"):
        _own_fault()
    package = error.name.split(".")[0]
    extra = "lab" if package in ("typer", "rich", "pyarrow", "numpy") else "cli"
    _say(f"this command needs {package}: install it with `pip install antiphon[{extra}]`")
    sys.exit(2)


def _own_fault() -> NoReturn:
    traceback.print_exc()
    _say("this is a bug in antiphon; please report it with the lines above")
    sys.exit(OWN_FAULT)


def _say(sentence: str) -> None:
    with suppress(OSError, AttributeError):  # no process reads the output; the exit code stays the same
        sys.stderr.write(f"antiphon: {sentence}\n")


if __name__ == "__main__":
    main()
