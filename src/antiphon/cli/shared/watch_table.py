"""The table that `antiphon watch` shows."""

from typing import TYPE_CHECKING, Final

from rich.console import Group as Together
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from antiphon.pipeline.live.figures import Figures, Group, Latency, Member, Property, WatchedRun

_RUNS_MAX: Final = 20
_LEFT: Final = {"process", "state", "view", "group", "latency, ms", "property", "run", "first violation", ""}
_NOTE: Final = "Only these properties can be judged while a run goes on; `antiphon check` judges all at the end."


def render_watch(figures: "Figures") -> RenderableType:
    """Show one run with its members and groups, or several runs with a row each; then the verdicts so far."""
    if not figures.runs:
        return "no events yet"
    runs = figures.runs
    shown = [*_one(runs[0])] if len(runs) == 1 else [_several(runs)]
    notes = [_NOTE]
    if figures.waiting:
        notes.append(f"{figures.waiting:,} events wait for earlier ones that are still missing.")
    return Together(*shown, _verdicts(figures.properties), *notes)


def _one(run: "WatchedRun") -> list[Table]:
    return [_members(run), _groups(run)]


def _state(run: "WatchedRun") -> str:
    if not run.ended:
        return "running"
    return "ended quiet" if run.quiet else "cut off before it was quiet"


def _members(run: "WatchedRun") -> Table:
    title = f"{escape(run.run)}: {run.seconds:.1f} s, {run.events:,} events, {_state(run)}"
    table = _table(
        title,
        *("group", "process", "state", "sent", "per\nsecond", "delivered", "per\nsecond", "view", "view\nchanges"),
        "suspected,\nrefuted,\nconfirmed",
    )
    for group in run.groups:
        for member in group.members:
            table.add_row(escape(group.group), *_member(member))
    return table


def _member(member: "Member") -> list[str]:
    state = "blocked" if member.blocked and member.state == "up" else member.state
    view = "-" if member.view is None else f"{member.view.rpartition('.')[0] or member.view} of {len(member.members)}"
    suspicions = (member.suspicions, member.refutations, member.confirmations)
    return [
        escape(member.process),
        state,
        f"{member.sent:,}",
        f"{member.sent_per_second:,.0f}",
        f"{member.delivered:,}",
        f"{member.delivered_per_second:,.0f}",
        escape(view),
        f"{member.view_changes:,}",
        ", ".join(f"{count:,}" for count in suspicions),
    ]


def _groups(run: "WatchedRun") -> Table:
    table = _table("", "group", "latency, ms", "p50", "p99", "max", "views", "same sequence up to")
    for group in run.groups:
        alike = "differs" if group.differ else "-" if group.alike is None else f"{group.alike:,}"
        table.add_row(escape(group.group), "last 10 s", *_latency(group.recent_latency), f"{group.views:,}", alike)
        table.add_row("", "all", *_latency(group.latency), "", "")
    return table


def _latency(latency: "Latency") -> list[str]:
    return ["-" if value is None else f"{value / 1e6:,.2f}" for value in (latency.p50_ns, latency.p99_ns)] + [
        f"{latency.max_ns / 1e6:,.2f}" if latency.count else "-"
    ]


def _several(runs: "list[WatchedRun]") -> Table:
    ended = sum(run.ended for run in runs)
    events = sum(run.events for run in runs)
    table = _table(f"{len(runs):,} runs, {ended:,} ended, {events:,} events", "run", "state", "s", "sent", "delivered")
    for run in runs[-_RUNS_MAX:]:
        sent, delivered = _total(run.groups)
        table.add_row(escape(run.run), _state(run), f"{run.seconds:.1f}", f"{sent:,}", f"{delivered:,}")
    return table


def _total(groups: "list[Group]") -> tuple[int, int]:
    return sum(group.sent for group in groups), sum(group.delivered for group in groups)


def _verdicts(properties: "list[Property]") -> Table:
    table = _table("", "property", "group", "opportunities", "violations", "first violation")
    for each in properties:
        style = "bold red" if each.violations else "dim" if not each.opportunities else None
        counts = (f"{each.opportunities:,}", f"{each.violations:,}")
        table.add_row(each.property, escape(each.group), *counts, escape(each.first or ""), style=style)
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title or None)
    for column in columns:
        table.add_column(column, justify="left" if column in _LEFT else "right")
    return table
