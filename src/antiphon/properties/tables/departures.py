"""Which processes have departed by a quiet end, as seen by each member of a stable component (L1, L4, L5).

A process has departed if it crashed, left the group, or is outside the component. One exception: if an application
stays stalled until the end, a live process outside the component may only be waiting for it, and does not count. A
member can notice a departure only if its failure detector is on and the group speaks: by its idle probe, or because a
process that has both in its view sends. It is judged once the settling time has passed since then (`suspectors.py`).
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import BoolArray
from antiphon.properties.tables.history import NEVER, History
from antiphon.properties.tables.membership import Membership
from antiphon.properties.tables.one_way import OneWayLinks
from antiphon.properties.tables.quiet_end import last_stays


@dataclass(frozen=True, slots=True)
class Loss:
    """A member of a stable component in its last view, and a process of its views that has departed."""

    stay: int
    departed: int


class Departures:
    def __init__(self, history: History, promises: Promises, membership: Membership) -> None:
        self._history, self._promises, self._membership = history, promises, membership
        self._end = int(history.rows.time.max(initial=0))
        self._somebody_takes_nothing = _lasting_stall(history)
        self._last = last_stays(history)
        self._one_way = OneWayLinks(history)

    def has_departed(self, process: int, group: int, other: int) -> bool:
        """True if the other crashed, left, or is cut off for good from that member of a stable component."""
        component, crashed = self._history.world.component, self._history.logs.crashed
        if crashed[other] or self._history.left[other, group]:
            return True
        return bool(component[other] != component[process]) and not self._somebody_takes_nothing

    def losses(self, stable: BoolArray) -> list[Loss]:
        """Each member of a stable component with each process that should be out of its view by the end."""
        membership, found = self._membership, list[Loss]()
        for (process, group), stay in self._last.items():
            if not stable[process, group] or not self._asks(process) or not membership.shared[stay]:
                continue
            if self.follows_outside(stay):
                continue
            first, others = stay, membership.members[stay]
            while membership.preceding[first] >= 0:
                first = membership.preceding[first]
                others |= membership.members[first]
            found += [
                Loss(stay, other)
                for other in sorted(others - {process})
                if self.has_departed(process, group, other) and self._noticed(process, group, other)
            ]
        return found

    def follows_outside(self, stay: int, *, wanted: bool = False) -> bool:
        """True if the process only receives in its last view, and its component is not the measure of that view.

        Its component has no sender, or it hears a member outside of it, in one direction. `wanted`: some process of the
        component wants to send, so there should be a sender.
        """
        membership = self._membership
        process, group = membership.process[stay], membership.group[stay]
        if not self._promises.roles.receiving[stay]:
            return False
        if self._one_way.hears_outsider(process, membership.members[stay]):
            return True
        return not wanted and not self.has_senders(process, group)

    def has_senders(self, process: int, group: int) -> bool:
        """True if a process in its component sends: without one, a process that only receives keeps its last view."""
        component = self._history.world.component
        return any(
            where == group and component[other] == component[process] and not self._promises.roles.receiving[stay]
            for (other, where), stay in self._last.items()
            if not self._history.away[other, group]
        )

    def _asks(self, process: int) -> bool:
        return bool(self._membership.suspectors.after[process] and self._membership.settled[process])

    def _noticed(self, process: int, group: int, other: int) -> bool:
        """True if the group spoke after the other had departed, and long enough before the end."""
        suspectors, membership, history = self._membership.suspectors, self._membership, self._history
        if suspectors.probe[process] or suspectors.keep_alive[process]:
            return True
        since = self.since(group, other)
        sends, time, component = history.sends, history.rows.time, history.world.component
        in_time = (time[sends.row] >= since) & (time[sends.row] <= self._end - suspectors.settling[process])
        heard = in_time & (sends.group == group) & (component[sends.process] == component[process])
        stays = np.unique(history.stay_at(sends.row[heard])).tolist()
        return any({process, other} <= membership.members[stay] for stay in stays)

    def since(self, group: int, other: int) -> int:
        """When a departed process went: it crashed, it left, or the last fault happened."""
        history, membership = self._history, self._membership
        if history.logs.crashed[other]:
            return int(history.rows.time[history.logs.end[other] - 1])
        stay = self._last.get((other, group), -1)
        if history.left[other, group] and stay >= 0 and history.stays.leave[stay] < NEVER:
            return int(history.rows.time[history.stays.leave[stay]])
        return membership.last_fault


def _lasting_stall(history: History) -> bool:
    """True if some application stopped consuming messages and never resumed."""
    stalled: dict[object, int] = defaultdict(int)
    for row in history.of_kind("fault").tolist():
        detail = history.details.get(row, {})
        if detail.get("kind") == "stall":
            stalled[detail.get("process")] += 1 if detail.get("begins", True) else -1
    return any(count > 0 for count in stalled.values())
