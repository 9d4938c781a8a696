"""The packages that workers of a cluster need, as one archive that Spark unpacks beside each executor.

It holds antiphon, and the installed files of the distributions that its tasks import. Spark brings pyspark itself. The
workers need a Python of the same version and machine, and nothing else.
"""

import tarfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from antiphon.errors import ConfigurationError

FOLDER: Final = "antiphon-packages"
"""Where an executor finds the unpacked archive, below its working directory."""
_NEEDED: Final = (
    "msgspec",
    "numpy",
    "pandas",
    "pyarrow",
    "python-dateutil",
    "pytz",
    "six",
    "tomli-w",
    "tzdata",
    "xxhash",
)
_OPTIONAL: Final = frozenset({"pytz", "six", "tzdata"})
"""Some versions of the others need these."""
_UNUSED: Final = ("pandas/tests/", "pyarrow/include/", "pyarrow/tests/")
"""A third of all files: each worker would unpack them for nothing."""


def pack(package: Path, archive: Path) -> None:
    """Write the archive: `package` is the folder of antiphon."""
    with tarfile.open(archive, "w") as tar:  # compressing takes longer than copying
        tar.add(package, package.name, filter=_without_caches)
        for name, path in _installed():
            tar.add(path, name, recursive=False)


def _installed() -> Iterator[tuple[str, Path]]:
    """The installed files, by their names below the folder of packages."""
    for name in _NEEDED:
        found = _found(name)
        for file in (found.files or ()) if found is not None else ():
            path = Path(str(file.locate()))
            is_used = not {"..", "__pycache__"} & {*file.parts} and not str(file).startswith(_UNUSED)
            if is_used and path.is_file():
                yield str(file), path


def _found(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError as error:
        if name in _OPTIONAL:
            return None
        raise ConfigurationError(f"--ship-packages cannot send {name}: it is not installed here") from error


def _without_caches(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in entry.name else entry
