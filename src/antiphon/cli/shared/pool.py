"""Many runs on all cores, and an interrupt that waits for those under way."""

import signal
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


def spread(
    work: Callable[[_Task], _Result], tasks: Sequence[_Task], *, chunk: int = 1
) -> Generator[_Result, None, None]:
    """The results in the order of the tasks: one task is done here, several are spread over all cores.

    Close it when you leave early (`contextlib.closing`): only then has every worker ended.
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
    """Ctrl-C is the parent's to handle: it cancels what has not begun and waits for the rest."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
