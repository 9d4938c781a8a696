"""A Spark job of so many tasks, from here: its progress is shown, an interrupt cancels it, its rows come back."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from typing import Final
from uuid import uuid4

import pyarrow as pa
from pyspark import SparkContext, inheritable_thread_target
from pyspark.sql import DataFrame

Progress = Callable[[int, int], None]
"""Called with how many tasks are done and how many there are, in the calling thread, ever increasing."""

TASKS_PER_CORE: Final = 16
"""Enough for a smooth bar and no long wait for the last; each costs some hundredths of a second."""
_POLL_SECONDS: Final = 0.2


def collected(results: DataFrame, tasks: int, progress: Progress, title: str) -> pa.Table:
    """Runs the query in a thread of its own, so that this one can show progress and be interrupted."""
    context = results.sparkSession.sparkContext
    group = f"antiphon-{uuid4()}"

    def collect() -> pa.Table:
        context.setJobGroup(group, title, interruptOnCancel=True)
        return results.toArrow()

    progress(0, tasks)
    with ThreadPoolExecutor(max_workers=1) as executor:
        future = executor.submit(inheritable_thread_target(results.sparkSession)(collect))
        shown = 0
        try:
            while not future.done():
                try:
                    future.result(timeout=_POLL_SECONDS)
                except NotYet:
                    done = min(_tasks_done(context, group), tasks - 1)  # the last is shown with its result
                    if done > shown:
                        progress(shown := done, tasks)
        except BaseException:
            context.cancelJobGroup(group)
            raise
        table = future.result()
    progress(tasks, tasks)
    return table


def _tasks_done(context: SparkContext, group: str) -> int:
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    return sum(stage.numCompletedTasks for stage in stages if stage is not None)
