"""Gold tables about view changes and recovery, on traces written by hand."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from antiphon.pipeline.dataset import events
from antiphon.pipeline.tables.catalog import QUERIES
from antiphon.pipeline.tables.columns import Table, meaning
from antiphon.pipeline.tables.gold import recovery, view_changes
from antiphon.pipeline.tables.schemas import TABLES
from tests.support.datasets import Row, row, write


def fault(index: int, time: int, kind: str, *, begins: bool = True) -> Row:
    return row("world", index, time, "fault", group=None, detail={"kind": kind, "begins": begins})


def crash_of_c() -> list[Row]:
    """c crashes at 100; a suspects it at 150, b at 160; they install their view at 200 and 230. d joins at 500."""
    old = {"view": "1", "members": ["a", "b", "c"]}
    new = {"view": "2", "previous": "1", "members": ["a", "b"], "detail": {"left": [{"reason": "silent"}]}}
    wide = {"view": "3", "members": ["a", "b", "d"], "detail": {"left": [], "epoch": 1}}
    message = {"sender": "a", "sender_incarnation": 0}
    return [
        *(row(process, 0, 0, "view", **old) for process in "abc"),
        *(row(process, 1, 90, "deliver", number=0, **message) for process in "ab"),
        row("c", 2, 100, "crash", group=None),
        row("a", 3, 120, "suspect", view="1", peer="b"),
        row("a", 4, 150, "suspect", view="1", peer="c"),
        row("b", 4, 160, "suspect", view="1", peer="c"),
        row("a", 5, 130, "deliver", number=1, **message),
        row("a", 6, 200, "view", **new),
        row("b", 6, 230, "view", **new),
        row("a", 7, 300, "deliver", number=2, **message),
        row("a", 8, 310, "deliver", number=3, **message),
        row("b", 8, 240, "deliver", number=1, **message),
        row("a", 9, 500, "view", previous="2", **wide),
        row("d", 0, 505, "view", **wide),
        row("d", 1, 510, "deliver", number=4, **message),
        fault(0, 100, "crash"),
        fault(1, 400, "slow"),
        fault(2, 450, "partition", begins=False),
    ]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("crash")
    write(directory, crash_of_c())
    return directory


def test_a_view_change_is_timed_from_its_cause(directory: Path, spark: SparkSession) -> None:
    lost, joined = view_changes(events(spark, directory)).orderBy("view").collect()
    assert lost.asDict() == {
        "run": "r1",
        "group": "g",
        "view": "2",
        "members": ["a", "b"],
        "lost": ["c"],
        "gained": [],
        "reason": "silent",
        "installed_first_ns": 200,
        "installed_last_ns": 230,
        "suspected_ns": 150,
        "faulted_ns": 100,
        "faults": ["crash"],
        "since_suspicion_ns": 80,
        "since_fault_ns": 130,
    }
    assert (joined["gained"], joined["lost"], joined["reason"]) == (["d"], [], "formed")
    assert (joined["installed_last_ns"], joined["suspected_ns"], joined["faulted_ns"]) == (500, None, None)
    assert joined["faults"] is None


def test_a_group_stands_still_for_the_longest_wait_of_a_survivor(directory: Path, spark: SparkSession) -> None:
    """a delivers at 130, 300 and 310, b at 240; d was not there when c crashed."""
    assert [each.asDict() for each in recovery(events(spark, directory)).collect()] == [
        {
            "run": "r1",
            "group": "g",
            "faulted_ns": 100,
            "faults": ["crash"],
            "survivors": 2,
            "first_delivery_ns": 140,
            "stood_still_ns": 170,
        }
    ]


@pytest.mark.parametrize("table", QUERIES, ids=lambda table: table.name)
def test_every_table_has_the_columns_and_types_that_are_declared(
    table: Table, directory: Path, spark: SparkSession
) -> None:
    found = QUERIES[table](events(spark, directory)).schema
    declared = from_arrow_schema(table.columns)
    assert found.simpleString() == declared.simpleString()
    told: list[Any] = [field.metadata["comment"] for field in found]
    assert told == [meaning(field) for field in table.columns]


def test_no_two_tables_are_in_one_place() -> None:
    assert len({table.name for table in TABLES}) == len(TABLES)
    assert set(QUERIES) <= {*TABLES}
