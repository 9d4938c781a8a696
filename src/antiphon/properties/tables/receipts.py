"""Whether everybody to whom a message was addressed had received it by some row (docs/spec/properties.md 5, S1).

In a view that all share these are its members, but for those whose failure the process had confirmed by then: they no
longer hold stability back (newtop.md 8). In a private one they are, of a message of the process itself, those who were
its receivers without a break from the send on; of a message of another, which only a process of a static group can
speak of (docs/spec/stability.md 2d), its receivers and itself.
"""

from collections import defaultdict

import numpy as np

from antiphon.properties.tables.arrivals import NEVER, Arrivals
from antiphon.properties.tables.audience import Audience
from antiphon.properties.tables.codes import parts
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.history import History
from antiphon.properties.tables.membership import Membership


class _Failed:
    """Whose failure each process had confirmed in a group, by row."""

    def __init__(self, history: History, membership: Membership) -> None:
        self._history = history
        self.words = membership.confirmations
        self._width = len(history.rows.kind) + 1
        places = [(word.process * len(history.groups) + word.group) * self._width + word.row for word in self.words]
        self._place: IntArray = np.sort(np.array(places, np.int64))
        self._peers: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for word in self.words:
            self._peers[word.process, word.group].append((word.row, word.peer))

    def before(self, row: IntArray) -> IntArray:
        """How many failures the process of each row had confirmed in the group of the row."""
        if not self.words:
            return np.zeros(len(row), np.int64)
        rows = self._history.rows
        pair = (rows.process[row] * len(self._history.groups) + rows.group[row]) * self._width
        return np.searchsorted(self._place, pair + row) - np.searchsorted(self._place, pair)

    def peers(self, process: int, group: int, count: int, since: int) -> frozenset[int]:
        """The first so many of them, without those before that row: a formation takes in whom an earlier one lost."""
        return frozenset(peer for row, peer in self._peers[process, group][:count] if row > since)


class Receipts:
    """Who had to have what, and when the last of them had it."""

    def __init__(self, history: History, arrivals: Arrivals, audience: Audience, membership: Membership) -> None:
        self._history, self._arrivals, self._audience = history, arrivals, audience
        self._failed = _Failed(history, membership)

    def missing(self, row: IntArray, message: IntArray) -> BoolArray:
        """Which of the messages, as `Arrivals` codes them, somebody asked had not received by the time of the row.

        The process of the row is always asked, and must have had it before in its own history.
        """
        process = self._history.rows.process[row]
        not_here = self._arrivals.first_row(process, message) > row
        missing: BoolArray = (self._latest(row, message) > self._history.rows.time[row]) | not_here
        return missing

    def asked(self, row: int, message: int) -> tuple[int, ...]:
        """Who had to have that message before that row."""
        stay = int(self._history.stay_at(np.array([row]))[0])
        sent_in = int(self._sent_in(np.array([row]), np.array([message]))[0])
        if sent_in >= 0:
            return tuple(sorted(self._audience.lasting(sent_in, stay)))
        return self._members(stay, int(self._failed.before(np.array([row]))[0]))

    def _latest(self, row: IntArray, message: IntArray) -> IntArray:
        """When the last one asked had each message; NEVER if one has not."""
        latest = np.full(len(message), NEVER, np.int64)
        stay, stays, sent_in = self._history.stay_at(row), self._history.stays, self._sent_in(row, message)
        failed, width = self._failed.before(row), len(self._failed.words) + 1
        for place, at in parts((stay * (len(stays.row) + 1) + sent_in + 1) * width + failed):
            which, known = divmod(place, width)
            here, since = divmod(which, len(stays.row) + 1)
            group = int(stays.group[here])
            if since == 0:
                latest[at] = self._arrivals.latest(group, self._members(here, known), message[at])
            else:
                lasting = tuple(sorted(self._audience.lasting(since - 1, here)))
                latest[at] = self._arrivals.latest_of(group, lasting, message[at])
        return latest

    def _members(self, stay: int, known: int) -> tuple[int, ...]:
        """Whom everybody's messages are addressed to, as the process of the stay sees it when it knows of failures."""
        stays = self._history.stays
        if stays.private[stay]:
            return tuple(sorted({*stays.receivers[stay], int(stays.process[stay])}))
        entered = int(stays.row[stays.root[stay]])
        failed = self._failed.peers(int(stays.process[stay]), int(stays.group[stay]), known, entered) if known else ()
        return (
            tuple(member for member in stays.members[stay] if member not in failed) if failed else stays.members[stay]
        )

    def _sent_in(self, row: IntArray, message: IntArray) -> IntArray:
        """For messages of the row's own process, in a private view: the stay in which it sent them; else -1."""
        history, sender = self._history, self._arrivals.sender[message]
        own = history.stays.private[history.stay_at(row)] & (sender == history.rows.process[row])
        send_row = self._arrivals.first_row(sender, message)
        # What it speaks of before it sent it, it was not yet addressing to anybody.
        own &= send_row < row
        return np.where(own, history.stay_at(np.where(own, send_row, 0)), -1)
