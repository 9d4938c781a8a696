"""Turns: in which of its groups a member may send while a message of an asymmetric one is under way (11.3 rule 4).

A message gets its number at the sequencer. Until it has come back, a later message of its sender in another group
might get a smaller number and overtake it. In the same group places keep the order.
"""

from collections.abc import Iterable, Mapping

from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.types import GroupId


class Turns:
    """Invariant: at most one group has messages under way. A group that had to wait goes first afterwards."""

    __slots__ = ("_sequenced", "_waiting")

    def __init__(self, groups: Mapping[GroupId, NewtopGroup]) -> None:
        self._waiting: dict[GroupId, NewtopGroup] = {}
        self.weigh(groups)

    def weigh(self, groups: Mapping[GroupId, NewtopGroup]) -> None:
        """Groups were added or removed."""
        self._sequenced = [group for group in groups.values() if group.discipline.sequenced]
        self._waiting = {name: group for name, group in self._waiting.items() if name in groups}

    def line(self, stirred: dict[GroupId, NewtopGroup]) -> Iterable[NewtopGroup]:
        """The groups that may have something to send: those that had to wait, then the rest."""
        first, self._waiting = self._waiting, {}
        stirred |= first
        return [*first.values(), *(group for name, group in stirred.items() if name not in first)]

    def permits(self, group: NewtopGroup) -> bool:
        """True if no message of another group is under way, and no other group waits longer.

        Messages that were under way when their group was replaced still count, and must leave again first.
        """
        if group.outgoing.overdue:
            return True
        if any(other.discipline.awaits_return and other is not group for other in self._sequenced) or self._waiting:
            self._waiting[group.view.group] = group
            return False
        return True
