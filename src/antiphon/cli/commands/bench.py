"""`antiphon bench`: speed of ordered messages on this machine, compared with bare sockets in the same processes."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Table

from antiphon.bench.measure import QUICK, Figures, Plan, Report, Series, measure, profile
from antiphon.bench.services import measure_services
from antiphon.cli.shared.output import Json, as_json, out, print_json, progress, waiting
from antiphon.cli.shared.paths import path_option
from antiphon.errors import ConfigurationError

_TRANSPORTS = ("tcp", "udp")


def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="Three members, two sizes, short rounds: about half a minute.")
    ] = False,
    members: Annotated[str | None, typer.Option(help="Group sizes, such as 3,4,6.", show_default="3,4,6")] = None,
    sizes: Annotated[
        str | None, typer.Option("--bytes", help="Message sizes, such as 32,1024.", show_default="32,1024,10240")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Repetitions of each measurement.", show_default="5")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0.1, max=600, help="Duration of one measurement.", show_default="1")
    ] = None,
    transport: Annotated[str, typer.Option(help="Transport of the group: tcp or udp. The baseline is TCP.")] = "tcp",
    batch: Annotated[
        bool,
        typer.Option(help="Run as batch processes, so that a woken process does not preempt the one that woke it."),
    ] = True,
    services: Annotated[
        bool,
        typer.Option(
            "--services",
            help="Every delivery service side by side, without bare sockets; 3 and 6 members.",
        ),
    ] = False,
    profiled: Annotated[
        bool, typer.Option("--profile", help="Show where a member spends its time under full load, and nothing else.")
    ] = False,
    file: Annotated[
        Path | None,
        path_option("--out", "FILE", "Also write the JSON document to a file."),
    ] = None,
    json: Json = False,
) -> None:
    """Measure throughput and latency of total order, or of all services, with real processes on this machine.

    Throughput is that of the slowest member. All members must read the same order, which is checked. Compare the
    ratios, which are taken within one round: messages per second depend on the machine and its load.
    """
    if transport not in _TRANSPORTS:
        raise ConfigurationError(f"--transport must be tcp or udp, not {transport!r}")
    base = QUICK if quick else Plan(members=(3, 6)) if services else Plan()
    plan = replace(
        base,
        members=base.members if members is None else _numbers("--members", members, 3, 64),
        sizes=base.sizes if sizes is None else _numbers("--bytes", sizes, 20, 65_536),
        rounds=rounds or base.rounds,
        seconds=seconds or base.seconds,
        transport=transport,
        batch=batch,
    )
    if profiled:
        _print_profile(plan, json)
        return
    report = _measure(plan, measure_services if services else measure)
    document = report.document()
    if file is not None:
        file.write_text(as_json(document), encoding="utf-8")
    if json:
        print_json(document)
    elif services:
        _print_services(report)
    else:
        _print(report)


def _numbers(option: str, text: str, least: int, most: int) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ConfigurationError(f"{option} must be a list of whole numbers, such as 3,4; not {text!r}") from None
    for number in numbers:
        if not least <= number <= most:
            raise ConfigurationError(f"{option}: {number} is not between {least} and {most:,}")
    return numbers


def _measure(plan: Plan, measured: Callable[[Plan, Callable[[], None]], Report]) -> Report:
    with progress("measuring") as show:
        done = 0
        show(0, plan.steps)

        def advance() -> None:
            nonlocal done
            done += 1
            show(done, plan.steps)

        return measured(plan, advance)


_THROUGHPUT: Final = {
    "bare_unpacked": "bare, one by one",
    "bare_packed": "bare, packed",
    "bare_one_active": "bare, one active",
    "all_active": "all active",
    "one_active": "one active",
    "all_active_to_bare_unpacked": "all / one by one",
    "all_active_to_bare_packed": "all / packed",
    "one_active_to_all_active": "one / all",
    "bare_one_active_to_bare_packed": "bare: one / all",
}
_LATENCY: Final = {
    "bare_one_replies": "bare, one replies",
    "bare_all_reply": "bare, all reply",
    "ordered": "ordered",
    "ordered_99_percent": "99 %",
    "sequenced": "sequencer",
    "ordered_to_bare_one_replies": "ordered / one",
    "ordered_to_bare_all_reply": "ordered / all",
    "sequenced_to_bare_one_replies": "sequencer / one",
}
"""The headings of the columns, by the name of the figure in the JSON document."""


def _print(report: Report) -> None:
    title = "messages per second at the slowest member, median of rounds; ratios within a round"
    out.print(_table(title, "bytes", _THROUGHPUT, report.throughput))
    out.print(_table("microseconds from send to read, median of rounds", "messages/s each", _LATENCY, report.latency))


def _table(title: str, load: str, headings: Mapping[str, str], found: list[Figures]) -> Table:
    table = Table(title=title)
    for column in ("members", load, *headings.values()):
        table.add_column(column, justify="right")
    for each in found:
        cells = {name: f"{series.median:,.0f}" for name, series in each.measured.items()}
        cells |= {name: _ratio(series) for name, series in each.ratios.items()}
        table.add_row(str(each.members), f"{each.load:,}", *(cells[name] for name in headings))
    return table


def _print_services(report: Report) -> None:
    out.print(
        _by_service("messages per second at the slowest member, all active, and over total", "B", report.throughput)
    )
    out.print(_by_service("microseconds from send to read, and over total", "messages/s each", report.latency))


def _by_service(title: str, unit: str, found: list[Figures]) -> Table:
    """A row for each service, a column for each load."""
    table = Table(title=title)
    table.add_column("service")
    for each in found:
        table.add_column(f"{each.members} members, {each.load:,} {unit}", justify="right")
    for name in found[0].measured:
        cells = [f"{each.measured[name].median:,.0f}  {each.ratios[f'{name}_to_total'].median:.2f}" for each in found]
        table.add_row(name, *cells)
    return table


def _ratio(series: Series) -> str:
    return f"{series.median:.2f} ({min(series.values):.2f}-{max(series.values):.2f})"


def _print_profile(plan: Plan, json: bool) -> None:
    with waiting("profiling"):
        costs = profile(plan)
    if json:
        print_json([{"function": where, "share": share} for where, share in costs])
        return
    table = Table(
        title=f"{min(plan.sizes)} bytes, {min(plan.members)} members, all active: time in the function itself"
    )
    table.add_column("function")
    table.add_column("share", justify="right")
    for where, share in costs[:25]:
        table.add_row(where, f"{share:.1%}")
    out.print(table)
