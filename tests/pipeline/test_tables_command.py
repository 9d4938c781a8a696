"""`antiphon tables` and its page: the page describes the tables correctly, and its queries give the shown results."""

import json
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from antiphon.errors import TraceError
from antiphon.pipeline.tables.columns import Table, meaning, type_name
from antiphon.pipeline.tables.schemas import GOLD, SILVER
from tests.support.console import Console, exit_code
from tests.support.datasets import two_members, write
from tests.support.html import section

pytestmark = pytest.mark.usefixtures("spark")
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/guide/tables.md").read_text(encoding="utf-8")


@pytest.fixture
def antiphon(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Console:
    return Console(monkeypatch, capsys)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which the commands of the page were run."""
    home = tmp_path_factory.mktemp("home")
    commands = re.findall(r"^antiphon .*$", PAGE, re.MULTILINE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        for command in commands:
            _, *arguments = command.replace("scenarios/", f"{ROOT}/scenarios/").split()
            with redirect_stdout(StringIO()):
                assert exit_code(patch, *arguments) == 0
    return home


@pytest.mark.parametrize("table", [*SILVER, *GOLD], ids=lambda table: table.name)
def test_the_page_tells_every_column(table: Table) -> None:
    assert section(table) in PAGE


def test_written_tables_match_their_declaration(home: Path) -> None:
    contents = json.loads((home / "out/tables/tables.json").read_text(encoding="utf-8"))
    assert contents["events"] == "out/crash/events"
    for table, told in zip((*SILVER, *GOLD), contents["tables"], strict=True):
        found = pq.read_table(home / "out/tables" / table.layer / table.name)
        assert (told["layer"], told["name"], told["rows"]) == (table.layer, table.name, found.num_rows)
        assert found.schema.names == table.columns.names
        assert told["columns"] == [
            {"name": field.name, "type": type_name(field), "meaning": meaning(field)} for field in table.columns
        ]
        assert all(_alike(*pair) for pair in zip(found.schema.types, table.columns.types, strict=True))
        assert found.num_rows > 0


def _alike(found: pa.DataType, declared: pa.DataType) -> bool:
    """Writers use different names for the elements of a list."""
    return bool(found == declared or (pa.types.is_list(found) and found.value_type == declared.value_type))


def test_the_queries_of_the_page_give_what_it_shows(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    queries = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert len(queries) == 3
    for query, shown in queries:
        told = StringIO()
        with redirect_stdout(told):
            exec(query.replace('"out/', f'"{home}/out/'), {})  # Java has a working directory of its own
        assert told.getvalue().strip("\n") == shown.strip("\n")


def test_a_directory_in_use_is_left_alone(antiphon: Console, home: Path, tmp_path: Path) -> None:
    write(tmp_path, two_members())
    assert "already holds tables; choose another directory or use --force" in antiphon.refused(
        "tables", tmp_path, "--out", home / "out/tables"
    )
    assert "holds something other than tables" in antiphon.refused("tables", tmp_path, "--out", tmp_path, "--force")
    (tmp_path / "file").touch()
    assert "is a file" in antiphon.refused("tables", tmp_path, "--out", tmp_path / "file")
    assert "does not exist" in antiphon.refused("tables", tmp_path / "nowhere", "--out", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_nothing_appears_where_something_fails(
    antiphon: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise TraceError("no figures")

    write(tmp_path, two_members())
    monkeypatch.setattr("antiphon.pipeline.tables.catalog.statistics", fail)
    assert antiphon.refused("tables", tmp_path, "--out", tmp_path / "new") == "antiphon: no figures"
    assert [path.name for path in tmp_path.iterdir()] == ["events"]
