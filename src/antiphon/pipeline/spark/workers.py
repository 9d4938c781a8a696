"""The parent of Spark's Python workers on this machine. It replaces `pyspark.daemon` and differs in two points.

A worker whose job was cancelled ends silently. Spark cancels by closing the connection, and its own parent prints a
traceback for every worker that was still writing: an interrupted command would end in useless lines.

Between two tasks, a worker collects garbage only among the objects of tasks. To scan all objects of its modules would
take longer than a small task takes in Spark.

`spark.python.daemon.module` is a setting that Spark does not document. The collection alone could be avoided inside the
function of a task, at the same gain. The silence could not: the tracebacks come from Spark's parent, before the first
task begins or after a task has ended, also in a session that is idle (docs/performance.md, sweeps and campaigns).
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
"""Does one task; the parent calls it for each task that Java sends to a process."""


def quiet(worker: Worker) -> Worker:
    """Make a worker silent about a closed connection; errors of its own work were sent to Java before."""

    def run(connection: socket.socket, authenticated: bool) -> int:
        try:
            return worker(connection, authenticated)
        except ConnectionError:
            sys.unraisablehook = lambda _: None  # buffered data cannot be sent either; the process ends now
            return CANCELLED

    return run


def settled(worker: Worker) -> Worker:
    """Make a worker freeze the objects that its first task has loaded, because they stay."""
    is_first = True

    def run(connection: socket.socket, authenticated: bool) -> int:
        nonlocal is_first
        code = worker(connection, authenticated)
        if is_first and code == DONE:
            is_first = False
            gc.collect()  # garbage that is frozen would never be freed
            gc.freeze()
        return code

    return run


if __name__ == "__main__":
    daemon.worker = settled(quiet(daemon.worker))  # type: ignore[assignment]
    daemon.manager()
