"""Places of files and directories: paths on this machine, and URIs of stores such as `s3a://bucket/run`.

A local place is a `pathlib.Path`, and behaves as such. A remote place has the same verbs as far as we need them
(`Place`). Where both differ, there is one function for both: `opened` and `written` for the bytes of a file, `listed`
for the files of a folder, `remove` for a directory. A store has no folders, no rename and no locks; what follows from
that is decided in `directory.py` and `unfinished.py`.
"""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any, Final, Protocol, TypeVar
from uuid import uuid4

from antiphon.errors import ConfigurationError, TraceError
from antiphon.trace import stores
from antiphon.trace.stores import HADOOP, S3, Access, told

REQUESTS_AT_ONCE: Final = 16
"""A request to a store mostly waits; this many wait together."""
_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
_FEW: Final = 4
"""Fewer items are not worth threads."""
_CHUNK_BYTES: Final = 1 << 20
_SLICE: Final = 8
"""The number of items that a thread takes at a time: a hundred thousand small ones need not wait one by one."""

AnyPlace = TypeVar("AnyPlace", bound="Place")
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Place(Protocol):
    """A file or a directory; the verbs are those of `Path`."""

    @property
    def name(self) -> str: ...
    @property
    def suffix(self) -> str: ...
    @property
    def parent(self) -> "Place": ...
    def __truediv__(self, name: str, /) -> "Place": ...
    def with_name(self, name: str, /) -> "Place": ...
    def with_suffix(self, suffix: str, /) -> "Place": ...
    def absolute(self) -> "Place": ...
    def exists(self) -> bool: ...
    def is_file(self) -> bool: ...
    def is_dir(self) -> bool: ...
    def iterdir(self) -> "Iterable[Place]": ...
    def glob(self, pattern: str, /) -> "Iterable[Place]": ...
    def read_text(self, encoding: str | None = ..., /) -> str: ...
    def write_text(self, data: str, encoding: str | None = ..., /) -> int: ...
    def mkdir(self, mode: int = ..., parents: bool = ..., exist_ok: bool = ...) -> None: ...
    def unlink(self, missing_ok: bool = ...) -> None: ...


@dataclass(frozen=True, slots=True)
class Remote:
    """A place in a store. It may be sent to a worker, and takes along how the driver reaches the store."""

    root: str
    """`s3a://bucket` or `hdfs://host:port`."""
    path: str
    """Below the root, without slashes at its ends; empty for the root itself."""

    def __str__(self) -> str:
        return f"{self.root}/{self.path}" if self.path else self.root

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self.root, self.path, stores.access())

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        stem, dot, rest = self.name.rpartition(".")
        return f"{dot}{rest}" if stem else ""

    @property
    def parent(self) -> "Remote":
        return Remote(self.root, self.path.rpartition("/")[0])

    def __truediv__(self, name: str, /) -> "Remote":
        return Remote(self.root, "/".join(filter(None, (self.path, name.strip("/")))))

    def with_name(self, name: str, /) -> "Remote":
        return self.parent / name

    def with_suffix(self, suffix: str, /) -> "Remote":
        return self.with_name(f"{self.name.removesuffix(self.suffix)}{suffix}")

    def absolute(self) -> "Remote":
        return self

    def exists(self) -> bool:
        return self._kind() != "NotFound"

    def is_file(self) -> bool:
        return self._kind() == "File"

    def is_dir(self) -> bool:
        return self._kind() == "Directory"

    def iterdir(self) -> "Iterator[Remote]":
        return (self / each.base_name for each in self.entries())

    def glob(self, pattern: str, /) -> "Iterator[Remote]":
        return (each for each in self.iterdir() if fnmatchcase(each.name, pattern))

    def read_text(self, encoding: str | None = None, /) -> str:
        with told(self), self.store.open_input_stream(self.address) as file:
            return bytes(file.read()).decode(encoding or "utf-8")

    def write_text(self, data: str, encoding: str | None = None, /) -> int:
        with told(self), self.store.open_output_stream(self.address) as file:
            file.write(data.encode(encoding or "utf-8"))
        return len(data)

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Nothing: folders come with their files."""

    def unlink(self, missing_ok: bool = False) -> None:
        with told(self):
            try:
                self.store.delete_file(self.address)
            except FileNotFoundError:
                if not missing_ok:
                    raise

    @property
    def store(self) -> Any:
        """Arrow's file system."""
        return stores.store(self.root)

    @property
    def address(self) -> str:
        """The path that Arrow's file system knows."""
        scheme, _, authority = self.root.partition("://")
        return f"/{self.path}" if scheme in HADOOP else "/".join(filter(None, (authority, self.path)))

    def entries(self, *, recursive: bool = False) -> list[Any]:
        """What Arrow lists below this folder; nothing if there is none."""
        from pyarrow.fs import FileSelector  # noqa: PLC0415 - takes long to import

        with told(self):
            found: list[Any] = self.store.get_file_info(
                FileSelector(self.address, recursive=recursive, allow_not_found=True)
            )
        return found

    def files_below(self) -> list[str]:
        """The paths of all files below this folder, relative to it."""
        start = len(self.address) + 1
        return sorted(each.path[start:] for each in self.entries(recursive=True) if each.is_file)

    def _kind(self) -> str:
        with told(self):
            return str(self.store.get_file_info(self.address).type.name)


