"""Directories that are filled over several calls: one is interrupted, and the next continues.

Until it is complete, a directory is beside its place, as `NAME.unfinished`; so a directory at its place is complete.
`plan.json` in it contains the plan and a digest of the code: a directory of another plan or other code is not
continued.

A store has neither renames nor locks. There a directory is filled below a name with the digest of its plan, so another
plan cannot mix with it. Two commands with the same plan write the same bytes, and do no harm to each other.
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
from antiphon.trace.directory import PARTS, appearing, take_place
from antiphon.trace.places import AnyPlace, Place, Remote, require_target

_PLAN: Final = "plan.json"
_PACKAGE: Final = Path(__file__).parents[1]


def unfinished(directory: Place, plan: Mapping[str, Any]) -> Place:
    """The place of a directory until it is complete."""
    if isinstance(directory, Remote):
        text = json.dumps(_whole(plan), sort_keys=True)
        digest = blake2b(text.encode(), digest_size=8).hexdigest()
        return directory.with_name(f"{directory.name}.unfinished-{digest}")
    assert isinstance(directory, Path)
    directory = directory.resolve()
    return directory.with_name(f"{directory.name}.unfinished")


@contextmanager
def continued(directory: AnyPlace, plan: Mapping[str, Any], *, force: bool) -> Iterator[AnyPlace]:
    """The directory to fill, with the results of earlier calls; it is moved to its place if nothing is raised.

    With `force`, a directory of another plan is removed.
    """
    aside: Any = unfinished(directory, plan)
    if isinstance(directory, Remote):
        require_target(directory)
        (aside / _PLAN).write_text(_text(plan), "utf-8")
        yield aside
        take_place(aside, directory, plan=_PLAN)
        return
    assert isinstance(directory, Path)
    with _continued_here(aside, directory, plan, force=force):
        yield aside


@contextmanager
def _continued_here(aside: Path, directory: Path, plan: Mapping[str, Any], *, force: bool) -> Iterator[None]:
    if aside.exists() and _plan(aside) != _whole(plan):
        if not force:
            raise TraceError(
                f"{aside} was started with other arguments or another version; remove it or use --force to start again"
            )
        with _alone(aside):  # another command may be writing to it: never remove it then
            shutil.rmtree(aside)
    if not aside.exists():
        with appearing(aside) as empty:
            (empty / _PLAN).write_text(_text(plan), "utf-8")
    with _alone(aside):
        try:
            yield
        except BaseException:
            if not any((aside / PARTS).glob("*.parquet")):
                shutil.rmtree(aside)  # there is nothing to continue
            raise
        take_place(aside, directory)
        (directory / _PLAN).unlink()
        shutil.rmtree(directory / PARTS, ignore_errors=True)


def _whole(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The plan, with the code that carries it out."""
    return {**plan, "antiphon_version": __version__, "code": _code()}


def _text(plan: Mapping[str, Any]) -> str:
    return json.dumps(_whole(plan), indent=2) + "\n"


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
