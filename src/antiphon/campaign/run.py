"""One run of a campaign: drawn, simulated, judged, summarised. A run that fails does not stop the others."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from antiphon import __version__
from antiphon.campaign.families import FAMILIES
from antiphon.pipeline.tables import kept
from antiphon.pipeline.tables.judged import rows_of_a_run
from antiphon.pipeline.tables.schemas import VERDICTS
from antiphon.properties.judge import judge
from antiphon.properties.verdicts.verdict import Verdict
from antiphon.protocols.registry import family_of
from antiphon.scenario.model import Scenario
from antiphon.scenario.read import run_id, scenario_toml
from antiphon.sim.guarded import WORKERS_DIE, limited, reason
from antiphon.sim.run import simulate
from antiphon.trace.directory import RUNS, RunRecord, write_events
from antiphon.trace.places import Place, written
from antiphon.trace.table import events_table

Traces = Literal["failures", "all", "none"]
CPU_SECONDS_MAX: Final = 60
"""A run takes about 0.1 s; a run that loops without advancing virtual time must not stop the campaign."""


@dataclass(frozen=True, slots=True)
class Runner:
    """Makes the runs of a campaign from their seeds."""

    family: str
    traces: Traces
    directory: Place | None
    """The directory of the traces; None: traces are not written."""

    def __call__(self, seed: int) -> dict[str, Any]:
        """The outcome of a seed as a row of `OUTCOMES`."""
        return asdict(run_one(self, seed))

    def lost(self, seed: int) -> dict[str, Any]:
        """The row of a run that kills its worker."""
        return asdict(replace(_drawn(self.family, seed)[1], failure=WORKERS_DIE))


@dataclass(frozen=True, slots=True)
class Kind:
    """The categories by which a campaign counts its runs."""

    shape: str
    service: str
    flow_control: int
    transport: str
    view_change: str = "none"
    """How views change; "none" if they never change, or change without agreement."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict of one run on one promised property, over all groups."""

    property: str
    opportunities: int
    violations: int
    sentence: str | None
    """Describes the first violation."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one run."""

    kind: Kind
    record: RunRecord
    scenario_toml: str
    findings: tuple[Finding, ...] = ()
    verdicts: tuple[dict[str, Any], ...] = ()
    """Rows of the table of verdicts without `run`. They are kept, and never read back into an outcome."""
    settled: bool = False
    """The run became quiet before its end; False if it failed."""
    failure: str | None = None
    """The reason why it could not be simulated or judged, in one line."""
    rows: int = 0
    """Number of rows of its trace."""
    kept: bool = False
    """Its trace is in the directory."""

    @property
    def good(self) -> bool:
        """True if it settled and kept every promise that was judged."""
        return self.settled and not any(finding.violations for finding in self.findings)


OUTCOMES: Final = pa.schema(
    {
        "kind": pa.struct(
            {
                "shape": pa.string(),
                "service": pa.string(),
                "flow_control": pa.int64(),
                "transport": pa.string(),
                "view_change": pa.string(),
            }
        ),
        "record": pa.struct([field for field in RUNS if field.name != "scenario_toml"]),
        "scenario_toml": pa.string(),
        "findings": pa.list_(
            pa.struct(
                {
                    "property": pa.string(),
                    "opportunities": pa.int64(),
                    "violations": pa.int64(),
                    "sentence": pa.string(),
                }
            )
        ),
        "verdicts": pa.list_(pa.struct([field for field in VERDICTS.columns if field.name != "run"])),
        "settled": pa.bool_(),
        "failure": pa.string(),
        "rows": pa.int64(),
        "kept": pa.bool_(),
    }
)
"""Outcomes as rows, field by field."""


def outcomes_of(table: pa.Table) -> list[Outcome]:
    """The outcomes in rows of `OUTCOMES`, without their verdicts: thousands of runs have hundreds of thousands."""
    return msgspec.convert(
        table.select([name for name in OUTCOMES.names if name != "verdicts"]).to_pylist(), list[Outcome]
    )


def write_outcomes(table: pa.Table, directory: Place) -> None:
    """Keep the verdicts of all runs, and how each run went, for the gold tables."""
    run = table["record"].combine_chunks().field("run")
    outcomes = {"run": run, "settled": table["settled"], "error": table["failure"], "events": table["rows"]}
    with written(directory / kept.OUTCOMES) as file:
        pq.write_table(pa.table(outcomes), file, compression="zstd")
    verdicts = table["verdicts"].combine_chunks()
    columns = [run.take(pc.list_parent_indices(verdicts)), *pc.list_flatten(verdicts).flatten()]
    findings = pa.Table.from_arrays(columns, schema=VERDICTS.columns)
    with written(directory / kept.FINDINGS) as file:
        pq.write_table(findings, file, compression="zstd")


def run_one(runner: Runner, seed: int) -> Outcome:
    """Draw, simulate and judge one run; write its trace if the runner keeps it."""
    scenario, outcome = _drawn(runner.family, seed)
    events: pa.Table | None = None
    try:
        with limited(CPU_SECONDS_MAX):
            run = simulate(scenario)
            events = events_table(run.id, run.histories)
            verdicts = judge(events)
        outcome = replace(
            outcome,
            record=replace(outcome.record, finished=True),
            findings=_findings(verdicts),
            verdicts=tuple(rows_of_a_run(verdicts)),
            settled=run.quiet,
            rows=len(events),
        )
    except Exception as error:  # a campaign exists to find failing assertions of cores
        outcome = replace(outcome, failure=reason(error), rows=len(events) if events is not None else 0)
    wanted = runner.traces == "all" or (runner.traces == "failures" and not outcome.good)
    if events is None or runner.directory is None or not wanted:
        return outcome
    write_events(events, runner.directory, outcome.record.run)
    return replace(outcome, kept=True)


def _drawn(family: str, seed: int) -> tuple[Scenario, Outcome]:
    """A scenario, and its outcome before the run."""
    scenario = FAMILIES[family].draw(seed)
    shape = FAMILIES[family].shape(scenario)
    return scenario, Outcome(_kind(shape, scenario), _record(scenario), scenario_toml(scenario))


def _kind(shape: str, scenario: Scenario) -> Kind:
    labels, services = family_of(scenario).labels(scenario), {group.service for group in scenario.group}
    service = labels.service or ("mixed" if len(services) > 1 else services.pop())
    return Kind(shape, service, labels.flow_control, scenario.network.transport, labels.view_change)


def _record(scenario: Scenario) -> RunRecord:
    return RunRecord(run_id(scenario), scenario.name, scenario.seed, __version__, clock="virtual", finished=False)


def _findings(verdicts: Iterable[Verdict]) -> tuple[Finding, ...]:
    """The verdicts on each promised property, added up over all groups."""
    by_property: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.outcome != "not promised":
            by_property.setdefault(verdict.property, []).append(verdict)
    return tuple(
        Finding(
            name,
            sum(verdict.opportunities for verdict in own),
            sum(verdict.violations for verdict in own),
            next((verdict.example.sentence for verdict in own if verdict.example), None),
        )
        for name, own in by_property.items()
    )
