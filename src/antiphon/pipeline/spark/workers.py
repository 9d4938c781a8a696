"""The parent of Spark's Python workers on this machine, instead of `pyspark.daemon` and different in two points.

A worker whose job was cancelled ends without a word. Spark cancels by hanging up, and its own parent prints a traceback
for every worker that had something to say: an interrupted command would end in lines that help nobody.

And between two tasks a worker looks for garbage only among what tasks have made. To go through all that its modules
hold takes it longer than a small task takes Spark.
"""

import gc
import socket
import sys
from collections.abc import Callable
from typing import Final

from pyspark import daemon

DONE: Final = 0
CANCELLED: Final = 1
"""The exit code for which the parent waits until Java has closed the connection, and then lets the process go."""

Worker = Callable[[socket.socket, bool], int]
"""Does one task; the parent calls it for each that Java sends to a process."""


def quiet(worker: Worker) -> Worker:
    """The worker, silent about a connection that is closed; what its own work raises went to Java before."""

    def run(connection: socket.socket, authenticated: bool) -> int:
        try:
            return worker(connection, authenticated)
        except ConnectionError:
            sys.unraisablehook = lambda _: None  # what its files still hold cannot leave either; the process ends now
            return CANCELLED

    return run


def settled(worker: Worker) -> Worker:
    """The worker; what its first task has loaded is there to stay."""
    is_first = True

    def run(connection: socket.socket, authenticated: bool) -> int:
        nonlocal is_first
        code = worker(connection, authenticated)
        if is_first and code == DONE:
            is_first = False
            gc.collect()  # what is garbage now would never go
            gc.freeze()
        return code

    return run


if __name__ == "__main__":
    daemon.worker = settled(quiet(daemon.worker))  # type: ignore[assignment]
    daemon.manager()
