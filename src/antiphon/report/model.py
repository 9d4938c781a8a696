"""The contents of one page, collected but not yet drawn."""

from dataclasses import dataclass

from antiphon.pipeline.figures.histograms import LatencyHistogram, MessagesOverTime
from antiphon.pipeline.figures.measures import RunStatistics, Statistics
from antiphon.properties.verdicts.summary import Overall, PropertySummary
from antiphon.report.spacetime import Happening, Scene


@dataclass(frozen=True, slots=True)
class About:
    """One run, as `run.json` or `runs.parquet` describes it; None for what is not recorded."""

    run: str
    scenario: str | None = None
    """Name of the scenario."""
    seed: int | None = None
    antiphon_version: str | None = None
    clock: str | None = None
    """`virtual` or `wall`."""
    finished: bool | None = None
    scenario_toml: str | None = None
    """The exact scenario that was run."""


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """One line in the list of runs."""

    about: About
    overall: Overall
    violated: tuple[str, ...]
    """The properties it violates, by id."""


@dataclass(frozen=True, slots=True)
class Page:
    """Everything that `render` needs; the same page gives the same bytes."""

    shown: About
    """The run whose members, course and diagram are shown; the only one, unless `runs` has more."""
    runs: tuple[RunVerdict, ...]
    overall: Overall
    """Over all runs."""
    properties: tuple[PropertySummary, ...]
    """Over all runs."""
    statistics: Statistics
    histograms: tuple[LatencyHistogram, ...]
    """Over all runs."""
    course: MessagesOverTime
    """Of the run shown."""
    happenings: tuple[Happening, ...]
    """The faults and other external events of the run shown."""
    scene: Scene
    """The contents of the diagram."""
    window_reason: str
    """Why the diagram shows this part: a sentence without the full stop."""

    @property
    def shown_statistics(self) -> RunStatistics | None:
        """The figures of the run shown."""
        return next((run for run in self.statistics.runs if run.run == self.shown.run), None)
