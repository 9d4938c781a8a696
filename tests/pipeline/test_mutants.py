"""The mutation score under Spark, in small; `python -m tests.properties.mutants` has more traces of each fault."""

from pathlib import Path

from pyspark.sql import SparkSession

from tests.properties.mutants import score, seeded

GOOD = 5


def test_every_seeded_fault_is_caught_under_spark_and_good_runs_raise_no_alarm(
    tmp_path: Path, spark: SparkSession
) -> None:
    told = score(spark, tmp_path, [*seeded()][::4], traces=1, good=GOOD)
    assert (told.missed, told.alarms) == ({}, {})
    assert all(told.mutants.values())
    assert len(told.mutants) > 25
    assert told.good == GOOD
