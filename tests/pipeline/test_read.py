from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from antiphon.errors import TraceError
from antiphon.pipeline.dataset import Dataset, events, find_event_files, read_events
from antiphon.pipeline.figures.statistics import statistics
from antiphon.pipeline.jobs.in_process import verify_in_process
from antiphon.properties.tables.columns import READ
from antiphon.trace.schema import EVENTS
from tests.support.datasets import of_run, row, table, two_members, write


def sentence(directory: Path) -> str:
    with pytest.raises(TraceError) as caught:
        find_event_files(directory)
    text = str(caught.value)
    assert "\n" not in text
    assert not text.endswith(".")
    return text


def test_files_come_in_name_order_without_those_still_being_written(tmp_path: Path) -> None:
    second = write(tmp_path, two_members(), "b.parquet")
    first = write(tmp_path, two_members(), "a.parquet")
    for name in ("_c.parquet", ".d.parquet", "e.csv"):
        (tmp_path / "events" / name).write_text("half a file")
    assert find_event_files(tmp_path) == [first, second]
    assert Dataset.of(tmp_path).rows == 26


def test_a_missing_directory(tmp_path: Path) -> None:
    assert sentence(tmp_path / "nowhere") == f"{tmp_path / 'nowhere'} does not exist"


def test_a_directory_without_events(tmp_path: Path) -> None:
    assert "no folder `events`" in sentence(tmp_path)


