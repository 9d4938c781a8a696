"""Some commands need paths on this machine: they refuse a URI, and never take it for a folder of that name."""

from pathlib import Path

import pytest

from tests.support.console import Console


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate", "s3a://bucket/run", "--out", "here"],
        ["run", "SCENARIO", "--out", "s3a://bucket/run"],
        ["sweep", "s3a://bucket/run", "--out", "here"],
        ["sql", ".", "--file", "s3a://bucket/run"],
        ["watch", "s3a://bucket/run"],
        ["watch", ".", "--checkpoint", "s3a://bucket/run"],
        ["demo", "--out", "s3a://bucket/run"],
        ["bench", "--out", "s3a://bucket/run"],
    ],
)
def test_a_uri_is_no_path(
    antiphon: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    scenario = Path(__file__).parents[2] / "scenarios" / "failures.toml"
    monkeypatch.chdir(tmp_path)
    said = antiphon.refused(*(scenario if each == "SCENARIO" else each for each in arguments))
    assert said.startswith("antiphon: s3a://bucket/run is a URI; only paths on this machine"), said
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--conf", "spark.ui.enabled"], "--conf spark.ui.enabled is not a setting of Spark"),
        (["--conf", "ui=true"], "--conf ui=true is not a setting of Spark"),
        (["--driver-memory", "lots"], "--driver-memory lots is not a size"),
        (["--driver-memory", "0g"], "--driver-memory 0g is not a size"),
        (
            ["--quick", "--conf", "spark.ui.enabled=true"],
            "--master, --conf, --driver-memory and --ship-packages need PySpark and go without --quick",
        ),
    ],
)
def test_settings_of_spark_that_cannot_be_used(
    antiphon: Console, tmp_path: Path, options: list[str], sentence: str
) -> None:
    made = antiphon("simulate", Path(__file__).parents[2] / "scenarios" / "merge.toml", "--out", tmp_path / "run")
    assert made.code == 0
    assert sentence in antiphon.refused("check", tmp_path / "run", *options)
