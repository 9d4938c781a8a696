"""docs/guide/analysis.md: its commands give the answers that it shows, and its plots show these answers."""

import re
import runpy
import shlex
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from antiphon.cli.commands.sql import as_shown
from antiphon.cli.shared.output import out
from tests.support.console import exit_code

pytestmark = pytest.mark.usefixtures("spark")
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/guide/analysis.md").read_text(encoding="utf-8")
EXAMPLES = ROOT / "examples/analysis"
IMAGES = ROOT / "docs/images/analysis"
QUERIES = ("broken", "latency", "view_changes")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


SHOWN = [block.removeprefix("$ ").partition("\n")[::2] for block in blocks("console")]
"""Commands and what they print."""


def output(patch: pytest.MonkeyPatch, command: str) -> str:
    told = StringIO()
    _, *arguments = shlex.split(re.sub(r"(?<= )(scenarios|examples)/", rf"{ROOT}/\1/", command))
    with redirect_stdout(told):
        assert exit_code(patch, *arguments) == 0
    return told.getvalue()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory in which the commands of the page were run."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        for command in "".join(blocks("sh")).splitlines():
            if command.startswith("antiphon "):
                output(patch, command)
        yield home


def test_the_page_shows_the_queries() -> None:
    assert blocks("sql") == [(EXAMPLES / f"{name}.sql").read_text(encoding="utf-8") for name in QUERIES]


@pytest.mark.parametrize("name", QUERIES)
def test_the_answers_are_those_of_the_page(name: str, home: Path) -> None:
    (shown,) = (text for command, text in SHOWN if f"{name}.sql" in command)
    told = StringIO()
    with redirect_stdout(told):
        out.print(as_shown(pq.read_table(home / f"out/{name}.parquet")))
    assert told.getvalue() == shown


def test_the_witness_is_that_of_the_page(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ((command, shown),) = (each for each in SHOWN if "witness" in each[0])
    monkeypatch.chdir(home)
    assert output(monkeypatch, command) == shown


def test_the_plots_show_the_answers(home: Path, tmp_path: Path) -> None:
    plots: Callable[[Path, Path], None] = runpy.run_path(str(EXAMPLES / "plots.py"))["plots"]
    plots(home / "out", tmp_path)
    drawn, shown = (
        {path.name: steady(path.read_text(encoding="utf-8")) for path in folder.iterdir()}
        for folder in (tmp_path, IMAGES)
    )
    assert drawn == shown


def steady(picture: str) -> str:
    """Without the version of matplotlib, and with coordinates to a tenth of a point."""
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.1f}", re.sub(r"Matplotlib v[\d.]+", "", picture))


@pytest.mark.parametrize("block", blocks("python"))
def test_the_python_example_runs(block: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    told = StringIO()
    with redirect_stdout(told):
        exec(block, {})
    assert int(told.getvalue()) > 0
