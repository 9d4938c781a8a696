"""Run directories as commands read them: with the traces that members, or another system, have left there."""

from pathlib import Path

from rich.markup import escape

from antiphon.cli.shared.output import err
from antiphon.trace.places import Place


def collected(directory: Place) -> Place:
    """The same directory, once the journals or lines in it are event files; says on standard error what they lack.

    Members write to their own machine, so a store never holds journals or lines.
    """
    if not isinstance(directory, Path):
        return directory
    from antiphon.trace.collect import collect  # noqa: PLC0415 - needs Arrow
    from antiphon.trace.line_runs import collect_lines  # noqa: PLC0415

    collect(directory)
    for note in collect_lines(directory):
        err.print(escape(f"note: {note}"), highlight=False, soft_wrap=True)
    return directory
