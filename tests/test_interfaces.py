"""docs/spec/interfaces.md describes the trace, the scenario file, the commands and the API as they are."""

import re
from pathlib import Path

import pytest

import antiphon
from antiphon.cli.app import app
from antiphon.scenario.read import parse_scenario
from antiphon.trace.schema import EVENTS, KINDS

PAGE = (Path(__file__).parents[1] / "docs/spec/interfaces.md").read_text(encoding="utf-8")
TRACE, SCENARIO, COMMANDS, API = re.split(r"^## \d\. ", PAGE, flags=re.MULTILINE)[1:]


def test_the_columns_of_the_trace() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([\w<>,]+) \|", TRACE, re.MULTILINE)
    types = {"list<string>": "list<element: string>", "map<string,int64>": "map<string, int64>"}
    ours = {field.name: str(field.type).replace("item:", "element:") for field in EVENTS}
    assert {name: types.get(written, written) for name, written in rows} == ours


def test_the_kinds_of_the_trace() -> None:
    kinds = TRACE.partition("Kinds:")[2].partition("Beside the events")[0]
    assert set(re.findall(r"`(\w+)`", kinds)) >= KINDS


@pytest.mark.parametrize("block", re.findall(r"```toml\n(.*?)```", SCENARIO, re.DOTALL))
def test_the_scenarios_are_read(block: str) -> None:
    assert parse_scenario(block).name in block


def test_the_commands() -> None:
    listed = set(re.findall(r"^\| `antiphon (\w+)", COMMANDS, re.MULTILINE))
    assert listed == {command.name for command in app.registered_commands}


def test_the_public_names() -> None:
    assert [name for name in antiphon.__all__ if f"`{name}`" not in API and not name.startswith("_")] == []
