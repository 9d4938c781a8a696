"""All verdicts of a run: W first, and if the trace is well formed, every property its services promise.

The same function judges in-process after a simulation, in the tests, and on each run file of a cluster.
"""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.errors import TraceError
from antiphon.properties.checks import wellformed
from antiphon.properties.promises import known
from antiphon.properties.registry import CHECKERS
from antiphon.properties.tables.columns import admit
from antiphon.properties.tables.history import load
from antiphon.properties.tables.run_tables import Case
from antiphon.properties.verdicts.verdict import Verdict, Violation


def judge(events: pa.Table, required: frozenset[str] = frozenset()) -> list[Verdict]:
    """The verdicts of one run, W first.

    What is `required` is judged as if every service promised it. TraceError if the table is empty, holds more than one
    run, or cannot be read as a trace; ConfigurationError if there is no checker of something required.
    """
    required = known(required)
    history = load(events)
    wellformedness = wellformed.check(history)
    if wellformedness.violations:
        return [wellformedness]
    case = Case(history, required)
    return [wellformedness, *(verdict for checker in CHECKERS for verdict in checker.judge(case))]


def judge_all(events: pa.Table, required: frozenset[str] = frozenset()) -> list[Verdict]:
    """The verdicts of every run in the table, in the order of their ids; none for a table without rows.

    A run that cannot be read as a trace gets a verdict that says why: it must not hide what others violate.
    """
    admit(events)
    if not len(events):
        return []
    runs = sorted(pc.unique(events["run"]).to_pylist())
    if len(runs) == 1:
        return _judge_or_tell(events, required)
    place = pc.index_in(events["run"], pa.array(runs)).to_numpy()
    sorted_events = events.take(pa.array(np.argsort(place, kind="stable")))
    bounds = np.searchsorted(np.sort(place), np.arange(len(runs) + 1)).tolist()
    return [
        verdict
        for begin, end in pairwise(bounds)
        for verdict in _judge_or_tell(sorted_events.slice(begin, end - begin), required)
    ]


def _judge_or_tell(events: pa.Table, required: frozenset[str]) -> list[Verdict]:
    try:
        return judge(events, required)
    except TraceError as error:
        run = events["run"][0].as_py()
        return [Verdict(run, "W", None, "harness error", len(events), 1, Violation(str(error)))]
