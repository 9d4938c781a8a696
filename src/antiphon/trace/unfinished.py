"""Directories that are filled over several calls: one begins, is interrupted, and the next goes on.

Until it is complete a directory lies beside its place, as `NAME.unfinished`; so whatever stands at its place is whole.
`plan.json` in it says what it is to become, and by which code: what another plan or other code has begun is not
continued.
"""

import fcntl
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from antiphon import __version__
from antiphon.errors import TraceError
from antiphon.trace.directory import appearing, take_place

PARTS: Final = "parts"
"""What is done so far lies there; it goes when all is done."""
_PLAN: Final = "plan.json"
_PACKAGE: Final = Path(__file__).parents[1]


def unfinished(directory: Path) -> Path:
    """Where a directory lies until it is complete."""
    directory = directory.resolve()
    return directory.with_name(f"{directory.name}.unfinished")


@contextmanager
def continued(directory: Path, plan: Mapping[str, Any], *, force: bool) -> Iterator[Path]:
    """The directory to fill, with what earlier calls have left in it; it takes its place if nothing is raised.

    With `force` what another plan has begun is thrown away.
    """
    aside = unfinished(directory)
    wanted = {**plan, "antiphon_version": __version__, "code": _code()}
    if aside.exists() and _plan(aside) != wanted:
        if not force:
            raise TraceError(f"{aside} was begun otherwise or by other code; remove it or use --force to begin anew")
        with _alone(aside):  # what somebody is working on is nobody else's to remove
            shutil.rmtree(aside)
    if not aside.exists():
        with appearing(aside) as empty:
            (empty / _PLAN).write_text(json.dumps(wanted, indent=2) + "\n", encoding="utf-8")
    with _alone(aside):
        try:
            yield aside
        except BaseException:
            if not any((aside / PARTS).glob("*.parquet")):
                shutil.rmtree(aside)  # there is nothing to continue
            raise
        take_place(aside, directory.resolve())
        (directory / _PLAN).unlink()
        shutil.rmtree(directory / PARTS, ignore_errors=True)


@contextmanager
def _alone(aside: Path) -> Iterator[None]:
    """No other command is at work there meanwhile; TraceError if one is."""
    with (aside / _PLAN).open() as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise TraceError(f"another command is at work in {aside}") from error
        yield


def _plan(aside: Path) -> Any:
    """What it was begun for; whatever has no plan is not ours, and is never removed."""
    try:
        return json.loads((aside / _PLAN).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TraceError(f"{aside} is in the way: it is not what an interrupted command leaves") from error


def _code() -> str:
    """A digest of our own source: results of different code must not be mixed."""
    digest = blake2b(digest_size=8)
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
