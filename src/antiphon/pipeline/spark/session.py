"""One quiet Spark session: local unless a master is named, nothing left behind in the working directory.

A session costs seconds to start, so a command starts one and keeps it. What Spark reads from the environment
while it starts (Java, interpreter, address) is set for that moment only.
"""

import atexit
import logging
import os
import re
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from antiphon.errors import ConfigurationError, TraceError
from antiphon.pipeline.spark import shipping, workers
from antiphon.pipeline.spark.configuration import configuration_directory, configured
from antiphon.pipeline.spark.interrupts import HeldBack, interrupt_held_back
from antiphon.pipeline.spark.java import java_home
from antiphon.trace.places import Place

ATTEMPTS: Final = 4
"""How often a task is tried, as on a cluster: a Python worker may be killed when memory is short."""
_HEAP_MIB_MIN: Final = 2048
_OUT_OF_MEMORY: Final = ("OutOfMemoryError", "Java heap space", "GC overhead limit", "SparkContext was shut down")
_PACKAGE: Final = Path(__file__).parents[2]
_SOCKET_DIRECTORY_BYTES_MAX: Final = 60
"""The path of a Unix socket has at most 107 bytes, and Spark names it by a UUID: 43 more.

Spark does not authenticate connections there: the access rights of the directory (0700) protect it.
"""
_REQUIRED: Final = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}
"""Settings that results depend on; they cannot be chosen."""
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_LIGHT: Final = "-XX:TieredStopAtLevel=1"
"""For Java that only hands out tasks: its optimizing compiler would compete with the tasks. The user may replace it."""
_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_OF_A_SESSION: Final = (*_REQUIRED, "spark.sql.sources.parallelPartitionDiscovery.threshold")
"""Settings that are applied even if other code has started Spark in this process."""
_TALKATIVE: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers of pyspark that print each error of a query as JSON, also one that is handled."""
_WRAPPERS: Final = ("Exception thrown in awaitResult", "Job aborted due to stage failure")


def spark_session(
    master: str | None = None,
    app: str = "antiphon",
    *,
    conf: Mapping[str, str] | None = None,
    ship_packages: bool = False,
    light: bool = False,
) -> SparkSession:
    """The session of this process, started if there is none; `master` is `local[*]` unless given.

    `conf`: settings of Spark. They replace those of the user's configuration files, and these replace our defaults.
    `ship_packages`: send the packages that tasks import to the workers, which then need only Python.
    `light`: Python tasks do all the work. Java then starts sooner on this machine, and is slower at queries.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    chosen = configured() | dict(conf or {})
    master = master or chosen.get("spark.master", "local[*]")
    if re.match(r"(local|yarn)\b|(spark|k8s)://", master) is None:
        raise ConfigurationError(
            f"{master!r} is not a Spark master; use local[*], spark://host:port, yarn or k8s://host:port"
        )
    ship_packages = ship_packages and not _is_local(master)  # our own workers have our packages
    scratch = Path(tempfile.mkdtemp(prefix="antiphon-spark-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    with interrupt_held_back() as interrupt:  # interrupted while it starts, pyspark would leave a Java behind
        shipped = _shipped(scratch, chosen) if ship_packages else {}
        options = [_log_option(), _LIGHT if light and _is_local(master) else None, chosen.get(_JAVA_OPTIONS)]
        chosen |= {_JAVA_OPTIONS: " ".join(filter(None, options))}
        session = _started(master, app, scratch, interrupt, chosen, shipped)
        if _PARTITIONS not in chosen:
            session.conf.set(_PARTITIONS, 2 * session.sparkContext.defaultParallelism)
        if not _is_local(master) and not shipped:
            archive = shutil.make_archive(str(scratch / "antiphon"), "zip", _PACKAGE.parent, _PACKAGE.name)
            session.sparkContext.addPyFile(archive)
    return session


def works_here(spark: SparkSession) -> bool:
    """Whether this machine does all the work, so that there are no workers elsewhere."""
    return _is_local(spark.sparkContext.master or "")


@contextmanager
def as_trace_error(directory: Place) -> Iterator[None]:
    """Turns what Spark throws while it works on `directory` into a TraceError of one line."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        hint = ""
        if any(sign in str(error) for sign in _OUT_OF_MEMORY):
            hint = "; its memory may be too small: choose more with --driver-memory, or fewer cores with --master"
        raise TraceError(f"Spark failed on {directory}: {reason(error)}{hint}") from error


def _shipped(scratch: Path, chosen: Mapping[str, str]) -> dict[str, str]:
    """Settings that bring our packages to the workers, besides what the user brings there."""
    archive = scratch / f"{shipping.FOLDER}.tar"
    shipping.pack(_PACKAGE, archive)
    brought = [chosen.get("spark.archives"), f"{archive.as_uri()}#{shipping.FOLDER}"]
    paths = [shipping.FOLDER, chosen.get("spark.executorEnv.PYTHONPATH")]
    return {
        "spark.archives": ",".join(filter(None, brought)),
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }


def _started(
    master: str,
    app: str,
    scratch: Path,
    interrupt: HeldBack,
    chosen: Mapping[str, str],
    shipped: Mapping[str, str],
) -> SparkSession:
    settings = {
        **_settings(master, scratch),
        "spark.app.name": app,
        **chosen,
        **shipped,
        **_REQUIRED,
        "spark.master": _with_attempts(master),
    }
    try:
        with _environment(_variables(master)):
            context = SparkContext.getOrCreate(SparkConf().setAll([*settings.items()]))
        interrupt.hold()  # Spark has installed a handler of its own: it would ask a Java that may be busy or gone
        atexit.register(context.stop)  # before the directory goes
        if "ANTIPHON_SPARK_LOG" not in os.environ:
            for name in _TALKATIVE:
                PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
        return SparkSession(context, options={key: each for key, each in settings.items() if key in _OF_A_SESSION})
    except (PySparkException, Py4JError, OSError) as error:
        raise ConfigurationError(f"Spark did not start on {master}: {reason(error)}") from error


_MEMORY: Final = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(128 << 20),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""Workers keep memory of this size for the next array. To get it from the system each time took a sixth of the time.

Arrow has an allocator of its own, which returns memory after each file. With this setting Arrow and numpy share what is
kept: a tenth less time, and 100 MiB less in each worker.
"""


def _settings(master: str, scratch: Path) -> dict[str, str]:
    settings = {
        **{f"spark.executorEnv.{name}": value for name, value in _MEMORY.items()},
        "spark.driver.memory": f"{_heap_mib()}m",  # an upper bound; in local mode the driver is the executor too
        "spark.local.dir": str(scratch),
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",  # no job just to list files
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if _is_local(master):
        settings["spark.executorEnv.PYTHONPATH"] = _worker_path()
        settings["spark.python.daemon.module"] = workers.__name__
        if len(os.fsencode(scratch)) <= _SOCKET_DIRECTORY_BYTES_MAX:  # by TCP a task waits as long as it works
            settings["spark.python.unix.domain.socket.enabled"] = "true"
            settings["spark.python.unix.domain.socket.dir"] = str(scratch)
    return settings


def _heap_mib() -> int:
    """A quarter of the memory, as Java itself would take."""
    return max(_HEAP_MIB_MIN, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 22)


def _log_option() -> str:
    return f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"


def _variables(master: str) -> dict[str, str]:
    variables = {"JAVA_HOME": str(java_home())}
    if (directory := configuration_directory()) is not None:
        variables["SPARK_CONF_DIR"] = str(directory)
    home = Path(pyspark.__file__).parent
    if (home / "bin" / "spark-submit").exists():  # pip's own Spark, whatever else is installed
        variables["SPARK_HOME"] = str(home)
    if _is_local(master):
        return {**variables, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    return {**variables, "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)}


def _worker_path() -> str:
    """Where workers look for antiphon when it is not installed beside their interpreter's other packages."""
    root = str(_PACKAGE.parent)
    inherited = os.environ.get("PYTHONPATH", "")
    if root in sysconfig.get_paths().values():
        return inherited
    return os.pathsep.join(filter(None, [root, inherited]))


def _with_attempts(master: str) -> str:
    """A local master gives a task one attempt by default: a single dying Python worker would end everything."""
    alone = re.fullmatch(r"local(?:\[([^,\]]+)\])?", master)
    return master if alone is None else f"local[{alone[1] or 1},{ATTEMPTS}]"


def _is_local(master: str) -> bool:
    return re.fullmatch(r"local(\[.*\])?", master) is not None


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def reason(error: Exception) -> str:
    """One line of Spark's error: that of the outermost Java exception that does more than wrap another."""
    thrown = getattr(error, "java_exception", None)
    while thrown is not None:
        line = _first_line(thrown.getMessage())
        if line and not line.startswith(_WRAPPERS):
            return line
        thrown = thrown.getCause()
    return _first_line(str(error)) or type(error).__name__


def _first_line(text: str | None) -> str:
    """The line with the exception, from a Python worker's traceback."""
    _, traced, trace = (text or "").rpartition("Traceback (most recent call last):\n")
    lines = (line for line in trace.splitlines() if line.strip() and not (traced and line.startswith(" ")))
    line = next(lines, "").strip()
    told = re.sub(r"Query \[.*?\] terminated with exception: |\[[A-Z0-9_.]+\] | +SQLSTATE: \w{5}\b", "", line)
    return re.sub(r"\.?;? \(?(line \d+,? pos \d+)\)?;?$", r" (\1)", told)
