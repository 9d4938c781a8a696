"""Directories that are filled over several calls: one is interrupted, and the next continues.

Until it is complete, a directory is beside its place, as `NAME.unfinished`; so a directory at its place is complete.
`plan.json` in it contains the plan and a digest of the code: a directory of another plan or other code is not
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
"""The folder of partial results; removed when everything is done."""
_PLAN: Final = "plan.json"
_PACKAGE: Final = Path(__file__).parents[1]


def unfinished(directory: Path) -> Path:
    """The place of a directory until it is complete."""
    directory = directory.resolve()
    return directory.with_name(f"{directory.name}.unfinished")


@contextmanager
def continued(directory: Path, plan: Mapping[str, Any], *, force: bool) -> Iterator[Path]:
    """The directory to fill, with the results of earlier calls; it is moved to its place if nothing is raised.

    With `force`, a directory of another plan is removed.
    """
    aside = unfinished(directory)
    wanted = {**plan, "antiphon_version": __version__, "code": _code()}
    if aside.exists() and _plan(aside) != wanted:
        if not force:
            raise TraceError(
                f"{aside} was started with other arguments or another version; remove it or use --force to start again"
            )
        with _alone(aside):  # another command may be writing to it: never remove it then
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
    """Lock the directory; TraceError if another command is writing to it."""
    with (aside / _PLAN).open() as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise TraceError(f"another command is writing to {aside}") from error
        yield


def _plan(aside: Path) -> Any:
    """The plan of the directory; one without a plan is not ours, and is never removed."""
    try:
        return json.loads((aside / _PLAN).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TraceError(f"{aside} already exists, and an interrupted command did not write it") from error


def _code() -> str:
    """A digest of our own source: results of different code must not be mixed."""
    digest = blake2b(digest_size=8)
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