def _arrived(root: str, path: str, access: Access) -> Remote:
    stores.take(access)
    return Remote(root, path)


def place_of(text: str | Path) -> Place:
    """The place that a user names; ConfigurationError for a scheme that we do not know."""
    uri = _URI.fullmatch(str(text))
    if uri is None:
        return Path(text)
    scheme, rest = uri[1].lower(), uri[2]
    authority, _, path = rest.partition("/")
    if scheme == "file" and authority in ("", "localhost"):
        return Path(f"/{path}")
    if scheme not in (*S3, *HADOOP):
        raise ConfigurationError(f"{text} has a scheme that is not known; use a path, s3a://bucket/path or hdfs://…")
    if scheme in S3 and not authority:
        raise ConfigurationError(f"{text} names no bucket; write s3a://bucket/path")
    return Remote(f"{scheme}://{authority}", "/".join(part for part in path.split("/") if part))


def require_reachable(directory: Place) -> None:
    """TraceError if there is no such directory."""
    if directory.exists():
        return
    if isinstance(directory, Remote):
        require_root(directory)
    raise TraceError(f"{directory} does not exist")


def require_root(place: Remote) -> None:
    """TraceError if there is no such bucket."""
    if not Remote(place.root, "").exists():
        raise TraceError(f"{place} does not exist: there is no {place.root}")


def require_target(directory: Remote) -> None:
    """TraceError if nothing can be written there; a whole bucket is never replaced."""
    require_root(directory)
    if not directory.path:
        raise TraceError(f"{directory} is a whole bucket; name a directory in it for the output")


def is_local(place: Place) -> bool:
    """Whether other programs on this machine find it by its path."""
    return isinstance(place, Path)


def opened(place: Place) -> Any:
    """What Arrow reads a file from: the path of a local file, else the open file."""
    if not isinstance(place, Remote):
        return place
    with told(place):
        return place.store.open_input_file(place.address)


def listed(folder: Place, suffix: str) -> list[tuple[Place, int]]:
    """The entries of a folder whose names end so, by name and with their sizes; none if there is no such folder."""
    found: list[tuple[Place, int]]
    if isinstance(folder, Remote):
        found = [
            (folder / each.base_name, each.size) for each in folder.entries() if each.is_file and each.size is not None
        ]
    else:
        found = [(path, _size(path)) for path in folder.iterdir()] if folder.is_dir() else []
    named = (each for each in found if each[0].name.endswith(suffix))
    return sorted((each for each in named if not each[0].name.startswith((".", "_"))), key=lambda each: each[0].name)


def _size(path: Place) -> int:
    assert isinstance(path, Path)
    return path.stat().st_size


@contextmanager
def written(place: Place) -> Iterator[IO[bytes]]:
    """A file that appears complete or not at all: renamed, or sent to the store, when the block ends."""
    if isinstance(place, Remote):
        with tempfile.TemporaryFile(prefix="antiphon-") as aside:
            yield aside
            aside.seek(0)
            with told(place), place.store.open_output_stream(place.address) as sink:
                shutil.copyfileobj(aside, sink, _CHUNK_BYTES)
        return
    assert isinstance(place, Path)
    part = place.with_name(f".{uuid4()}")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)


def remove(directory: Place) -> None:
    """Remove a directory with all that is in it; nothing if there is none."""
    if isinstance(directory, Remote):
        if directory.exists():
            with told(directory):
                directory.store.delete_dir(directory.address)
    else:
        shutil.rmtree(str(directory), ignore_errors=True)


def copy(source: Remote, names: Iterable[str], target: Remote) -> None:
    """Copy files inside their store."""

    def send(name: str) -> None:
        here, there = (source / name).address, (target / name).address
        with told(target):
            if source.root.startswith(HADOOP):  # Arrow cannot ask HDFS to copy
                with source.store.open_input_stream(here) as file, source.store.open_output_stream(there) as sink:
                    shutil.copyfileobj(file, sink, _CHUNK_BYTES)
            else:
                source.store.copy_file(here, there)

    in_parallel(send, [*names])


def in_parallel(work: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """The results in the order of the items; requests to a store mostly wait, and then they wait together."""
    if len(items) < _FEW:
        return [work(item) for item in items]
    pool = ThreadPoolExecutor(REQUESTS_AT_ONCE)
    try:
        slices = [items[start : start + _SLICE] for start in range(0, len(items), _SLICE)]
        return [result for own in pool.map(lambda own: [work(item) for item in own], slices) for result in own]
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
