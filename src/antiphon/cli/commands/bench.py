"""`antiphon bench`: how fast ordered messages are here, beside bare sockets in the same processes."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from antiphon.bench.measure import QUICK, Figures, Plan, Report, Series, measure, profile
from antiphon.cli.shared.output import Json, as_json, out, print_json, progress, waiting
from antiphon.errors import ConfigurationError

_TRANSPORTS = ("tcp", "udp")


def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="Three members, two sizes, short rounds: half a minute.")
    ] = False,
    members: Annotated[
        str | None, typer.Option(help="Numbers of members, such as 3,4,6.", show_default="3,4,6")
    ] = None,
    sizes: Annotated[
        str | None, typer.Option("--bytes", help="Sizes of messages, such as 32,1024.", show_default="32,1024,10240")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="How often each figure is taken.", show_default="5")] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0.1, max=600, help="How long a measurement lasts.", show_default="1")
    ] = None,
    transport: Annotated[str, typer.Option(help="What carries the group: tcp or udp. The floor is TCP.")] = "tcp",
    batch: Annotated[
        bool,
        typer.Option(help="Batch processes: who is woken does not push aside who wakes it. Floor and group alike."),
    ] = True,
    profiled: Annotated[
        bool, typer.Option("--profile", help="Instead, show where a member spends its time under full load.")
    ] = False,
    file: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the JSON document to a file too.")
    ] = None,
    json: Json = False,
) -> None:
    """Measure throughput and latency of total order with real processes, beside bare asyncio in the same processes.

    Throughput is that of the slowest member; all members read the same order, which is checked. Compare ratios, which
    are those of one round; how many messages a second there are says more about the machine and its neighbours.
    """
    if transport not in _TRANSPORTS:
        raise ConfigurationError(f"--transport must be tcp or udp, not {transport!r}")
    base = QUICK if quick else Plan()
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
    report = _measure(plan)
    document = report.document()
    if file is not None:
        file.write_text(as_json(document), encoding="utf-8")
    if json:
        print_json(document)
    else:
        _print(report)


def _numbers(option: str, text: str, least: int, most: int) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ConfigurationError(f"{option} is a list of whole numbers, such as 3,4; not {text!r}") from None
    for number in numbers:
        if not least <= number <= most:
            raise ConfigurationError(f"{option}: {number} is not between {least} and {most:,}")
    return numbers


def _measure(plan: Plan) -> Report:
    with progress("measuring") as show:
        done = 0
        show(0, plan.steps)

        def advance() -> None:
            nonlocal done
            done += 1
            show(done, plan.steps)

        return measure(plan, advance)


def _print(report: Report) -> None:
    out.print(
        _table(
            "messages a second at the slowest member, median of rounds; ratios within a round",
            ("bytes", "bare, each by itself", "bare, packed", "bare, one active", "all active", "one active"),
            ("all / by itself", "all / packed", "one / all", "bare: one / all"),
            report.throughput,
        )
    )
    out.print(
        _table(
            "microseconds from sending to reading, median of rounds",
            ("messages/s each", "bare, one replies", "bare, all reply", "ordered", "99 %", "sequencer"),
            ("ordered / one", "ordered / all", "sequencer / one"),
            report.latency,
        )
    )


def _table(title: str, load_and_measured: tuple[str, ...], ratios: tuple[str, ...], found: list[Figures]) -> Table:
    table = Table(title=title)
    for column in ("members", *load_and_measured, *ratios):
        table.add_column(column, justify="right")
    for each in found:
        measured = [f"{series.median:,.0f}" for series in each.measured.values()]
        table.add_row(str(each.members), f"{each.load:,}", *measured, *map(_ratio, each.ratios.values()))
    return table


def _ratio(series: Series) -> str:
    return f"{series.median:.2f} ({min(series.values):.2f}-{max(series.values):.2f})"


def _print_profile(plan: Plan, json: bool) -> None:
    with waiting("profiling"):
        costs = profile(plan)
    if json:
        print_json([{"function": where, "share": share} for where, share in costs])
        return
    table = Table(title=f"{min(plan.sizes)} bytes, {min(plan.members)} members, all active: time in a function itself")
    table.add_column("function")
    table.add_column("share", justify="right")
    for where, share in costs[:25]:
        table.add_row(where, f"{share:.1%}")
    out.print(table)
