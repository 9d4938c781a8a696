"""How long a sender was in the views of a process without interruption: the scope of O2 and O4 (properties.md 4).

A process owes order and completeness only to senders that were in its views all the time. A property that ignores this
raises false alarms at every view change. In a private view, the senders from which the process receives count. In a
family whose view changes are not cuts, a sender's messages are owed until the end, even if it is gone or was never a
member. A receive-only process owes what was sent after it entered a view with the sender (Berket00 1.2), because its
views are not the sender's views.
"""

from collections import defaultdict
from functools import cached_property
from itertools import chain

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.history import NEVER, History


class Spans:
    """The uninterrupted runs of views of each process in each group, by sender."""

    def __init__(self, history: History, promises: Promises) -> None:
        self._history = history
        stays = history.stays
        self._onlooking: BoolArray = np.append(promises.roles.receiving, False)
        self._sources = _sources(history, promises)
        self.leave = history.stays.leave
        """For each stay: the row at which the process left the group voluntarily, NEVER if it did not."""
        self._pair, self._begin = self._runs()
        width = len(history.groups)
        place = (stays.process * width + stays.group) * len(history.views) + stays.view
        self._place, self._place_stay = np.unique(place, return_index=True)

    def stay_at(self, rows: IntArray) -> IntArray:
        """For each row the stay of its process in the group of the row; -1 before the first view and after a leave."""
        return self._history.membership_at(rows)

    def begin(self, stay: IntArray, member: IntArray) -> IntArray:
        """The first stay of the run of views with that sender that includes this stay; -1 if it is not in the view."""
        return _found(self._pair, stay * len(self._history.processes) + member, self._begin, stay >= 0)

    def installed(self, process: IntArray, group: IntArray, view: IntArray) -> IntArray:
        """The stay of that process in that view of that group, -1 if it never installed it."""
        place = (process * len(self._history.groups) + group) * len(self._history.views) + view
        return _found(self._place, place, self._place_stay, view >= 0)

    def first_number(self, stay: IntArray, sender: IntArray) -> IntArray:
        """The number of the first message that the sender sent, or could have sent, in the view of that stay.

        A process that enters this view with the sender can deliver that message and all later ones. NEVER if the
        sender's log does not have the view.
        """
        stays = self._history.stays
        group = stays.group[stay]
        own = np.where(stay >= 0, self.installed(sender, group, stays.view[stay]), -1)
        pair = (sender * len(self._history.groups) + group) * len(self._history.rows.kind)
        earlier = np.searchsorted(self._sends, pair + stays.row[own]) - np.searchsorted(self._sends, pair)
        first = np.where(own >= 0, earlier, NEVER)
        outside = np.flatnonzero(self._onlooking[stay])
        first[outside] = self._sent_before(stay[outside], sender[outside])
        return first

    def _sent_before(self, stay: IntArray, sender: IntArray) -> IntArray:
        """How many messages the sender had sent when the receive-only process of that stay entered it."""
        history, stays, total = self._history, self._history.stays, len(self._history.rows.kind)
        pair = sender * len(history.groups) + stays.group[stay]
        counts = np.zeros(len(stay), np.int64)
        for (which, when), at in _together(pair, history.rows.time[stays.row[stay]]).items():
            begin, end = np.searchsorted(self._sends, [which * total, (which + 1) * total]).tolist()
            times = history.rows.time[self._sends[begin:end] - which * total]
            counts[at] = np.searchsorted(times, when, side="right")
        return counts

    def floor(self, stay: IntArray, sender: IntArray) -> IntArray:
        """The number of the first message that the sender can have sent in the formation of the stay.

        All earlier ones belong to a predecessor, and are in the state (docs/spec/newtop.md 11.2 rule 7). 0 if nothing
        was formed, NEVER for a sender that never went over. A receive-only process starts again with each of its views:
        with what is due there, or with the first message delivered in it, which may have been sent before.
        """
        root = self._history.stays.root[stay]
        floor: IntArray = np.zeros(len(stay), np.int64)
        begun = self._history.stays.formed | (self._history.stays.preceding >= 0) | self._onlooking[:-1]
        late = (stay >= 0) & begun[root] if len(begun) else stay >= 0
        floor[late] = self.first_number(root[late], sender[late])
        outside = np.flatnonzero(self._onlooking[stay] & (stay >= 0))
        if len(outside):
            there = stay[outside], sender[outside]
            floor[outside] = np.minimum(self.first_number(*there), self._first_handed(*there))
        return floor

    def _first_handed(self, stay: IntArray, sender: IntArray) -> IntArray:
        """The lowest number of the sender that the process delivered in that stay; NEVER if none."""
        pair, lowest = self._handed
        found = _found(pair, stay * len(self._history.processes) + sender, lowest, stay >= 0)
        return np.where(found >= 0, found, NEVER)

    @cached_property
    def _handed(self) -> tuple[IntArray, IntArray]:
        """Pairs of stay and sender, sorted, and the lowest number delivered; for receive-only processes."""
        history, messages = self._history, self._history.messages
        chosen = self._onlooking[history.first_stay]
        message = history.first.message[chosen]
        pair = history.first_stay[chosen] * len(history.processes) + messages.sender[message]
        order = np.lexsort((messages.number[message], pair))
        pair, first = np.unique(pair[order], return_index=True)
        return pair, messages.number[message][order][first]

    @cached_property
    def _sends(self) -> IntArray:
        """The `send` rows by process and group. Made when asked for: most parts of a large run need none."""
        history, sends = self._history, self._history.sends
        pair = sends.process * len(history.groups) + sends.group
        return np.sort(pair * len(history.rows.kind) + sends.row)

    def end_of_formation(self, rows: IntArray) -> IntArray:
        """For each row, where its process goes over from its formation to the next one; NEVER if it does not."""
        stays, ends = self._history.stays, list[int]()
        for stay in self._history.stay_at(rows).tolist():
            following = int(stays.following[stay]) if stay >= 0 else -1
            while following >= 0 and not stays.formed[following]:
                following = int(stays.following[following])
            ends.append(int(stays.row[following]) if following >= 0 else NEVER)
        return np.array(ends, np.int64)

    def _runs(self) -> tuple[IntArray, IntArray]:
        """Pairs of stay and sender, sorted, and the first stay of the run to which each belongs."""
        stays, width = self._history.stays, len(self._history.processes)
        sizes = np.array([len(sources) for sources in self._sources], np.int64)
        members = np.fromiter(chain.from_iterable(self._sources), np.int64, int(sizes.sum()))
        pair = np.unique(np.repeat(np.arange(len(sizes)), sizes) * width + members)
        stay, member = np.divmod(pair, max(width, 1))
        before = stays.preceding[stay]
        goes_on = (before >= 0) & (self.leave[before] == NEVER) & np.isin(before * width + member, pair)
        goes_on &= self._comes_along(stay, member)
        order = np.lexsort((stay, member, stays.group[stay], stays.process[stay]))
        # In this order a pair that continues a run comes right after the one it continues.
        at = np.maximum.accumulate(np.where(goes_on[order], 0, np.arange(len(order))))
        begin = np.empty(len(order), np.int64)
        begin[order] = stay[order][at]
        return pair, begin

    def _comes_along(self, stay: IntArray, member: IntArray) -> BoolArray:
        """For a stay that begins a formation: whether the member came along with the process.

        A member that comes from elsewhere may have sent messages that only its own class has delivered.
        """
        stays, width = self._history.stays, len(self._history.processes)
        formed = np.flatnonzero(stays.formed).tolist()
        along = [each * width + other for each in formed for other in stays.transitional[each] or ()]
        comes: BoolArray = ~stays.formed[stay] | np.isin(stay * width + member, np.array(along, np.int64))
        return comes


def _sources(history: History, promises: Promises) -> list[tuple[int, ...]]:
    """For each stay: the processes whose messages are due in it."""
    stays, cuts = history.stays, promises.of_family(lambda promised: promised.cuts)
    outside = [tuple(np.flatnonzero(column).tolist()) for column in promises.sends_only.T]
    sources: list[tuple[int, ...]] = []
    for stay, (process, group) in enumerate(zip(stays.process.tolist(), stays.group.tolist(), strict=True)):
        if stays.private[stay]:
            sources.append((*stays.senders[stay], process))
        elif cuts[process]:
            sources.append(stays.members[stay])
        else:
            before = sources[stays.preceding[stay]] if stays.preceding[stay] >= 0 else outside[group]
            sources.append(tuple({*before, *stays.members[stay]}))
    return sources


def _together(first: IntArray, second: IntArray) -> dict[tuple[int, int], list[int]]:
    """The positions at which both values are the same."""
    places = defaultdict[tuple[int, int], list[int]](list)
    for place, values in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        places[values].append(place)
    return places


def _found(keys: IntArray, wanted: IntArray, values: IntArray, possible: BoolArray) -> IntArray:
    """The value of each wanted key, -1 if there is none."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(possible & (keys[at] == wanted), values[at], -1)
