"""Files and runs that cannot be judged, each with a verdict that says why, so that none passes unnoticed."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from antiphon.errors import TraceError
from antiphon.pipeline.dataset import plan_units, sound_event_files, traced_runs
from antiphon.properties.verdicts.verdict import Verdict, Violation

UNKNOWN_RUN: Final = "unknown run"
"""Stands for the runs of a damaged file, which are unknown."""


def judgeable_units(directory: Path, *, keep_going: bool) -> tuple[list[list[Path]], list[str]]:
    """The units that can be judged, and why the rest cannot. Without `keep_going`, a damaged file is an error."""
    files, unusable = sound_event_files(directory)
    if unusable and not keep_going:
        raise unusable[0]
    units, torn = _whole_units(files, damaged=bool(unusable))
    if not units:
        raise unusable[0]
    return units, [*map(str, (*unusable, *torn))]


def _whole_units(files: Iterable[Path], *, damaged: bool) -> tuple[list[list[Path]], list[TraceError]]:
    """The units that no damaged file can belong to: such a file may hold rows of the same runs.

    If there are as many files as runs, each file is assumed to hold one run.
    """
    units = plan_units(path.absolute() for path in files)
    if not damaged:
        return units, []
    torn = [unit for unit in units if len(unit) > 1 or len(units) == 1]
    sentence = "a damaged file beside it may hold more of the same run"
    return [unit for unit in units if unit not in torn], [TraceError(located(unit, sentence)) for unit in torn]


def missing_runs(directory: Path, judged: Collection[str]) -> list[Verdict]:
    """A run without its events must not pass unnoticed."""
    lost = traced_runs(directory).difference(judged)
    sentence = "runs.parquet names this run, and no file in events that can be read holds it"
    return [cannot_tell(run, sentence) for run in lost]


def cannot_tell(run: str, sentence: str) -> Verdict:
    return Verdict(run, "W", None, "harness error", 0, 1, Violation(sentence))


def placed(files: Sequence[Path], verdict: Verdict) -> Verdict:
    """Add the file to a verdict on a run that could not be read, because it names no process."""
    if verdict.outcome != "harness error" or verdict.example is None or verdict.example.processes:
        return verdict
    example = replace(verdict.example, sentence=located(files, verdict.example.sentence))
    return replace(verdict, example=example)


def located(files: Sequence[Path], message: str) -> str:
    """The first line of a message, with the file unless the message names it."""
    sentence = message.split("\n", maxsplit=1)[0]
    if any(str(path) in sentence for path in files):
        return sentence
    others = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"{files[0]}{others}: {sentence}"
