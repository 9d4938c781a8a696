"""Of those who only receive: who began, lost senders again, and whether something had kept it from following (L9).

InterGroup's receivers begin anew when they cannot follow (intergroup.md 7.7), and may: a network that is cut, a process
that stands still. Nothing in a trace says how many datagrams a network loses, so what came, and when, is the evidence.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from antiphon.properties.columns import BoolArray, IntArray
from antiphon.properties.frames import NAME, TYPE, extracted
from antiphon.properties.history import History
from antiphon.properties.membership import Membership
from antiphon.properties.promises import Promises
from antiphon.scenario.units import Duration
from antiphon.types import split_process_id

_STALL: Final = 5
"""RECV_STALL, in times of suspicion: so long a receiver that makes no progress counts (J13, J16)."""
_STANDING: Final = frozenset({"pause", "stall", "slow"})
_LINKS: Final = frozenset({"delay", "loss", "cut"})


@dataclass(frozen=True, slots=True)
class Loss:
    """A receiver has a view without senders that the one before had."""

    stay: int
    begun: int
    """The stay with which it began to hear those."""
    since: int
    """When it wanted to: it came, or had lost them."""
    heard: tuple[int, ...]
    """Whom it heard before."""
    lost: frozenset[int]


class Followers:
    """Those who promise L9 and only receive, and whom no fault kept from following."""

    def __init__(self, history: History, promises: Promises, membership: Membership) -> None:
        self._history, self._membership = history, membership
        self._bearable = membership.suspectors.bearable_ns
        self._stall = 2 * _STALL * self._bearable
        calm = _calm(history, promises, self._bearable)
        self._stays = [
            stay
            for stay in membership.asked("L9", private=True)
            if promises.onlooking[membership.process[stay], membership.group[stay]]
            and calm[membership.process[stay], membership.group[stay]]
        ]

    def beginnings(self) -> list[int]:
        """The stays with which somebody heard a first sender."""
        return [stay for stay in self._stays if self._heard(stay) and not self._heard(self._before(stay))]

    def losses(self) -> Iterator[Loss]:
        """Where somebody heard one no longer."""
        for stay in self._stays:
            heard = self._heard(self._before(stay))
            lost = heard - self._heard(stay)
            if lost:
                begun = self._begun(self._before(stay), min(lost))
                yield Loss(stay, begun, self._wanted_since(begun, min(lost)), tuple(sorted(heard)), lost)

    def needless(self, loss: Loss) -> str | None:
        """What says that nothing had kept it from following; None if something may have."""
        gone = self._told_gone(loss)
        if gone is None:
            return "all that these sent had come to it in time" if self._all_came(loss) else None
        if self._lacked_long(loss, gone) or self._unheard(loss, gone):
            return None
        return "what it lacked was gone before it could have it"

    def _before(self, stay: int) -> int:
        return self._membership.preceding[stay]

    def _heard(self, stay: int) -> frozenset[int]:
        if stay < 0:
            return frozenset()
        return frozenset(self._history.stays.senders[stay]) - {self._membership.process[stay]}

    def _begun(self, stay: int, sender: int) -> int:
        while sender in self._heard(self._before(stay)):
            stay = self._before(stay)
        return stay

    def _wanted_since(self, begun: int, sender: int) -> int:
        """When it had lost that sender before, or came."""
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

    # What came, and when

    @cached_property
    def _received(self) -> IntArray:
        return self._history.of_kind("receive")

    @cached_property
    def _types(self) -> Mapping[str, BoolArray]:
        """Which of the `receive` rows are of that type of frame."""
        told = extracted(self._history.columns.texts("detail", self._received), TYPE, "type").to_numpy(
            zero_copy_only=False
        )
        return {name: told == name for name in ("gone", "report")}

    def _at(self, rows: IntArray, process: int, group: int, begin: int, end: int) -> IntArray:
        """Those of the rows at a process in a group, in a time."""
        table = self._history.rows
        here: BoolArray = (table.process[rows] == process) & (table.group[rows] == group)
        chosen: IntArray = rows[here & (table.time[rows] >= begin) & (table.time[rows] <= end)]
        return chosen

    def _told_gone(self, loss: Loss) -> tuple[int, int] | None:
        """When it was first told that a message of one of those that it lost is gone, and by whom."""
        process, group, over = self._place(loss)
        rows = self._at(self._received[self._types["gone"]], process, group, self._membership.time[loss.begun], over)
        told = [row for row in rows.tolist() if int(self._history.rows.sender[row]) in loss.lost]
        first = min(told, key=lambda row: int(self._history.rows.time[row]), default=None)
        return None if first is None else (int(self._history.rows.time[first]), int(self._history.rows.sender[first]))

    def _lacked_long(self, loss: Loss, gone: tuple[int, int]) -> bool:
        """It had lacked a message for so long that others need not have waited for it; or there is no telling."""
        process, group, over = self._place(loss)
        rows, sends = self._history.rows, self._history.of_kind("send")
        sent = sends[np.isin(rows.process[sends], loss.heard) & (rows.group[sends] == group)]
        sent = sent[(rows.time[sent] >= loss.since) & (rows.time[sent] <= gone[0])]
        came = self._at(self._received, process, group, 0, over)
        had = {*zip(rows.sender[came].tolist(), rows.number[came].tolist(), strict=True)}
        lacked = [row for row in sent.tolist() if (int(rows.process[row]), int(rows.number[row])) not in had]
        since = int(rows.time[lacked].min()) if lacked else self._membership.time[loss.begun]
        return gone[0] - since >= self._stall // 2

    def _unheard(self, loss: Loss, gone: tuple[int, int]) -> bool:
        """Its reports had not come to that sender for a while, or not when it began."""
        process, group, _ = self._place(loss)
        begun, (told, sender) = self._membership.time[loss.begun], gone
        reports = self._at(self._received[self._types["report"]], sender, group, begun, told)
        times = self._history.rows.time[reports[self._history.rows.sender[reports] == process]]
        if not len(times) or times.min() - begun > self._bearable:
            return told - begun > self._bearable
        return bool(np.diff(np.sort(np.append(times, told))).max(initial=0) > self._stall // 2)

    def _all_came(self, loss: Loss) -> bool:
        """Every message and keep-alive of those whom it heard came, and none was under way for long."""
        process, group, over = self._place(loss)
        rows, sent = self._history.rows, self._history.of_kind("transmit")
        sent = sent[np.isin(rows.process[sent], loss.heard) & (rows.group[sent] == group)]
        sent = sent[(rows.time[sent] >= loss.since) & (rows.time[sent] <= over - self._bearable)]
        left = self._named(sent)
        came = self._named(self._at(self._received, process, group, loss.since, over))
        return all(name in came and came[name] - at <= self._bearable for name, at in left.items())

    def _named(self, rows: IntArray) -> dict[str, int]:
        """When each frame that has a name is first in these rows."""
        names = extracted(self._history.columns.texts("detail", rows), NAME, "frame").to_pylist()
        found: dict[str, int] = {}
        for name, time in zip(names, self._history.rows.time[rows].tolist(), strict=True):
            if name is not None:
                found[name] = min(time, found.get(name, time))
        return found

    def _place(self, loss: Loss) -> tuple[int, int, int]:
        membership = self._membership
        return membership.process[loss.stay], membership.group[loss.stay], membership.time[loss.stay]


# -------------------------------------------------------------------------------- faults


def _calm(history: History, promises: Promises, bearable: int) -> BoolArray:
    """By process and group: neither it, nor a sender, nor what lies between them, was kept from working for long."""
    calm = np.ones_like(promises.onlooking)
    faults = [history.details.get(row, {}) for row in history.of_kind("fault").tolist()]
    hard = [fault for fault in faults if not _bearable(fault, bearable)]
    names = [split_process_id(who)[0] for who in history.processes]
    for group in range(len(history.groups)):
        sending = promises.delivers[:, group] & ~promises.onlooking[:, group]
        senders = {names[process] for process in np.flatnonzero(sending).tolist()}
        for process in np.flatnonzero(promises.onlooking[:, group]).tolist():
            concerned = senders | {names[process]}
            calm[process, group] = not any(_concerns(fault, concerned) for fault in hard)
    return calm


def _bearable(fault: Mapping[str, Any], bearable: int) -> bool:
    """A fault that lasts, or delays, for less than half the time of suspicion; or none at all."""
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
    """It is about one of these, or about what lies between two of them."""
    if fault.get("kind") == "partition":
        return sum(not processes.isdisjoint(side) for side in fault.get("sides", ())) > 1
    ends = [fault[key] for key in ("from", "to") if fault.get(key) is not None]
    if fault.get("kind") in _LINKS and fault.get("process") is None:
        return processes.issuperset(ends)
    return fault.get("process") is None or fault["process"] in processes


def _time(fault: Mapping[str, Any], key: str) -> int:
    return Duration.parse(fault.get(key) or "0s")
