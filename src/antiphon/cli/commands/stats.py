"""`antiphon stats DIR…`: latency, throughput, overhead and buffers of runs, with Spark; several side by side."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

from rich.markup import escape
from rich.table import Table

from antiphon.cli.shared.output import Json, out, print_json, waiting
from antiphon.cli.shared.paths import place_argument
from antiphon.cli.shared.sessions import Conf, DriverMemory, Master, Quick, ShipPackages, spark_choice, started_unless
from antiphon.cli.shared.traces import collected
from antiphon.trace.places import Place

if TYPE_CHECKING:
    from antiphon.pipeline.figures.measures import (
        Configuration,
        GroupStatistics,
        Interval,
        Latency,
        MemberStatistics,
        RunStatistics,
        Statistics,
    )

RUNS_MAX: Final = 20
"""Up to this many runs of one directory have a row each."""

_NOTHING: Final = "-"
_BESIDE: Final = (
    "mean ms",
    "p99 ms",
    "stamp\nbytes",
    "header\nbytes",
    "nulls",
    "alive",
    "recovery",
    "blocked\ns",
    "unstable\nblocks",
)


_INTERVALS: Final = {
    "latency\nms": ("latency_mean_ns", 1e6),
    "overhead\nms": ("delay_overhead_ns", 1e6),
    "first sender\nper second": ("first_sender_per_second", 1),
    "unstable\nblocks": ("unstable_blocks_max", 1),
    "nulls": ("nulls", 1),
    "nulls per\ninactive": ("nulls_per_inactive_member", 1),
    "blocked\nms": ("blocked_ns", 1e6),
}
"""The figures shown of a configuration: name, and divisor."""


def stats(
    directories: Annotated[
        list[Place],
        place_argument("DIR...", "A run directory, or a directory of many runs; several are compared."),
    ],
    quick: Quick = False,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
    driver_memory: DriverMemory = None,
    ship_packages: ShipPackages = False,
) -> None:
    """Measure runs: latency, throughput, buffers, and what ordering and flow control cost in bytes, frames and time."""
    from antiphon.pipeline.dataset import Dataset  # noqa: PLC0415 - Spark takes a second to import
    from antiphon.pipeline.figures.statistics import statistics  # noqa: PLC0415

    choice = spark_choice(master, conf, driver_memory, ship_packages)
    found = [Dataset.of(collected(directory)).sound() for directory in directories]
    spark = started_unless(quick, choice)
    with waiting("measuring"):
        measured = [(str(each.directory), statistics(spark, each)) for each in found]
    if json:
        documents = [{"directory": name, **asdict(figures)} for name, figures in measured]
        print_json(asdict(measured[0][1]) if len(measured) == 1 else {"directories": documents})
    elif len(measured) == 1:
        print_statistics(measured[0][1])
    else:
        _print_beside("directory", [(name, figures.overall) for name, figures in measured])
        _print_note(*(figures.percentiles for _, figures in measured))
    if spark is None and not json:
        out.print("measured in this process, without Spark", highlight=False)


def print_statistics(figures: "Statistics") -> None:
    """Show the traffic of each group, and the members of a single run; several runs have a row each and a sum."""
    runs, number = figures.runs, figures.number_of_runs
    shown = runs[0] if number == 1 else figures.overall
    for group in shown.groups:
        out.print(_members(group, runs=number))
        out.print(_traffic(group))
    if number > 1 or len(shown.groups) > 1:
        rows = [(each.run or "", each) for each in runs] if number <= RUNS_MAX else []
        _print_beside("run", [*rows, ("all", figures.overall)] if number > 1 else rows)
    else:
        _print_work(shown)
    if any(len(each.runs) > 1 for each in figures.configurations):
        out.print(_configurations(figures.configurations))
    _print_note(figures.percentiles)


def _print_work(run: "RunStatistics") -> None:
    """Show the figures of the whole run, if its trace has them."""
    if run.idle_copies_per_second is not None:
        out.print(f"copies per second when idle, all members: {_number(run.idle_copies_per_second)}")
    if run.costs is not None:
        work = run.costs
        out.print(f"protocol work: senders {work.sender_work:,} steps, receivers {work.receiver_work:,}")


def _configurations(configurations: "Sequence[Configuration]") -> Table:
    """The figures that some configuration has: the mean, and below it half the width of the interval."""
    title = "Configurations: the mean of their runs, and half of its 95 % confidence interval"
    table = Table(title=title, title_justify="left", show_lines=True)
    table.add_column("configuration", overflow="fold", min_width=20)
    table.add_column("runs", justify="right")
    shown = {heading: of for heading, of in _INTERVALS.items() if any(of[0] in each.figures for each in configurations)}
    for heading in shown:
        table.add_column(heading, justify="right")
    for each in configurations:
        settings = [f"{key}={value}" for key, value in each.settings.items() if key != "name"]
        cells = (_mean(each.figures.get(name), divisor) for name, divisor in shown.values())
        table.add_row(escape(" ".join([each.scenario, *settings])), f"{len(each.runs):,}", *cells)
    return table


def _mean(interval: "Interval | None", divisor: float) -> str:
    if interval is None:
        return _NOTHING
    mean = _rounded(interval.mean / divisor, 4)
    return mean if interval.half_width is None else f"{mean}\n± {_rounded(interval.half_width / divisor, 2)}"


def _rounded(value: float, digits: int) -> str:
    """The value with this many significant digits, and all digits before the point."""
    return f"{value:,.0f}" if value >= 10**digits else f"{value:,.{digits}g}"


def _print_note(*percentiles: str) -> None:
    out.print(
        f"percentiles are {' or '.join(sorted({*percentiles}))}; the rate of a group is that of its slowest member"
    )


def _print_beside(what: str, rows: Sequence[tuple[str, "RunStatistics"]]) -> None:
    out.print(_beside(what, rows))
    further = _further(what, rows)
    if further.columns[1:]:
        out.print(further)


def _further(what: str, rows: Sequence[tuple[str, "RunStatistics"]]) -> Table:
    """Figures that not every trace has, per message except times and work; one column for each figure that occurs."""
    table = Table(title="Further figures, if traces have them", title_justify="left")
    table.add_column(what, overflow="fold", min_width=26)
    cells = [_further_cells(figures) for _, figures in rows]
    shown = [heading for heading in cells[0] if any(own[heading] != _NOTHING for own in cells)]
    for heading in shown:
        table.add_column(heading, justify="right")
    for (name, _), own in zip(rows, cells, strict=True):
        table.add_row(escape(name), *(own[heading] for heading in shown))
    return table


def _further_cells(figures: "RunStatistics") -> dict[str, str]:
    traffic, work = figures.traffic, figures.costs
    stable_mean, stable_p99 = _mean_and_p99(figures.stability_latency)
    answered_mean, answered_p99 = _mean_and_p99(figures.request_latency)
    return {
        "copies": _number(traffic.copies_per_message),
        "while\nbusy": _busy_copies(figures),
        "idle, per\nsecond": _number(figures.idle_copies_per_second),
        "wire\nbytes": _number(traffic.wire_bytes_per_message),
        "acks": _number(traffic.acknowledgments_per_message or None),
        "stable\nmean ms": stable_mean,
        "stable\np99 ms": stable_p99,
        "without\nreceivers": _number(figures.sent_to_nobody or None),
        "answered\nmean ms": answered_mean,
        "answered\np99 ms": answered_p99,
        "sender\nwork": _number(None if work is None else work.sender_work),
        "receiver\nwork": _number(None if work is None else work.receiver_work),
    }


def _beside(what: str, rows: Iterable[tuple[str, "RunStatistics"]]) -> Table:
    """One row for each run or directory, all its groups together."""
    title = "Latency; stamp bytes per data frame; header bytes, nulls, alive, recovery frames per message; time blocked"
    table = Table(title=title, title_justify="left")
    table.add_column(what, overflow="fold", min_width=26)
    for heading in _BESIDE:
        table.add_column(heading, justify="right")
    for name, figures in rows:
        traffic, flow = figures.traffic, figures.flow
        table.add_row(
            escape(name),
            *_mean_and_p99(figures.latency),
            _number(traffic.stamp_bytes_per_data_frame),
            _number(traffic.header_bytes_per_message),
            _number(traffic.nulls_per_message),
            _number(traffic.announcements_per_message),
            _number(traffic.repairs_per_message),
            f"{flow.blocked_ns / 1e9:,.3f}",
            _number(flow.unstable_blocks_max),
        )
    return table


def _members(group: "GroupStatistics", runs: int) -> Table:
    over = f", {runs:,} runs" if runs > 1 else ""
    table = Table(title=f"Group {escape(group.group)}: latency from request to delivery{over}", title_justify="left")
    table.add_column("member")
    headings = ("delivered", "per second", "p50 ms", "p90 ms", "p99 ms", "max ms", "unstable max", "blocked ms")
    for heading in headings:
        table.add_column(heading, justify="right")
    for member in group.members:
        table.add_row(escape(member.process), *_cells(member, member.delivered))
    table.add_section()
    table.add_row("all", *_cells(group, group.traffic.delivered))
    return table


def _cells(of: "MemberStatistics | GroupStatistics", delivered: int) -> tuple[str, ...]:
    blocked = _ms(of.flow.blocked_ns)
    return f"{delivered:,}", _number(of.per_second), *_latency(of.latency), _number(of.unstable_max), blocked


def _traffic(group: "GroupStatistics") -> Table:
    """Figures that every trace has, then figures that only some have."""
    traffic, flow, experiment = group.traffic, group.flow, group.experiment
    frames = ", ".join(f"{count:,} {kind}" for kind, count in sorted(traffic.frames.items()))
    table = Table(title=f"Group {escape(group.group)}: traffic", title_justify="left", show_header=False)
    for name, value in (
        ("messages sent", f"{traffic.sent:,}"),
        ("frames", frames),
        ("messages per data frame", _number(traffic.messages_per_data_frame)),
        ("nulls per message", _number(traffic.nulls_per_message)),
        ("announcements (alive) per message", _number(traffic.announcements_per_message)),
        ("recovery frames (status, ack, request, repair) per message", _number(traffic.repairs_per_message)),
        ("header bytes per message", _number(traffic.header_bytes_per_message)),
        ("header share of all bytes", _number(traffic.header_ratio)),
        ("stamp bytes per message", _number(traffic.stamp_bytes_per_message)),
        ("stamp bytes per data frame", _number(traffic.stamp_bytes_per_data_frame)),
        ("times blocked by flow control", f"{flow.blocked_times:,}"),
        ("blocked, all members (ms)", _ms(flow.blocked_ns)),
        ("most unstable blocks", _number(flow.unstable_blocks_max)),
        ("most buffers in use", _number(flow.buffers_max)),
    ):
        table.add_row(name, value)
    for name, value in (
        ("delay overhead: from receipt to delivery, mean of the members (ms)", _mean_ms(experiment.delay_overhead_ns)),
        ("nulls per inactive member", _number(experiment.nulls_per_inactive_member)),
        (
            "messages per second of the first sender, up to its last delivery",
            _number(experiment.first_sender_per_second),
        ),
        ("copies (point-to-point messages) per message", _number(traffic.copies_per_message)),
        ("of these, while the run was busy", _busy_copies(group)),
        ("bytes on the wire per message, all copies", _number(traffic.wire_bytes_per_message)),
        ("acknowledgment frames per message", _number(traffic.acknowledgments_per_message or None)),
        ("mean time until stable at the sender (ms)", _mean_and_p99(group.stability_latency)[0]),
        ("99th percentile of it (ms)", _mean_and_p99(group.stability_latency)[1]),
        ("messages sent without receivers, not counted as stable", _number(group.sent_to_nobody or None)),
        ("mean time until a request is answered (ms)", _mean_and_p99(group.request_latency)[0]),
        ("99th percentile of that (ms)", _mean_and_p99(group.request_latency)[1]),
    ):
        if value != _NOTHING:
            table.add_row(name, value)
    return table


def _busy_copies(of: "GroupStatistics | RunStatistics") -> str:
    """Nothing if all copies were sent while the run was busy."""
    total, busy = of.traffic.copies_per_message, of.busy_traffic.copies_per_message
    return _number(busy) if busy != total else _NOTHING


def _mean_and_p99(latency: "Latency | None") -> tuple[str, str]:
    return (_NOTHING, _NOTHING) if latency is None else (_ms(latency.mean_ns), _ms(latency.p99_ns))


def _latency(latency: "Latency | None") -> tuple[str, str, str, str]:
    if latency is None:
        return (_NOTHING,) * 4
    return _ms(latency.p50_ns), _ms(latency.p90_ns), _ms(latency.p99_ns), _ms(latency.max_ns)


def _mean_ms(value_ns: float | None) -> str:
    return _NOTHING if value_ns is None else _ms(value_ns)


def _ms(value_ns: float) -> str:
    return f"{value_ns / 1e6:,.3f}"


def _number(value: float | None) -> str:
    if value is None:
        return _NOTHING
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"
