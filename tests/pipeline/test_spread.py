"""Work as Spark tasks: every item once, in spite of crashes and interrupts."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from antiphon.errors import TraceError
from antiphon.pipeline.jobs.spread import ITEMS_PER_TASK_MAX, Work, _tasks, results, spread

SQUARES = pa.schema({"square": pa.int64()})


def work(row: Callable[[int], dict[str, Any]]) -> Work[int]:
    return Work(row, lambda _number: {"square": -1}, SQUARES)


def squaring(log: Path) -> Work[int]:
    """Square a number, and leave a mark file for each call."""

    def square(number: int) -> dict[str, Any]:
        with log.open("a") as marks:
            marks.write(f"{number}\n")
        return {"square": number * number}

    return work(square)


def marks(log: Path) -> list[int]:
    return sorted(map(int, log.read_text().split()))


def no_session() -> SparkSession:
    raise AssertionError("Spark is not needed here")


def quiet(_done: int, _total: int) -> None:
    """Ignore progress."""


def test_every_item_has_its_row_in_its_place_and_is_not_done_again(spark: SparkSession, tmp_path: Path) -> None:
    log, parts, shown = tmp_path / "log", tmp_path / "parts", [(0, 0)]
    spread(lambda: spark, squaring(log), range(10, 22), parts, lambda *seen: shown.append(seen))
    squares = [number * number for number in range(10, 22)]
    assert results(parts, SQUARES).to_pydict() == {"place": [*range(12)], "square": squares}
    assert shown[1] == (0, 12)
    assert shown[-1] == (12, 12)
    assert shown == sorted(shown)
    for path in sorted(parts.glob("*.parquet"))[:3]:
        path.unlink()
    missing = {*range(12)} - {*results(parts, SQUARES).column("place").to_pylist()}
    log.unlink()
    spread(lambda: spark, squaring(log), range(10, 22), parts, quiet)
    assert marks(log) == sorted(place + 10 for place in missing)
    assert results(parts, SQUARES).column("square").to_pylist() == squares
    spread(no_session, squaring(log), range(10, 22), parts, quiet)


def test_a_worker_that_is_killed_is_replaced_and_nothing_counts_twice(spark: SparkSession, tmp_path: Path) -> None:
    parts, mark = tmp_path / "parts", tmp_path / "killed"

    def fatal_once(number: int) -> dict[str, Any]:
        if number == 5 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"square": number * number}

    spread(lambda: spark, work(fatal_once), range(12), parts, quiet)
    assert mark.exists()
    assert results(parts, SQUARES).column("square").to_pylist() == [number * number for number in range(12)]


def test_an_item_of_which_every_worker_dies_is_given_up_and_the_others_are_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    def fatal(number: int) -> dict[str, Any]:
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"square": number * number}

    spread(lambda: spark, work(fatal), range(4), tmp_path / "parts", quiet)
    assert results(tmp_path / "parts", SQUARES).column("square").to_pylist() == [0, -1, 4, 9]
    assert not [*(tmp_path / "parts").glob("*.at")]


def test_one_item_needs_no_spark(tmp_path: Path) -> None:
    spread(no_session, squaring(tmp_path / "log"), [7], tmp_path / "parts", quiet)
    assert results(tmp_path / "parts", SQUARES).to_pylist() == [{"place": 0, "square": 49}]


def test_an_error_in_a_task_is_one_sentence_and_finished_results_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    def wrong(number: int) -> dict[str, Any]:
        if number == 3:
            raise ValueError("three\nis wrong")
        return {"square": number * number}

    with pytest.raises(TraceError, match=r"^Spark failed on .*: ValueError: three$"):
        spread(lambda: spark, work(wrong), range(4), tmp_path / "parts", quiet)
    assert len(results(tmp_path / "parts", SQUARES)) < 4


def test_a_directory_that_workers_do_not_share_is_named(spark: SparkSession, tmp_path: Path) -> None:
    parts = tmp_path / "parts"

    def unshared() -> SparkSession:
        parts.rmdir()
        return spark

    with pytest.raises(TraceError, match=rf"{parts} does not exist on .*: all workers must share it$"):
        spread(unshared, squaring(tmp_path / "log"), range(2), parts, quiet)


def test_a_partly_written_result_does_not_count(tmp_path: Path) -> None:
    (tmp_path / ".half.parquet").write_bytes(b"PAR1")
    assert len(results(tmp_path, SQUARES)) == 0


@pytest.mark.parametrize("rest", [b"", b"PAR1", bytes(2000)])
def test_a_part_that_lost_its_bytes_is_done_again(tmp_path: Path, rest: bytes) -> None:
    spread(no_session, squaring(tmp_path / "log"), [3], tmp_path / "parts", quiet)
    (part,) = (tmp_path / "parts").iterdir()
    part.write_bytes(rest)
    spread(no_session, squaring(tmp_path / "log"), [3], tmp_path / "parts", quiet)
    assert results(tmp_path / "parts", SQUARES).column("square").to_pylist() == [9]
    assert marks(tmp_path / "log") == [3, 3]


@pytest.mark.parametrize(("items", "tasks"), [(2, 2), (32, 32), (1_000, 32), (20_000, 400)])
def test_tasks_are_many_and_small(items: int, tasks: int) -> None:
    assert _tasks(items, cores=2) == tasks
    assert -(-items // tasks) <= ITEMS_PER_TASK_MAX
