"""S6 connected: a sender and a receiver that are both present count each other until one of them goes (Berket98 §6).

docs/spec/stability.md 4 asks this of R_s and S_r, the receivers and senders
that private views name. S1, L2 and L6 rely on the peers that a process itself counts. Here the counting is compared
with what is known from outside: which process was configured to send to which (`start` rows), and which process came,
left or crashed.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from antiphon.errors import TraceError
from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import BoolArray
from antiphon.properties.tables.history import History
from antiphon.properties.tables.quiet_end import last_stays, stable_members
from antiphon.properties.verdicts.findings import Violations, no_opportunity, over_groups
from antiphon.properties.verdicts.verdict import Verdict, Violation
from antiphon.types import split_process_id

_Side = Literal["receivers", "senders"]
_SIDES: Final[tuple[_Side, ...]] = ("receivers", "senders")
_ROLES: Final = ("both", "sender", "receiver")


@dataclass(frozen=True, slots=True)
class _Loss:
    """A process stops counting a peer: the view of this stay no longer names it."""

    stay: int
    side: _Side
    peer: int
    times: int
    """How often the process has stopped counting this peer, including this time."""
    departures: int
    """How often one of the two had left or crashed by then."""

    @property
    def unfounded(self) -> bool:
        return self.times > self.departures


@dataclass(frozen=True, slots=True)
class _Tie:
    """A process that must count a peer at a quiet end."""

    process: int
    group: int
    side: _Side
    peer: int


def check_connected(history: History, promises: Promises) -> list[Verdict]:
    """S6: a peer is dropped only after one of the two went; at a quiet end, all that are present count each other.

    One departure justifies one loss. It may come before the peer was counted, because the news of it may still have
    been on its way.
    """
    if not promises.groups("S6").any():
        return no_opportunity(history, promises, "S6")
    losses = _losses(history, promises.pairs("S6"))
    ties = _ties(history, promises) if history.world.quiet else []
    unfounded = [loss for loss in losses if loss.unfounded]
    last = last_stays(history)
    untied = [tie for tie in ties if tie.peer not in _counted(history, last.get((tie.process, tie.group)), tie.side)]

    def describe(position: int) -> Violation:
        if position < len(unfounded):
            return _describe_loss(history, unfounded[position])
        tie = untied[position - len(unfounded)]
        return _describe_tie(history, tie, last.get((tie.process, tie.group)))

    stays, logs = history.stays, history.logs
    rows = [*(int(stays.row[loss.stay]) for loss in unfounded), *(int(logs.end[tie.process]) - 1 for tie in untied)]
    groups = [*(int(stays.group[loss.stay]) for loss in unfounded), *(tie.group for tie in untied)]
    asked = [*(int(stays.group[loss.stay]) for loss in losses), *(tie.group for tie in ties)]
    opportunities = np.bincount(np.array(asked, np.int64), minlength=len(history.groups))
    broken = Violations(np.array(rows, np.int64), np.array(groups, np.int64), describe)
    return over_groups(history, promises, "S6", opportunities, broken)


# -------------------------------------------------------------------------------- at any time


def _losses(history: History, promised: BoolArray) -> list[_Loss]:
    """Each peer that was counted in a private view but is missing in the next one, in the order of rows."""
    stays, departures = history.stays, _Departures(history)
    times: Counter[tuple[int, int, _Side, int]] = Counter()
    found = []
    private = np.flatnonzero(stays.private & (stays.preceding >= 0) & promised[stays.process, stays.group])
    for stay in private.tolist():
        process, group, before = int(stays.process[stay]), int(stays.group[stay]), int(stays.preceding[stay])
        now = int(history.rows.time[stays.row[stay]])
        for side in _SIDES if stays.private[before] else ():
            gone = {*_counted(history, before, side)}.difference(_counted(history, stay, side), [process])
            for peer in sorted(gone):
                times[process, group, side, peer] += 1
                known = departures.until(process, group, now) + departures.until(peer, group, now)
                found.append(_Loss(stay, side, peer, times[process, group, side, peer], known))
    return found


class _Departures:
    """When each process left a group, or crashed."""

    def __init__(self, history: History) -> None:
        rows = history.rows
        self._times: dict[tuple[int, int], list[int]] = {}
        for row in history.of_kind("leave", "crash").tolist():
            # A crash is a departure from all groups.
            groups = range(len(history.groups)) if rows.group[row] < 0 else [int(rows.group[row])]
            for group in groups:
                self._times.setdefault((int(rows.process[row]), group), []).append(int(rows.time[row]))
        for times in self._times.values():
            times.sort()

    def until(self, process: int, group: int, time: int) -> int:
        """The number of departures up to that time, inclusive."""
        return bisect_right(self._times.get((process, group), ()), time)


def _counted(history: History, stay: int | None, side: _Side) -> tuple[int, ...]:
    """The peers that a process counts in the view of that stay; none if there is no stay."""
    if stay is None:
        return ()
    return history.stays.receivers[stay] if side == "receivers" else history.stays.senders[stay]


def _describe_loss(history: History, loss: _Loss) -> Violation:
    stays = history.stays
    who, peer = history.process_name(stays.process[loss.stay]), history.process_name(loss.peer)
    view, index = history.views[stays.view[loss.stay]], history.index(stays.row[loss.stay])
    if loss.departures:
        often, why = f" {loss.times} times, last", f"by then the two had left or crashed only {_times(loss.departures)}"
    else:
        often, why = "", "neither of them had left or crashed by then"
    sentence = f"{who} stopped counting {peer} among its {loss.side}{often} with view {view} (index {index}), but {why}"
    return Violation(sentence, (who,), (), (index,), (view,))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


# -------------------------------------------------------------------------------- at a quiet end


@dataclass(frozen=True, slots=True)
class _Role:
    """What a process was configured to do in a group."""

    sends: bool
    receives: bool
    sources: frozenset[str] | None
    """Names of the processes from which it receives; None for all."""


def _ties(history: History, promises: Promises) -> list[_Tie]:
    """The ties of each configured pair that is present at the end: each must count the other.

    A process whose `start` row does not tell its role, as in old traces, is not judged.
    """
    stable, component = stable_members(history, promises, "S6"), history.world.component
    present: dict[int, list[tuple[int, _Role]]] = {}
    for process, group, role in _roles(history):
        if stable[process, group]:
            present.setdefault(group, []).append((process, role))
    found = []
    for group, roles in present.items():
        receivers = [(process, role.sources) for process, role in roles if role.receives]
        for sender in (process for process, role in roles if role.sends):
            name = split_process_id(history.processes[sender])[0]
            for receiver, sources in receivers:
                together = receiver != sender and component[receiver] == component[sender]
                if together and (sources is None or name in sources):
                    found += [_Tie(sender, group, "receivers", receiver), _Tie(receiver, group, "senders", sender)]
    return found


def _roles(history: History) -> Iterable[tuple[int, int, _Role]]:
    code_of = {group: code for code, group in enumerate(history.groups)}
    for row in history.of_kind("start").tolist():
        process = int(history.rows.process[row])
        for group, entry in history.details[row].get("groups", {}).items():
            if group in code_of and isinstance(entry, dict) and "role" in entry:
                yield process, code_of[group], _role(history.process_name(process), entry)


def _role(who: str, entry: dict[str, Any]) -> _Role:
    role, sources = entry["role"], entry.get("sources")
    if role not in _ROLES:
        raise TraceError(f"the start row of {who} has an unknown role; expected one of {', '.join(_ROLES)}")
    if sources is not None and not (isinstance(sources, list) and all(isinstance(name, str) for name in sources)):
        raise TraceError(f"the start row of {who}: `sources` is not a list of processes")
    named = None if sources is None else frozenset(sources)
    return _Role(sends=role != "receiver", receives=role != "sender", sources=named)


def _describe_tie(history: History, tie: _Tie, last: int | None) -> Violation:
    who, peer, group = history.process_name(tie.process), history.process_name(tie.peer), history.groups[tie.group]
    sender, receiver = (who, peer) if tie.side == "receivers" else (peer, who)
    both = f"{sender}, which sends to {receiver}, and {receiver} were both in {group} when the run ended quiet"
    if last is None:
        index = history.index(history.logs.end[tie.process] - 1)
        return Violation(f"{both}, but {who} never installed a view there", (who,), (), (index,))
    view, index = history.views[history.stays.view[last]], history.index(history.stays.row[last])
    sentence = f"{both}, but {who} did not count {peer} among its {tie.side} in its last view {view} (index {index})"
    return Violation(sentence, (who,), (), (index,), (view,))
