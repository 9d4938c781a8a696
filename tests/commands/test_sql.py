"""`antiphon sql`: right and wrong questions about runs."""

import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.console import Console
from tests.support.datasets import two_members, write

pytestmark = pytest.mark.usefixtures("spark")

COUNT = (
    "SELECT process, count(*) AS deliveries, avg(latency_ns) AS mean_ns FROM deliveries GROUP BY ALL ORDER BY process"
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write(tmp_path / "run", two_members())
    return tmp_path / "run"


def test_a_question_is_answered_as_a_table(antiphon: Console, run: Path) -> None:
    result = antiphon("sql", run, COUNT)
    assert result.code == 0
    lines = [line.split("│") for line in result.out.splitlines() if line.startswith("│")]
    assert [[cell.strip() for cell in line[1:-1]] for line in lines] == [["a", "2", "950"], ["b", "2", "1,150.0"]]


def test_the_document_has_columns_and_rows(antiphon: Console, run: Path) -> None:
    document = json.loads(antiphon("sql", run, COUNT, "--json").out)
    assert document["columns"] == [
        {"name": "process", "type": "string"},
        {"name": "deliveries", "type": "int64"},
        {"name": "mean_ns", "type": "double"},
    ]
    assert document["rows"] == [
        {"process": "a", "deliveries": 2, "mean_ns": 950.0},
        {"process": "b", "deliveries": 2, "mean_ns": 1150.0},
    ]


def test_values_that_json_lacks(antiphon: Console, run: Path) -> None:
    odd = "SELECT double('NaN') AS nan, 1.50 AS exact, date'2026-01-02' AS day, array(1) AS list, map('a', 1) AS map"
    (row,) = json.loads(antiphon("sql", run, odd, "--json").out)["rows"]
    assert row == {"nan": None, "exact": 1.5, "day": "2026-01-02", "list": [1], "map": {"a": 1}}
    assert antiphon("sql", run, odd, "--csv").out == 'nan,exact,day,list,map\n,1.5,2026-01-02,[1],"{""a"": 1}"\n'


def test_a_question_may_come_from_a_file_or_from_standard_input(
    antiphon: Console, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"-- deliveries\n{COUNT};\n"
    (tmp_path / "question.sql").write_text(text)
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    answers = [
        antiphon("sql", run, "--csv", *where).out for where in ([COUNT], ["-"], ["--file", tmp_path / "question.sql"])
    ]
    assert answers == ["process,deliveries,mean_ns\na,2,950.0\nb,2,1150.0\n"] * 3


def test_an_answer_may_become_a_file(antiphon: Console, run: Path, tmp_path: Path) -> None:
    assert "2 rows in" in antiphon("sql", run, COUNT, "--out", tmp_path / "new.parquet").out
    assert pq.read_table(tmp_path / "new.parquet")["deliveries"].to_pylist() == [2, 2]
    antiphon("sql", run, COUNT, "--out", tmp_path / "new.csv", "--limit", 1)
    assert (tmp_path / "new.csv").read_text() == "process,deliveries,mean_ns\na,2,950.0\n"
    assert "already exists" in antiphon.refused("sql", run, COUNT, "--out", tmp_path / "new.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "new.parquet", "run"]


def test_long_answers_are_cut(antiphon: Console, run: Path) -> None:
    result = antiphon("sql", run, "SELECT id FROM range(500)")
    assert "the first 100 rows; --limit N shows more" in result.out
    assert "│ 99 │" in result.out
    assert "│ 100 │" not in result.out
    assert "the first 2 rows" in antiphon("sql", run, "SELECT id FROM range(3)", "--limit", 2).out
    assert "the first" not in antiphon("sql", run, "SELECT id FROM range(3)", "--limit", 3).out


def test_groups_need_no_quotes_and_views_of_another_directory_are_not_seen(
    antiphon: Console, run: Path, tmp_path: Path
) -> None:
    write(tmp_path / "other", two_members()[:2])
    query = "SELECT group, count(*) AS n FROM messages GROUP BY group"
    assert antiphon("sql", run, query, "--csv").out == "group,n\ng,2\n"
    assert antiphon("sql", tmp_path / "other", query, "--csv").out == "group,n\ng,1\n"


def test_columns_are_described_with_their_meaning_and_nothing_is_computed(
    antiphon: Console, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.pipeline.tables.catalog.verdict_table", None)
    told = antiphon("sql", run, "DESCRIBE verdicts", "--csv").out
    assert "witness,string,the first violation as a sentence\n" in told
    listed = json.loads(antiphon("sql", run, "--list", "--json").out)["tables"]
    assert [table["name"] for table in listed][:2] == ["events", "messages"]
    (column,) = (column for column in listed[1]["columns"] if column["name"] == "sent_ns")
    assert column == {"name": "sent_ns", "type": "int64", "meaning": "when a frame took it and was transmitted"}
    assert "verdicts (gold): one row for each run, promised property and group" in antiphon("sql", run, "--list").out


def test_only_named_tables_are_computed(antiphon: Console, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.pipeline.tables.catalog.statistics", None)
    query = "WITH figures AS (SELECT 7 AS n) SELECT n, r.run FROM figures, runs r"
    assert antiphon("sql", run, query, "--csv").out == "n,run\n7,r1\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["SELECT outcom FROM verdicts"], "there is no column outcom; the nearest is outcome"),
        (["SELECT v.sentt_ns FROM messages v"], "there is no column v.sentt_ns; the nearest is sent_ns"),
        (["SELECT 1 FROM verdict"], "there is no table verdict; there are events, messages, deliveries, views,"),
        (["SELECT 1 FROM gold.verdicts"], "there is no table gold.verdicts; there are events,"),
        (["SELECT FROM FROM runs"], "antiphon: "),
        (["SELECT run runs GROUP"], "yntax error at or near"),
        (["SELECT 1 / (events - events) FROM runs"], "the question cannot be answered: Division by zero"),
        (["SELECT count(*), run FROM runs"], "antiphon: "),
        (["DROP VIEW runs"], "this is no query: it begins with SELECT, WITH, FROM, VALUES, DESCRIBE or EXPLAIN"),
        (["WITH r AS (VALUES 1) INSERT OVERWRITE DIRECTORY 'x' USING csv SELECT * FROM r"], "this is no query"),
        (["/* nothing */"], "this is no query"),
        ([], "name one query: as QUERY"),
        (["SELECT 1", "--file", "x.sql"], "name one query: as QUERY"),
        (["--file", "nowhere.sql"], "cannot read the query in nowhere.sql: No such file"),
        (["SELECT 1", "--json", "--csv"], "--json, --csv and --out exclude each other"),
        (["SELECT 1", "--out", "answer.xls"], "ends neither in .parquet nor in .csv"),
        (["SELECT 1", "--out", "nowhere/answer.csv"], "is not a directory"),
        (["SELECT 1 AS n, 2 AS n", "--json"], "the answer has two columns n; give one another name with AS"),
    ],
)
def test_a_wrong_question_is_answered_in_one_sentence(
    antiphon: Console, run: Path, arguments: list[str], sentence: str
) -> None:
    assert sentence in antiphon.refused("sql", run, *arguments)


def test_a_wrong_directory_is_told_before_spark_starts(antiphon: Console, tmp_path: Path) -> None:
    assert "does not exist" in antiphon.refused("sql", tmp_path / "nowhere", COUNT)
    assert "is not a run directory" in antiphon.refused("sql", tmp_path, COUNT)
