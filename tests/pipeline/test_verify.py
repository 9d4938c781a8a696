from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from antiphon.errors import ConfigurationError, TraceError
from antiphon.pipeline.dataset import find_event_files, read_events
from antiphon.pipeline.jobs.verify import verify
from antiphon.properties.judge import judge_all
from antiphon.properties.verdicts.summary import by_property, summarise
from antiphon.properties.verdicts.verdict import Outcome, Verdict, Violation
from tests.support.datasets import of_run, two_members, write
from tests.support.traces.handmade import trio


def verdict(
    run: str, name: str, outcome: Outcome, opportunities: int = 0, violations: int = 0, *, note: str | None = None
) -> Verdict:
    example = Violation(f"{name} is broken in {run}.", ("p",), ("g/p:0",), (3,)) if violations else None
    return Verdict(run, name, "g", outcome, opportunities, violations, example, note)


def test_verdicts_equal_those_given_in_process(tmp_path: Path, spark: SparkSession) -> None:
    rows = two_members()
    write(tmp_path, rows[:7], "a.parquet")
    write(tmp_path, rows[7:], "b.parquet")
    write(tmp_path, of_run(rows, "r0") + of_run(rows, "r2"), "c.parquet")
    verdicts = verify(spark, tmp_path)
    assert verdicts == judge_all(read_events(find_event_files(tmp_path)))
    assert list(dict.fromkeys(each.run for each in verdicts)) == ["r0", "r1", "r2"]


def test_required_properties_are_judged_in_every_run(tmp_path: Path, spark: SparkSession) -> None:
    for run in ("r0", "r1"):
        trace = trio(run=run)
        trace.deliver_everywhere(trace.send("p1"))
        write(tmp_path, trace.end(), f"{run}.parquet")
    events, required = read_events(find_event_files(tmp_path)), frozenset({"D13", "O7"})
    verdicts = verify(spark, tmp_path, required=required)
    assert verdicts == judge_all(events, required)
    asked = {each.run for each in verdicts if each.property == "D13" and each.outcome != "not promised"}
    assert asked == {"r0", "r1"}
    assert {each.outcome for each in judge_all(events) if each.property == "D13"} == {"not promised"}


def test_a_required_property_without_a_checker_is_refused_at_once(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path, two_members())
    with pytest.raises(ConfigurationError, match="there is no checker for a property 'O9'"):
        verify(spark, tmp_path, required=frozenset({"O9"}))


def test_each_unit_is_judged_once_and_whole(tmp_path: Path, spark: SparkSession) -> None:
    def count(events: pa.Table) -> Iterable[Verdict]:
        runs = sorted(set(events.column("run").to_pylist()))
        note = ",".join(runs)
        return [Verdict(run, "W", None, "pass", events.num_rows, 0, None, note) for run in runs]

    for i in range(150):  # more units than tasks on two cores
        write(tmp_path, of_run(two_members()[: i % 5 + 1], f"{i:03}"), f"{i}.parquet")
    write(tmp_path, of_run(two_members(), "007"), "more.parquet")
    write(tmp_path, of_run(two_members(), "200") + of_run(two_members(), "201"), "two.parquet")
    steps: list[tuple[int, int]] = []
    verdicts = verify(spark, tmp_path, judge=count, progress=lambda *step: steps.append(step))
    assert [each.run for each in verdicts] == [f"{i:03}" for i in range(150)] + ["200", "201"]
    assert [each.opportunities for each in verdicts[5:9]] == [1, 2, 3 + 13, 4]
    assert {each.note for each in verdicts[-2:]} == {"200,201"}
    assert steps == sorted(set(steps))
    assert (steps[0], steps[-1]) == ((0, 32), (32, 32))


def test_an_ill_formed_trace_comes_back_as_one_sentence(tmp_path: Path, spark: SparkSession) -> None:
    def refuse(events: pa.Table) -> Iterable[Verdict]:
        raise TraceError(f"run {events.column('run')[0]} has a row of an unknown kind.")

    write(tmp_path, two_members(), "a.parquet")
    path = write(tmp_path, of_run(two_members(), "r2"), "b.parquet")
    write(tmp_path, of_run(two_members(), "r2"), "c.parquet")
    with pytest.raises(TraceError) as caught:
        verify(spark, tmp_path, judge=refuse)
    assert str(caught.value) == (f"{path} and 1 more: run r2 has a row of an unknown kind. (and 1 more like it)")


def test_a_fault_of_the_checker_comes_back_as_one_sentence(tmp_path: Path, spark: SparkSession) -> None:
    def fail(events: pa.Table) -> Iterable[Verdict]:
        raise ValueError(f"{events.column_names[0]}\nand more")

    path = write(tmp_path, two_members())
    with pytest.raises(TraceError) as caught:
        verify(spark, tmp_path, judge=fail)
    assert str(caught.value) == f"{path}: the checker failed with ValueError: run"
    assert "Traceback" in caught.value.__notes__[0]


def test_a_worker_that_dies_comes_back_as_one_sentence(tmp_path: Path, spark: SparkSession) -> None:
    def die(events: pa.Table) -> Iterable[Verdict]:
        import os  # noqa: PLC0415 - in the worker

        os._exit(3)

    write(tmp_path, two_members())
    with pytest.raises(TraceError, match=r"^Spark failed on .*Python worker exited") as caught:
        verify(spark, tmp_path, judge=die)
    assert "\n" not in str(caught.value)


def test_damaged_rows_come_back_as_one_sentence(tmp_path: Path, spark: SparkSession) -> None:
    path = write(tmp_path, two_members())
    content = bytearray(path.read_bytes())
    content[4:400] = bytes(396)
    path.write_bytes(bytes(content))
    with pytest.raises(TraceError) as caught:
        verify(spark, tmp_path)
    assert str(caught.value).startswith(f"{path} cannot be read: ")
    assert "\n" not in str(caught.value)


def test_the_whole_holds_unless_something_speaks_against_it() -> None:
    passed, vacuous = verdict("r1", "D1", "pass", 3), verdict("r1", "O1", "vacuous")
    promised_not = verdict("r1", "D6", "not promised")
    violated, harness = verdict("r2", "D1", "violated", 3, 1), verdict("r3", "W", "harness error", 3, 1)
    assert summarise([passed, vacuous, promised_not]) == "hold"
    assert summarise([passed, violated]) == "violated"
    assert summarise([harness, passed]) == "unknown"
    assert summarise([harness, violated]) == "violated"
    assert summarise([]) == "unknown"


def test_properties_are_added_up_over_runs() -> None:
    verdicts = [
        verdict("r1", "O1", "vacuous"),
        verdict("r1", "D1", "pass", 3, note="seen"),
        verdict("r2", "D1", "violated", 4, 2, note="seen"),
        verdict("r3", "D1", "violated", 5, 1, note="heard"),
        verdict("r2", "O1", "pass", 2),
    ]
    assert by_property(verdicts) == [
        {
            "property": "O1",
            "group": "g",
            "outcome": "pass",
            "opportunities": 2,
            "violations": 0,
            "example": None,
            "runs": 2,
            "note": None,
        },
        {
            "property": "D1",
            "group": "g",
            "outcome": "violated",
            "opportunities": 12,
            "violations": 3,
            "example": {
                "run": "r2",
                "sentence": "D1 is broken in r2.",
                "processes": ("p",),
                "messages": ("g/p:0",),
                "indexes": (3,),
                "views": (),
                "seen": None,
            },
            "runs": 3,
            "note": "seen; heard",
        },
    ]
