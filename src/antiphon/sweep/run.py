"""One run of a sweep: simulated, measured, and reported in one row. A run that fails does not stop the others."""

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from antiphon.pipeline.figures.one_run import figures
from antiphon.pipeline.tables.schemas import FIGURES
from antiphon.scenario.model import Scenario
from antiphon.scenario.read import run_id, scenario_toml, with_seed
from antiphon.sim.guarded import WORKERS_DIE, limited, reason
from antiphon.sim.run import simulate
from antiphon.trace.directory import write_events
from antiphon.trace.places import Place
from antiphon.trace.table import events_table

Item = tuple[Scenario, int]
"""A combination and a seed."""

RESULTS: Final = pa.schema(
    [
        pa.field("run", pa.string(), nullable=False),
        pa.field("scenario_toml", pa.string(), nullable=False),
        pa.field("settled", pa.bool_()),
        pa.field("error", pa.string()),
        *(field.with_nullable(nullable=True) for field in FIGURES),
    ]
)
"""The columns of a result; a run with an error has no figures."""


@dataclass(frozen=True, slots=True)
class Runner:
    """How all runs of a sweep are done."""

    limit_seconds: float
    directory: Place | None
    """Directory for traces; None: no traces are kept."""

    def __call__(self, item: Item) -> dict[str, Any]:
        """Run it, and return its row."""
        scenario, row = _before(item)
        try:
            with limited(self.limit_seconds):
                run = simulate(scenario)
                events = events_table(run.id, run.histories)
                measured = figures(events)
        except Exception as error:  # any error concerns this run alone
            return {**row, "error": reason(error)}
        if self.directory is not None:
            write_events(events, self.directory, run.id)
        return {**row, "settled": run.quiet, **measured}

    def lost(self, item: Item) -> dict[str, Any]:
        """The row of a run that kills its workers."""
        return {**_before(item)[1], "error": WORKERS_DIE}


def _before(item: Item) -> tuple[Scenario, dict[str, Any]]:
    """The scenario, and the part of its row that is known before it has run."""
    scenario = with_seed(*item)
    return scenario, {"run": run_id(scenario), "scenario_toml": scenario_toml(scenario)}
