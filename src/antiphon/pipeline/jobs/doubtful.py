"""Files and runs that cannot be judged, each with a verdict that says why, so that none passes unnoticed."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from antiphon.errors import TraceError
from antiphon.pipeline.dataset import Dataset, Source, Unit, traced_runs
from antiphon.properties.verdicts.verdict import Verdict, Violation
from antiphon.trace.places import Place

UNKNOWN_RUN: Final = "unknown run"
"""Stands for the runs of a damaged file, which are unknown."""


def judgeable_units(source: Source, *, keep_going: bool) -> tuple[list[Unit], list[str]]:
    """The units that can be judged, and why the rest cannot. Without `keep_going`, a damaged file is an error."""
    found = Dataset.of(source)
    if not keep_going:
        found.sound()
    units, torn = _whole_units(found.units(), damaged=bool(found.unusable))
    if not units:
        raise found.unusable[0]
    return units, [*map(str, (*found.unusable, *torn))]


def _whole_units(units: list[Unit], *, damaged: bool) -> tuple[list[Unit], list[TraceError]]:
    """The units that no damaged file can belong to: such a file may hold rows of the same runs.

    If there are as many files as runs, each file is assumed to hold one run.
    """
    if not damaged:
        return units, []
    torn = [unit for unit in units if len(unit.files) > 1 or len(units) == 1]
    sentence = "a damaged file beside it may hold more of the same run"
    return [unit for unit in units if unit not in torn], [TraceError(located(unit.files, sentence)) for unit in torn]


def missing_runs(directory: Place, judged: AbstractSet[str]) -> list[Verdict]:
    """A run without its events must not pass unnoticed."""
    sentence = "runs.parquet names this run, and no file in events that can be read holds it"
    return [cannot_tell(run, sentence) for run in sorted(traced_runs(directory) - judged)]


def cannot_tell(run: str, sentence: str) -> Verdict:
    return Verdict(run, "W", None, "harness error", 0, 1, Violation(sentence))


def placed(files: Sequence[Place], verdict: Verdict) -> Verdict:
    """Add the file to a verdict on a run that could not be read, because it names no process."""
    if verdict.outcome != "harness error" or verdict.example is None or verdict.example.processes:
        return verdict
    example = replace(verdict.example, sentence=located(files, verdict.example.sentence))
    return replace(verdict, example=example)


def located(files: Sequence[Place], message: str) -> str:
    """The first line of a message, with the file unless the message names it."""
    sentence = message.split("\n", maxsplit=1)[0]
    if any(str(path) in sentence for path in files):
        return sentence
    others = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"{files[0]}{others}: {sentence}"
