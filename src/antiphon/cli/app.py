"""The list of commands; each has its own file in `commands/`."""

from typing import Annotated

import typer

from antiphon import __version__
from antiphon.cli.commands import (
    bench,
    campaign,
    check,
    compare,
    demo,
    report,
    run,
    simulate,
    sql,
    stats,
    sweep,
    tables,
    watch,
)

app = typer.Typer(
    name="antiphon",
    help="Group communication for Python: simulate a scenario, judge its trace, show what happened.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("simulate")(simulate.simulate)
app.command("run")(run.run)
app.command("watch")(watch.watch)
app.command("check")(check.check)
app.command("stats")(stats.stats)
app.command("tables")(tables.tables)
app.command("sql")(sql.sql)
app.command("report")(report.report)
app.command("campaign")(campaign.campaign)
app.command("sweep")(sweep.sweep)
app.command("compare")(compare.compare)
app.command("bench")(bench.bench)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"antiphon {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Group communication for Python: simulate a scenario, judge its trace, show what happened."""
