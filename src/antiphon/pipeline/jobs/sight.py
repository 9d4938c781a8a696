"""Do the workers of a cluster see what this process sees? Asked before Spark reads or writes local files there.

A task fails on a file that its worker does not see, and Spark then tries another worker. So it would depend on chance
whether there is a result.
"""

import socket
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from antiphon.errors import NotShared
from antiphon.pipeline.jobs.tasks import in_tasks
from antiphon.pipeline.spark.job import silent
from antiphon.pipeline.spark.session import works_here
from antiphon.trace.places import Place, is_local

_PATHS_MAX: Final = 100
"""Files of one folder are all seen or not at all; each is a question to the server of the directory."""
_TASKS_PER_CORE: Final = 4
"""Each free core gets a task before any gets a second one; more tasks than cores, because workers may still start."""
_MISSING: Final = pa.schema([pa.field("path", pa.string()), pa.field("host", pa.string())])


class Sight:
    """Remembers what all workers have seen, so that each path is asked for once."""

    def __init__(self) -> None:
        self._seen: set[Place] = set()

    def require(self, spark: SparkSession, directory: Place, paths: Sequence[Place]) -> None:
        """NotShared if a worker does not see one of these; nothing is asked on this machine alone."""
        new = [path for path in paths[:_PATHS_MAX] if path not in self._seen]
        if new:
            require_shared(spark, directory, new)
            self._seen.update(new)


def require_shared(spark: SparkSession, directory: Place, paths: Sequence[Place]) -> None:
    """NotShared if a worker of a cluster does not see one of these files and folders."""
    local = [path.absolute() for path in paths if is_local(path)]
    if works_here(spark) or not local:
        return

    def look(shares: Iterator[tuple[int, int]]) -> Iterator[pa.Table]:
        for _ in shares:
            missing = next((path for path in local if not path.exists()), None)
            if missing is not None:
                yield pa.Table.from_pylist([{"path": str(missing), "host": socket.gethostname()}], schema=_MISSING)

    tasks = range(_TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    for found in in_tasks(spark, directory, tasks, look, _MISSING, silent, "antiphon sight").to_pylist():
        raise NotShared(**found)
