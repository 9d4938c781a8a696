"""The `antiphon` command: one file per command, one place for errors and exit codes.

0 done; 1 the answer is no; 2 the question was wrong, said in one sentence; 70 a fault of our own; 130 interrupted.
"""

import logging
import signal
import sys
import traceback
from types import FrameType
from typing import Annotated, Final

import typer

from antiphon import __version__
from antiphon.cli import bench, campaign, check, compare, demo, report, run, simulate, stats, sweep, tables, watch
from antiphon.errors import AntiphonError

INTERRUPTED: Final = 130
OWN_FAULT: Final = 70

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
app.command("report")(report.report)
app.command("campaign")(campaign.campaign)
app.command("sweep")(sweep.sweep)
app.command("compare")(compare.compare)
app.command("bench")(bench.bench)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"antiphon {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Group communication for Python: simulate a scenario, judge its trace, show what happened."""


class _Interrupts:
    """Ctrl-C, once: silence what libraries would log about it, and remember, whatever they make of it."""

    def __init__(self) -> None:
        self.seen = False
        signal.signal(signal.SIGINT, self._interrupt)

    def _interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        self.seen = True
        logging.disable()
        raise KeyboardInterrupt


def main() -> None:
    """Entry point of the console script."""
    interrupts = _Interrupts()
    try:
        app()
    except (SystemExit, KeyboardInterrupt):
        if not interrupts.seen:
            raise
    except (AntiphonError, OSError) as error:
        if not interrupts.seen:
            _say(str(error))
            sys.exit(2)
    except Exception:
        if not interrupts.seen:
            traceback.print_exc()
            _say("this is a fault of antiphon itself; please report it with the lines above")
            sys.exit(OWN_FAULT)
    _say("interrupted; nothing was left half-written")
    sys.exit(INTERRUPTED)


def _say(sentence: str) -> None:
    typer.echo(f"antiphon: {sentence}", err=True)


if __name__ == "__main__":
    main()
