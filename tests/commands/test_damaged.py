"""A dataset with a damaged file: `check` names file and cause; `--keep-going` judges the good runs all the same."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.console import Console
from tests.support.traces.mutations import MUTATIONS

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def half_written(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def damaged_rows(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4:400] = bytes(396)
    path.write_bytes(bytes(content))


def without_a_column(path: Path) -> None:
    pq.write_table(pq.read_table(path).drop_columns(["digest"]), path)


def of_another_type(path: Path) -> None:
    table = pq.read_table(path)
    at = table.schema.get_field_index("time")
    pq.write_table(table.set_column(at, "time", pa.array(["late"] * len(table))), path)


def an_unknown_kind(path: Path) -> None:
    table = pq.read_table(path)
    kinds = table["kind"].to_pylist()
    kinds[3] = "yodel"
    pq.write_table(table.set_column(table.schema.get_field_index("kind"), "kind", pa.array(kinds)), path)


DAMAGES = (cut_off, half_written, emptied, damaged_rows, without_a_column, of_another_type)


@pytest.fixture(scope="module")
def three_runs(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    from antiphon.cli.app import app  # noqa: PLC0415

    assert spark is not None
    directory = tmp_path_factory.mktemp("damaged") / "runs"
    app(
        ["simulate", str(SCENARIOS / "first.toml"), "--seeds", "1..3", "--out", str(directory)],
        standalone_mode=False,
    )
    return directory


@pytest.fixture
def runs(three_runs: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(three_runs, tmp_path / "runs"))


def second(runs: Path) -> Path:
    return next((runs / "events").glob("first-2-*.parquet"))


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_file_is_named_and_hides_no_other(
    antiphon: Console, runs: Path, damage: Callable[[Path], None]
) -> None:
    path = second(runs)
    damage(path)
    said = antiphon.refused("check", runs)
    assert path.name in said
    result = antiphon("check", runs, "--keep-going", "--json")
    assert result.code == 3
    assert antiphon("check", runs, "--keep-going", "--json", "--in-process") == result
    document = json.loads(result.out)
    assert document["verdict"] == "unknown"
    assert {entry["runs"] for entry in document["properties"] if entry["property"] != "W"} == {2}
    sentences = [entry["sentence"] for entry in document["ill_formed"]]
    assert any(path.name in sentence for sentence in sentences)
    assert path.stem in {entry["run"] for entry in document["ill_formed"]}  # the index says that it was there


def test_a_row_of_an_unknown_kind_is_told_with_its_file(antiphon: Console, runs: Path) -> None:
    path = second(runs)
    an_unknown_kind(path)
    result = antiphon("check", runs)
    assert result.code == 3
    assert path.name in result.out
    assert "yodel" in result.out


def test_a_violation_beside_a_damaged_file_is_told(antiphon: Console, runs: Path) -> None:
    cut_off(second(runs))
    other = next((runs / "events").glob("first-3-*.parquet"))
    twice = next(each for each in MUTATIONS if each.name.startswith("deliver twice"))
    pq.write_table(twice(pq.read_table(other), random.Random(1)), other)
    result = antiphon("check", runs, "--keep-going")
    assert result.code == 1
    assert "D2" in result.out
    assert second(runs).name in result.out


def test_a_run_that_may_have_lost_a_file_is_not_judged(antiphon: Console, runs: Path) -> None:
    path = second(runs)
    table = pq.read_table(path)
    pq.write_table(table.slice(0, 50), path)
    pq.write_table(table.slice(50), path.with_name("more.parquet"))
    cut_off(next((runs / "events").glob("first-1-*.parquet")))
    document = json.loads(antiphon("check", runs, "--keep-going", "--json").out)
    assert {entry["runs"] for entry in document["properties"] if entry["property"] != "W"} == {1}
    assert any("may hold more of the same run" in entry["sentence"] for entry in document["ill_formed"])


def test_nothing_is_left_to_judge(antiphon: Console, runs: Path) -> None:
    for path in (runs / "events").glob("*.parquet"):
        emptied(path)
    assert "is empty, not a Parquet file" in antiphon.refused("check", runs, "--keep-going")
