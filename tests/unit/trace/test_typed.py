"""Typed columns: what writers fill, what readers derive from older traces, and what they do with text that is odd."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from antiphon.pipeline.dataset import find_event_files, read_events
from antiphon.pipeline.figures.one_run import run_statistics
from antiphon.properties.judge import judge
from antiphon.scenario.read import parse_scenario, run_id
from antiphon.sim.run import simulate
from antiphon.trace.directory import ROWS_PER_GROUP, event_writer, write_events, write_table
from antiphon.trace.schema import EVENTS
from antiphon.trace.table import events_table
from antiphon.trace.typed import TYPED, untyped_rows, with_typed

SCENARIO = """
name = "typed"
{protocol}
options = {options}
[[group]]
name = "g"
members = 3
service = "{service}"
[[workload]]
group = "g"
messages = 30
interval = "5ms"
[[fault]]
at = "60ms"
kind = "crash"
process = "p3"
"""
RUNS = {
    "newtop": ("", "{ flow_control = 1 }", "total"),
    "acks": ('protocol = "acks"', '{ acks = "transitive" }', "fifo"),
    "classic": ('protocol = "classic"', "{}", "causal"),
}


def traced(kind: str) -> pa.Table:
    protocol, options, service = RUNS[kind]
    scenario = parse_scenario(SCENARIO.format(protocol=protocol, options=options, service=service))
    return events_table(run_id(scenario), simulate(scenario).histories)


def old(events: pa.Table) -> pa.Table:
    """The same trace as an older version wrote it."""
    return events.drop_columns(TYPED)


@pytest.mark.parametrize("kind", RUNS)
def test_typed_columns_agree_with_detail(kind: str) -> None:
    frames = gauges = 0
    for row in traced(kind).to_pylist():
        told = {name: row[name] for name in TYPED if row[name] is not None}
        detail = json.loads(row["detail"] or "{}")
        if row["kind"] in ("transmit", "receive"):
            frames += 1
            stream, serial = told.pop("frame_stream", None), told.pop("frame_serial", None)
            assert detail.pop("frame") == (None if stream is None else f"{stream}/{serial}")
            names = ("flow_number", "flow_complete", "flow_stable", "flow_super_stable")
            flow = [told.pop(name, None) for name in names]
            assert flow[: len(detail.get("flow", ()))] == detail.pop("flow", [])
            keys = {
                "type": "frame_type",
                "copies": "frame_copies",
                "count": "frame_messages",
                "senders": "frame_senders",
            }
            assert told == {keys.get(key, key): value for key, value in detail.items()}
        elif row["kind"] == "gauge":
            gauges += 1
            assert told == {"gauge_name": detail["name"], "gauge_value": detail["value"]}
        else:
            assert told == {}
    assert frames
    assert gauges or kind != "newtop"


@pytest.mark.parametrize("kind", RUNS)
def test_an_old_trace_gets_the_same_verdicts_and_figures(kind: str, tmp_path: Path) -> None:
    events = traced(kind)
    (tmp_path / "events").mkdir()
    pq.write_table(old(events), tmp_path / "events" / "old.parquet")
    found = read_events(find_event_files(tmp_path))
    assert not {*TYPED} & {*found.column_names}
    assert judge(found) == judge(events)
    assert run_statistics(old(events)) == run_statistics(events)
    assert with_typed(old(events)).select(EVENTS.names).cast(EVENTS).equals(events)


def test_old_and_new_files_of_one_run(tmp_path: Path) -> None:
    events = traced("newtop")
    half = len(events) // 2
    (tmp_path / "events").mkdir()
    pq.write_table(old(events.slice(0, half)), tmp_path / "events" / "a.parquet")
    write_table(events.slice(half), tmp_path / "events" / "b.parquet")
    assert judge(read_events(find_event_files(tmp_path))) == judge(events)


def row(kind: str, detail: Any, **columns: Any) -> dict[str, Any]:
    text = detail if detail is None or isinstance(detail, str) else json.dumps(detail)
    return {
        "run": "r",
        "process": "p",
        "incarnation": 0,
        "index": 0,
        "time": 0,
        "kind": kind,
        "detail": text,
        **columns,
    }


def typed(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    found = with_typed(pa.Table.from_pylist(list(rows), schema=EVENTS)).select(TYPED).to_pylist()
    return [{name: value for name, value in each.items() if value is not None} for each in found]


@pytest.mark.parametrize(
    ("detail", "told"),
    [
        (None, {}),
        ("{", {}),
        ("[1]", {}),
        ({"type": 3, "frame": 4, "copies": "5", "flow": "no", "senders": [6]}, {}),
        ({"type": "data", "copies": True, "count": 2**31, "stamp_bytes": 1.5}, {"frame_type": "data"}),
        ({"frame": "g/p/7"}, {"frame_stream": "g/p", "frame_serial": 7}),
        ({"frame": "g/p/07"}, {"frame_stream": "g/p/07"}),
        ({"frame": "a:1"}, {"frame_stream": "a:1"}),
        ({"frame": f"g/{10**18}"}, {"frame_stream": f"g/{10**18}"}),
        ({"senders": []}, {"frame_senders": []}),
        ({"flow": [1, 2, 3]}, {"flow_number": 1, "flow_complete": 2, "flow_stable": 3}),
        ({"flow": [1, 2, 3, None]}, {"flow_number": 1, "flow_complete": 2, "flow_stable": 3}),
        ({"flow": [1, 2, None]}, {}),
        ({"flow": [1, 2, 10**18]}, {}),
    ],
)
def test_what_a_detail_says(detail: Any, told: dict[str, Any]) -> None:
    assert typed(row("transmit", detail), row("fault", detail)) == [told, {}]


def test_what_a_writer_filled_stays() -> None:
    given = row("receive", {"type": "data", "frame": "g/p/1"}, frame_type="null")
    lacking = row("receive", {"type": "data", "frame": "g/p/2"})
    assert typed(given, lacking) == [
        {"frame_type": "null"},
        {"frame_type": "data", "frame_stream": "g/p", "frame_serial": 2},
    ]
    events = pa.Table.from_pylist([given, lacking], schema=EVENTS)
    assert untyped_rows(events).tolist() == [1]
    assert untyped_rows(with_typed(events)).tolist() == []


def test_row_groups_are_bounded_and_tell_their_processes(tmp_path: Path) -> None:
    rows = ROWS_PER_GROUP + 10
    names = pa.array(["a"] * ROWS_PER_GROUP + ["b"] * 10)
    columns = {"run": ["r"] * rows, "process": names, "incarnation": [0] * rows, "kind": ["send"] * rows}
    columns |= {"index": pa.array(range(rows)), "time": pa.array(range(rows))}
    events = pa.table([columns.get(field.name, pa.nulls(rows, field.type)) for field in EVENTS], schema=EVENTS)
    write_events(events, tmp_path, "r")
    footer = pq.read_metadata(tmp_path / "events" / "r.parquet")
    at = EVENTS.get_field_index("process")
    groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
    assert [group.num_rows for group in groups] == [ROWS_PER_GROUP, 10]
    assert [(group.column(at).statistics.min, group.column(at).statistics.max) for group in groups] == [
        ("a", "a"),
        ("b", "b"),
    ]
    with event_writer(tmp_path / "again.parquet") as writer:
        for begin in (0, ROWS_PER_GROUP):
            writer.write_table(events.slice(begin, ROWS_PER_GROUP))
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "events" / "r.parquet").read_bytes()
