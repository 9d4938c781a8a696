"""Latencies of deliveries whose request is in another member's log, perhaps in a part that is still to come.

Requests wait for their deliveries, and deliveries for their request, until none can be late any more.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.pipeline.live.rows import SEEN, IntArray

_MESSAGE: Final = ["run", "group", "sender", "sender_incarnation", "number"]
_REQUESTS: Final = pa.schema([SEEN.field(name) for name in (*_MESSAGE, "requested")])
_DELIVERIES: Final = pa.schema([SEEN.field(name) for name in (*_MESSAGE, "time")])

PATIENCE_NS: Final = 60_000_000_000
"""The longest time from a request to a delivery that is matched; later deliveries have no known latency."""
SECOND_NS: Final = 1_000_000_000
RECENT_S: Final = 10
"""The number of seconds, in the time of events, that count as recent."""
_BINS_PER_DOUBLING: Final = 16


class Spread(msgspec.Struct):
    """A histogram of latencies with 16 bins per doubling; percentiles are the middle of a bin, accurate to 2 %."""

    count: int = 0
    sum: int = 0
    max: int = 0
    bins: dict[int, int] = msgspec.field(default_factory=dict)

    def take(self, values: IntArray) -> None:
        """Add values."""
        bins, counts = np.unique(_bins(values), return_counts=True)
        self.count += len(values)
        self.sum += int(values.sum())
        self.max = max(self.max, int(values.max(initial=0)))
        self.bins = dict(Counter(self.bins) + Counter(dict(zip(bins.tolist(), counts.tolist(), strict=True))))

    def percentile(self, share: float) -> float | None:
        """The value that this share of all values does not exceed."""
        rank, seen = share * self.count, 0
        for number, count in sorted(self.bins.items()):
            seen += count
            if seen >= rank:
                return min(float(2 ** ((number + 0.5) / _BINS_PER_DOUBLING)), float(self.max))
        return None


def together(spreads: Iterable[Spread]) -> Spread:
    """Merge histograms."""
    spreads = [*spreads]
    bins = sum((Counter(each.bins) for each in spreads), Counter[int]())
    return Spread(
        sum(each.count for each in spreads),
        sum(each.sum for each in spreads),
        max((each.max for each in spreads), default=0),
        dict(bins),
    )


def _bins(values: IntArray) -> IntArray:
    bins: IntArray = np.floor(np.log2(np.maximum(values, 1)) * _BINS_PER_DOUBLING).astype(np.int64)
    return bins


class Open:
    """Requests and deliveries of all runs that wait for each other."""

    def __init__(self, requests: pa.Table | None = None, deliveries: pa.Table | None = None) -> None:
        self.requests = requests or _REQUESTS.empty_table()
        self.deliveries = deliveries or _DELIVERIES.empty_table()

    def take(self, events: pa.Table) -> pa.Table:
        """Take new events; return `run`, `group`, `time` and `latency` of the deliveries whose request is now known."""
        sends = events.filter(pc.equal(events.column("kind"), "send")).select(_REQUESTS.names)
        delivers = events.filter(pc.equal(events.column("kind"), "deliver")).select(_DELIVERIES.names)
        self.requests = pa.concat_tables([self.requests, sends])
        waiting = pa.concat_tables([self.deliveries, delivers])
        joined = waiting.join(self.requests, _MESSAGE, join_type="left outer")
        known = pc.is_valid(joined.column("requested"))
        self.deliveries = joined.filter(pc.invert(known)).select(_DELIVERIES.names).cast(_DELIVERIES)
        found = joined.filter(known)
        latency = pc.subtract(found.column("time"), found.column("requested"))
        return found.select(["run", "group", "time"]).append_column("latency", latency)

    def forget(self, upto_ns: Mapping[str, int]) -> int:
        """Drop requests and deliveries before these times of each run; return the number of deliveries dropped."""
        self.requests = _later(self.requests, "requested", upto_ns)
        before: int = self.deliveries.num_rows
        self.deliveries = _later(self.deliveries, "time", upto_ns)
        return before - int(self.deliveries.num_rows)


def _later(table: pa.Table, column: str, upto_ns: Mapping[str, int]) -> pa.Table:
    if not table.num_rows:
        return table
    limits = pa.array([*upto_ns.values()], pa.int64())
    limit = limits.take(pc.index_in(table.column("run"), pa.array([*upto_ns], pa.string())).combine_chunks())
    return table.filter(pc.greater_equal(table.column(column), limit))
