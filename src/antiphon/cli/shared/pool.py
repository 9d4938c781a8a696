"""Run many tasks on all cores. An interrupt waits for the tasks that have begun."""

import signal
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


def map_parallel(
    work: Callable[[_Task], _Result], tasks: Sequence[_Task], *, chunk: int = 1
) -> Generator[_Result, None, None]:
    """Yield the results in the order of the tasks. A single task runs in this process, several run on all cores.

    Close the generator when you leave early (`contextlib.closing`): only then have all workers ended.
    """
    if len(tasks) == 1:
        yield work(tasks[0])
        return
    pool = ProcessPoolExecutor(mp_context=get_context("spawn"), initializer=_ignore_interrupt)
    try:
        yield from pool.map(work, tasks, chunksize=chunk)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _ignore_interrupt() -> None:
    """Leave Ctrl-C to the parent: it cancels the tasks that have not begun and waits for the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
