"""One run before its judges: its history, and what several checkers need of it, made when the first of them asks."""

from functools import cached_property

from antiphon.properties.checks.exclusions import Gone
from antiphon.properties.checks.flow import Traffic
from antiphon.properties.checks.stability import Prefixes
from antiphon.properties.promises import Promises
from antiphon.properties.tables.audience import Audience
from antiphon.properties.tables.causality import Causality, establish
from antiphon.properties.tables.history import History
from antiphon.properties.tables.membership import Membership
from antiphon.properties.tables.past import Pasts
from antiphon.properties.tables.sequencers import Sequencers
from antiphon.properties.tables.sets import Delivered
from antiphon.properties.tables.spans import Spans
from antiphon.properties.tables.stamps import Stamps
from antiphon.properties.tables.windows import Windows


class Case:
    """A checker names what it wants in its parameters; each name is one of these."""

    def __init__(self, history: History, required: frozenset[str] = frozenset()) -> None:
        self.history, self._required = history, required

    @cached_property
    def promises(self) -> Promises:
        """Who promises what."""
        return Promises(self.history, self._required)

    @cached_property
    def membership(self) -> Membership:
        """Views and suspicions."""
        return Membership(self.history, self.promises)

    @cached_property
    def causality(self) -> Causality:
        """Sends in an order in which causes come first."""
        return establish(self.history)

    @cached_property
    def pasts(self) -> Pasts:
        """What happened before each message."""
        return Pasts(self.history, self.promises, self.causality)

    @cached_property
    def delivered(self) -> Delivered:
        """What was delivered in each view."""
        return Delivered(self.history)

    @cached_property
    def spans(self) -> Spans:
        """Who was in view without a break."""
        return Spans(self.history, self.promises)

    @cached_property
    def stamps(self) -> Stamps:
        """The protocol's own order."""
        return Stamps(self.history)

    @cached_property
    def audience(self) -> Audience:
        """To whom messages were addressed."""
        return Audience(self.history)

    @cached_property
    def sequencers(self) -> Sequencers:
        """What asymmetric groups do not owe."""
        return Sequencers(self.history, self.promises, self.membership)

    @cached_property
    def windows(self) -> Windows:
        """Flow control as it was configured."""
        return Windows(self.history)

    @cached_property
    def prefixes(self) -> Prefixes:
        """What was said about stability."""
        return Prefixes(self.history, self.audience, self.membership, self.spans)

    @cached_property
    def traffic(self) -> Traffic:
        """The frames that flow control had a say in."""
        return Traffic(self.history, self.windows)

    @cached_property
    def gone(self) -> Gone:
        """Who is gone, for whom."""
        return Gone(self.history, self.membership)
