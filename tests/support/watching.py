"""Simulated runs cut into parts, as if they were still running."""

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.properties.judge import judge
from antiphon.scenario.read import parse_scenario
from antiphon.sim.run import simulate
from antiphon.trace.directory import RunRecord, write_run, write_table
from antiphon.trace.table import events_table

SCENARIOS = {
    "crash": """
        group = [{ name = "orders", members = 4 }]
        workload = [{ group = "orders", messages = 60, interval = "10ms", jitter = 0.5 }]
        fault = [{ kind = "crash", process = "p4", at = "300ms" }]
        options = { suspect_after = "150ms" }
    """,
    "merge": """
        group = [{ name = "orders", members = 4 }, { name = "audit", members = ["p2", "p3"] }]
        workload = [
            { group = "orders", messages = 60, interval = "10ms", jitter = 0.5 },
            { group = "audit", messages = 30, interval = "20ms" },
        ]
        fault = [
            { kind = "partition", sides = [["p1", "p2"], ["p3", "p4"]], at = "200ms", until = "800ms" },
            { kind = "crash", process = "p4", at = "1500ms" },
            { kind = "recover", process = "p4", at = "2s" },
        ]
        options = { suspect_after = "150ms", merge_every = "300ms" }
    """,
    "leave": """
        group = [{ name = "orders", members = 4 }]
        workload = [{ group = "orders", messages = 40, interval = "10ms", jitter = 0.5 }]
        fault = [{ kind = "leave", process = "p3", group = "orders", at = "250ms" }]
        options = { suspect_after = "150ms" }
    """,
    "causal": """
        group = [{ name = "orders", members = 4, service = "causal-fast" }]
        workload = [{ group = "orders", messages = 40, interval = "10ms", jitter = 0.5 }]
        fault = [{ kind = "crash", process = "p3", at = "250ms" }]
        options = { suspect_after = "150ms" }
    """,
    "unsuspecting": """
        group = [{ name = "orders", members = 3 }]
        workload = [{ group = "orders", messages = 20, interval = "10ms" }]
        options = { suspect_after = "0s" }
    """,
    "two-phase": """
        protocol = "classic"
        group = [{ name = "orders", members = 3, service = "total" }]
        workload = [{ group = "orders", messages = 20, interval = "10ms" }]
    """,
    "acks": """
        protocol = "acks"
        group = [{ name = "orders", members = 3 }]
        workload = [{ group = "orders", messages = 20, interval = "10ms" }]
    """,
}


@cache
def events_of(name: str) -> pa.Table:
    run = simulate(parse_scenario(f'name = "{name}"\nduration = "60s"\n{SCENARIOS[name]}'))
    return events_table(run.id, run.histories)


def cut(events: pa.Table, slices: int, *, per_member: bool = True) -> list[pa.Table]:
    """Cut a run by time, and each slice by process, as the members would have written it."""
    time = events.column("time").to_numpy()
    part = time * slices // (int(time.max()) + 1)
    process = pc.dictionary_encode(events.column("process")).combine_chunks().indices.to_numpy()
    if per_member:
        part = part * (int(process.max()) + 1) + process
    return [events.filter(pa.array(part == each)) for each in np.unique(part)]


def judged(events: pa.Table, properties: tuple[str, ...]) -> dict[tuple[str, str | None], tuple[int, int]]:
    """The verdicts of the checkers on a run: opportunities and violations, if there are any."""
    return {
        (verdict.property, verdict.group): (verdict.opportunities, verdict.violations)
        for verdict in judge(events)
        if verdict.property in properties and (verdict.opportunities or verdict.violations)
    }


def add_part(directory: Path, number: int, events: pa.Table) -> None:
    path = directory / "events" / f"part-{number:04}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_table(events, path.with_name(f".{path.name}"))
    path.with_name(f".{path.name}").rename(path)


def call_whole(directory: Path) -> None:
    """Mark the run as complete."""
    write_run(directory, RunRecord("merge", "merge", 1, "0", clock="virtual", finished=True), "")
