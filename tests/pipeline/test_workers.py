"""Workers of Spark: a cancelled job is silent, other errors are raised, loaded objects are not collected again."""

import gc
import socket
import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from antiphon.pipeline.spark.workers import CANCELLED, Worker, quiet, settled


def answering(exit_code: int) -> Worker:
    """A worker that tells its result to Java and ends."""

    def worker(connection: socket.socket, _authenticated: bool) -> int:
        connection.sendall(b"result")
        return exit_code

    return worker


def test_a_worker_returns_the_exit_code_of_its_work() -> None:
    java, connection = socket.socketpair()
    with java, connection:
        assert [quiet(answering(code))(connection, True) for code in (0, 3)] == [0, 3]
        assert java.recv(100) == b"resultresult"


@pytest.mark.parametrize("authenticated", [True, False])
def test_a_closed_connection_of_java_cancels_the_worker(authenticated: bool) -> None:
    java, connection = socket.socketpair()
    java.close()
    with connection:
        assert quiet(answering(0))(connection, authenticated) == CANCELLED


BUFFERED = """
import os, socket
from antiphon.pipeline.spark.workers import quiet

def worker(connection, authenticated):
    answers = os.fdopen(os.dup(connection.fileno()), "wb", 65536)  # as Spark's own writes
    answers.write(b"result")
    answers.flush()

java, connection = socket.socketpair()
java.close()
print(quiet(worker)(connection, True))
"""


def test_unflushed_output_of_a_worker_is_not_printed() -> None:
    command = [sys.executable, "-X", "dev", "-W", "ignore", "-c", BUFFERED]  # as newer Pythons do without being asked
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"{CANCELLED}\n", "")


def test_any_other_error_is_raised() -> None:
    def broken(_connection: socket.socket, _authenticated: bool) -> int:
        raise ImportError("no module named numpy")

    java, connection = socket.socketpair()
    with java, connection, pytest.raises(ImportError, match="numpy"):
        quiet(broken)(connection, True)


def test_objects_of_the_first_task_stay_and_those_of_later_tasks_are_collected() -> None:
    java, connection = socket.socketpair()
    worker, before = settled(answering(0)), gc.get_freeze_count()
    try:
        with java, connection:
            assert worker(connection, True) == 0
            frozen = gc.get_freeze_count()
            assert frozen > before
            made: list[object] = [[] for _ in range(1000)]
            assert worker(connection, True) == 0
            assert gc.get_freeze_count() <= frozen
            assert len(made) == 1000
    finally:
        gc.unfreeze()


def test_a_first_task_that_was_cancelled_does_not_count() -> None:
    java, connection = socket.socketpair()
    java.close()
    before = gc.get_freeze_count()
    with connection:
        assert settled(quiet(answering(0)))(connection, True) == CANCELLED
    assert gc.get_freeze_count() == before


def test_spark_takes_this_parent(spark: SparkSession) -> None:
    def frozen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_arrays([pa.array([gc.get_freeze_count()])], ["objects"])

    counts = [
        row["objects"]
        for _ in range(2)  # those of the first round may be young
        for row in spark.range(0, 4, 1, 4).mapInArrow(frozen, "objects long").collect()
    ]
    assert max(counts) > 10_000
