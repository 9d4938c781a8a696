"""Output of commands: tables and sentences for people, one JSON document for programs, progress on a terminal only."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

READER_LEFT: Final = 141
"""The exit code that a shell reports for a program whose reader closed the pipe; 1 would mean "the answer is no"."""


def _reader_left() -> NoReturn:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter complains at exit
    sys.exit(READER_LEFT)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        _reader_left()


out = _Console(width=None if sys.stdout.isatty() else 120)
err = Console(stderr=True)


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document to standard output instead of tables.")]


def as_json(document: Any) -> str:
    """Format a document as indented JSON."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def print_json(document: Any) -> None:
    """Print the document of a command under `--json`."""
    print_text(as_json(document))


def print_text(text: str) -> None:
    """Print text as it is, for programs."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _reader_left()


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on a terminal, nothing when piped; yields the function to call with (done, total)."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show a spinner on a terminal while something takes time."""
    if not err.is_terminal:
        yield
        return
    with err.status(what):
        yield
