"""Runs read from their event files: a small one at once, a large one part by part."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.errors import TraceError
from antiphon.pipeline.dataset import Unit, open_coded, read_coded, read_events
from antiphon.pipeline.figures.arrays import IntArray, dense
from antiphon.pipeline.figures.one_run import Measured, measured
from antiphon.pipeline.figures.rows import MEASURED, Codes, Rows, read
from antiphon.trace.places import Place

ROWS_PER_PART: Final = 4_000_000
"""A run with more rows is read in parts of about this size, as far as whole logs of processes allow."""

_Log = tuple[str, int]
"""Process and incarnation."""


def measured_runs(
    unit: Unit, *, exact_events_max: int, once: bool, rows_per_part: int = ROWS_PER_PART
) -> Iterator[Measured]:
    """Measure each run of a unit."""
    if unit.rows > rows_per_part and unit.is_one_run:
        yield _large(unit.files, exact_events_max=exact_events_max, once=once, rows_per_part=rows_per_part)
        return
    for run, events in _runs(read_events(unit.files, MEASURED)):
        exact = len(events) <= exact_events_max
        try:
            rows = [read(events, Codes.empty())]
            yield measured(run, lambda rows=rows: rows, exact=exact, once=once)  # type: ignore[misc]
        except TraceError as error:
            raise TraceError(f"run {run}: {error}") from error


def _runs(events: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each run."""
    runs = pc.unique(events["run"]).to_pylist()
    if len(runs) == 1:
        yield runs[0], events
        return
    for run in sorted(runs):
        yield run, events.filter(pc.equal(events["run"], run))


def _large(files: Sequence[Place], *, exact_events_max: int, once: bool, rows_per_part: int) -> Measured:
    """Measure one run without having all of it in memory."""
    codes, logs = Codes.empty(), _logs(files)
    packs = _packed(logs, rows_per_part)
    run = open_coded(files[0]).read_row_group(0, columns=["run"])["run"][0].as_py()
    exact = sum(logs.values()) <= exact_events_max
    return measured(run, partial(_parts, files, packs, codes), exact=exact, once=once)


def _logs(files: Iterable[Place]) -> dict[_Log, int]:
    """All process incarnations, with the numbers of their rows."""
    found: dict[_Log, int] = {}
    for table in _row_groups(files, ("process", "incarnation")):
        for log, count in zip(*_owners(table)[1:], strict=True):
            found[log] = found.get(log, 0) + count
    return dict(sorted(found.items()))


def _packed(logs: dict[_Log, int], limit: int) -> list[set[_Log]]:
    """Neighbours together while they have no more rows than the limit."""
    packs, room = list[set[_Log]](), 0
    for log, count in logs.items():
        if not packs or count > room:
            packs.append(set())
            room = limit
        packs[-1].add(log)
        room -= count
    return packs


def _parts(files: Sequence[Place], packs: Sequence[set[_Log]], codes: Codes) -> Iterator[Rows]:
    for pack in packs:
        tables = []
        for path in files:
            file = open_coded(path)
            for group in range(file.metadata.num_row_groups):
                place, logs, _ = _owners(read_coded(path, file, group, ["process", "incarnation"]))
                chosen = np.array([log in pack for log in logs], np.bool_)
                if chosen.any():
                    tables.append(read_coded(path, file, group, MEASURED).filter(pa.array(chosen[place])))
        yield read(pa.concat_tables(tables, promote_options="default").unify_dictionaries(), codes)


def _row_groups(files: Iterable[Place], names: Sequence[str]) -> Iterator[pa.Table]:
    for path in files:
        file = open_coded(path)
        for group in range(file.metadata.num_row_groups):
            yield read_coded(path, file, group, names)


def _owners(table: pa.Table) -> tuple[IntArray, list[_Log], list[int]]:
    """For each row the place of its process incarnation in the list; and how many rows each has."""
    name = table["process"].combine_chunks()
    place, known = dense(
        np.asarray(name.indices.to_numpy(zero_copy_only=False), np.int64) << 32 | table["incarnation"].to_numpy()
    )
    texts = name.dictionary.to_pylist()
    logs = [(texts[each >> 32], each & 0xFFFFFFFF) for each in known.tolist()]
    return place, logs, np.bincount(place, minlength=len(logs)).tolist()
