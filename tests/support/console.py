"""The command line as a user has it: arguments in; exit code, standard output and standard error out."""

import logging
import signal
import sys
from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from antiphon.cli.main import main

_COMMANDS = """
import sys
from antiphon.cli.main import main
for arguments in {commands!r}:
    sys.argv = ["antiphon", *arguments]
    try:
        main()
    except SystemExit as end:
        assert not end.code, arguments
"""


def program(commands: Iterable[list[str]]) -> str:
    """A Python program that runs several commands in one Spark session, because a session takes long to start."""
    return _COMMANDS.format(commands=[*commands])


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


def exit_code(patch: pytest.MonkeyPatch, *arguments: object) -> int:
    """Call the console script's entry point in this process."""
    patch.setattr(sys, "argv", ["antiphon", *map(str, arguments)])
    handler, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
    try:
        with pytest.raises(SystemExit) as stop:
            main()
    finally:  # a command ends its process, so it does not restore these itself
        signal.signal(signal.SIGINT, handler)
        sys.unraisablehook = hook
        logging.disable(logging.NOTSET)
    return int(stop.value.code or 0)


class Console:
    """Calls the console script's entry point in this process, so that commands share the tests' Spark session."""

    def __init__(self, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self._patch = patch
        self._capture = capture

    def __call__(self, *arguments: object) -> Result:
        self._capture.readouterr()
        code = exit_code(self._patch, *arguments)
        captured = self._capture.readouterr()
        return Result(code, captured.out, captured.err)

    def refused(self, *arguments: object) -> str:
        """Run something that cannot work: exit code 2, one sentence, nothing on standard output."""
        result = self(*arguments)
        assert (result.code, result.out) == (2, "")
        sentence = result.err.rstrip("\n")
        assert sentence.startswith("antiphon: ")
        assert "\n" not in sentence
        return sentence
