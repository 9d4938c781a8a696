"""A protocol family of another package: the one that docs/guide/new-protocol.md writes, installed and run.

Commands run in processes of their own, because installed packages are looked for once per process. Those that need
Spark share one process: it takes long to start.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from antiphon.properties.families import promised_by
from antiphon.protocols.registry import families
from tests.support.console import program

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "examples/fixed-sequencer"
GUIDE = ROOT / "docs/guide/new-protocol.md"
NAME: Final = "fixed-sequencer"
SCENARIO = """
name = "numbered"
protocol = "fixed-sequencer"
[[group]]
name = "g"
members = 3
[[workload]]
group = "g"
messages = 10
interval = "5ms"
jitter = 1.0
"""


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


def test_the_guide_shows_the_package() -> None:
    """Under the heading of each file, its pieces in order; blank lines between them do not count."""
    shown = 0
    for part in GUIDE.read_text(encoding="utf-8").split("\n## ")[1:]:
        named = re.match(r".*`(\S+\.(?:py|toml))`\n", part)
        if named is None:
            continue
        pieces = re.findall(r"```(?:python|toml)\n(.*?)```", part, re.DOTALL)
        assert lines("".join(pieces)) == lines((PACKAGE / named[1]).read_text(encoding="utf-8")), named[1]
        shown += 1
    files = [path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"]
    assert shown == len(files) + 1


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package and its metadata, as setuptools makes them of `pyproject.toml`, without a network."""
    place = tmp_path_factory.mktemp("site")
    source = shutil.copytree(PACKAGE, tmp_path_factory.mktemp("source") / "package")
    build = [sys.executable, "-c", "import setuptools; setuptools.setup()", "-q"]
    steps = ["build_py", "--build-lib", str(place), "egg_info", "--egg-base", str(place)]
    subprocess.run([*build, *steps], cwd=source, check=True, capture_output=True, timeout=120)
    return place


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scenario") / "numbered.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def antiphon(installed: Path, *arguments: str | Path, code: int = 0) -> str:
    return python(installed, "-m", "antiphon.cli.main", *map(str, arguments), code=code)


def python(installed: Path, *arguments: str, code: int = 0) -> str:
    path = os.pathsep.join(map(str, (ROOT / "src", installed)))
    ended = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended.stdout if code == 0 else ended.stderr


def promised(document: dict[str, Any]) -> dict[str, str]:
    """By property, the outcome where it was promised."""
    found = {each["property"]: each["outcome"] for each in document["properties"]}
    return {name: outcome for name, outcome in found.items() if outcome != "not promised"}


@pytest.fixture(scope="module")
def simulated(installed: Path, scenario: Path) -> Path:
    out = scenario.parent / "simulated"
    antiphon(installed, "simulate", scenario, "--out", out)
    return out


@pytest.fixture(scope="module")
def played(installed: Path, scenario: Path) -> Path:
    """With real processes over TCP."""
    out = scenario.parent / "played"
    antiphon(installed, "run", scenario, "--out", out)
    return out


COMPARED = [f"{NAME}:total", "classic:total"]


@pytest.fixture(scope="module")
def documents(installed: Path, scenario: Path, simulated: Path, played: Path) -> dict[str, Any]:
    """What commands under Spark say, by a name for each."""
    compared = ["--protocols", ",".join(COMPARED), "--no-page", "--out", str(scenario.parent / "compared")]
    commands = {
        "simulated": ["check", str(simulated), "--json"],
        "played": ["check", str(played), "--json"],
        "campaign": ["campaign", NAME, "--runs", "10", "--json"],
        "compared": ["compare", str(scenario), *compared, "--json"],
    }
    text, found = python(installed, "-c", program(commands.values())), []
    while text := text.strip():
        document, end = json.JSONDecoder().raw_decode(text)
        found.append(document)
        text = text[end:]
    return dict(zip(commands, found, strict=True))


@pytest.mark.parametrize("source", ["simulated", "played"])
def test_its_runs_are_judged_by_its_own_promises(documents: dict[str, Any], source: str) -> None:
    found = promised(documents[source])
    assert {*found} == {*"W D1 D2 D3 O1 O2 O3 O4 O5 O6 O8 L2 L3 L8".split()}
    assert {found[name] for name in ("D1", "O1", "O6", "O8", "L2", "L3")} == {"pass"}


def test_campaigns_run_random_scenarios_of_the_package(installed: Path, documents: dict[str, Any]) -> None:
    assert NAME in antiphon(installed, "campaign", "--list")
    assert documents["campaign"]["verdict"] == "pass"


def test_the_package_is_compared_with_other_protocols(documents: dict[str, Any]) -> None:
    assert [each["protocol"] for each in documents["compared"]["protocols"]] == COMPARED
    assert documents["compared"]["verdict"] == "hold"


@pytest.mark.parametrize(
    ("added", "sentence"),
    [
        ('[options]\nsequencer = "p9"\n', "options.sequencer: is not a member of group g"),
        ("[options]\nwindow = 5\n", f"options.window: has no effect: {NAME} has no such option"),
        ("[options]\nspeed = 5\n", "options: unknown key `speed`"),
        ('[[fault]]\nat = "1s"\nkind = "crash"\nprocess = "p1"\n', "fault[0].kind: 'crash' is not available"),
    ],
)
def test_unsupported_scenarios_are_refused(installed: Path, tmp_path: Path, added: str, sentence: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(SCENARIO + added, encoding="utf-8")
    assert sentence in " ".join(antiphon(installed, "simulate", path, code=2).split())


def test_without_the_package_its_protocol_is_unknown() -> None:
    assert NAME not in families()
    assert not promised_by(NAME).services
