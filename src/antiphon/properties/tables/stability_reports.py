"""What a run reports about stability: arrivals, and the marks of `stable` and `discard` rows."""

from functools import cached_property

import numpy as np

from antiphon.properties.tables.arrivals import Arrivals
from antiphon.properties.tables.audience import Audience
from antiphon.properties.tables.columns import IntArray
from antiphon.properties.tables.history import History
from antiphon.properties.tables.marks import Marks
from antiphon.properties.tables.membership import Membership
from antiphon.properties.tables.receipts import Receipts
from antiphon.properties.tables.spans import Spans


class StabilityReports:
    def __init__(self, history: History, audience: Audience, membership: Membership, spans: Spans) -> None:
        self._history, self._audience, self._membership, self._spans = history, audience, membership, spans

    @cached_property
    def arrivals(self) -> Arrivals:
        """When each message first reached each member."""
        return Arrivals(self._history)

    @cached_property
    def receipts(self) -> Receipts:
        """Which processes must have received which message."""
        return Receipts(self._history, self.arrivals, self._audience, self._membership)

    @cached_property
    def stable(self) -> Marks:
        """What was reported as stable."""
        return Marks(self._history, "stable")

    @cached_property
    def freed(self) -> Marks:
        """What was freed."""
        return Marks(self._history, "discard")

    def predecessors(self, marks: Marks, reports: IntArray) -> IntArray:
        """For each report, the last number of its sender that belongs to a predecessor of the current formation.

        A report names a prefix, but concerns its own formation alone: joiners never receive what was sent before.
        """
        stay = self._history.stay_at(marks.row[reports])
        floor = self._spans.floor(stay, marks.sender[reports])
        return np.minimum(floor - 1, marks.number[reports])
