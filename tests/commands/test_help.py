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
    "demo simulate run watch check stats tables report campaign sweep compare bench".split(),
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


def test_what_is_not_installed_is_named() -> None:
    without = "import sys; sys.modules['typer'] = None; from antiphon.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "antiphon: the command line needs typer: install it with `pip install antiphon[cli]`\n"


def test_a_closed_standard_error_changes_no_exit_code() -> None:
    command = f'"{sys.executable}" -m antiphon.cli.main check nowhere 2>&-'
    assert subprocess.run(command, shell=True, check=False).returncode == 2


def test_an_interrupt_while_modules_are_loaded_ends_quietly() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_EARLY], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "antiphon: interrupted; no unfinished files were left\n"
