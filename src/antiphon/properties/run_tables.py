"""The tables of one run that several checkers read. Each table is computed when a checker first asks for it."""

from collections.abc import Collection
from functools import cached_property

from antiphon.properties.promises import Promises
from antiphon.properties.tables.audience import Audience
from antiphon.properties.tables.causality import Causality, establish
from antiphon.properties.tables.delivered import Delivered
from antiphon.properties.tables.departures import Departures
from antiphon.properties.tables.flow_frames import FlowFrames
from antiphon.properties.tables.history import History
from antiphon.properties.tables.membership import Membership
from antiphon.properties.tables.past import Pasts
from antiphon.properties.tables.sequencers import Sequencers
from antiphon.properties.tables.spans import Spans
from antiphon.properties.tables.stability_reports import StabilityReports
from antiphon.properties.tables.stamps import Stamps
from antiphon.properties.tables.windows import Windows


class RunTables:
    """One run, ready to be judged. The parameter names of a checker are attributes of this class (`registry.py`)."""

    def __init__(self, history: History, required: frozenset[str] = frozenset()) -> None:
        self.history, self._required = history, required

    def keep(self, names: Collection[str]) -> None:
        """Give up the tables that no checker with these parameters reads; they are made again if one asks."""
        kept = {"promises", "membership", "pasts", "causality"} if "past" in names else {"promises", "membership"}
        for name in [name for name in vars(self) if not name.startswith("_") and name != "history"]:
            if name not in names and name not in kept:
                delattr(self, name)

    @cached_property
    def promises(self) -> Promises:
        """Which process promises which property in which group."""
        return Promises(self.history, self._required)

    @cached_property
    def membership(self) -> Membership:
        """Views and suspicions."""
        return Membership(self.history, self.promises)

    @cached_property
    def causality(self) -> Causality:
        """The sends in an order that puts every cause before its effects."""
        return establish(self.history)

    @cached_property
    def pasts(self) -> Pasts:
        """The causal past of each message."""
        return Pasts(self.history, self.promises, self.causality)

    @cached_property
    def delivered(self) -> Delivered:
        """The messages delivered in each view."""
        return Delivered(self.history)

    @cached_property
    def spans(self) -> Spans:
        """The runs of views in which a process had another one in its view without interruption."""
        return Spans(self.history, self.promises)

    @cached_property
    def stamps(self) -> Stamps:
        """The order that the protocol itself stamped on the messages."""
        return Stamps(self.history)

    @cached_property
    def audience(self) -> Audience:
        """The processes to which each message was addressed."""
        return Audience(self.history)

    @cached_property
    def sequencers(self) -> Sequencers:
        """The exceptions that asymmetric (sequenced) groups are granted."""
        return Sequencers(self.history, self.promises, self.membership)

    @cached_property
    def windows(self) -> Windows:
        """The flow control settings."""
        return Windows(self.history)

    @cached_property
    def stability(self) -> StabilityReports:
        """The reports about stability."""
        return StabilityReports(self.history, self.audience, self.membership, self.spans)

    @cached_property
    def flow_frames(self) -> FlowFrames:
        """The frames that are subject to flow control."""
        return FlowFrames(self.history, self.windows)

    @cached_property
    def departures(self) -> Departures:
        """The processes that have crashed, left, or are cut off for good, as seen by each other process."""
        return Departures(self.history, self.promises, self.membership)
