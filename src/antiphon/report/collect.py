"""From a run directory to a page: verdicts, figures and the rows of one diagram, through Spark."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

from antiphon.errors import ConfigurationError, TraceError
from antiphon.pipeline.dataset import Dataset, Source, events
from antiphon.pipeline.figures.histograms import latency_histogram, messages_over_time
from antiphon.pipeline.figures.measures import Statistics
from antiphon.pipeline.figures.statistics import statistics as compute_statistics
from antiphon.pipeline.jobs.verify import verify
from antiphon.pipeline.spark.session import as_trace_error
from antiphon.properties.verdicts.summary import by_property, summarise
from antiphon.properties.verdicts.verdict import Verdict
from antiphon.report.figures import duration
from antiphon.report.model import About, Page, RunVerdict
from antiphon.report.spacetime import Scene
from antiphon.report.window import (
    Cast,
    cast,
    first_messages_window,
    highlight,
    scene,
    violation_window,
    witness_events,
)
from antiphon.trace.directory import has_index, read_index
from antiphon.trace.places import Place


def collect(
    spark: SparkSession,
    source: Source,
    *,
    run: str | None = None,
    window: tuple[int, int] | None = None,
    verdicts: Sequence[Verdict] | None = None,
    statistics: Statistics | None = None,
) -> Page:
    """Collect the contents of the page about a run directory.

    Raises TraceError if the directory cannot be read or has no such run, ConfigurationError for an empty window.

    `run` and `window` choose what the diagram shows; the window is in nanoseconds since the first event of that run.
    The default is the first violation, else what tells most about the first run: a kill, a pause, a change of view, or
    its first messages. Verdicts and statistics that the caller already has are not computed again.
    """
    if window is not None and window[0] >= window[1]:
        raise ConfigurationError(f"the window ends at {duration(window[1])}, not after {duration(window[0])}")
    source = Dataset.of(source).sound()
    verdicts = verify(spark, source) if verdicts is None else verdicts
    if statistics is None:  # also for an ill-formed trace: the verdicts say what is wrong with it
        statistics = compute_statistics(spark, source, once=False)
    records = _records(source.directory)
    runs = _run_verdicts(verdicts, statistics, records)
    shown = _shown(source.directory, runs, run)
    rows = events(spark, source).filter(F.col("run") == shown.run)
    own = [verdict for verdict in verdicts if verdict.run == shown.run]
    with as_trace_error(source.directory):
        players = cast(rows)
        drawn, reason = _diagram(rows, players, own, window)
    return Page(
        shown=shown,
        runs=runs,
        overall=summarise(verdicts),
        properties=tuple(by_property(verdicts)),
        statistics=statistics,
        histograms=tuple(latency_histogram(spark, source)),
        course=messages_over_time(spark, source, run=shown.run),
        happenings=players.happenings,
        scene=drawn,
        window_reason=reason,
    )


def _diagram(
    rows: DataFrame, players: Cast, verdicts: Iterable[Verdict], window: tuple[int, int] | None
) -> tuple[Scene, str]:
    """The scene, and why this one is shown."""
    broken = next((verdict for verdict in verdicts if verdict.example and verdict.example.indexes), None)
    witness = witness_events(broken.example) if broken and broken.example else []
    if window is not None:
        return scene(rows, players, window, witness), "the requested window"
    begin, end = first_messages_window(rows, players.began_ns)
    if broken:
        around = violation_window(rows, players.began_ns, witness, end - begin)
        if around:
            return scene(rows, players, around, witness), _where(broken)
    found = highlight(rows, players, end - begin)
    if found is not None:
        return scene(rows, players, found.window_ns, witness, found.gap_ns), found.reason
    return scene(rows, players, (begin, end), witness), "its first messages"


def _where(verdict: Verdict) -> str:
    if verdict.outcome == "violated":
        return f"around the first violation of {verdict.property}"
    return "around the first error of the trace"


def _records(directory: Place) -> dict[str, About]:
    """What the directory records about each run; empty if it holds only events."""
    if not has_index(directory):
        return {}
    return {record.run: About(**asdict(record), scenario_toml=text) for record, text in read_index(directory)}


def _run_verdicts(
    verdicts: Iterable[Verdict], statistics: Statistics, records: Mapping[str, About]
) -> tuple[RunVerdict, ...]:
    """The runs that have events, by id, each with the properties that it violates."""
    ordered = sorted(verdicts, key=lambda verdict: verdict.run)
    judged = {run: list(own) for run, own in groupby(ordered, key=lambda verdict: verdict.run)}
    with_events = {run.run for run in statistics.runs if run.run is not None}
    return tuple(
        RunVerdict(records.get(run, About(run)), summarise(judged.get(run, ())), _violated(judged.get(run, ())))
        for run in sorted(with_events | judged.keys())
    )


def _violated(verdicts: Iterable[Verdict]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(verdict.property for verdict in verdicts if verdict.outcome == "violated"))


def _shown(directory: Place, runs: Sequence[RunVerdict], run: str | None) -> About:
    """The requested run, else the first one violated, else the first that cannot be judged, else the first."""
    if run is None:
        return min(runs, key=lambda each: ("violated", "unknown", "hold").index(each.overall)).about
    chosen = next((each.about for each in runs if each.about.run == run), None)
    if chosen is None:
        raise TraceError(f"{directory} has no run `{run}`; it has {runs[0].about.run} and {len(runs) - 1} more")
    return chosen
