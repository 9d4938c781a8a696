"""The figures of one run: from its Arrow table, or part by part if it is large."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from antiphon.errors import TraceError
from antiphon.pipeline.figures.kernel import Course, Kernel, Scope
from antiphon.pipeline.figures.measures import RunStatistics
from antiphon.pipeline.figures.rows import Codes, Rows, read
from antiphon.pipeline.figures.spreads import Spread
from antiphon.pipeline.figures.summing import Row, Taken, mean_ns, of_run
from antiphon.pipeline.tables.schemas import FIGURES

Figures = dict[str, float | int | None]
"""By the names of `FIGURES`; None if a trace does not tell."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One run, and what its figures are made of."""

    statistics: RunStatistics
    tallies: Sequence[Row]
    spreads: Mapping[Scope, Spread]


def figures(events: pa.Table) -> Figures:
    """One run's figures, with the names and in the order of `FIGURES`."""
    return figures_of(run_statistics(events))


def run_statistics(events: pa.Table) -> RunStatistics:
    """One run's measures; TraceError if the table does not hold exactly one run."""
    runs = pc.unique(events["run"])
    if len(runs) != 1:
        raise TraceError(f"figures need a table with one run, but this table has {len(runs)}")
    rows = [read(events, Codes.empty())]
    return measured(runs[0].as_py(), lambda: rows, once=False).statistics


def measured(run: str, parts: Callable[[], Iterable[Rows]], *, exact: bool = True, once: bool = True) -> Measured:
    """Measure one run. `parts` is called twice; each time it gives all rows, in parts with whole logs of processes.

    Percentiles are interpolated between all values if `exact`, else between bins. TraceError if `once` and rows occur
    more than once.
    """
    course = Course()
    for rows in parts():
        course.take(rows)
    course.close()
    kernel = Kernel(course, exact=exact, once=once)
    for rows in parts():
        kernel.take(rows)
    latencies = {scope: latency for scope, spread in kernel.spreads.items() if (latency := spread.latency())}
    statistics = of_run(run, kernel.tallies, Taken(latencies, kernel.overheads))
    return Measured(statistics, kernel.tallies, kernel.spreads)


def figures_of(run: RunStatistics) -> Figures:
    """The figures among a run's measures, with the names and in the order of `FIGURES`."""
    traffic, flow, experiment, latency = run.traffic, run.flow, run.experiment, run.latency
    rates = [group.per_second for group in run.groups if group.per_second is not None]
    values: Figures = {
        "sent": traffic.sent,
        "delivered": traffic.delivered,
        "seconds": run.seconds,
        "latency_mean_ns": mean_ns(latency),
        "latency_p50_ns": None if latency is None else latency.p50_ns,
        "latency_p90_ns": None if latency is None else latency.p90_ns,
        "latency_p99_ns": None if latency is None else latency.p99_ns,
        "latency_max_ns": None if latency is None else latency.max_ns,
        "stability_mean_ns": mean_ns(run.stability_latency),
        "request_mean_ns": mean_ns(run.request_latency),
        "delay_overhead_ns": experiment.delay_overhead_ns,
        "per_second": sum(rates) if rates else None,
        "first_sender_per_second": experiment.first_sender_per_second,
        "unstable_blocks_max": flow.unstable_blocks_max,
        "unstable_max": run.unstable_max,
        "buffers_max": flow.buffers_max,
        "frames": sum(traffic.frames.values()),
        "nulls": experiment.nulls,
        "nulls_per_inactive_member": experiment.nulls_per_inactive_member,
        "header_bytes_per_message": traffic.header_bytes_per_message,
        "stamp_bytes_per_message": traffic.stamp_bytes_per_message,
        "copies_per_message": traffic.copies_per_message,
        "wire_bytes_per_message": traffic.wire_bytes_per_message,
        "blocked_times": flow.blocked_times,
        "blocked_ns": flow.blocked_ns,
        "view_changes": run.view_changes,
    }
    return {name: values[name] for name in FIGURES.names}
