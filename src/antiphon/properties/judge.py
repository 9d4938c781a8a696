"""All verdicts of a run: W first, and if the trace is well formed, every property its services promise.

The same function judges in-process after a simulation, in the tests, and on each run file of a cluster.
"""

import numpy as np
import pyarrow as pa

from antiphon.errors import TraceError
from antiphon.properties import wellformed
from antiphon.properties.case import Case
from antiphon.properties.columns import admit
from antiphon.properties.history import load
from antiphon.properties.promises import known
from antiphon.properties.registry import CHECKERS
from antiphon.properties.verdict import Verdict, Violation


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
    runs = np.asarray(events["run"].to_pylist(), np.str_)
    order_of_runs = np.argsort(runs, kind="stable")
    begins = np.unique(runs[order_of_runs], return_index=True)[1].tolist()
    sorted_events = events.take(pa.array(order_of_runs)) if len(begins) > 1 else events
    ends = [*begins[1:], len(runs)]
    return [
        verdict
        for begin, end in zip(begins, ends, strict=True)
        for verdict in _judge_or_tell(sorted_events.slice(begin, end - begin), required)
    ]


def _judge_or_tell(events: pa.Table, required: frozenset[str]) -> list[Verdict]:
    try:
        return judge(events, required)
    except TraceError as error:
        run = events["run"][0].as_py()
        return [Verdict(run, "W", None, "harness error", len(events), 1, Violation(str(error)))]
