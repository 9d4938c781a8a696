"""Judge a run: first W (is the trace well formed?), then every property that the services of the run promise.

The same function is used in-process after a simulation, in the tests, and by Spark for each run file.
"""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.errors import TraceError
from antiphon.properties.checks import wellformed
from antiphon.properties.promises import known
from antiphon.properties.registry import CHECKERS
from antiphon.properties.run_tables import RunTables
from antiphon.properties.tables.columns import admit
from antiphon.properties.tables.history import load
from antiphon.properties.verdicts.verdict import Verdict, Violation


def judge(events: pa.Table, required: frozenset[str] = frozenset()) -> list[Verdict]:
    """Return the verdicts on one run, W first. If W fails, it is the only verdict.

    The `required` properties are judged as if every service promised them. Raises TraceError if the table is empty,
    holds more than one run, or cannot be read as a trace. Raises ConfigurationError if a required property has no
    checker.
    """
    required = known(required)
    history = load(events)
    wellformedness = wellformed.check(history)
    if wellformedness.violations:
        return [wellformedness]
    tables = RunTables(history, required)
    return [wellformedness, *(verdict for checker in CHECKERS for verdict in checker.judge(tables))]


def judge_all(events: pa.Table, required: frozenset[str] = frozenset()) -> list[Verdict]:
    """Return the verdicts on every run in the table, in the order of the run ids; none for a table without rows.

    A run that cannot be read as a trace gets a verdict that says why, because it must not hide violations of others.
    """
    admit(events)
    if not len(events):
        return []
    runs = sorted(pc.unique(events["run"]).to_pylist())
    if len(runs) == 1:
        return _judge_or_explain(events, required)
    place = pc.index_in(events["run"], pa.array(runs)).to_numpy()
    sorted_events = events.take(pa.array(np.argsort(place, kind="stable")))
    bounds = np.searchsorted(np.sort(place), np.arange(len(runs) + 1)).tolist()
    return [
        verdict
        for begin, end in pairwise(bounds)
        for verdict in _judge_or_explain(sorted_events.slice(begin, end - begin), required)
    ]


def _judge_or_explain(events: pa.Table, required: frozenset[str]) -> list[Verdict]:
    try:
        return judge(events, required)
    except TraceError as error:
        run = events["run"][0].as_py()
        return [Verdict(run, "W", None, "harness error", len(events), 1, Violation(str(error)))]
