"""The exceptions of asymmetric groups (docs/spec/newtop.md 11.3 rule 7): causes that a split numbered twice.

A message may be numbered by a sequencer whose number its origin never sees, and again on the origin's side. So a cause
in such a group may come after its effect in another group, or never. Inside one group there is no exception.
"""

from collections import defaultdict
from functools import cached_property

from antiphon.properties.promises import Promises
from antiphon.properties.tables.history import History
from antiphon.properties.tables.membership import Membership


class Sequencers:
    """Which sequencer numbered which message, and when a message is no longer owed."""

    def __init__(self, history: History, promises: Promises, membership: Membership) -> None:
        self._history, self._promises, self._membership = history, promises, membership
        self._any = bool(promises.asymmetric.any())

    def excuse(self, process: int, cause: int, effect: int, row: int) -> bool:
        """True if a process that delivers the effect at a row need not have delivered the cause before.

        This requires that the effect is of another group. Also, the cause's origin or one of its sequencers is
        confirmed as failed there, or the cause was numbered in a view without the process.
        """
        messages = self._history.messages
        group = int(messages.group[cause])
        if not self._any or not self._promises.asymmetric[process, group] or int(messages.group[effect]) == group:
            return False
        concerned = {int(messages.sender[cause]), *self._orderers[cause]}
        failed = self._failures[process, group]
        return any(failed.get(peer, row) < row for peer in concerned) or any(
            process not in members for members in self._numbered_among[cause]
        )

    @cached_property
    def _failures(self) -> dict[tuple[int, int], dict[int, int]]:
        """By process and group: the row at which it learns of each peer's failure there."""
        found: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
        for each in self._membership.confirmations:
            found[each.process, each.group].setdefault(each.peer, each.row)
        return found

    @cached_property
    def _orderers(self) -> dict[int, set[int]]:
        """For each message the processes that numbered it, according to any delivery."""
        first, orderer = self._history.first, self._history.rows.orderer
        found: dict[int, set[int]] = defaultdict(set)
        for message, who in zip(first.message.tolist(), orderer[first.row].tolist(), strict=True):
            if who >= 0:
                found[message].add(who)
        return found

    @cached_property
    def _numbered_among(self) -> dict[int, list[frozenset[int]]]:
        """For each message the members of the views in which its sequencers delivered it."""
        history, first = self._history, self._history.first
        members = dict(zip(history.stays.view.tolist(), map(frozenset, history.stays.members), strict=True))
        found: dict[int, list[frozenset[int]]] = defaultdict(list)
        views, orderers = history.rows.view[first.row].tolist(), history.rows.orderer[first.row].tolist()
        for message, process, view, who in zip(
            first.message.tolist(), first.process.tolist(), views, orderers, strict=True
        ):
            if who == process and view in members:
                found[message].append(members[view])
        return found
