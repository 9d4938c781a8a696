"""The README is correct: its code, its output, its picture, its commands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.cli.app import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(kind: str, after: str) -> str:
    found = re.search(rf"```{kind}\n(.*?)```", README[README.index(after) :], re.DOTALL)
    assert found is not None, f"there is no {kind} block after {after!r}"
    return found[1]


def output(*command: str, code: int) -> str:
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stderr) == (code, "")
    return done.stdout


def test_the_example_is_the_file() -> None:
    text = (ROOT / "examples/two_members.py").read_text(encoding="utf-8")
    assert text.partition('"""\n\n')[2] == block("python", "## Two members that agree")


def test_two_members_deliver_the_same_messages_in_the_same_order() -> None:
    def lists(text: str) -> list[str]:
        ann, bob = text.splitlines()
        assert (ann.partition(" [")[0], bob.partition(" [")[0]) == ("ann delivers", "bob delivers")
        assert ann.partition(" [")[2] == bob.partition(" [")[2]
        return re.findall(r"'(.*?)'", ann)

    shown, printed = lists(block("text", "## Two members that agree")), lists(output("examples/two_members.py", code=0))
    assert sorted(printed) == sorted(shown)  # which of the orders it is differs from run to run
    for member in ("ann", "bob"):
        assert [bid for bid in printed if bid.startswith(member)] == [bid for bid in shown if bid.startswith(member)]


def test_the_violation_is_found_with_its_witness() -> None:
    command, _, shown = block("console", "## A violation").partition("\n")
    assert command.startswith("$ antiphon ")
    printed = output("-m", "antiphon.cli.main", *command.split()[2:], code=1)
    assert steady(printed) == steady(shown)


def steady(text: str) -> str:
    """The output without its durations."""
    return re.sub(r"simulated in [\d.]+ s", "simulated in a while", text)


@pytest.mark.parametrize("line", block("sh", "## Five commands").splitlines())
def test_each_command_is_there_with_the_files_it_names(line: str) -> None:
    program, command, *arguments = line.partition("#")[0].split()
    if program == "make":
        assert re.search(rf"^{command}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return
    assert program == "antiphon"
    assert command in {each.name or each.callback.__name__ for each in app.registered_commands if each.callback}
    for path in arguments:
        assert (ROOT / path).exists() or not path.endswith(".toml"), path


def test_the_readme_is_short_and_its_picture_is_small() -> None:
    assert len(README.splitlines()) <= 120
    (picture,) = re.findall(r"!\[.+\]\((.+)\)", README)
    assert (ROOT / picture).read_bytes().startswith(b"\x89PNG")
    assert (ROOT / picture).stat().st_size < 200_000
