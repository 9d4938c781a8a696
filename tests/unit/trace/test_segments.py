"""Segments of a trace appear complete, never change, and are removed when the run directory exists."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from antiphon.errors import TraceError
from antiphon.node.supervisor import run_locally
from antiphon.scenario.read import parse_scenario
from antiphon.sim.run import simulate
from antiphon.trace.directory import appearing
from antiphon.trace.schema import EVENTS
from antiphon.trace.segments import SegmentWriter, began_ns, goes_on, live_folders, segments_in
from antiphon.trace.table import events_table, events_within

SCENARIO = parse_scenario("""
    name = "parts"
    duration = "20s"
    quiet = "1500ms"
    options = { suspect_after = "150ms", idle_probe = "0s" }
    group = [{ name = "orders", members = 3 }]
    workload = [{ group = "orders", messages = 100, interval = "10ms" }]
    fault = [{ kind = "crash", process = "p3", at = "300ms" }]
""")


def test_a_run_is_in_its_parts_row_for_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[tuple[list[str], pa.Table]] = []
    add = SegmentWriter.add

    def seen(parts: SegmentWriter, events: pa.Table) -> None:
        add(parts, events)
        added.append((sorted(path.name for path in tmp_path.glob("live/events/*")), events))

    monkeypatch.setattr(SegmentWriter, "add", seen)
    with segments_in(tmp_path) as parts:
        run = run_locally(SCENARIO, None, parts)
        tables = [pq.read_table(path) for path in sorted(tmp_path.glob("live/events/*"))]
    assert len(tables) > 1
    assert [names[-1] for names, _ in added] == [f"part-{number:08}.parquet" for number in range(1, len(added) + 1)]
    assert not any(name.startswith(".") for names, _ in added for name in names)
    assert [*map(pa.Table.equals, tables, [events for _, events in added])] == [True] * len(tables)
    order = [("process", "ascending"), ("incarnation", "ascending"), ("index", "ascending")]
    assert pa.concat_tables(tables).sort_by(order).equals(events_table(run.id, run.histories).sort_by(order))
    assert not (tmp_path / "live").exists()


def test_a_run_that_goes_on_is_found_and_told_from_one_that_was_killed(tmp_path: Path) -> None:
    directory = tmp_path / "run[1]"
    with appearing(directory) as aside, segments_in(aside) as parts:
        assert parts is not None
        assert live_folders(directory) == []
        parts.begin(42)
        (folder,) = live_folders(directory)
        assert (began_ns(folder), goes_on(folder)) == (42, True)
        assert live_folders(tmp_path / "run") == []
        parts.add(EVENTS.empty_table())
        assert [*(folder / "events").iterdir()] == []
    assert (began_ns(folder), goes_on(folder)) == (0, False)
    left = tmp_path / ".run[1]-killed/live"
    left.mkdir(parents=True)
    (left / "live.json").write_text(json.dumps({"began_ns": 7}))
    assert live_folders(directory) == [left]
    assert not goes_on(left)
    (left / "live.json").write_text("{")
    with pytest.raises(TraceError, match=r"live\.json has no start time of the run"):
        live_folders(directory)


def test_stretches_of_histories_add_up_to_the_table() -> None:
    run = simulate(SCENARIO)
    whole = events_table(run.id, run.histories)
    cut = [(history, len(history.rows) // 3) for history in run.histories]
    early = events_within(run.id, [(history, range(at)) for history, at in cut])
    late = events_within(run.id, [(history, range(at, len(history.rows))) for history, at in cut])
    order = [("process", "ascending"), ("incarnation", "ascending"), ("index", "ascending")]
    assert pa.concat_tables([early, late]).sort_by(order).equals(whole.sort_by(order))
