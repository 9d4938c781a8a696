"""One Spark job: an interrupt at any time cancels it and is raised as an interrupt, also if Java fails."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.clientserver import ClientServerConnection  # type: ignore[import-untyped]
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from antiphon.pipeline.spark import job
from antiphon.pipeline.spark.interrupts import interrupt_held_back
from antiphon.pipeline.spark.job import collected
from tests.support.patience import SECONDS_MAX, until


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A file for which all tasks but the first wait: a job that cannot end before the test wants it to."""
    return tmp_path / "gate"


def query(spark: SparkSession, gate: Path, tasks: int = 8) -> DataFrame:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            while batch.column("id").to_pylist() != [0] and not gate.exists():
                time.sleep(0.01)
            yield batch

    numbers = spark.range(0, tasks, 1, numPartitions=tasks)
    return numbers.mapInArrow(work, numbers.schema)


def quiet(_done: int, _total: int) -> None:
    """Ignore progress."""


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def assert_nothing_runs(spark: SparkSession) -> None:
    tracker = spark.sparkContext.statusTracker()
    until(lambda: not tracker.getActiveJobsIds(), "the end of the last job")


def test_rows_come_back_and_progress_only_grows(spark: SparkSession, gate: Path) -> None:
    gate.touch()
    shown: list[tuple[int, int]] = []
    table = collected(query(spark, gate), 8, lambda *seen: shown.append(seen), "test")
    assert sorted(table.column("id").to_pylist()) == [*range(8)]
    assert (shown[0], shown[-1]) == ((0, 8), (8, 8))
    assert shown == sorted(set(shown))


def test_the_calling_thread_sends_nothing_to_java_while_the_job_runs(
    spark: SparkSession, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[threading.Thread] = set()
    send = ClientServerConnection.send_command

    def noted(self: Any, command: str) -> Any:
        asked.add(threading.current_thread())
        return send(self, command)

    results = query(spark, gate)
    monkeypatch.setattr(ClientServerConnection, "send_command", noted)
    collected(results, 8, lambda done, _total: gate.touch() if done else None, "test")
    assert len(asked) >= 2
    assert threading.current_thread() not in asked


@pytest.mark.parametrize("fails", [False, True])
def test_an_interrupt_while_the_poll_reads_an_answer_cancels_the_job(
    spark: SparkSession, gate: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    send, polls = ClientServerConnection.send_command, 0

    def interrupted(self: Any, command: str) -> Any:
        nonlocal polls
        answer = send(self, command)
        if "getJobIdsForGroup" in command:
            polls += 1
            interrupt()
            if fails:
                raise Py4JNetworkError("half an answer")
        return answer

    monkeypatch.setattr(ClientServerConnection, "send_command", interrupted)
    with pytest.raises(KeyboardInterrupt):
        collected(query(spark, gate), 8, quiet, "test")
    assert polls == 1
    assert_nothing_runs(spark)


def test_a_poll_that_gets_no_answer_does_not_hold_up_the_interrupt(
    spark: SparkSession, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = threading.Event()

    def stuck(_context: SparkContext, _group: str) -> int:
        interrupt()
        assert answer.wait(SECONDS_MAX)
        return 0

    monkeypatch.setattr(job, "_tasks_done", stuck)
    with pytest.raises(KeyboardInterrupt):
        collected(query(spark, gate), 8, quiet, "test")
    answer.set()
    assert_nothing_runs(spark)


def test_a_cancellation_that_fails_is_tried_again_on_another_connection(
    spark: SparkSession, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancel, tries = SparkContext.cancelJobGroup, 0

    def broken(self: SparkContext, group: str) -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise Py4JNetworkError("the connection is broken")
        cancel(self, group)

    monkeypatch.setattr(SparkContext, "cancelJobGroup", broken)
    with pytest.raises(KeyboardInterrupt):
        collected(query(spark, gate), 8, lambda done, _total: interrupt() if done else None, "test")
    assert tries >= 3
    assert_nothing_runs(spark)


def test_java_that_never_cancels_is_given_up(spark: SparkSession, gate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "_CANCEL_SECONDS_MAX", 0.1)
    monkeypatch.setattr(SparkContext, "cancelJobGroup", lambda *_: None)
    with pytest.raises(KeyboardInterrupt):
        collected(query(spark, gate), 8, lambda done, _total: interrupt() if done else None, "test")
    gate.touch()
    assert_nothing_runs(spark)


def test_an_interrupt_before_the_job_begins_cancels_it_too(
    spark: SparkSession, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, cancelled = query(spark, gate), list[str]()
    collect, cancel = type(results).toArrow, SparkContext.cancelJobGroup

    def late(self: DataFrame) -> pa.Table:
        interrupt()
        until(lambda: cancelled, "the first cancellation")
        return collect(self)

    def noted(self: SparkContext, group: str) -> None:
        cancel(self, group)
        cancelled.append(group)

    monkeypatch.setattr(type(results), "toArrow", late)
    monkeypatch.setattr(SparkContext, "cancelJobGroup", noted)
    with pytest.raises(KeyboardInterrupt):
        collected(results, 8, quiet, "test")
    assert len(cancelled) >= 2
    assert_nothing_runs(spark)


def test_a_second_interrupt_does_not_wait_for_java(
    spark: SparkSession, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()

    def cancel(_self: SparkContext, group: str) -> None:
        asked.append(group)
        if len(asked) == 1:
            interrupt()

    monkeypatch.setattr(job, "_CANCEL_SECONDS_MAX", 10 * SECONDS_MAX)
    monkeypatch.setattr(SparkContext, "cancelJobGroup", cancel)
    with pytest.raises(KeyboardInterrupt):
        collected(query(spark, gate), 8, lambda done, _total: interrupt() if done else None, "test")
    gate.touch()
    assert_nothing_runs(spark)


def test_a_failing_progress_display_does_not_stop_the_job(spark: SparkSession, gate: Path) -> None:
    def broken(done: int, _total: int) -> None:
        if done:
            raise OSError("the terminal is gone")

    with pytest.raises(OSError, match="the terminal is gone"):
        collected(query(spark, gate), 8, broken, "test")
    assert_nothing_runs(spark)


def test_an_interrupt_is_raised_when_the_block_ends_and_the_handler_is_as_before() -> None:
    before, reached = signal.getsignal(signal.SIGINT), list[bool]()

    def block() -> None:
        with interrupt_held_back() as held_back:
            signal.raise_signal(signal.SIGINT)
            reached.append(held_back.seen)

    with pytest.raises(KeyboardInterrupt):
        block()
    assert reached == [True]
    assert signal.getsignal(signal.SIGINT) is before


def test_the_second_interrupt_is_raised_inside_the_block() -> None:
    def block() -> None:
        with interrupt_held_back():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            pytest.fail("held back twice")

    with pytest.raises(KeyboardInterrupt):
        block()


def test_a_handler_that_does_not_raise_is_called_and_the_interrupt_is_raised() -> None:
    calls: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: calls.append(number))
    try:
        with pytest.raises(KeyboardInterrupt), interrupt_held_back():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls == [signal.SIGINT]


def test_a_process_that_ignores_interrupts_goes_on_ignoring_them() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupt_held_back() as held_back:
            signal.raise_signal(signal.SIGINT)
            assert not held_back.seen
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_another_thread_nothing_is_held_back() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def hold() -> None:
        with interrupt_held_back():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=hold)
    thread.start()
    thread.join()
    assert seen == [before]
