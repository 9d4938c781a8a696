"""From tallies and latencies to the measures of runs, groups and members: additions and ratios, no query.

The kernel (`kernel.py`) adds up; what the sums mean is defined here, once, for one run and for many (`totals.py`).
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
    Traffic,
)

Row = Mapping[str, Any]
"""A row of a result, by column."""

Measure = Literal["delivery", "stability", "to nobody", "request"]
"""What the latency is measured to."""

USEFUL: Final = ("send", "deliver", "stable", "answer")
"""While such rows are still to come, a run is busy; afterwards it only transmits periodic frames."""
SPEAKS_ALWAYS: Final = ("options", "send_every")
"""The option in a `start` row of a process that transmits periodically, so that its run does not end by itself."""

_DATA: Final = frozenset({"data", "fragment"})
_REPAIRS: Final = frozenset({"status", "ack", "request", "repair"})

Latencies = Mapping[tuple[Measure, str | None, str | None], Latency]
"""By measure, group and process; None stands for all."""
Overheads = Mapping[tuple[str, str], float]
"""The mean delay overhead by group and process."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The figures of a run that cannot be added up."""

    latencies: Latencies
    overheads: Overheads


def parted(rows: Iterable[Row], column: str) -> dict[str, list[Row]]:
    """Rows by the value of a column, sorted; rows without a value are left out."""
    parts = defaultdict(list)
    for row in rows:
        if row[column] is not None:
            parts[row[column]].append(row)
    return dict(sorted(parts.items()))


def of_run(run: str, rows: Sequence[Row], taken: Taken) -> RunStatistics:
    """The figures of one run with these tallies and latencies."""
    moved = {row["process"] for row in rows if row["moves"]}
    groups = tuple(_group(group, own, moved, taken) for group, own in parted(rows, "group").items())
    rates = [group.experiment.first_sender_per_second for group in groups]
    return RunStatistics(
        run=run,
        seconds=lasted_ns(rows) / 1e9,
        view_changes=largest(rows, "view_changes") or 0,
        latency=taken.latencies.get(("delivery", None, None)),
        stability_latency=taken.latencies.get(("stability", None, None)),
        sent_to_nobody=count_of(taken.latencies.get(("to nobody", None, None))),
        request_latency=taken.latencies.get(("request", None, None)),
        traffic=traffic_of(rows),
        busy_traffic=traffic_of([row for row in rows if not row["idle"]]),
        idle_copies_per_second=_idle_copies_per_second(rows),
        unstable_max=largest(rows, "unstable_max"),
        flow=flow_of(rows),
        costs=costs_of(rows),
        experiment=_experiment([member for group in groups for member in group.members], _added(rates)),
        groups=groups,
    )


def _group(group: str, rows: Sequence[Row], moved: AbstractSet[str], taken: Taken) -> GroupStatistics:
    first_request_ns = _least(rows, "first_request_ns")
    members = tuple(
        _member(
            process,
            own,
            first_request_ns,
            taken.latencies.get(("delivery", group, process)),
            taken.overheads.get((group, process)),
        )
        for process, own in parted(rows, "process").items()
    )
    rates = [member.per_second for member in members if member.process not in moved]
    return GroupStatistics(
        group=group,
        per_second=min((rate for rate in rates if rate is not None), default=None),
        latency=taken.latencies.get(("delivery", group, None)),
        stability_latency=taken.latencies.get(("stability", group, None)),
        sent_to_nobody=count_of(taken.latencies.get(("to nobody", group, None))),
        request_latency=taken.latencies.get(("request", group, None)),
        traffic=traffic_of(rows),
        busy_traffic=traffic_of([row for row in rows if not row["idle"]]),
        unstable_max=largest(rows, "unstable_max"),
        flow=flow_of(rows),
        experiment=_experiment(members, _first_sender_per_second(rows)),
        members=members,
    )


def _member(
    process: str,
    rows: Sequence[Row],
    first_request_ns: int | None,
    latency: Latency | None,
    delay_overhead_ns: float | None,
) -> MemberStatistics:
    delivered = _total(rows, "delivered")
    return MemberStatistics(
        process=process,
        sent=_total(rows, "sent"),
        delivered=delivered,
        per_second=_per_second(delivered, first_request_ns, largest(rows, "last_delivery_ns")),
        latency=latency,
        delay_overhead_ns=delay_overhead_ns,
        unstable_max=largest(rows, "unstable_max"),
        nulls=_total((row for row in rows if row["type"] == "null"), "frames"),
        flow=flow_of(rows),
    )


