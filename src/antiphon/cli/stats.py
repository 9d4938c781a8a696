"""`antiphon stats DIR`: latency, throughput, overhead and buffers of a directory's runs, computed by Spark."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from antiphon.cli.output import Json, Master, out, print_json, waiting

if TYPE_CHECKING:
    from antiphon.pipeline.statistics import GroupStatistics, Latency, Statistics


def stats(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A run directory, or a directory of many runs.")],
    json: Json = False,
    master: Master = None,
) -> None:
    """Measure runs: latency percentiles per member, throughput, null and header overhead, largest unstable count."""
    from antiphon.pipeline.read import find_event_files  # noqa: PLC0415 - Spark takes a second to import
    from antiphon.pipeline.session import spark_session  # noqa: PLC0415
    from antiphon.pipeline.statistics import statistics  # noqa: PLC0415

    find_event_files(directory)
    with waiting("starting Spark"):
        spark = spark_session(master)
    with waiting("measuring"):
        figures = statistics(spark, directory)
    if json:
        print_json(asdict(figures))
    else:
        print_statistics(figures)


def print_statistics(figures: "Statistics") -> None:
    """Per group its traffic, and its members where there is one run; several runs are added up."""
    shown = figures.runs[0] if len(figures.runs) == 1 else figures.overall
    for group in shown.groups:
        out.print(_members(group, runs=len(figures.runs)))
        out.print(_traffic(group))
    out.print(f"percentiles are {figures.percentiles}; a group is as fast as its slowest member")


def _members(group: "GroupStatistics", runs: int) -> Table:
    over = f", {runs} runs" if runs > 1 else ""
    table = Table(title=f"Group {escape(group.group)}: latency from request to delivery{over}", title_justify="left")
    table.add_column("member")
    for heading in ("delivered", "per second", "p50 ms", "p90 ms", "p99 ms", "max ms", "unstable max"):
        table.add_column(heading, justify="right")
    for member in group.members:
        rate = _number(member.per_second)
        unstable = _number(member.unstable_max)
        table.add_row(escape(member.process), f"{member.delivered:,}", rate, *_latency(member.latency), unstable)
    table.add_section()
    rate = _number(group.per_second)
    table.add_row("all", f"{group.traffic.delivered:,}", rate, *_latency(group.latency), _number(group.unstable_max))
    return table


def _traffic(group: "GroupStatistics") -> Table:
    traffic = group.traffic
    frames = ", ".join(f"{count:,} {kind}" for kind, count in sorted(traffic.frames.items()))
    table = Table(title=f"Group {escape(group.group)}: traffic", title_justify="left", show_header=False)
    for name, value in (
        ("messages sent", f"{traffic.sent:,}"),
        ("frames", frames),
        ("messages per data frame", _number(traffic.messages_per_data_frame)),
        ("nulls per message", _number(traffic.nulls_per_message)),
        ("header bytes per message", _number(traffic.header_bytes_per_message)),
        ("header share of all bytes", _number(traffic.header_ratio)),
        ("stamp bytes per message", _number(traffic.stamp_bytes_per_message)),
    ):
        table.add_row(name, value)
    return table


def _latency(latency: "Latency | None") -> tuple[str, str, str, str]:
    if latency is None:
        return "-", "-", "-", "-"
    return _ms(latency.p50_ns), _ms(latency.p90_ns), _ms(latency.p99_ns), _ms(latency.max_ns)


def _ms(value_ns: float) -> str:
    return f"{value_ns / 1e6:,.3f}"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"
