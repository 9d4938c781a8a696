"""From tallies and latencies to the measures of runs, groups and members: additions and ratios, no query.

Spark adds up for many runs (`statistics.py`), Arrow for one (`single.py`); what the sums mean is defined here, once.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final, Literal

from antiphon.pipeline.figures.measures import (
    Costs,
    Experiment,
    Flow,
    GroupStatistics,
    Latency,
    MemberStatistics,
    RunStatistics,
    Statistics,
    Traffic,
)

Row = Mapping[str, Any]
"""A row of a result, by column."""

Measure = Literal["delivery", "stability", "to nobody", "request"]
"""What the latency is measured to."""

USEFUL: Final = ("send", "deliver", "stable", "answer")
"""While such rows are still to come, a run is busy; afterwards it only transmits periodic frames."""
SPEAKS_ALWAYS: Final = "options.send_every"
"""The option in the `start` row of a process that transmits periodically, so that its run does not end by itself."""

_DATA: Final = frozenset({"data", "fragment"})
_REPAIRS: Final = frozenset({"status", "ack", "request", "repair"})

_Latencies = Mapping[tuple[Measure, str | None, str | None, str | None], Latency]
"""By measure, run, group and process; None stands for all."""
_Overheads = Mapping[tuple[str | None, str | None, str | None], float | None]
"""The mean delay overhead by run, group and process; None stands for all."""
_Ends = Mapping[tuple[str, str, int], int]
"""By run, process and incarnation."""


@dataclass(frozen=True, slots=True)
class _Taken:
    """The figures that cannot be added up."""

    latencies: _Latencies
    overheads: _Overheads


def parted(rows: Iterable[Row], column: str) -> dict[str, list[Row]]:
    """Rows by the value of a column, sorted; rows without a value are left out."""
    parts = defaultdict(list)
    for row in rows:
        if row[column] is not None:
            parts[row[column]].append(row)
    return dict(sorted(parts.items()))


def summed(rows: Sequence[Row], latencies: Sequence[Row], *, exact: bool) -> Statistics:
    """All figures of the runs with these tallies and latencies."""
    taken = _Taken(_by_scope(latencies), _overheads(latencies))
    runs = tuple(_run(run, own, taken) for run, own in parted(rows, "run").items())
    return Statistics("exact" if exact else "approximate", _overall(rows, runs, taken), runs)


def _by_scope(rows: Iterable[Row]) -> _Latencies:
    figures = ("count", "mean_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns")
    return {
        (row["measure"], row["run"], row["group"], row["process"]): Latency(**{name: row[name] for name in figures})
        for row in rows
        if row["count"]
    }


def _overheads(rows: Iterable[Row]) -> _Overheads:
    return {
        (row["run"], row["group"], row["process"]): row["overhead_mean_ns"]
        for row in rows
        if row["overhead_mean_ns"] is not None
    }


def _run(run: str, rows: Sequence[Row], taken: _Taken) -> RunStatistics:
    moved = {row["process"] for row in rows if row["moves"]}
    ends_ns = _ends(rows)
    groups = tuple(_group(run, group, own, moved, ends_ns, taken) for group, own in parted(rows, "group").items())
    rates = [group.experiment.first_sender_per_second for group in groups]
    experiment = _experiment([member for group in groups for member in group.members], _added(rates))
    return _together(run, rows, groups, experiment, ends_ns, taken)


def _together(
    run: str | None,
    rows: Sequence[Row],
    groups: tuple[GroupStatistics, ...],
    experiment: Experiment,
    ends_ns: _Ends,
    taken: _Taken,
) -> RunStatistics:
    """The figures of all groups of a run, or of several runs."""
    return RunStatistics(
        run=run,
        seconds=sum(_lasted_ns(own) for own in parted(rows, "run").values()) / 1e9,
        view_changes=sum(_largest(own, "view_changes") or 0 for own in parted(rows, "run").values()),
        latency=taken.latencies.get(("delivery", run, None, None)),
        stability_latency=taken.latencies.get(("stability", run, None, None)),
        sent_to_nobody=_count(taken.latencies.get(("to nobody", run, None, None))),
        request_latency=taken.latencies.get(("request", run, None, None)),
        traffic=_traffic(rows),
        busy_traffic=_traffic([row for row in rows if not row["idle"]]),
        idle_copies_per_second=_idle_copies_per_second(rows),
        unstable_max=_largest(rows, "unstable_max"),
        flow=_flow(rows, ends_ns),
        costs=_costs(rows),
        experiment=experiment,
        groups=groups,
    )


def _group(
    run: str, group: str, rows: Sequence[Row], moved: AbstractSet[str], ends_ns: _Ends, taken: _Taken
) -> GroupStatistics:
    first_request_ns = _least(rows, "first_request_ns")
    members = tuple(
        _member(
            process,
            own,
            first_request_ns,
            ends_ns,
            taken.latencies.get(("delivery", run, group, process)),
            taken.overheads.get((run, group, process)),
        )
        for process, own in parted(rows, "process").items()
    )
    rates = [member.per_second for member in members if member.process not in moved]
    return GroupStatistics(
        group=group,
        per_second=min((rate for rate in rates if rate is not None), default=None),
        latency=taken.latencies.get(("delivery", run, group, None)),
        stability_latency=taken.latencies.get(("stability", run, group, None)),
        sent_to_nobody=_count(taken.latencies.get(("to nobody", run, group, None))),
        request_latency=taken.latencies.get(("request", run, group, None)),
        traffic=_traffic(rows),
        busy_traffic=_traffic([row for row in rows if not row["idle"]]),
        unstable_max=_largest(rows, "unstable_max"),
        flow=_flow(rows, ends_ns),
        experiment=_experiment(members, _first_sender_per_second(rows)),
        members=members,
    )


def _member(
    process: str,
    rows: Sequence[Row],
    first_request_ns: int | None,
    ends_ns: _Ends,
    latency: Latency | None,
    delay_overhead_ns: float | None,
) -> MemberStatistics:
    delivered = _total(rows, "delivered")
    return MemberStatistics(
        process=process,
        sent=_total(rows, "sent"),
        delivered=delivered,
        per_second=_per_second(delivered, first_request_ns, _largest(rows, "last_delivery_ns")),
        latency=latency,
        delay_overhead_ns=delay_overhead_ns,
        unstable_max=_largest(rows, "unstable_max"),
        nulls=_total((row for row in rows if row["type"] == "null"), "frames"),
        flow=_flow(rows, ends_ns),
    )


def _per_second(count: int, first_request_ns: int | None, last_delivery_ns: int | None) -> float | None:
    """Zero for a member that delivered nothing although there was a request."""
    if first_request_ns is None:
        return None
    if last_delivery_ns is None:
        return 0.0
    return _ratio(count * 1e9, last_delivery_ns - first_request_ns)


def _overall(rows: Sequence[Row], runs: Sequence[RunStatistics], taken: _Taken) -> RunStatistics:
    ends_ns = _ends(rows)
    parts = [part for run in runs for part in run.groups]
    groups = tuple(
        _group_overall(group, own, [part for part in parts if part.group == group], ends_ns, taken)
        for group, own in parted(rows, "group").items()
    )
    experiment = _mean_experiment([run.experiment for run in runs])
    return _together(None, rows, groups, experiment, ends_ns, taken)


def _group_overall(
    group: str, rows: Sequence[Row], parts: Sequence[GroupStatistics], ends_ns: _Ends, taken: _Taken
) -> GroupStatistics:
    return GroupStatistics(
        group=group,
        per_second=_mean(part.per_second for part in parts),
        latency=taken.latencies.get(("delivery", None, group, None)),
        stability_latency=taken.latencies.get(("stability", None, group, None)),
        sent_to_nobody=_count(taken.latencies.get(("to nobody", None, group, None))),
        request_latency=taken.latencies.get(("request", None, group, None)),
        traffic=_traffic(rows),
        busy_traffic=_traffic([row for row in rows if not row["idle"]]),
        unstable_max=_largest(rows, "unstable_max"),
        flow=_flow(rows, ends_ns),
        experiment=_mean_experiment([part.experiment for part in parts]),
        members=(),
    )


def _experiment(members: Sequence[MemberStatistics], first_sender_per_second: float | None) -> Experiment:
    most = max((member.sent for member in members), default=0)
    inactive = [member for member in members if member.sent <= min(1, most - 1)]
    return Experiment(
        delay_overhead_ns=_mean(member.delay_overhead_ns for member in members),
        nulls=sum(member.nulls for member in members),
        nulls_per_inactive_member=_mean(member.nulls for member in inactive),
        first_sender_per_second=first_sender_per_second,
    )


def _mean_experiment(runs: Sequence[Experiment]) -> Experiment:
    return Experiment(
        delay_overhead_ns=_mean(run.delay_overhead_ns for run in runs),
        nulls=sum(run.nulls for run in runs),
        nulls_per_inactive_member=_mean(run.nulls_per_inactive_member for run in runs),
        first_sender_per_second=_mean(run.first_sender_per_second for run in runs),
    )


def _first_sender_per_second(rows: Sequence[Row]) -> float | None:
    """The rate of the first sender, from its first request to its last delivery: that of the replies."""
    first_requests = {
        process: first_ns
        for process, own in parted(rows, "process").items()
        if (first_ns := _least(own, "first_request_ns")) is not None
    }
    if not first_requests:
        return None
    first = min(first_requests, key=lambda process: (first_requests[process], process))
    own = [row for row in rows if row["process"] == first]
    return _per_second(_total(own, "sent"), first_requests[first], _largest(own, "last_delivery_ns"))


def _lasted_ns(rows: Sequence[Row]) -> int:
    return (_largest(rows, "last_ns") or 0) - (_least(rows, "first_ns") or 0)


def _traffic(rows: Sequence[Row]) -> Traffic:
    frames = {kind: _total(own, "frames") for kind, own in parted(rows, "type").items()}
    sent, header_bytes = _total(rows, "sent"), _total(rows, "header_bytes")
    nulls, data = frames.get("null", 0), frames.get("data", 0)
    packed = _total((row for row in rows if row["type"] == "data"), "packed")
    carrying = [row for row in rows if row["type"] in _DATA]
    tells_copies = _tells_copies(rows)
    return Traffic(
        sent=sent,
        delivered=_total(rows, "delivered"),
        frames=frames,
        null_share=_ratio(nulls, sum(frames.values())),
        nulls_per_message=_ratio(nulls, sent),
        header_bytes_per_message=_ratio(header_bytes, sent),
        header_ratio=_ratio(header_bytes, header_bytes + _total(rows, "payload_bytes")),
        stamp_bytes_per_message=_ratio(_total(rows, "stamp_bytes"), sent),
        stamp_bytes_per_data_frame=_ratio(_total(carrying, "stamp_bytes"), _total(carrying, "frames")),
        announcements_per_message=_ratio(frames.get("alive", 0), sent),
        repairs_per_message=_ratio(sum(frames.get(kind, 0) for kind in _REPAIRS), sent),
        messages_per_data_frame=_ratio(packed, data),
        copies_per_message=_ratio(_total(rows, "copies"), sent) if tells_copies else None,
        wire_bytes_per_message=_ratio(_total(rows, "wire_bytes"), sent) if tells_copies else None,
        acknowledgments_per_message=_ratio(frames.get("acknowledgment", 0), sent),
    )


def _idle_copies_per_second(rows: Sequence[Row]) -> float | None:
    """Over all runs that were idle for a time: the copies of all members, divided by the idle time."""
    runs = [own for own in parted(rows, "run").values() if (_largest(own, "idle_ns") or 0) > 0]
    if not all(map(_tells_copies, runs)):
        return None
    copies = sum(_total((row for row in own if row["idle"]), "copies") for own in runs)
    return _ratio(copies * 1e9, sum(_largest(own, "idle_ns") or 0 for own in runs))


def _tells_copies(rows: Sequence[Row]) -> bool:
    return _total(rows, "frames_with_copies") == _total(rows, "frames")


def _costs(rows: Sequence[Row]) -> Costs | None:
    if all(row["sender_work"] is None and row["receiver_work"] is None for row in rows):
        return None
    return Costs(_total(rows, "sender_work"), _total(rows, "receiver_work"))


def _ends(rows: Iterable[Row]) -> _Ends:
    """When the trace of each process incarnation ends; its last row belongs to no group."""
    ends_ns: dict[tuple[str, str, int], int] = {}
    for row in rows:
        ends_ns[_who(row)] = max(row["last_ns"], ends_ns.get(_who(row), row["last_ns"]))
    return ends_ns


def _flow(rows: Sequence[Row], ends_ns: _Ends) -> Flow:
    return Flow(
        blocked_times=_total(rows, "blocks"),
        blocked_ns=sum(_blocked_ns(row, ends_ns[_who(row)]) for row in rows),
        unstable_blocks_max=_largest(rows, "unstable_blocks_max"),
        buffers_max=_largest(rows, "buffers_max"),
    )


def _blocked_ns(row: Row, end_ns: int) -> int:
    """The ends of all waits minus their beginnings; the last wait may have no end."""
    open_waits: int = row["blocks"] - row["unblocks"]
    return int(row["waits_ns"] or 0) + open_waits * end_ns


def _who(row: Row) -> tuple[str, str, int]:
    return row["run"], row["process"], row["incarnation"]


def _total(rows: Iterable[Row], column: str) -> int:
    return sum(row[column] or 0 for row in rows)


def _least(rows: Iterable[Row], column: str) -> int | None:
    return min((row[column] for row in rows if row[column] is not None), default=None)


def _largest(rows: Iterable[Row], column: str) -> int | None:
    return max((row[column] for row in rows if row[column] is not None), default=None)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _added(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def mean_ns(latency: Latency | None) -> float | None:
    """The mean, or None if there is no latency."""
    return None if latency is None else latency.mean_ns


def _count(latency: Latency | None) -> int:
    return 0 if latency is None else latency.count


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None
