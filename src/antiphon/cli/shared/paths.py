"""Paths that the user names: arguments and options of commands."""

import re
from pathlib import Path
from typing import Any

import typer

from antiphon.errors import ConfigurationError


def path_argument(metavar: str, sentence: str) -> Any:
    """An argument that is a path; `sentence` is its help."""
    return typer.Argument(parser=_local, metavar=metavar, help=sentence)


def path_option(name: str, metavar: str, sentence: str) -> Any:
    """An option that is a path; `sentence` is its help."""
    return typer.Option(name, parser=_local, metavar=metavar, help=sentence)


def _local(text: str | Path) -> Path:
    """A path on this machine. Without this check, `s3a://b/x` would name a folder `s3a:` in the working directory."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", str(text)):
        raise ConfigurationError(f"{text} is a URI; only paths on this machine or on a mounted directory are possible")
    return Path(text)
