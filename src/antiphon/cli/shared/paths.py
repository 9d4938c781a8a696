"""Paths that the user names: arguments and options of commands; some of them may be in a store."""

import re
from pathlib import Path
from typing import Any

import typer

from antiphon.errors import ConfigurationError
from antiphon.trace.places import Place, place_of


def path_argument(metavar: str, sentence: str) -> Any:
    """An argument that is a path; `sentence` is its help."""
    return typer.Argument(parser=_local, metavar=metavar, help=sentence)


def path_option(name: str, metavar: str, sentence: str) -> Any:
    """An option that is a path; `sentence` is its help."""
    return typer.Option(name, parser=_local, metavar=metavar, help=sentence)


def place_argument(metavar: str, sentence: str) -> Any:
    """An argument that is a path or a URI; `sentence` is its help."""
    return typer.Argument(parser=_place, metavar=metavar, help=sentence)


def place_option(name: str, metavar: str, sentence: str) -> Any:
    """An option that is a path or a URI; `sentence` is its help."""
    return typer.Option(name, parser=_place, metavar=metavar, help=sentence)


def _place(text: "str | Place") -> Place:
    return place_of(text) if isinstance(text, str) else text


def _local(text: str | Path) -> Path:
    """A path on this machine. Without this check, `s3a://b/x` would name a folder `s3a:` in the working directory."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", str(text)):
        raise ConfigurationError(f"{text} is a URI; only paths on this machine or on a mounted directory are possible")
    return Path(text)
