"""One Spark job seen from the calling thread: its progress is shown, an interrupt cancels it, its rows come back.

The calling thread never talks to Java while the job runs. It only waits, for two threads with connections of their own:
one collects the rows, the other asks for progress. An interrupt therefore meets no read from a socket.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from uuid import uuid4

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from antiphon.pipeline.spark.interrupts import interrupt_held_back

Progress = Callable[[int, int], None]
"""Called with the number of tasks done and the number of all tasks, in the calling thread, ever increasing."""


def silent(_done: int, _total: int) -> None:
    """Progress that nobody sees."""


TASKS_PER_CORE: Final = 16
"""Enough for a smooth bar and no long wait for the last; each costs some hundredths of a second."""
_POLL_SECONDS: Final = 0.2
_LOOK_SECONDS: Final = 0.05
"""How often the calling thread looks for an interrupt and for progress."""
_LAST_ANSWER_SECONDS_MAX: Final = 1.0
_CANCEL_SECONDS_MAX: Final = 30.0
"""After this time without an answer, Java is given up; it ends with this process."""


def collected(results: DataFrame, tasks: int, progress: Progress, title: str) -> pa.Table:
    """The rows of the query. KeyboardInterrupt if interrupted: the job is cancelled then, whatever Java answers."""
    with interrupt_held_back() as interrupt:
        job, shown = _Job(results, title), 0
        progress(0, tasks)
        job.start()
        try:
            while not job.ended.wait(_LOOK_SECONDS) and not interrupt.seen:
                done = min(job.tasks_done, tasks - 1)  # the last is shown with its result
                if done > shown:
                    progress(shown := done, tasks)
        finally:
            job.stop()
    table = job.result()
    progress(tasks, tasks)
    return table


class _Job:
    """A query in its own thread, and a second thread that asks for its progress."""

    def __init__(self, query: DataFrame, title: str) -> None:
        self.ended = threading.Event()
        self.tasks_done = 0
        """The progress that Spark reported last."""
        self._query, self._title = query, title
        self._context = query.sparkSession.sparkContext
        self._group = f"antiphon-{uuid4()}"
        self._cancelled = False
        self._threads: list[threading.Thread] = []
        self._outcome: pa.Table | BaseException | None = None

    def start(self) -> None:
        self._in_thread(self._collect)
        self._in_thread(self._poll)

    def stop(self) -> None:
        """Cancel what has not ended, and wait for it; a thread that Java does not answer is left behind."""
        if not self.ended.is_set():
            self._cancelled = True
            self._in_thread(self._cancel)
            self.ended.wait(_CANCEL_SECONDS_MAX)
        for thread in self._threads:
            thread.join(_LAST_ANSWER_SECONDS_MAX)

    def result(self) -> pa.Table:
        """The rows; raises the error of the query. Call it after the end."""
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome

    def _in_thread(self, target: Callable[[], None]) -> None:
        """Run in a new thread, and therefore on a new connection to Java."""
        thread = threading.Thread(target=target, name=self._title, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _collect(self) -> None:
        try:
            self._context.setJobGroup(self._group, self._title, interruptOnCancel=True)
            if not self._cancelled:
                self._outcome = self._query.toArrow()
        except BaseException as error:  # it is raised in the calling thread
            self._outcome = error
        finally:
            self.ended.set()

    def _poll(self) -> None:
        while not self.ended.wait(_POLL_SECONDS) and not self._cancelled:
            with suppress(Py4JError, PySparkException, OSError):  # a progress bar that stands still does no harm
                self.tasks_done = _tasks_done(self._context, self._group)

    def _cancel(self) -> None:
        """Cancel repeatedly: a job that begins after one request is cancelled by the next."""
        give_up = time.monotonic() + _CANCEL_SECONDS_MAX
        while not self.ended.is_set() and time.monotonic() < give_up:
            with suppress(Py4JError, PySparkException, OSError):
                self._context.cancelJobGroup(self._group)
            self.ended.wait(_POLL_SECONDS)


def _tasks_done(context: SparkContext, group: str) -> int:
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    return sum(stage.numCompletedTasks for stage in stages if stage is not None)
