"""The page about a run directory as one HTML document that loads nothing else and runs no script."""

from typing import Final

from markupsafe import Markup

from antiphon.pipeline.figures.measures import Flow, GroupStatistics, Latency, RunStatistics, Traffic
from antiphon.properties.verdicts.summary import PropertySummary
from antiphon.properties.verdicts.wording import promise
from antiphon.report.charts import course_chart, latency_chart
from antiphon.report.figures import (
    NOTHING,
    TimeUnit,
    count,
    duration,
    percent,
    rate,
    ratio,
    unit_for,
    whole,
)
from antiphon.report.model import Page
from antiphon.report.spacetime import Diagram, draw
from antiphon.report.templating import Banner, FigureTable, environment, style
from antiphon.report.wording import OUTCOMES, SYMBOLS

CHARTS_MAX: Final = 12
"""For how many groups the latency is drawn; the tables have all."""
RUNS_MAX: Final = 200
"""How many runs are listed, violated ones first."""


def render(page: Page) -> str:
    """Render the page as HTML text; the same page gives the same text."""
    templates = environment()
    diagram = draw(page.scene)
    text = templates.get_template("page.html.j2").render(
        page=page,
        style=style(templates, "page.css"),
        many=len(page.runs) > 1,
        banner=_banner(page),
        tiles=_tiles(page.statistics.overall),
        promise=promise,
        outcomes=OUTCOMES,
        symbols=SYMBOLS,
        runs=_listed(page),
        tables=_tables(page),
        latencies=_latency_charts(page),
        groups_left_out=max(0, len(page.histograms) - CHARTS_MAX),
        course=_course(page),
        diagram=diagram,
        diagram_svg=Markup(diagram.svg),  # noqa: S704 - built and escaped by `draw`
        diagram_lines=_diagram_lines(page, diagram),
    )
    return text.lstrip() + "\n"


def _banner(page: Page) -> Banner:
    symbol = SYMBOLS[page.overall]
    if page.overall == "violated":
        broken = dict.fromkeys(each["property"] for each in page.properties if each["outcome"] == "violated")
        headline = "Violated: " + ", ".join(f"{promise(each).name or each} ({each})" for each in broken)
    elif page.overall == "unknown":
        headline = "Unknown: the trace cannot be judged"
    else:
        headline = "All judged properties hold"
    return Banner(symbol, headline, tuple(_banner_lines(page)))


def _banner_lines(page: Page) -> list[str]:
    lines = []
    if len(page.runs) > 1:
        violated = sum(run.overall == "violated" for run in page.runs)
        unknown = sum(run.overall == "unknown" for run in page.runs)
        hold = len(page.runs) - violated - unknown
        lines.append(f"Of {count(len(page.runs), 'run')}, {hold:,} hold, {violated:,} violated, {unknown:,} unknown.")
    if page.overall == "unknown" and not page.properties:
        lines.append("There is no verdict.")
    tested = {each["property"] for each in page.properties if each["outcome"] != "vacuous"}
    untested = _named(tuple(each for each in page.properties if each["property"] not in tested), "vacuous")
    if untested:
        lines.append(f"No opportunity to judge: {untested}.")
    ill_formed = [each for each in page.properties if each["outcome"] == "harness error"]
    if ill_formed:
        lines.append("An ill-formed trace proves nothing about the protocol: the program that wrote it is at fault.")
    if page.shown.finished is False:
        lines.append(f"Run {page.shown.run} did not finish.")
    return lines


def _named(properties: tuple[PropertySummary, ...], outcome: str) -> str:
    return ", ".join(dict.fromkeys(each["property"] for each in properties if each["outcome"] == outcome))


def _tiles(overall: RunStatistics) -> list[tuple[str, str]]:
    """The figures that most readers look for first."""
    latency, traffic = overall.latency, overall.traffic
    rates = [group.per_second for group in overall.groups if group.per_second is not None]
    return [
        ("messages sent", whole(traffic.sent)),
        ("deliveries", whole(traffic.delivered)),
        ("median latency", duration(latency.p50_ns) if latency else NOTHING),
        ("99th percentile", duration(latency.p99_ns) if latency else NOTHING),
        ("messages/s, all groups", rate(sum(rates) if rates else None)),
        ("nulls per message", ratio(traffic.nulls_per_message)),
    ]


def _listed(page: Page) -> tuple[list[dict[str, str]], int]:
    """The runs to list, violated ones first, and how many are left out."""
    worst_first = sorted(page.runs, key=lambda run: ("violated", "unknown", "hold").index(run.overall))
    rows = [
        {
            "run": run.about.run,
            "scenario": run.about.scenario or NOTHING,
            "seed": NOTHING if run.about.seed is None else str(run.about.seed),
            "overall": run.overall,
            "symbol": SYMBOLS[run.overall],
            "violated": ", ".join(run.violated) or NOTHING,
        }
        for run in worst_first[:RUNS_MAX]
    ]
    return rows, max(0, len(page.runs) - RUNS_MAX)


# ------------------------------------------------------------------------------ tables


def _tables(page: Page) -> list[FigureTable]:
    overall, shown = page.statistics.overall, page.shown_statistics
    many = len(page.runs) > 1
    tables = [_group_table(overall, many)] if many or len(overall.groups) > 1 else []
    if shown is not None:
        suffix = f", run {shown.run}" if many else ""
        tables += [_member_table(group, suffix) for group in shown.groups]
    return [*tables, _traffic_table(overall, many)]


def _latency_heads(unit: TimeUnit) -> tuple[str, ...]:
    return tuple(f"{name} ({unit.name})" for name in ("p50", "p90", "p99", "max"))


