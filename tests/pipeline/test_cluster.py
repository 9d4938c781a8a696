"""A standalone cluster of two workers on this machine: `--master` gives what this machine alone gives."""

import json
import os
import socket
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyspark
import pytest

from antiphon.pipeline.spark.java import java_home
from tests.support.console import Console, program
from tests.support.patience import SECONDS_MAX, until
from tests.support.store import new_bucket, s3_server, variables

SPARK = Path(pyspark.__file__).parent
PACKAGES = Path(__file__).parents[2] / "src"
SWEEP = """
name = "clustered"
[options]
suspect_after = "0s"
[[group]]
name = "orders"
members = 2
[[workload]]
group = "orders"
messages = 5
[sweep]
"group.orders.members" = [2, 3]
seeds = 3
"""


@contextmanager
def daemon(log: Path, kind: str, *arguments: str) -> Iterator[None]:
    """A master or worker of Spark, told to end at the end. It has nothing of ours on its path."""
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {
        "JAVA_HOME": str(java_home()),
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    command = [str(SPARK / "bin/spark-class"), f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1"]
    with log.open("w") as file:
        process = subprocess.Popen(
            [*command, "--webui-port", "0", *arguments],
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


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """The address of its master."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    workers = [tmp_path / f"worker{number}" for number in (1, 2)]
    with ExitStack() as daemons:
        daemons.enter_context(daemon(tmp_path / "master.log", "master.Master", "--port", str(port)))
        for place in workers:
            arguments = ("--cores", "1", "--memory", "1g", "--work-dir", str(place), url)
            daemons.enter_context(daemon(place.with_suffix(".log"), "worker.Worker", *arguments))
        logs = [place.with_suffix(".log") for place in workers]
        until(lambda: all("registered with master" in log.read_text() for log in logs), "a worker at the master")
        yield url


def on_the_cluster(commands: list[list[str]], **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", program(commands)],
        env={**os.environ, "PYTHONPATH": str(PACKAGES), **variables},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


def documents(text: str) -> list[Any]:
    """The JSON documents among what several commands print."""
    found, rest = [], text
    while "{" in rest:
        rest = rest[rest.index("{") :]
        document, end = json.JSONDecoder().raw_decode(rest)
        found.append(document)
        rest = rest[end:]
    return found


@pytest.fixture
def antiphon(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Console:
    return Console(monkeypatch, capsys)


@pytest.mark.usefixtures("spark")
def test_a_cluster_gives_what_one_machine_gives(cluster: str, antiphon: Console, tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP)
    there, here = tmp_path / "there", tmp_path / "here"
    stored = "s3a://bucket/there"  # the workers have no variables of the store: the driver tells them
    question = "SELECT count(*) AS n FROM events"
    commands = [
        ["sweep", str(path), "--out", str(there), "--traces", "--master", cluster],
        ["check", str(there), "--json", "--master", cluster],
        ["sweep", str(path), "--out", stored, "--traces", "--json", "--master", cluster],
        ["check", stored, "--json", "--master", cluster],
        ["sql", stored, question, "--json", "--master", cluster],
    ]
    with s3_server() as address:
        new_bucket(address, "bucket")
        process = on_the_cluster(commands, **variables(address))
    assert (process.returncode, process.stderr) == (0, "")
    assert len([*tmp_path.glob("worker*/app-*")]) == 2, "each of the two has worked"
    assert antiphon("sweep", path, "--out", here, "--traces").code == 0
    assert pq.read_table(there / "figures.parquet").equals(pq.read_table(here / "figures.parquet"))
    judged, swept, judged_in_store, asked = documents(process.stdout)
    assert judged == judged_in_store == json.loads(antiphon("check", here, "--json").out)
    assert swept == json.loads((there / "sweep.json").read_text())
    events = sum(pq.read_metadata(events).num_rows for events in (here / "events").iterdir())
    assert asked["rows"] == [{"n": events}]

    bare = tmp_path / "bare"  # a Python without packages
    venv.create(bare, symlinks=True)
    check = ["check", str(there), "--json", "--master", cluster]
    without = on_the_cluster([check], PYSPARK_PYTHON=str(bare / "bin/python"))
    assert without.returncode
    assert "Spark failed on" in without.stderr
    assert "No module named" in without.stderr
    shipped = on_the_cluster([[*check, "--ship-packages"]], PYSPARK_PYTHON=str(bare / "bin/python"))
    assert (shipped.returncode, shipped.stderr) == (0, "")
    assert json.loads(shipped.stdout) == judged
