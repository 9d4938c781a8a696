"""A standalone cluster of Spark with two workers: on hosts of their own, or as processes of this machine."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyspark

from antiphon.pipeline.spark.java import java_home
from tests.support.console import Result
from tests.support.hosts import Host, hosts
from tests.support.patience import SECONDS_MAX, until

WORKERS: Final = 2
_LIGHT: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java for short work: these processes live for a minute."""
LIGHT: Final = (f"spark.driver.extraJavaOptions={_LIGHT}", f"spark.executor.extraJavaOptions={_LIGHT}")
BOTH: Final = (
    *LIGHT,
    "spark.cores.max=2",
    "spark.scheduler.minRegisteredResourcesRatio=1.0",
    f"spark.scheduler.maxRegisteredResourcesWaitingTime={SECONDS_MAX:.0f}s",
)
"""Settings for a session that waits until it has both workers, so that both get work."""
_SPARK: Final = Path(pyspark.__file__).parent
_PACKAGES: Final = Path(__file__).parents[2] / "src"
_COMMANDS: Final = """
import contextlib, io, json, logging, shutil, sys
from antiphon.cli.main import main
for arguments in {commands!r}:
    if arguments[0] == "copy":
        shutil.copytree(*arguments[1:])
        continue
    sys.argv = ["antiphon", *arguments]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    logging.disable(logging.NOTSET)
    print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
"""


@dataclass(frozen=True)
class SparkCluster:
    """A running cluster. Commands are called where its master is."""

    url: str
    place: Path
    master: Host

    @property
    def shared(self) -> Path:
        """A folder that all see."""
        return self.place / "shared"

    @property
    def half_shared(self) -> Path:
        """A folder that the second worker finds empty, if the workers are on hosts of their own."""
        return self.place / "half-shared"

    @property
    def workers_used(self) -> int:
        """The number of workers that had something to do so far."""
        return len({path.parent for path in self.place.glob("worker*/app-*")})

    def run(self, commands: Iterable[Sequence[object]], **variables: str) -> list[Result]:
        """Call antiphon with each of these arguments, in one process and so in one Spark session.

        `copy FROM TO` copies a folder between two commands, and has no result.
        """
        asked = [[*map(str, arguments)] for arguments in commands]
        program = _COMMANDS.format(commands=asked)
        done = subprocess.run(
            self.master.command(sys.executable, "-c", program),
            env=os.environ
            | {"PYTHONPATH": str(_PACKAGES), "SPARK_LOCAL_IP": self.master.address}
            | {"TMPDIR": str(self.place / "driver"), **variables},
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX * len(asked),
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stderr)
        return [Result(*json.loads(line)) for line in done.stdout.splitlines()]


@contextmanager
def spark_cluster(place: Path, *, apart: bool) -> Iterator[SparkCluster]:
    """A cluster whose files are in `place`.

    `apart`: each worker has a network and a view of the files of its own. The temporary folder of the driver, and what
    the other worker writes, are hidden from it; one more folder is hidden from the second worker.
    """
    private = [place / name for name in ("driver", "worker1", "worker2")]
    for folder in (*private, place / "shared", place / "half-shared"):
        folder.mkdir()
    with ExitStack() as stack:
        master, *workers = stack.enter_context(hosts(1 + WORKERS)) if apart else [Host()] * (1 + WORKERS)
        port = _free_port() if not apart else 7077
        url = f"spark://{master.address}:{port}"
        stack.enter_context(_daemon(master, place / "master.log", "master.Master", "--port", str(port)))
        logs = []
        for host, folder in zip(workers, private[1:], strict=True):
            hidden = [each for each in private if each != folder] if apart else []
            if apart and host is workers[-1]:
                hidden.append(place / "half-shared")
            logs.append(folder.with_suffix(".log"))
            arguments = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder), url)
            stack.enter_context(_daemon(host, logs[-1], "worker.Worker", *arguments, hidden=hidden))
        until(lambda: all("registered with master" in log.read_text() for log in logs), "a worker at the master")
        yield SparkCluster(url, place, master)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


@contextmanager
def _daemon(host: Host, log: Path, kind: str, *arguments: str, hidden: Sequence[Path] = ()) -> Iterator[None]:
    """A master or worker of Spark, told to end at the end. It has nothing of ours on its path."""
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {
        "JAVA_HOME": str(java_home()),
        "SPARK_HOME": str(_SPARK),
        "SPARK_LOCAL_IP": host.address,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": _LIGHT,
    }
    start = [str(_SPARK / "bin/spark-class"), f"org.apache.spark.deploy.{kind}", "--host", host.address]
    with log.open("w") as file:
        process = subprocess.Popen(
            host.command(*start, "--webui-port", "0", *arguments, hidden=hidden),
            env=environ,
            cwd=log.parent,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=SECONDS_MAX)
