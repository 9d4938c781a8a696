"""Ctrl-C reaches the command also when it arrives where Python cannot raise."""

import subprocess
import sys

from tests.support.patience import SECONDS_MAX

SWALLOWED = """
import signal, time
from antiphon.cli.main import _Interrupts

class Finalized:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

interrupts = _Interrupts()
try:
    Finalized()
    print("swallowed", flush=True)
    time.sleep(3600)
except KeyboardInterrupt:
    print("interrupted", interrupts.seen)
"""


def test_an_interrupt_that_a_finalizer_swallows_is_repeated() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SWALLOWED], capture_output=True, text=True, check=True, timeout=SECONDS_MAX
    )
    assert done.stdout.split("\n") == ["swallowed", "interrupted True", ""]
    assert done.stderr == ""