def _latency_cells(latency: Latency | None, unit: TimeUnit) -> tuple[str, ...]:
    if latency is None:
        return (NOTHING,) * 4
    return tuple(unit.format(value) for value in (latency.p50_ns, latency.p90_ns, latency.p99_ns, latency.max_ns))


def _group_table(overall: RunStatistics, many: bool) -> FigureTable:
    unit = _unit(*(group.latency for group in overall.groups))
    return FigureTable(
        caption="Groups, all runs" if many else "Groups",
        heads=("group", *_latency_heads(unit), "delivered", "messages/s", "most unstable"),
        rows=tuple(_group_row(group, unit) for group in overall.groups),
    )


def _group_row(group: GroupStatistics, unit: TimeUnit, name: str | None = None) -> tuple[str, ...]:
    figures = (whole(group.traffic.delivered), rate(group.per_second), whole(group.unstable_max))
    return (group.group if name is None else name, *_latency_cells(group.latency, unit), *figures)


def _member_table(group: GroupStatistics, suffix: str) -> FigureTable:
    unit = _unit(group.latency, *(member.latency for member in group.members))
    rows = tuple(
        (
            member.process,
            *_latency_cells(member.latency, unit),
            whole(member.delivered),
            rate(member.per_second),
            whole(member.unstable_max),
        )
        for member in group.members
    )
    return FigureTable(
        caption=f"Members of {group.group}{suffix}",
        heads=("member", *_latency_heads(unit), "delivered", "messages/s", "most unstable"),
        rows=rows,
        foot=_group_row(group, unit, "group"),
    )


def _traffic_table(overall: RunStatistics, many: bool) -> FigureTable:
    """Figures as rows, groups as columns; with several groups, their sum comes first."""
    columns = [(group.group, group.traffic, group.flow) for group in overall.groups]
    if len(columns) != 1:
        columns.insert(0, ("all groups", overall.traffic, overall.flow))
    types = dict.fromkeys(kind for _, traffic, _ in columns for kind in traffic.frames)
    unit = unit_for(overall.flow.blocked_ns)
    cells = [_traffic_cells(traffic, list(types)) | _flow_cells(flow, unit) for _, traffic, flow in columns]
    return FigureTable(
        caption="Traffic, all runs" if many else "Traffic",
        heads=("figure", *(name for name, _, _ in columns)),
        rows=tuple((name, *(own[name] for own in cells)) for name in cells[0]),
    )


def _traffic_cells(traffic: Traffic, types: list[str]) -> dict[str, str]:
    return {
        "messages sent": whole(traffic.sent),
        "deliveries": whole(traffic.delivered),
        **{f"{kind} frames": whole(traffic.frames.get(kind, 0)) for kind in types},
        "nulls per message": ratio(traffic.nulls_per_message),
        "nulls in all frames": percent(traffic.null_share),
        "announcements per message": ratio(traffic.announcements_per_message),
        "recovery frames per message": ratio(traffic.repairs_per_message),
        "acknowledgment frames per message": ratio(traffic.acknowledgments_per_message),
        "messages per data frame": ratio(traffic.messages_per_data_frame),
        "header bytes per message": ratio(traffic.header_bytes_per_message),
        "of these, ordering": ratio(traffic.stamp_bytes_per_message),
        "ordering bytes per data frame": ratio(traffic.stamp_bytes_per_data_frame),
        "headers in all bytes": percent(traffic.header_ratio),
        "copies per message": ratio(traffic.copies_per_message),
        "bytes on the wire per message": ratio(traffic.wire_bytes_per_message),
    }


def _flow_cells(flow: Flow, unit: TimeUnit) -> dict[str, str]:
    return {
        "times blocked by flow control": whole(flow.blocked_times),
        f"blocked, all members ({unit.name})": unit.format(flow.blocked_ns),
        "most unstable blocks": whole(flow.unstable_blocks_max),
        "most buffers in use": whole(flow.buffers_max),
    }


def _unit(*latencies: Latency | None) -> TimeUnit:
    return unit_for(max((latency.max_ns for latency in latencies if latency), default=0))


# ------------------------------------------------------------------------------ drawings


def _latency_charts(page: Page) -> list[tuple[str, Markup]]:
    return [
        (histogram.group, Markup(latency_chart(histogram, f"latency{number}")))  # noqa: S704 - holds no names
        for number, histogram in enumerate(page.histograms[:CHARTS_MAX])
    ]


def _course(page: Page) -> Markup | None:
    if len(page.course.edges_ns) < 2:
        return None
    times = [happening.time_ns for happening in page.happenings]
    return Markup(course_chart(page.course, "course", times))  # noqa: S704 - holds no names


def _diagram_lines(page: Page, diagram: Diagram) -> list[str]:
    """The caption: which part is shown, and what is left out of it."""
    scene = page.scene
    begin, end = (f"{edge / 1e6:,.2f}" for edge in diagram.shown_ns)
    lines = [f"Run {page.shown.run} from {begin} to {end} ms: {page.window_reason}."]
    if scene.gap_ns is not None:
        left_out = " to ".join(f"{edge / 1e6:,.2f}" for edge in scene.gap_ns)
        lines.append(f"The time from {left_out} ms is left out.")
    if diagram.arrows_total > diagram.arrows_shown:
        lines.append(
            f"The window up to {scene.window_ns[1] / 1e6:,.2f} ms has {diagram.arrows_total:,} arrows; "
            f"the first {diagram.arrows_shown:,} are shown."
        )
    if scene.marks_cut:
        lines.append(f"Only the first {len(scene.marks):,} sends and deliveries of the window are marked.")
    if scene.processes_total > len(scene.lifelines):
        lines.append(f"{len(scene.lifelines)} of {scene.processes_total:,} processes are shown.")
    if not diagram.arrows_shown and not scene.marks:
        lines.append("Nothing happens in this window.")
    return lines
