"""Directories in a store, by URI: what commands find and write there is what they find and write on this machine."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from antiphon.errors import TraceError
from antiphon.trace import stores, unfinished
from antiphon.trace.directory import appearing, run_ids, take_place
from antiphon.trace.places import Remote, copy, place_of
from tests.support.console import Console
from tests.support.datasets import two_members, write
from tests.support.store import SECRET, denying, download, new_bucket, s3_server, variables

pytestmark = pytest.mark.usefixtures("spark")
ROOT = Path(__file__).parents[2]
SWEEP = """
name = "small"
[[group]]
name = "orders"
members = 2
[[workload]]
group = "orders"
messages = 3
[sweep]
"group.orders.members" = [2, 3]
seeds = 2
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with s3_server() as address:
        yield address


@pytest.fixture(scope="module")
def bucket(address: str) -> Iterator[Remote]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables(address).items():
            patch.setenv(name, value)
        yield new_bucket(address, "bucket")


@pytest.fixture
def antiphon(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Console:
    return Console(monkeypatch, capsys)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of two equal datasets: here, and in the bucket."""
    return tmp_path_factory.mktemp("here")


def tables_of(directory: Path) -> dict[str, list[Any]]:
    """Rows of all tables, without their order: neither place promises one."""
    return {
        folder.name: sorted(map(repr, pq.read_table(folder).to_pylist()))
        for layer in ("silver", "gold")
        for folder in (directory / layer).iterdir()
    }


def test_a_dataset_gives_the_same_verdicts_figures_and_tables_here_and_in_a_store(
    antiphon: Console, bucket: Remote, here: Path
) -> None:
    campaign = ("campaign", "changes", "--runs", 2, "--traces", "all", "--json", "--out")
    made = antiphon(*campaign, here / "runs"), antiphon(*campaign, bucket / "runs")
    assert made[0].out.replace(str(here), str(bucket)) == made[1].out
    names = sorted(str(path.relative_to(here / "runs")) for path in (here / "runs").rglob("*") if path.is_file())
    assert (bucket / "runs").files_below() == names
    for name in names:
        if name != "campaign.json":
            local = pq.read_table(here / "runs" / name)
            assert (
                pq.ParquetFile((bucket / "runs" / name).store.open_input_file((bucket / "runs" / name).address)).read()
                == local
            )
    checked = [antiphon("check", place / "runs", "--json") for place in (here, bucket)]
    assert checked[0].code == checked[1].code == 0
    assert json.loads(checked[0].out) == json.loads(checked[1].out)
    assert antiphon("check", bucket / "runs", "--json", "--quick").out == checked[0].out
    assert antiphon("stats", here / "runs", "--json").out == antiphon("stats", bucket / "runs", "--json").out
    written = [antiphon("tables", place / "runs", "--out", place / "tables") for place in (here, bucket)]
    assert [each.code for each in written] == [0, 0]
    assert tables_of(here / "tables") == tables_of(download(bucket / "tables", here / "downloaded"))


def test_questions_and_pages_about_a_store(antiphon: Console, bucket: Remote, here: Path) -> None:
    question = "SELECT run, count(*) AS messages FROM messages GROUP BY run ORDER BY run"
    asked = [
        antiphon("sql", place, question, "--csv").out for place in (here / "tables", bucket / "tables", bucket / "runs")
    ]
    assert asked[0] == asked[1] == asked[2] != ""
    assert antiphon("sql", bucket / "tables", question, "--out", bucket / "answer.parquet").code == 0
    assert antiphon("report", bucket / "runs", "--json").code == 0
    assert (bucket / "runs" / "report.html").read_text().startswith("<!")


def test_runs_and_sweeps_go_to_a_store_and_are_replayed_from_there(
    antiphon: Console, bucket: Remote, tmp_path: Path
) -> None:
    scenario = ROOT / "scenarios" / "failures.toml"
    assert antiphon("simulate", scenario, "--out", bucket / "one").code == 0
    assert antiphon("simulate", scenario, "--out", tmp_path / "one").code == 0
    (name,) = (name for name in (bucket / "one").files_below() if name.startswith("events/"))
    again = antiphon("simulate", "--from", bucket / "one", "--out", tmp_path / "again")
    assert again.code == 0
    assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "one" / name).read_bytes()
    assert (download(bucket / "one", tmp_path / "down") / name).read_bytes() == (tmp_path / "one" / name).read_bytes()
    refused = antiphon.refused("simulate", scenario, "--seed", 77, "--out", bucket / "one")
    assert "holds other runs" in refused
    assert antiphon("simulate", scenario, "--seed", 77, "--force", "--out", bucket / "one").code == 0
    assert name not in (bucket / "one").files_below()
    (tmp_path / "small.toml").write_text(SWEEP)
    for place in (tmp_path / "sweep", bucket / "sweep"):
        assert antiphon("sweep", tmp_path / "small.toml", "--traces", "--out", place).code == 0
    figures = pq.read_table(download(bucket / "sweep", tmp_path / "swept") / "figures.parquet")
    assert figures == pq.read_table(tmp_path / "sweep" / "figures.parquet")
    assert not [name for name in bucket.files_below() if "unfinished" in name or name.startswith(".")]


def test_a_directory_in_a_store_is_complete_or_refused(antiphon: Console, bucket: Remote) -> None:
    """An interrupt while files are copied to their place leaves the mark."""
    (bucket / "half" / "_unfinished").write_text("")
    (bucket / "half" / "run.json").write_text("{}")
    for command in ("check", "stats", "sql"):
        assert "half is incomplete" in antiphon.refused(
            command, bucket / "half", *(["SELECT 1"] if command == "sql" else [])
        )
    assert "half is incomplete" in antiphon.refused("simulate", "--from", bucket / "half", "--out", bucket / "new")
    scenario = ROOT / "scenarios" / "failures.toml"
    assert "half is incomplete" in antiphon.refused("simulate", scenario, "--out", bucket / "half")
    assert antiphon("simulate", scenario, "--force", "--out", bucket / "half").code == 0
    assert len(run_ids(bucket / "half")) == 1
    with suppress(ZeroDivisionError), appearing(bucket / "never") as aside:
        (aside / "run.json").write_text("{}")
        raise ZeroDivisionError
    assert not [name for name in bucket.files_below() if "never" in name]


def test_commands_with_one_plan_do_no_harm_and_another_plan_does_not_mix(bucket: Remote) -> None:
    directory, plan = bucket / "planned", {"what": "this"}
    first = unfinished.continued(directory, plan, force=False)
    second = unfinished.continued(directory, plan, force=False)
    other = unfinished.continued(directory, {"what": "that"}, force=False)
    places = [each.__enter__() for each in (first, second, other)]
    assert places[0] == places[1] != places[2]
    for place in places[:2]:
        (place / "parts" / "a.parquet").write_text("part")
        (place / "events" / "a.parquet").write_text("event")
        (place / "runs.parquet").write_text("index")
    first.__exit__(None, None, None)
    (places[1] / "late.parquet").write_text("written when the other had finished")
    second.__exit__(None, None, None)
    assert directory.files_below() == ["events/a.parquet", "runs.parquet"]
    assert places[0].files_below() == []
    (directory / "_unfinished").write_text("")
    (places[2] / "runs.parquet").write_text("another index")
    take_place(places[2], directory, plan="plan.json")
    assert directory.files_below() == ["runs.parquet"]


def test_two_commands_that_end_at_the_same_place_leave_it_marked(
    bucket: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_another(source: Remote, names: list[str], target: Remote) -> None:
        copy(source, names, target)
        (target / "_unfinished").write_text("another command")
        (target / "of-another.parquet").write_text("")

    monkeypatch.setattr("antiphon.trace.directory.copy", with_another)
    with pytest.raises(TraceError, match="at the same time"), appearing(bucket / "both") as aside:
        (aside / "run.json").write_text("{}")
    with pytest.raises(TraceError, match="is incomplete"):
        run_ids(bucket / "both")


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1", "cannot be reached: the store does not answer"),
        ("BUCKET", "s3a://absent/runs", "does not exist: there is no s3a://absent"),
        ("BUCKET", "s3a://bucket/absent", "s3a://bucket/absent does not exist"),
        ("BUCKET", "gs://bucket/runs", "gs://bucket/runs has a scheme that is not known"),
        ("BUCKET", "hdfs://nowhere:8020/runs", "libhdfs of Hadoop is not found"),
    ],
)
def test_what_cannot_be_reached_is_one_sentence(
    antiphon: Console, bucket: Remote, monkeypatch: pytest.MonkeyPatch, setting: str, value: str, sentence: str
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "")
    monkeypatch.setenv(setting, value)
    directory = value if setting == "BUCKET" else bucket / "runs"
    for command in (["check", directory], ["campaign", "changes", "--runs", "1", "--out", directory]):
        if command[0] == "check" or "absent does not exist" not in sentence:
            said = antiphon.refused(*command)
            assert sentence.removeprefix("does not exist: ") in said
            assert SECRET not in said


def test_denied_access_and_half_of_the_credentials_are_told(
    antiphon: Console, address: str, bucket: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    with denying(address):
        sentence = antiphon.refused("check", bucket / "runs")
    assert "cannot be reached: access is denied; are the credentials right (AWS_ACCESS_KEY_ID" in sentence
    assert SECRET not in sentence
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    sentence = antiphon.refused("check", bucket / "runs")
    assert "access_key" in sentence
    assert SECRET not in sentence


def test_settings_of_s3a_count_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"endpoint": "host:9000", "connection.ssl.enabled": "false", "access.key": "k", "secret.key": SECRET}
    found = stores.Access.of(
        {"AWS_ENDPOINT_URL": "http://other", "AWS_REGION": "eu"},
        {f"spark.hadoop.fs.s3a.{key}": value for key, value in settings.items()},
    )
    assert (found.endpoint, found.region, found.key, found.secret) == ("http://host:9000", "eu", "k", SECRET)
    assert SECRET not in repr(found)


def test_a_worker_that_cannot_see_the_data_is_told_in_one_sentence(
    antiphon: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`/proc/self/cwd` is another directory in every process."""
    write(tmp_path, two_members())
    monkeypatch.chdir(tmp_path)
    said = antiphon.refused("check", "/proc/self/cwd")
    assert re.search(r"/proc/self/cwd/events/part.parquet does not exist on \S+: all workers must share it$", said)


def test_places_of_all_kinds() -> None:
    assert place_of("out/run") == Path("out/run")
    assert place_of("file:///out/run") == Path("/out/run")
    place = place_of("s3://b/x//y.tar.parquet/")
    assert (str(place), place.name, place.suffix) == ("s3://b/x/y.tar.parquet", "y.tar.parquet", ".parquet")
    assert str(place.with_suffix(".at")) == "s3://b/x/y.tar.at"
    assert str(place.parent.parent) == "s3://b"
    namenode = place_of("hdfs://host:8020/x/y")
    assert isinstance(namenode, Remote)
    assert namenode.address == "/x/y"
    with pytest.raises(Exception, match="names no bucket"):
        place_of("s3a:///x")
