"""Receive-only processes: when they begin, when they lose senders again, and whether anything justified it (L9).

A receiver of InterGroup starts again when it cannot follow (docs/spec/intergroup.md 7.7). It may do so if the
network is cut, or if it stands still. No trace tells how many datagrams a network loses, so the evidence is what
arrived, and when.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.history import NEVER, History
from antiphon.properties.tables.membership import Membership
from antiphon.properties.tables.rows_by_time import FrameRows, RowsByTime
from antiphon.scenario.units import Duration
from antiphon.types import split_process_id

_WAITED_FOR: Final = 5
"""Others surely wait this long for a process that lacks something: half of RECV_STALL (J13, J16), in half ω."""
_GETS_OVER: Final = 20
"""A process that continues for twice RECV_STALL had the message reported as gone; else it starts again within one."""
_STANDING: Final = frozenset({"pause", "stall", "slow"})
_LINKS: Final = frozenset({"delay", "loss", "cut"})


@dataclass(frozen=True, slots=True)
class Loss:
    """A receiver has a view without senders that the one before had."""

    stay: int
    begun: Mapping[int, int]
    """For each lost sender, the time at which the process began to hear it."""
    since: int
    """When the process first tried to hear one of them: when it started, or when it lost that sender before."""
    heard: tuple[int, ...]
    """The senders that it heard before."""

    @property
    def lost(self) -> frozenset[int]:
        """The senders that it no longer hears."""
        return frozenset(self.begun)


class GoneNotice(NamedTuple):
    """A sender told the receiver that a message is gone."""

    time: int
    sender: int


class ReceiveOnly:
    """The receive-only processes that promise L9 and that no fault kept from following."""

    def __init__(self, history: History, promises: Promises, membership: Membership) -> None:
        self._history, self._membership = history, membership
        self._frame_rows = FrameRows(history)
        self._bearable = membership.suspectors.bearable_ns
        self._waited_for = _WAITED_FOR * self._bearable
        self._gets_over = _GETS_OVER * self._bearable
        calm = _undisturbed(history, promises, self._bearable)
        self._changed_at = _changed_at(membership, promises)
        self._installers = Counter(membership.view)
        """By view, the number of processes that installed it: all but private views are agreed by the senders."""
        rows = history.of_kind("leave", "demote")[::-1]  # backwards, so that the first counts
        self._withdrawals = {
            (int(history.rows.process[row]), int(history.rows.group[row])): int(history.rows.time[row])
            for row in rows.tolist()
        }
        self._stays = [
            stay
            for stay in membership.stays_promising("L9", private=True)
            if promises.roles.receiving[stay] and calm[membership.process[stay], membership.group[stay]]
        ]

    def beginnings(self) -> list[int]:
        """The stays with which a process first heard a sender."""
        return [stay for stay in self._stays if self._heard(stay) and not self._heard(self._before(stay))]

    def losses(self) -> Iterator[Loss]:
        """The stays in which a process no longer hears a sender."""
        for stay in self._stays:
            heard = self._heard(self._before(stay))
            lost = {sender for sender in heard - self._heard(stay) if not self._withdrew(stay, sender)}
            changed = self._changed_at.get(self._membership.group[stay], NEVER) <= self._membership.time[stay]
            changed |= self._installers[self._membership.view[stay]] > 1
            if lost and not changed:
                begun = {sender: self._begun(self._before(stay), sender) for sender in lost}
                # Sources begin one after another. What the first sent before the others began counts as well.
                first = min(begun.values())
                since = min(self._wanted_since(first, sender) for sender in lost if begun[sender] == first)
                times = {sender: self._membership.time[at] for sender, at in begun.items()}
                yield Loss(stay, times, since, tuple(sorted(heard)))

    def needless(self, loss: Loss) -> str | None:
        """The evidence that nothing kept it from following; None if something may have."""
        gone = self._told_gone(loss)
        if gone is None:
            heard_all = self._spoke_steadily(loss) and self._all_came(loss)
            return "all that these sent had reached it in time" if heard_all else None
        if self._lacked_long(loss, gone) or self._unheard(loss, gone):
            return None
        return "what it lacked was gone before it could have received it"

    def _withdrew(self, stay: int, sender: int) -> bool:
        """True if the sender no longer wanted to send, or left, before that stay."""
        at = self._withdrawals.get((sender, self._membership.group[stay]), NEVER)
        return at <= self._membership.time[stay]

    def _before(self, stay: int) -> int:
        return self._membership.preceding[stay]

    def _heard(self, stay: int) -> frozenset[int]:
        if stay < 0:
            return frozenset()
        return frozenset(self._history.stays.senders[stay]) - {self._membership.process[stay]}

    def _begun(self, stay: int, sender: int) -> int:
        """The stay with which it began to hear a sender that it heard in this stay."""
        while sender in self._heard(self._before(stay)):
            stay = self._before(stay)
        return stay

    def _wanted_since(self, begun: int, sender: int) -> int:
        """When it had lost that sender before, or when it joined."""
        stay = self._before(begun)
        while stay >= 0:
            if sender in self._heard(self._before(stay)):
                return self._membership.time[stay]
            stay = self._before(stay)
        process, group = self._membership.process[begun], self._membership.group[begun]
        joins = self._history.of_kind("join")
        rows = self._history.rows
        mine = (rows.process[joins] == process) & (rows.group[joins] == group) & (joins < self._membership.row[begun])
        return int(rows.time[joins[mine]].max(initial=0))

    # What was gone

    def _told_gone(self, loss: Loss) -> GoneNotice | None:
        """When a sender first reported as gone a message that it may still have lacked, and which sender.

        It is told repeatedly while it lacks the message: the last time does not show how long it was lacking.
        """
        return min((gone for sender in loss.lost for gone in self._standing(loss, sender)), default=None)

    def _standing(self, loss: Loss, sender: int) -> list[GoneNotice]:
        """What a sender told it is gone, unless it recovered from that.

        The answer to a late or repeated request may concern a message that it has. A stream is delivered in order, so a
        later delivered message proves that nothing was missing. If none was sent, enough time proves it too.
        """
        rows, begun = self._history.rows, loss.begun[sender]
        notices = self._until(loss, self._frame_rows.gone, max(begun, self._over(loss) - self._gets_over))
        times = rows.time[notices[rows.sender[notices] == sender]]
        if not len(times):
            return []
        delivered = self._until(loss, self._frame_rows.delivered, begun)
        numbers = rows.number[delivered[rows.sender[delivered] == sender]]
        sent = self._frame_rows.sent.within(sender, self._membership.group[loss.stay], begun, self._over(loss))
        last = int(rows.time[sent[np.isin(rows.number[sent], numbers)]].max(initial=0))
        return [GoneNotice(time, sender) for time in times.tolist() if time >= last]

    def _lacked_long(self, loss: Loss, gone: GoneNotice) -> bool:
        """True if it had lacked a message for longer than others must wait, or if this is unknown."""
        rows = self._history.rows
        sent = self._by_senders(loss, self._frame_rows.sent, gone.time)
        came = self._until(loss, self._frame_rows.received, loss.since)  # nothing comes before it is sent
        came = came[rows.number[came] >= 0]
        width = int(rows.number[sent].max(initial=0)) + 1
        came = came[rows.number[came] < width]
        had = rows.sender[came] * width + rows.number[came]
        lacked = sent[~np.isin(rows.process[sent] * width + rows.number[sent], had)]
        since = int(rows.time[lacked].min()) if len(lacked) else min(loss.begun.values())
        return gone.time - since >= self._waited_for

    def _unheard(self, loss: Loss, gone: GoneNotice) -> bool:
        """True if its reports had not reached that sender for a while, or not when it began."""
        process, group = self._membership.process[loss.stay], self._membership.group[loss.stay]
        begun = loss.begun[gone.sender]
        reports = self._frame_rows.reports.within(gone.sender, group, begun, gone.time)
        times = self._history.rows.time[reports[self._history.rows.sender[reports] == process]]
        if not len(times) or times[0] - begun > self._bearable:
            return gone.time - begun > self._bearable
        return bool(np.diff(times, append=gone.time).max() > self._waited_for)

    # What arrived, and when

    def _spoke_steadily(self, loss: Loss) -> bool:
        """True if each sender that it heard transmitted all the time: none stood still without a fault row."""
        over, group = self._over(loss), self._membership.group[loss.stay]
        for sender in loss.heard:
            times = self._history.rows.time[self._frame_rows.named.within(sender, group, loss.since, over)]
            if np.diff(times, prepend=loss.since, append=over).max() > self._bearable:
                return False
        return True

    def _all_came(self, loss: Loss) -> bool:
        """True if every message and keep-alive of these senders arrived, and none took long."""
        left, left_at = self._first(self._by_senders(loss, self._frame_rows.named, self._over(loss) - self._bearable))
        came, came_at = self._first(self._until(loss, self._frame_rows.received, loss.since))
        if not np.isin(left, came).all():
            return False
        return bool((came_at[np.searchsorted(came, left)] - left_at).max(initial=0) <= self._bearable)

    def _first(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """The named frames of these rows, and the first time of each."""
        frame, time = self._frame_rows.frame[rows], self._history.rows.time[rows]
        order = np.lexsort((time, frame))
        frames, first = np.unique(frame[order], return_index=True)
        named = frames >= 0
        return frames[named], time[order][first][named]

    def _by_senders(self, loss: Loss, placed: RowsByTime, end: int) -> IntArray:
        """The rows at the senders that it heard, since it first tried to hear them."""
        group = self._membership.group[loss.stay]
        return np.concatenate([placed.within(sender, group, loss.since, end) for sender in loss.heard])

    def _until(self, loss: Loss, placed: RowsByTime, begin: int) -> IntArray:
        """The rows at the receiver itself, from a time to the loss."""
        membership = self._membership
        rows = placed.within(membership.process[loss.stay], membership.group[loss.stay], begin, self._over(loss))
        before: IntArray = rows[rows < membership.row[loss.stay]]  # it may begin again at the same instant
        return before

    def _over(self, loss: Loss) -> int:
        return self._membership.time[loss.stay]


def _changed_at(membership: Membership, promises: Promises) -> dict[int, int]:
    """By group, when its senders first went from one view to another: receivers follow, or begin again."""
    found: dict[int, int] = {}
    for stay, before in enumerate(membership.preceding):
        if before >= 0 and not promises.roles.receiving[stay]:
            group = membership.group[stay]
            found[group] = min(found.get(group, NEVER), membership.time[stay])
    return found


# -------------------------------------------------------------------------------- faults


def _undisturbed(history: History, promises: Promises, bearable: int) -> BoolArray:
    """By process and group: neither it, nor a sender, nor the links between them had a long fault."""
    calm = np.ones_like(promises.roles.onlooking)
    faults = [history.details.get(row, {}) for row in history.of_kind("fault").tolist()]
    hard = [fault for fault in faults if not _bearable(fault, bearable)]
    names = [split_process_id(who)[0] for who in history.processes]
    receives = np.zeros_like(promises.roles.onlooking)
    receives[history.stays.process[promises.roles.receiving], history.stays.group[promises.roles.receiving]] = True
    for group in range(len(history.groups)):
        sending = promises.delivers[:, group] & ~promises.roles.onlooking[:, group]
        senders = {names[process] for process in np.flatnonzero(sending).tolist()}
        for process in np.flatnonzero(receives[:, group]).tolist():
            concerned = senders | {names[process]}
            calm[process, group] = not any(_concerns(fault, concerned) for fault in hard)
    return calm


def _bearable(fault: Mapping[str, Any], bearable: int) -> bool:
    """True if a fault lasts or delays less than half the suspicion timeout, or has no effect at all."""
    kind = fault.get("kind")
    if kind == "delay":
        return _time(fault, "extra") <= bearable
    if kind == "skew":
        return fault.get("rate", 1.0) == 1.0 and abs(_time(fault, "offset")) <= bearable
    if kind in _STANDING or kind in ("partition", "cut"):
        return (
            "until" in fault and fault["until"] is not None and _time(fault, "until") - _time(fault, "at") <= bearable
        )
    return kind in ("join", "leave", "heal")


def _concerns(fault: Mapping[str, Any], processes: set[str]) -> bool:
    """True if it concerns one of these, or the link between two of them."""
    if fault.get("kind") == "partition":
        return sum(not processes.isdisjoint(side) for side in fault.get("sides", ())) > 1
    ends = [fault[key] for key in ("from", "to") if fault.get(key) is not None]
    if fault.get("kind") in _LINKS and fault.get("process") is None:
        return processes.issuperset(ends)
    return fault.get("process") is None or fault["process"] in processes


def _time(fault: Mapping[str, Any], key: str) -> int:
    return Duration.parse(fault.get(key) or "0s")