def test_a_file_instead_of_a_directory(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("{}")
    assert str(path) in sentence(path)


def test_a_folder_without_files(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    assert sentence(tmp_path) == f"{tmp_path / 'events'} holds no Parquet files"


def test_an_empty_file(tmp_path: Path) -> None:
    path = write(tmp_path, two_members())
    path.write_bytes(b"")
    assert sentence(tmp_path) == f"{path} is empty, not a Parquet file"


def test_a_truncated_file(tmp_path: Path) -> None:
    path = write(tmp_path, two_members())
    path.write_bytes(path.read_bytes()[:-100])
    assert str(path) in sentence(tmp_path)
    assert "truncated" in sentence(tmp_path)


def test_a_file_that_is_not_parquet(tmp_path: Path) -> None:
    path = write(tmp_path, two_members())
    path.write_text("run,process,index\n")
    assert str(path) in sentence(tmp_path)


def test_a_directory_named_like_a_file(tmp_path: Path) -> None:
    (tmp_path / "events" / "part.parquet").mkdir(parents=True)
    assert "part.parquet" in sentence(tmp_path)


def test_a_missing_column(tmp_path: Path) -> None:
    path = write(tmp_path, table(two_members()).drop_columns(["sender"]))
    assert sentence(tmp_path) == f"{path} has no column `sender`"


@pytest.mark.parametrize(
    ("column", "wrong"),
    [
        ("time", pa.string()),
        ("incarnation", pa.string()),
        ("members", pa.list_(pa.int64())),
        ("upto", pa.string()),
        ("detail", pa.int64()),
    ],
)
def test_a_column_of_the_wrong_type(tmp_path: Path, column: str, wrong: pa.DataType) -> None:
    events = table(two_members())
    position = EVENTS.get_field_index(column)
    path = write(tmp_path, events.set_column(position, column, pa.nulls(len(events), wrong)))
    text = sentence(tmp_path)
    assert text.startswith(f"{path} has column `{column}` as ")
    assert text.endswith(f", not as {EVENTS.field(column).type}")


def test_a_row_without_what_every_row_has(tmp_path: Path) -> None:
    nullable = pa.schema([field.with_nullable(nullable=True) for field in EVENTS])
    rows = [*two_members(), row("a", 7, 3000, "stop", run=None)]
    path = write(tmp_path, pa.Table.from_pylist(rows, schema=nullable))
    assert sentence(tmp_path) == f"{path} has rows without a value in column `run`"


def test_zero_rows_in_all_files(tmp_path: Path) -> None:
    write(tmp_path, [], "a.parquet")
    write(tmp_path, [], "b.parquet")
    assert "holds no events" in sentence(tmp_path)


def test_one_file_with_zero_rows_beside_others_is_no_error(tmp_path: Path) -> None:
    write(tmp_path, [], "a.parquet")
    full = write(tmp_path, two_members(), "b.parquet")
    assert len(find_event_files(tmp_path)) == 2
    assert units(tmp_path) == [[full]]


def test_other_ways_to_store_the_same(tmp_path: Path, spark: SparkSession) -> None:
    rows = [*two_members(), row("b", 5, 2500, "view", members=["a", "b"], upto=[("a", 1)])]
    plain = table(rows)
    stored = plain
    for name, stored_type in {
        "run": pa.dictionary(pa.int32(), pa.string()),
        "kind": pa.large_string(),
        "members": pa.large_list(pa.large_string()),
        "upto": pa.map_(pa.large_string(), pa.int64()),
    }.items():
        position = EVENTS.get_field_index(name)
        stored = stored.set_column(position, name, plain.column(name).cast(stored_type))
    stored = stored.append_column("extra", pa.array(range(len(stored))))
    write(tmp_path, stored.select(list(reversed(stored.column_names))))
    assert read_plain(find_event_files(tmp_path)) == plain.select(READ)
    last = events(spark, tmp_path).filter("kind = 'view'").collect()
    assert [(each["members"], each["upto"]) for each in last] == [(["a", "b"], {"a": 1})]


def test_integer_types_of_other_tools_are_read_if_they_fit(tmp_path: Path) -> None:
    plain = table(two_members())
    stored = plain
    for name, stored_type in {"incarnation": pa.int64(), "number": pa.float64()}.items():
        position = EVENTS.get_field_index(name)
        stored = stored.set_column(position, name, plain.column(name).cast(stored_type))
    write(tmp_path, stored.set_column(EVENTS.get_field_index("orderer"), "orderer", pa.nulls(len(stored))))
    assert read_plain(find_event_files(tmp_path)) == plain.select(READ)


def read_plain(files: list[Path]) -> pa.Table:
    """The rows that are read, without dictionary encoding."""
    return read_events(files).cast(pa.schema([EVENTS.field(name) for name in READ]))


def test_damaged_rows_under_a_sound_footer_are_named_when_read(tmp_path: Path) -> None:
    path = write(tmp_path, two_members())
    damage(path)
    with pytest.raises(TraceError, match=r"part\.parquet cannot be read: "):
        read_events(find_event_files(tmp_path))


def test_a_column_of_runs_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    path = write(tmp_path, two_members())
    pq.write_table(table(two_members()), path, write_statistics=False)
    damage(path)
    assert sentence(tmp_path).startswith(f"{path} cannot be read: ")


def test_a_command_reads_each_footer_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(9):
        write(tmp_path, of_run(two_members(), f"r{number}"), f"{number}.parquet")
    read: list[str] = []

    def counted(path: Path, read_metadata: Callable[[Path], Any] = pq.read_metadata) -> Any:
        read.append(path.name)
        return read_metadata(path)

    monkeypatch.setattr(pq, "read_metadata", counted)
    found = Dataset.of(tmp_path)
    verify_in_process(found)
    statistics(None, found)
    assert sorted(read) == [f"{number}.parquet" for number in range(9)]
    assert [file.runs for file in found.files] == [(f"r{number}",) for number in range(9)], "in order, by any thread"


def damage(path: Path) -> None:
    footer = pq.read_metadata(path)
    start = footer.row_group(0).column(0).dictionary_page_offset
    content = bytearray(path.read_bytes())
    content[start : start + 40] = bytes(40)
    path.write_bytes(bytes(content))


def units(directory: Path) -> list[list[Path]]:
    return [[Path(str(place)) for place in unit.files] for unit in Dataset.of(directory).units()]


def test_units_of_one_run_over_two_files_and_of_two_runs_in_one_file(tmp_path: Path) -> None:
    a1 = write(tmp_path, of_run(two_members(), "one"), "a1.parquet")
    a2 = write(tmp_path, of_run(two_members(), "two") + of_run(two_members(), "three"), "a2.parquet")
    a3 = write(tmp_path, of_run(two_members(), "one"), "a3.parquet")
    assert units(tmp_path) == [[a1, a3], [a2]]
    assert [(unit.rows, unit.is_one_run) for unit in Dataset.of(tmp_path).units()] == [(26, True), (26, False)]


def test_units_grow_through_files_that_share_runs_in_a_chain(tmp_path: Path) -> None:
    pairs = [("p", "q"), ("r", "s"), ("t",), ("s", "p"), ("u",)]
    files = [
        write(tmp_path, [each for run in pair for each in of_run(two_members(), run)], f"{i}.parquet")
        for i, pair in enumerate(pairs)
    ]
    assert units(tmp_path) == [[files[0], files[1], files[3]], [files[2]], [files[4]]]


def test_units_without_statistics_come_from_the_column(tmp_path: Path) -> None:
    path = write(tmp_path, two_members())
    pq.write_table(table(of_run(two_members(), "x") + two_members()), path, write_statistics=False)
    other = write(tmp_path, of_run(two_members(), "x"), "other.parquet")
    assert units(tmp_path) == [[other, path]]


def test_events_have_the_columns_of_the_schema(tmp_path: Path, spark: SparkSession) -> None:
    odd = tmp_path / "a b[1]{x}*%20=y"
    write(odd, table(two_members()).append_column("extra", pa.array(range(13))))
    frame = events(spark, odd)
    assert frame.columns == EVENTS.names
    assert frame.count() == 13
