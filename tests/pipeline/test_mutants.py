"""The mutation score under Spark, in small; `python -m tests.properties.mutants` has more traces of each fault."""

from pathlib import Path

from pyspark.sql import SparkSession

from antiphon.pipeline.jobs.in_process import verify_in_process
from antiphon.pipeline.jobs.verify import verify
from tests.properties.mutants import score, seeded, written

GOOD = 5


def test_every_seeded_fault_is_caught_under_spark_and_good_runs_raise_no_alarm(
    tmp_path: Path, spark: SparkSession
) -> None:
    faults = [*seeded()][::4]
    fault_of = written(tmp_path, faults, traces=1, good=GOOD)
    verdicts = verify(spark, tmp_path)
    told = score(verdicts, fault_of, GOOD)
    assert (told.missed, told.alarms) == ({}, {})
    assert len(told.mutants) == len(faults) > 25
    assert told.good == GOOD
    assert verdicts == verify_in_process(tmp_path)
