"""What all parts of one process in one group read and none of them changes."""

from typing import TYPE_CHECKING, NamedTuple

from antiphon.core.clocks import TimestampClock
from antiphon.protocols.intergroup.repair.requests import Draw
from antiphon.protocols.intergroup.settings import InterGroupPlan, InterGroupSettings
from antiphon.types import GroupId, ProcessId, ViewId

if TYPE_CHECKING:
    from antiphon.protocols.intergroup.rules import Rules


class MemberContext(NamedTuple):
    me: ProcessId
    plan: InterGroupPlan
    settings: InterGroupSettings
    clock: TimestampClock
    """One clock for all groups of the process (Berket00 §4.3)."""
    draw: Draw
    rules: "Rules"

    @property
    def group(self) -> GroupId:
        return self.plan.view.group

    @property
    def epoch(self) -> ViewId:
        """The id of the sender group's view."""
        return self.plan.view.id
