"""The streaming job: parts appear while it runs, it dies at the worst moments, and every event counts once."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from antiphon.errors import TraceError
from antiphon.pipeline.figures.statistics import statistics
from antiphon.pipeline.live import stream
from antiphon.pipeline.live.figures import PROPERTIES, Figures
from antiphon.pipeline.live.places import find
from antiphon.pipeline.live.state import State
from antiphon.pipeline.live.stream import Watch
from antiphon.trace.directory import write_events
from antiphon.trace.segments import SegmentWriter
from tests.support.watching import add_part, call_whole, cut, events_of, judged

EVENTS = events_of("merge")


def require_all_counted(found: Figures) -> None:
    assert found.over
    assert not found.waiting
    told = {(each.property, each.group): (each.opportunities, each.violations) for each in found.properties}
    assert {place: count for place, count in told.items() if count != (0, 0)} == judged(EVENTS, PROPERTIES)
    assert found.runs[0].events == EVENTS.num_rows


def test_parts_that_appear_meanwhile_add_up_to_the_figures_of_the_run(spark: SparkSession, tmp_path: Path) -> None:
    parts = cut(EVENTS, 2)
    add_part(tmp_path, 0, parts.pop(0))
    watch = Watch(spark, tmp_path, tmp_path / "checkpoint", every_s=0.05)
    seen = [0]

    def write_the_next(found: Figures) -> None:
        """Write another part after each count, the last ones first; then the run is complete."""
        events = found.runs[0].events + found.waiting if found.runs else 0
        if events > seen[-1]:
            seen.append(events)
            if parts:
                add_part(tmp_path, len(parts), pa.concat_tables(parts[-4:]))
                del parts[-4:]
            else:
                call_whole(tmp_path)

    watch.follow(write_the_next)
    assert len(seen) > 3
    require_all_counted(watch.figures)
    (run,) = statistics(spark, tmp_path).runs
    for group, own in zip(run.groups, watch.figures.runs[0].groups, strict=True):
        assert (group.traffic.sent, group.traffic.delivered) == (own.sent, own.delivered)
        assert group.latency is not None
        assert (group.latency.count, group.latency.max_ns) == (own.latency.count, own.latency.max_ns)
        assert own.latency.mean_ns == pytest.approx(group.latency.mean_ns)
        assert [(each.process, each.delivered) for each in group.members] == [
            (name, sum(each.delivered for each in own.members if each.process.partition("#")[0] == name))
            for name in sorted({each.process.partition("#")[0] for each in own.members})
        ]


class Killed(Exception):  # noqa: N818 - what happened
    pass


@pytest.mark.parametrize("moment", ["before the state is stored", "after it, before Spark knows"])
def test_a_watch_that_dies_is_taken_up_where_it_was(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    save, saves = State.save, list[int]()

    def dying(state: State, path: Path) -> None:
        saves.append(0)
        dies = len(saves) == 2
        if dies and moment.startswith("before"):
            raise Killed
        save(state, path)
        if dies:
            raise Killed

    monkeypatch.setattr(State, "save", dying)
    monkeypatch.setattr("antiphon.pipeline.live.stream._BATCH_BYTES", 1)  # a batch for each part
    *early, late = cut(EVENTS, 4, per_member=False)
    for number, part in enumerate(early):
        add_part(tmp_path, number, part)
    place = find(tmp_path)
    assert place is not None
    with pytest.raises(Killed):
        Watch(spark, tmp_path, tmp_path / "checkpoint").read_what_is_there(place)
    add_part(tmp_path, len(early), late)
    again = Watch(spark, tmp_path, tmp_path / "checkpoint")
    assert 0 < again.figures.runs[0].events + again.figures.waiting < EVENTS.num_rows
    again.read_what_is_there(place)
    assert len(saves) >= 3
    require_all_counted(again.figures)


def test_a_live_run_is_followed_to_the_directory_that_it_becomes(spark: SparkSession, tmp_path: Path) -> None:
    """The last parts are removed before the watch has read them."""
    aside, directory = tmp_path / ".run-1", tmp_path / "run"
    aside.mkdir()
    parts, written = SegmentWriter(aside), cut(EVENTS, 2, per_member=False)
    parts.begin(1)
    parts.add(written[0])
    watch = Watch(spark, directory, tmp_path / "checkpoint", every_s=0.05)

    def finish(found: Figures) -> None:
        if found.runs and aside.exists():
            write_events(EVENTS, aside, "merge")
            call_whole(aside)
            parts.end()
            aside.rename(directory)

    watch.follow(finish)
    require_all_counted(watch.figures)
    assert sorted(path.name for path in directory.iterdir()) == ["events", "run.json", "scenario.toml"]


@pytest.mark.parametrize("step", ["find", "_seen"])
def test_a_run_that_ends_before_spark_has_read_anything_is_read_where_it_went(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """It ends after the given step of the search for the run."""
    aside, directory = tmp_path / ".run-1", tmp_path / "run"
    aside.mkdir()
    parts = SegmentWriter(aside)
    parts.begin(1)
    parts.add(EVENTS)
    taken = getattr(stream, step)

    def late(*arguments: object) -> object:
        found = taken(*arguments)
        if aside.exists():
            write_events(EVENTS, aside, "merge")
            call_whole(aside)
            parts.end()
            aside.rename(directory)
        return found

    monkeypatch.setattr(stream, step, late)
    watch = Watch(spark, directory, tmp_path / "checkpoint", every_s=0.05)
    watch.follow(lambda _figures: None)
    require_all_counted(watch.figures)


def test_the_parts_of_a_killed_run_are_read_to_their_end(spark: SparkSession, tmp_path: Path) -> None:
    aside = tmp_path / ".run-1"
    aside.mkdir()
    parts = SegmentWriter(aside)
    parts.begin(1)
    watch = Watch(spark, tmp_path / "run", tmp_path / "checkpoint", every_s=0.05)

    def kill(found: Figures) -> None:
        if not (aside / "live/events/part-00000001.parquet").exists():
            parts.add(cut(EVENTS, 2, per_member=False)[0])
            assert parts._lock is not None
            parts._lock.close()

    watch.follow(kill)
    assert watch.figures.runs[0].events == cut(EVENTS, 2, per_member=False)[0].num_rows
    assert not watch.figures.over


@pytest.mark.parametrize(
    "damage", [lambda path: path.write_bytes(b"PAR1 not at all PAR1"), lambda path: path.write_bytes(b"")]
)
def test_a_part_that_comes_damaged_is_named(spark: SparkSession, tmp_path: Path, damage: Callable[[Path], int]) -> None:
    add_part(tmp_path, 0, EVENTS.slice(0, 100))
    bad = tmp_path / "events/part-0001.parquet"
    watch = Watch(spark, tmp_path, tmp_path / "checkpoint", every_s=0.05)

    def spoil(found: Figures) -> None:
        if found.runs and not bad.exists():
            damage(bad)

    with pytest.raises(TraceError, match=r"part-0001\.parquet is "):
        watch.follow(spoil)
    assert asdict(watch.figures)["runs"][0]["events"] > 0


def without_state(checkpoint: Path) -> None:
    (checkpoint / "state.msgpack").unlink()


def without_offsets(checkpoint: Path) -> None:
    for path in checkpoint.glob("spark/*/offsets/*"):
        path.unlink()


def with_strange_offsets(checkpoint: Path) -> None:
    for path in checkpoint.glob("spark/*/offsets/[0-9]*"):
        path.write_text("nonsense")
        (path.parent / f".{path.name}.crc").unlink()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (without_state, r"^the checkpoint \S+/checkpoint has no state\.msgpack, .*; name a new folder$"),
        (without_offsets, r"^cannot continue from the checkpoint \S+/checkpoint: "),
        (with_strange_offsets, r"^cannot continue from the checkpoint \S+/checkpoint: .*offsets/0"),
    ],
)
def test_a_damaged_checkpoint_is_named(
    spark: SparkSession, tmp_path: Path, damage: Callable[[Path], None], words: str
) -> None:
    add_part(tmp_path, 0, EVENTS)
    place = find(tmp_path)
    assert place is not None
    Watch(spark, tmp_path, tmp_path / "checkpoint").read_what_is_there(place)
    damage(tmp_path / "checkpoint")
    with pytest.raises(TraceError, match=words) as raised:
        Watch(spark, tmp_path, tmp_path / "checkpoint").read_what_is_there(place)
    assert "Query [" not in str(raised.value)


def test_a_part_that_a_worker_cannot_read_is_an_error(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark has listed it, and the task does not find it: as on a cluster whose workers do not share the directory."""
    parts = cut(EVENTS, 2)
    for number, part in enumerate(parts):
        add_part(tmp_path, number, part)
    place = find(tmp_path)
    assert place is not None
    gone = max(place.events.glob("*.parquet"))
    read = stream._arrow

    def read_without_it(batch: DataFrame) -> pa.Table:
        gone.unlink(missing_ok=True)
        return read(batch)

    monkeypatch.setattr(stream, "_arrow", read_without_it)
    watch = Watch(spark, tmp_path, tmp_path / "checkpoint")
    with pytest.raises(TraceError, match=f"Spark failed on .*{gone.name}"):
        watch.read_what_is_there(place)
    assert not watch.figures.runs