def _per_second(count: int, first_request_ns: int | None, last_delivery_ns: int | None) -> float | None:
    """Zero for a member that delivered nothing although there was a request."""
    if first_request_ns is None:
        return None
    if last_delivery_ns is None:
        return 0.0
    return ratio(count * 1e9, last_delivery_ns - first_request_ns)


def _experiment(members: Sequence[MemberStatistics], first_sender_per_second: float | None) -> Experiment:
    most = max((member.sent for member in members), default=0)
    inactive = [member for member in members if member.sent <= min(1, most - 1)]
    return Experiment(
        delay_overhead_ns=_mean(member.delay_overhead_ns for member in members),
        nulls=sum(member.nulls for member in members),
        nulls_per_inactive_member=_mean(member.nulls for member in inactive),
        first_sender_per_second=first_sender_per_second,
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
    return _per_second(_total(own, "sent"), first_requests[first], largest(own, "last_delivery_ns"))


def lasted_ns(rows: Sequence[Row]) -> int:
    """From the first row of a process to the last."""
    return (largest(rows, "last_ns") or 0) - (_least(rows, "first_ns") or 0)


def traffic_of(rows: Sequence[Row]) -> Traffic:
    """What was sent, delivered and transmitted."""
    frames = {kind: _total(own, "frames") for kind, own in parted(rows, "type").items()}
    sent, header_bytes = _total(rows, "sent"), _total(rows, "header_bytes")
    nulls, data = frames.get("null", 0), frames.get("data", 0)
    packed = _total((row for row in rows if row["type"] == "data"), "packed")
    carrying = [row for row in rows if row["type"] in _DATA]
    is_told = tells_copies(rows)
    return Traffic(
        sent=sent,
        delivered=_total(rows, "delivered"),
        frames=frames,
        null_share=ratio(nulls, sum(frames.values())),
        nulls_per_message=ratio(nulls, sent),
        header_bytes_per_message=ratio(header_bytes, sent),
        header_ratio=ratio(header_bytes, header_bytes + _total(rows, "payload_bytes")),
        stamp_bytes_per_message=ratio(_total(rows, "stamp_bytes"), sent),
        stamp_bytes_per_data_frame=ratio(_total(carrying, "stamp_bytes"), _total(carrying, "frames")),
        announcements_per_message=ratio(frames.get("alive", 0), sent),
        repairs_per_message=ratio(sum(frames.get(kind, 0) for kind in _REPAIRS), sent),
        messages_per_data_frame=ratio(packed, data),
        copies_per_message=ratio(_total(rows, "copies"), sent) if is_told else None,
        wire_bytes_per_message=ratio(_total(rows, "wire_bytes"), sent) if is_told else None,
        acknowledgments_per_message=ratio(frames.get("acknowledgment", 0), sent),
    )


def _idle_copies_per_second(rows: Sequence[Row]) -> float | None:
    """If the run was idle for a time: the copies of all members, divided by the idle time."""
    idle_ns = largest(rows, "idle_ns") or 0
    return ratio(idle_copies(rows) * 1e9, idle_ns) if idle_ns > 0 and tells_copies(rows) else None


def idle_copies(rows: Sequence[Row]) -> int:
    """Copies that were transmitted after all useful work was done."""
    return _total((row for row in rows if row["idle"]), "copies")


def tells_copies(rows: Sequence[Row]) -> bool:
    """Whether the trace tells how many receivers each frame had."""
    return _total(rows, "frames_with_copies") == _total(rows, "frames")


def costs_of(rows: Sequence[Row]) -> Costs | None:
    """The work that the protocol counts."""
    if all(row["sender_work"] is None and row["receiver_work"] is None for row in rows):
        return None
    return Costs(_total(rows, "sender_work"), _total(rows, "receiver_work"))


def flow_of(rows: Sequence[Row]) -> Flow:
    """What flow control did."""
    return Flow(
        blocked_times=_total(rows, "blocks"),
        blocked_ns=_total(rows, "blocked_ns"),
        unstable_blocks_max=largest(rows, "unstable_blocks_max"),
        buffers_max=largest(rows, "buffers_max"),
    )


def _total(rows: Iterable[Row], column: str) -> int:
    return sum(row[column] or 0 for row in rows)


def _least(rows: Iterable[Row], column: str) -> int | None:
    return min((row[column] for row in rows if row[column] is not None), default=None)


def largest(rows: Iterable[Row], column: str) -> int | None:
    """The largest known value of a column."""
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


def count_of(latency: Latency | None) -> int:
    """The number of values, which may be zero."""
    return 0 if latency is None else latency.count


def ratio(part: float, whole: float) -> float | None:
    """None if there is nothing to divide by."""
    return part / whole if whole > 0 else None
