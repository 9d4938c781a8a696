"""A run judged in parts gets the same verdicts as the whole run: outcome, counts, example and note."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from antiphon.campaign.families import FAMILIES
from antiphon.pipeline.dataset import read_coded
from antiphon.pipeline.jobs import split
from antiphon.pipeline.jobs.shares import Share, deal, pointless, put_together
from antiphon.pipeline.jobs.split import judge_part, plan
from antiphon.pipeline.jobs.survey import survey
from antiphon.pipeline.jobs.verify import verify
from antiphon.properties.judge import judge, judge_all
from antiphon.properties.promises import JUDGED
from antiphon.properties.registry import CHECKERS, LOGS
from antiphon.properties.run_tables import RunTables
from antiphon.properties.tables.history import BULK, LackingError, load
from antiphon.properties.verdicts.verdict import Verdict
from antiphon.scenario.read import parse_scenario, read_scenario, run_id
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table
from antiphon.trace.typed import TYPED
from tests.properties.mutants import seeded, simulated
from tests.support.datasets import of_run, row, table, two_members, unit, write
from tests.support.traces.handmade import good_trace, trio

EVERYTHING = frozenset(JUDGED) - {"W"}
SEEDS = {"changes": 2, "membership": 1, "sequencer": 1}


def written(directory: Path, events: pa.Table) -> list[Path]:
    """The events in two files of a few row groups each."""
    directory.mkdir()
    half = (len(events) + 1) // 2
    files = [directory / "a.parquet", directory / "b.parquet"]
    for place, path in enumerate(files):
        pq.write_table(events.slice(place * half, half), path, row_group_size=max(len(events) // 5, 40))
    return files


def in_parts(directory: Path, events: pa.Table, rows_per_task: int, required: frozenset[str]) -> list[Verdict]:
    """The verdicts of the tasks of the run, one after the other, without Spark."""
    shares = deal(unit(*written(directory, events)), lambda whole: judge_all(whole, required), required, rows_per_task)
    assert len(shares) > 1, "it is dealt out"
    found, failed = dict[int, list[Verdict]](), dict[int, Exception]()
    for place, share in enumerate(shares):
        try:
            found[place] = list(share.judge())
        except (LookupError, ValueError) as error:  # a checker on a trace that is not well formed
            failed[place] = error
    lost = set(failed) - pointless(shares, found)
    assert not lost, failed
    return put_together(shares, found, lost)


@pytest.mark.parametrize("family", FAMILIES)
def test_simulated_runs_of_every_family(family: str, tmp_path: Path) -> None:
    for seed in range(SEEDS.get(family, 1)):
        events = simulated(family, seed)
        required = EVERYTHING if seed % 2 else frozenset[str]()
        parts = in_parts(tmp_path / str(seed), events, len(events) // 4, required)
        assert parts == judge_all(events, required), seed


def faults() -> Iterator[tuple[str, pa.Table]]:
    """Every tenth fault, because all of them take long; the others were equal too."""
    for fault in islice(seeded(), 0, None, 10):
        for events in fault.traces(1):
            yield fault.name, events


def test_seeded_faults_are_told_alike(tmp_path: Path) -> None:
    for place, (name, events) in enumerate(faults()):
        parts = in_parts(tmp_path / str(place), events, len(events) // 2, frozenset())
        assert parts == judge_all(events), name


def test_a_receiver_that_starts_again_is_judged_the_same_in_parts(tmp_path: Path) -> None:
    """L9 needs the rows of all processes, but only rarely."""
    run = simulate(read_scenario(Path(__file__).parents[2] / "scenarios" / "errata" / "T5.toml"))
    events = events_table(run.id, run.histories)
    parts = in_parts(tmp_path / "run", events, len(events) // 4, frozenset())
    assert parts == judge_all(events)
    assert [found.property for found in parts if found.violations] == ["L9"]


def test_parts_as_small_as_can_be(tmp_path: Path) -> None:
    events = good_trace(3)
    assert in_parts(tmp_path / "run", events, 1, EVERYTHING) == judge_all(events, EVERYTHING)


def test_a_trace_that_cannot_be_read_says_so_once(tmp_path: Path) -> None:
    trace = trio()
    trace.deliver_everywhere(trace.send("p1"))
    events = trace.end()
    details = ["no JSON" if kind == "stop" else text for kind, text in zip(*with_text(events), strict=True)]
    broken = events.set_column(events.column_names.index("detail"), "detail", pa.array(details, pa.string()))
    assert in_parts(tmp_path / "run", broken, 5, frozenset()) == judge_all(broken)


def with_text(events: pa.Table) -> tuple[list[str], list[str | None]]:
    return events["kind"].to_pylist(), events["detail"].to_pylist()


def test_a_process_that_is_only_mentioned_is_known_to_every_part(tmp_path: Path) -> None:
    rows = [*two_members()]
    rows.insert(6, row("a", 6, 1500, "stable", upto=[("a", 1), ("ghost", 4)]))
    rows[7] |= {"index": 7}
    events = table(rows)
    files = written(tmp_path / "run", events)
    assert "ghost" in survey(files).processes
    assert in_parts(tmp_path / "again", events, 5, EVERYTHING) == judge_all(events, EVERYTHING)


def test_properties_that_no_process_promises_are_not_judged(tmp_path: Path) -> None:
    """Newtop promises nothing about acknowledgments, so no task reads those columns."""
    found = survey(written(tmp_path / "run", good_trace(1)))
    tasks = plan(found, 50)
    assert not any("S5" in task.properties and "transmit" in task.needs.kinds for task in tasks)
    assert {"W", *(checker.property_id for checker in CHECKERS)} == {each for task in tasks for each in task.properties}


def test_the_list_of_checkers_is_that_of_the_properties() -> None:
    assert ("W", *(checker.property_id for checker in CHECKERS)) == JUDGED
    assert LOGS.kinds == BULK
    for checker in CHECKERS:
        assert checker.needs.with_text <= checker.needs.kinds <= BULK


def test_a_checker_that_asks_for_rows_it_has_not_named_is_found_out() -> None:
    events = good_trace(1)
    history = load(events.filter(pc.not_equal(events["kind"], "deliver")), kinds=BULK - {"deliver"})
    assert len(history.sends.row)
    with pytest.raises(LackingError, match="without some deliver rows"):
        _ = history.deliveries


def test_the_first_violation_says_where_it_is_seen() -> None:
    trace = trio()
    message = trace.send("p1")
    trace.deliver_everywhere(message)
    trace.deliver("p2", message)
    violated = next(verdict for verdict in judge(trace.end()) if verdict.violations)
    assert violated.example is not None
    assert violated.example.seen is not None
    _, process, index = violated.example.seen
    assert (process, index) == ("p2", violated.example.indexes[-1])


def test_large_and_small_runs_are_judged_in_one_job(tmp_path: Path, spark: SparkSession) -> None:
    large = simulated("membership", 1)
    half = len(large) // 2
    write(tmp_path, large.slice(0, half), "large-a.parquet")
    write(tmp_path, large.slice(half), "large-b.parquet")
    small = of_run(two_members(), "small")
    write(tmp_path, small, "small.parquet")
    steps: list[tuple[int, int]] = []
    verdicts = verify(spark, tmp_path, rows_per_task=len(large) // 2, progress=lambda *step: steps.append(step))
    expected = [*judge_all(large), *judge_all(table(small))]
    assert verdicts == sorted(expected, key=lambda verdict: verdict.run)
    assert steps[0][0] == 0
    assert len({total for _, total in steps}) == 1
    assert steps[-1][1] > 10


def test_a_large_run_that_is_not_well_formed_has_one_verdict(tmp_path: Path, spark: SparkSession) -> None:
    rows = two_members()
    write(tmp_path, [each for each in rows if each["index"] != 4])
    verdicts = verify(spark, tmp_path, rows_per_task=5)
    assert [(verdict.property, verdict.outcome) for verdict in verdicts] == [("W", "harness error")]
    assert verdicts == judge_all(table([each for each in rows if each["index"] != 4]))


def test_files_with_several_runs_are_not_dealt_out(tmp_path: Path) -> None:
    path = write(tmp_path, of_run(two_members(), "r1") + of_run(two_members(), "r2"))
    shares: list[Share] = deal(unit(path), judge_all, frozenset(), 5)
    assert [share.task for share in shares] == [None]


@pytest.fixture
def steady() -> pa.Table:
    """A run without faults."""
    group = '[[group]]\nname = "g"\nmembers = 3\n'
    scenario = parse_scenario(f'name = "steady"\n{group}[[workload]]\ngroup = "g"\nmessages = 20\ninterval = "5ms"\n')
    return events_table(run_id(scenario), simulate(scenario).histories)


def test_an_old_trace_in_parts(steady: pa.Table, tmp_path: Path) -> None:
    expected = judge(steady)
    assert in_parts(tmp_path / "new", steady, 300, frozenset()) == expected
    assert in_parts(tmp_path / "old", steady.drop_columns(TYPED), 300, frozenset()) == expected


def test_checkers_of_a_quiet_run_read_no_bulk(steady: pa.Table, tmp_path: Path) -> None:
    """L1, L5 and L9 ask for frames in transit only if something has to be excused."""
    found = survey(written(tmp_path / "run", steady))
    history = load(pa.concat_tables([found.backbone, found.shadows]), kinds=frozenset())
    for checker in CHECKERS:
        if checker.property_id in ("L1", "L5", "L9"):
            assert checker.judge(RunTables(history))


def test_a_part_reads_only_row_groups_with_its_processes(
    steady: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = sorted(set(steady["process"].to_pylist()))
    path = tmp_path / "run.parquet"
    with pq.ParquetWriter(path, steady.schema) as writer:
        for name in processes:
            writer.write_table(steady.filter(pc.equal(steady["process"], name)))
    found = survey([path])
    read = []

    def counted(path: Path, file: pq.ParquetFile, group: int, names: Sequence[str]) -> pa.Table:
        read.append((group, tuple(names)))
        return read_coded(path, file, group, names)

    monkeypatch.setattr(split, "read_coded", counted)
    (task,) = (task for task in plan(found, 1) if task.needs == LOGS and task.processes == frozenset(["p2"]))
    assert judge_part([path], found, task)[0].outcome == "pass"
    assert {processes[group] for group, _ in read} == {"p2"}
    assert not any("detail" in names and "frame_type" in names for _, names in read)
