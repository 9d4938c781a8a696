"""Whether all processes to which a message was addressed had received it by some row (docs/spec/properties.md 5, S1).

In a shared view these are its members, except those whose failure the process had confirmed by then: they no longer
hold back stability (docs/spec/newtop.md 8). In a private view they are, for a message of the process itself, those that
were its receivers without interruption since the send. For a message of another process, which only a process of a
static group can report (docs/spec/stability.md 2d), they are its receivers and itself.
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
    """The failures that each process had confirmed in a group, by row."""

    def __init__(self, history: History, membership: Membership) -> None:
        self._history = history
        self.confirmed = membership.confirmations
        self._width = len(history.rows.kind) + 1
        places = [(each.process * len(history.groups) + each.group) * self._width + each.row for each in self.confirmed]
        self._place: IntArray = np.sort(np.array(places, np.int64))
        self._peers: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for each in self.confirmed:
            self._peers[each.process, each.group].append((each.row, each.peer))

    def before(self, row: IntArray) -> IntArray:
        """How many failures the process of each row had confirmed in the group of the row."""
        if not self.confirmed:
            return np.zeros(len(row), np.int64)
        rows = self._history.rows
        pair = (rows.process[row] * len(self._history.groups) + rows.group[row]) * self._width
        return np.searchsorted(self._place, pair + row) - np.searchsorted(self._place, pair)

    def peers(self, process: int, group: int, count: int, since: int) -> frozenset[int]:
        """The first `count` of them after row `since`: a formation may take in a process that an earlier one lost."""
        return frozenset(peer for row, peer in self._peers[process, group][:count] if row > since)


class Receipts:
    """Which processes must have which message, and when the last of them had it."""

    def __init__(self, history: History, arrivals: Arrivals, audience: Audience, membership: Membership) -> None:
        self._history, self._arrivals, self._audience = history, arrivals, audience
        self._failed = _Failed(history, membership)
        self._adds_members = membership.roles

    def missing(self, row: IntArray, message: IntArray) -> BoolArray:
        """Which of the messages (coded as in `Arrivals`) one of these processes had not received by the row's time.

        The process of the row is always included, and must have had it before in its own history.
        """
        process = self._history.rows.process[row]
        not_here = self._arrivals.first_row(process, message) > row
        missing: BoolArray = (self._latest(row, message) > self._history.rows.time[row]) | not_here
        return missing

    def required_receivers(self, row: int, message: int) -> tuple[int, ...]:
        """The processes that must have that message before that row."""
        stay = int(self._history.stay_at(np.array([row]))[0])
        sent_in = int(self._sent_in(np.array([row]), np.array([message]))[0])
        if sent_in >= 0:
            return tuple(sorted(self._audience.lasting(sent_in, stay)))
        known = int(self._failed.before(np.array([row]))[0])
        if self._adds_members[self._history.stays.process[stay]]:
            return self._members_since(stay, known, int(self._sent_at(np.array([message]))[0]))
        return self._members(stay, known)

    def _latest(self, row: IntArray, message: IntArray) -> IntArray:
        """When the last of these processes had each message; NEVER if one never had it."""
        latest = np.full(len(message), NEVER, np.int64)
        stay, stays, sent_in = self._history.stay_at(row), self._history.stays, self._sent_in(row, message)
        failed, width = self._failed.before(row), len(self._failed.confirmed) + 1
        for place, at in parts((stay * (len(stays.row) + 1) + sent_in + 1) * width + failed):
            which, known = divmod(place, width)
            here, since = divmod(which, len(stays.row) + 1)
            group = int(stays.group[here])
            if since == 0 and self._adds_members[stays.process[here]]:
                for then, some in parts(self._sent_at(message[at])):
                    members = self._members_since(here, known, then)
                    latest[at[some]] = self._arrivals.latest(group, members, message[at[some]])
            elif since == 0:
                latest[at] = self._arrivals.latest(group, self._members(here, known), message[at])
            else:
                lasting = tuple(sorted(self._audience.lasting(since - 1, here)))
                latest[at] = self._arrivals.latest_of(group, lasting, message[at])
        return latest

    def _members(self, stay: int, known: int) -> tuple[int, ...]:
        """The addressees of all messages, as the process of the stay sees them with its known failures."""
        stays = self._history.stays
        if stays.private[stay]:
            return tuple(sorted({*stays.receivers[stay], int(stays.process[stay])}))
        entered = int(stays.row[stays.root[stay]])
        failed = self._failed.peers(int(stays.process[stay]), int(stays.group[stay]), known, entered) if known else ()
        return (
            tuple(member for member in stays.members[stay] if member not in failed) if failed else stays.members[stay]
        )

    def _members_since(self, stay: int, known: int, sent_in: int) -> tuple[int, ...]:
        """Where members are added in order: those that were members when the message was sent, by its sender's log."""
        there = self._history.stays.members[sent_in] if sent_in >= 0 else None
        return tuple(each for each in self._members(stay, known) if there is None or each in there)

    def _sent_at(self, message: IntArray) -> IntArray:
        """The stay of its sender in which each message was sent; -1 if no log tells."""
        row = self._arrivals.first_row(self._arrivals.sender[message], message)
        known = row < NEVER
        return np.where(known, self._history.stay_at(np.where(known, row, 0)), -1)

    def _sent_in(self, row: IntArray, message: IntArray) -> IntArray:
        """For messages of the row's own process, in a private view: the stay in which it sent them; else -1."""
        history, sender = self._history, self._arrivals.sender[message]
        own = history.stays.private[history.stay_at(row)] & (sender == history.rows.process[row])
        send_row = self._arrivals.first_row(sender, message)
        # If it reports a message before it sent it, the message was not yet addressed to any process.
        own &= send_row < row
        return np.where(own, history.stay_at(np.where(own, send_row, 0)), -1)
