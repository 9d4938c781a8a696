"""Every command on a standalone cluster of two workers: what this machine alone gives, or one sentence.

With root, each worker has a network and a view of the files of its own (`tests/support/hosts.py`). The second one does
not see one of the folders: no command may give a smaller result then.
"""

import json
import re
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.console import Console, Result
from tests.support.hosts import obstacle
from tests.support.spark_cluster import BOTH, LIGHT, WORKERS, SparkCluster, spark_cluster
from tests.support.store import s3_server, variables

SCENARIO = """
name = "clustered"
[options]
suspect_after = "0s"
[[group]]
name = "orders"
members = 2
[[workload]]
group = "orders"
messages = 5
"""
SWEEP = f"""{SCENARIO}
[sweep]
"group.orders.members" = [2, 3]
seeds = 3
"""
QUESTION = """
SELECT e.run, count(*) AS events, max(v.opportunities) AS most
FROM events e JOIN verdicts v ON e.run = v.run GROUP BY e.run ORDER BY e.run
"""
APART = obstacle()
"""Why the workers of this test share the network and all files of this machine; empty if they do not."""

Commands = Mapping[str, list[object]]
"""Arguments by what they try."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster"), apart=not APART) as running:
        (running.place / "scenario.toml").write_text(SCENARIO)
        (running.place / "sweep.toml").write_text(SWEEP)
        yield running


@pytest.fixture
def antiphon(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Console:
    return Console(monkeypatch, capsys)


def commands(place: Path, folder: Path) -> Commands:
    """Every command that uses Spark; all but the first few read what `sweep` and `demo` write."""
    runs, protocols = folder / "runs", "newtop:total,classic:causal"
    return {
        "sweep": ["sweep", place / "sweep.toml", "--out", runs, "--traces"],
        "campaign": ["campaign", "fixed-group", "--runs", 8, "--out", folder / "campaign"],
        "compare": ["compare", place / "scenario.toml", "--out", folder / "compare", "--protocols", protocols],
        "check": ["check", runs],
        "stats": ["stats", runs],
        "sql": ["sql", runs, QUESTION],
        "tables": ["tables", runs, "--out", folder / "tables"],
        "report": ["report", runs, "--out", folder / "report.html"],
        "watch": ["watch", runs, "--once"],
        "demo": ["demo", "--out", folder / "demo"],
    }


def in_a_store(place: Path) -> Commands:
    """The workers share nothing but the store, and the driver tells them how to reach it."""
    runs = "s3a://bucket/runs"
    return {
        "sweep in a store": ["sweep", place / "sweep.toml", "--out", runs, "--traces"],
        "check in a store": ["check", runs],
        "sql in a store": ["sql", runs, QUESTION],
    }


def half_seen(cluster: SparkCluster) -> Commands:
    """Commands with input or output that the second worker does not see."""
    folder, runs = cluster.half_shared, cluster.shared / "runs"
    reading = commands(cluster.place, folder)
    return {
        **{name: reading[name] for name in ("check", "stats", "sql", "tables", "report", "watch", "compare")},
        "check --keep-going": ["check", folder / "runs", "--keep-going"],
        "sql of events": ["sql", folder / "runs", "SELECT count(*) FROM events"],
        "sql of tables": ["sql", folder / "written", "SELECT count(*) FROM messages"],
        "tables --out": ["tables", runs, "--out", folder / "of others"],
        "sweep": ["sweep", cluster.place / "sweep.toml", "--out", folder / "sweep", "--traces"],
        "campaign": reading["campaign"],
        "campaign without --out": ["campaign", "fixed-group", "--runs", 8],
    }


@pytest.fixture(scope="module")
def answers(cluster: SparkCluster) -> Mapping[str, Mapping[str, Result]]:
    """All commands in one process, because a session takes long to start: first what works, then what must not."""
    good = {**commands(cluster.place, cluster.shared), **in_a_store(cluster.place)}
    bad = {} if APART else half_seen(cluster)
    there = ["--json", "--master", cluster.url, *(word for setting in BOTH for word in ("--conf", setting))]
    copies = [("runs", "runs"), ("tables", "written")]
    with s3_server(cluster.master, "bucket") as address:
        told = cluster.run(
            [
                *([*command, *there] for command in good.values()),
                *(["copy", cluster.shared / name, cluster.half_shared / copy] for name, copy in copies),
                *([*command, *there] for command in bad.values()),
            ],
            **variables(address),
        )
    assert cluster.workers_used == WORKERS
    return {"good": dict(zip(good, told, strict=False)), "bad": dict(zip(bad, told[len(good) :], strict=True))}


@pytest.fixture(scope="module")
def results(answers: Mapping[str, Mapping[str, Result]]) -> Mapping[str, Result]:
    return answers["good"]


@pytest.fixture(scope="module")
def refusals(answers: Mapping[str, Mapping[str, Result]]) -> Mapping[str, Result]:
    if APART:
        pytest.skip(f"all workers see all files: {APART}")
    return answers["bad"]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", ["check", "stats", "sql", "watch"])
def test_the_answer_is_that_of_one_machine(
    name: str, cluster: SparkCluster, results: Mapping[str, Result], antiphon: Console
) -> None:
    alone = antiphon(*commands(cluster.place, cluster.shared)[name], "--json")
    there, here = document(results[name]), document(alone)
    for answer in (there, here):
        answer.pop("delay", None)  # how long after the events it came
    assert there == here


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", ["sweep", "campaign", "compare", "tables", "report"])
def test_what_is_written_is_what_one_machine_writes(
    name: str, cluster: SparkCluster, results: Mapping[str, Result], antiphon: Console, tmp_path: Path
) -> None:
    command = commands(cluster.place, cluster.shared)[name]
    out = Path(str(command[command.index("--out") + 1]))
    alone = antiphon(*(tmp_path / out.name if word == out else word for word in command), "--json")
    named = json.loads(json.dumps(document(results[name])).replace(str(out), str(tmp_path / out.name)))
    assert named == document(alone)
    assert contents(out) == contents(tmp_path / out.name)


def test_the_demo_judges_its_processes_on_the_cluster(
    cluster: SparkCluster, results: Mapping[str, Result], antiphon: Console
) -> None:
    told = document(results["demo"])
    assert told["check"] == document(antiphon("check", cluster.shared / "demo", "--json", "--quick"))
    assert told["statistics"] == document(antiphon("stats", cluster.shared / "demo", "--json", "--quick"))
    assert Path(str(told["page"])).is_file()


def test_runs_in_a_store_are_judged_like_those_in_a_shared_folder(
    cluster: SparkCluster, results: Mapping[str, Result]
) -> None:
    assert document(results["sweep in a store"]) == json.loads((cluster.shared / "runs/sweep.json").read_text())
    for name in ("check", "sql"):
        assert document(results[f"{name} in a store"]) == document(results[name])


@pytest.mark.parametrize(
    "name",
    [
        "check", "stats", "sql", "sql of events", "sql of tables", "tables", "tables --out", "report", "watch",
        "compare", "sweep", "campaign", "campaign without --out",
    ],
)  # fmt: skip
def test_a_worker_that_does_not_see_a_folder_is_an_error(name: str, refusals: Mapping[str, Result]) -> None:
    told = refusals[name]
    assert (told.code, told.out) == (2, "")
    assert re.fullmatch(r"antiphon: /\S.* does not exist on \S+: all workers must share it[^\n]*\n", told.err)


def test_a_check_that_keeps_going_says_which_runs_a_worker_did_not_see(refusals: Mapping[str, Result]) -> None:
    told = refusals["check --keep-going"]
    assert (told.code, json.loads(told.out)["verdict"]) == (3, "unknown")


def test_nothing_half_written_is_left(cluster: SparkCluster, refusals: Mapping[str, Result]) -> None:
    assert refusals
    left = {path.name for path in cluster.half_shared.iterdir()}
    kept = {"sweep.unfinished", "campaign.unfinished"}  # finished runs, for the same command on workers that see it
    assert left - kept == {"runs", "written"}


def test_workers_need_no_packages_if_they_are_shipped(
    cluster: SparkCluster, results: Mapping[str, Result], tmp_path_factory: pytest.TempPathFactory
) -> None:
    bare = tmp_path_factory.mktemp("bare")  # a Python without packages
    venv.create(bare, symlinks=True)
    python = {"PYSPARK_PYTHON": str(bare / "bin/python")}
    one = "spark.cores.max=1"  # one worker shows it; each would unpack and compile all packages
    settings = [word for setting in (*LIGHT, one) for word in ("--conf", setting)]
    check = ["check", cluster.shared / "runs", "--json", "--master", cluster.url, *settings]
    [without] = cluster.run([check], **python)
    assert without.code == 2
    assert re.fullmatch(r"antiphon: Spark failed on .*No module named .*\n", without.err)
    [shipped] = cluster.run([[*check, "--ship-packages"]], **python)
    assert (shipped.code, shipped.err) == (0, "")
    assert document(shipped) == document(results["check"])


def document(result: Result) -> dict[str, object]:
    """What a command told in JSON; it must have worked, in silence."""
    assert (result.code, result.err) == (0, "")
    found: dict[str, object] = json.loads(result.out)
    return found


def contents(path: Path) -> object:
    """What a file or a folder holds; the rows of a table that Spark has written have no order."""
    if path.is_file():
        return pq.read_table(path).to_pylist() if path.suffix == ".parquet" else path.read_text()
    parts = sorted(path.glob("part-*.parquet"))
    if parts:
        return sorted(repr(row) for part in parts for row in pq.read_table(part).to_pylist())
    return {each.name: contents(each) for each in path.iterdir() if not each.name.startswith((".", "_"))}
