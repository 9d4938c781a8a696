"""Verdicts in words or as a table, and what they mean for the exit code."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer
from rich.markup import escape
from rich.table import Table

from antiphon.cli.shared.output import out
from antiphon.properties.promises import JUDGED, NOT_JUDGED
from antiphon.properties.verdicts.summary import PropertySummary, VerdictSummary
from antiphon.properties.verdicts.wording import promise

_GROUPS_SHOWN_MAX: Final = 2
"""With more groups than this, the table shows how many groups share an outcome; `--json` lists each."""
_ILL_FORMED_SHOWN_MAX: Final = 20
Every = Annotated[bool, typer.Option("--all", help="Show the table of all properties.")]
EXIT: Final = {"hold": 0, "violated": 1, "unknown": 3}
_STYLE: Final = {"pass": "green", "violated": "bold red", "harness error": "bold yellow", "vacuous": "dim"}
_COUNTED: Final = {
    "violated": "violated",
    "harness error": "unknown",
    "pass": "hold",
    "vacuous": "without an opportunity",
    "not promised": "not promised by the services in use",
}
"""What the counts call an outcome, the worst first."""
_SENTENCE: Final = {
    "hold": "every judged property holds",
    "violated": "a promised or required property is violated",
    "unknown": "not judged: the trace is ill-formed or empty",
}
_NOTHING_PROMISED: Final = (
    "not judged: the processes promise nothing; their traces must name promises, or --require properties"
)


def as_document(summary: VerdictSummary, required: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The document that `check --json` prints; `required` are the properties asked for beyond the promises."""
    return {
        "verdict": summary.overall,
        "properties": summary.properties,
        "required": _in_order(required),
        "not_judged": list(NOT_JUDGED),
        "ill_formed": [{"run": run, "sentence": sentence} for run, sentence in summary.ill_formed],
    }


def exit_code(summary: VerdictSummary) -> int:
    """0 if all hold, 1 if one is violated, 3 if a trace could not be judged."""
    return EXIT[summary.overall]


def _in_order(properties: frozenset[str]) -> list[str]:
    return [name for name in JUDGED if name in properties]


def _lines(rows: Sequence[PropertySummary]) -> list[list[PropertySummary]]:
    """One line for each group; if a property has many groups, one line for all with the same outcome."""
    groups = Counter(row["property"] for row in rows)
    lines: dict[tuple[str, str | None], list[PropertySummary]] = {}
    for row in rows:
        apart = row["group"] if groups[row["property"]] <= _GROUPS_SHOWN_MAX else row["outcome"]
        lines.setdefault((row["property"], apart), []).append(row)
    return [*lines.values()]


def print_verdicts(summary: VerdictSummary, required: frozenset[str] = frozenset(), *, every: bool = False) -> None:
    """Counts, a sentence for each violation, the verdict; with `every`, the table of all properties first."""
    rows = summary.properties
    if every:
        out.print(_table(rows, runs=len(summary.runs)))
    _print_ill_formed(summary.ill_formed)
    for row in rows:
        if row["example"] and row["outcome"] != "harness error":
            more = f" ({row['violations'] - 1:,} more)" if row["violations"] > 1 else ""
            sentence = escape(f"{row['example']['sentence']}{more}, run {row['example']['run']}")
            out.print(f"[bold]{row['property']} {promise(row['property']).name}[/]: {sentence}", soft_wrap=True)
    if every:
        _print_notes(rows)
    if required:
        out.print(f"required of every service: {', '.join(_in_order(required))}")
    overall = summary.overall
    unjudged = f"; promised but without a checker yet: {', '.join(NOT_JUDGED)}" if NOT_JUDGED else ""
    counts = f" ({_counts(rows)})" if rows else ""
    sentence = _NOTHING_PROMISED if summary.promises_nothing else _SENTENCE[overall]
    out.print(f"[bold]{overall}[/]: {sentence}{counts}{unjudged}", highlight=False, soft_wrap=True)


def _counts(rows: Sequence[PropertySummary]) -> str:
    """How many properties have which outcome, each counted by the worst of its groups."""
    worst: dict[str, int] = {}
    for row in rows:
        rank = [*_COUNTED].index(row["outcome"])
        worst[row["property"]] = min(rank, worst.get(row["property"], rank))
    counts = Counter(worst.values())
    return ", ".join(f"{counts[rank]} {words}" for rank, words in enumerate(_COUNTED.values()) if counts[rank])


def _table(rows: Sequence[PropertySummary], runs: int) -> Table:
    table = Table(title=f"Verdicts over {runs:,} run{'s' if runs != 1 else ''}", title_justify="left")
    for heading in ("property", "group", "outcome"):
        table.add_column(heading)
    for heading in ("opportunities", "violations"):
        table.add_column(heading, justify="right")
    for together in _lines(rows):
        first = together[0]
        style = _STYLE.get(first["outcome"], "")
        table.add_row(
            f"{first['property']:<3} {promise(first['property']).name}",
            escape(first["group"] or "all") if len(together) == 1 else f"{len(together)} groups",
            f"[{style}]{first['outcome']}[/]" if style else first["outcome"],
            f"{sum(row['opportunities'] for row in together):,}",
            f"{sum(row['violations'] for row in together):,}",
        )
    return table


def _print_ill_formed(ill_formed: Sequence[tuple[str, str]]) -> None:
    for run, why in ill_formed[:_ILL_FORMED_SHOWN_MAX]:
        out.print(escape(f"run {run} could not be judged: {why}"), highlight=False, soft_wrap=True)
    if len(ill_formed) > _ILL_FORMED_SHOWN_MAX:
        out.print(f"and {len(ill_formed) - _ILL_FORMED_SHOWN_MAX:,} more runs; --json lists them all")


def _print_notes(rows: Sequence[PropertySummary]) -> None:
    notes: dict[str, dict[str, None]] = {}
    for row in rows:
        if row["note"]:
            notes.setdefault(row["note"], {})[row["property"]] = None
    for note, properties in notes.items():
        out.print(f"{', '.join(properties)}: {escape(note)}", soft_wrap=True)
