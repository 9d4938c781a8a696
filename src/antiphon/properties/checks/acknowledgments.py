"""S5: an acknowledgment counts only for senders that its author knew (docs/spec/properties.md 5; Berket98 §6).

An acknowledgment covers the senders that its author knew when it was transmitted; its `transmit` row names them. If a
sender is missing there, the smallest timestamp says nothing about it, and a message that it considers stable may be
lost (Fig. 4). Transitive acknowledgments travel on data and null frames. Those of InterGroup senders travel on data and
keep-alive frames. Such frames name the senders in the same way.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from antiphon.errors import TraceError
from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.history import History
from antiphon.properties.verdicts.findings import Violations, no_opportunity, over_groups
from antiphon.properties.verdicts.verdict import Verdict, Violation


@dataclass(frozen=True, slots=True)
class _Counted:
    """Acknowledgments that a process received from one of its receivers."""

    receive_row: IntArray
    transmit_row: IntArray
    missing: IntArray
    """A sender that the acknowledgment should cover but does not; -1 if there is none."""


def check_acknowledgers(history: History, promises: Promises) -> list[Verdict]:
    """S5: an acknowledgment that a process counts comes from a peer that had this process among its senders.

    An acknowledgment counts if its author is a receiver of the current view. Where processes learn about the stability
    of all messages, it must cover every sender of that view. Its author is always covered.
    """
    if not promises.groups("S5").any():
        return no_opportunity(history, promises, "S5")
    counted = _counted(history, promises)
    bad = np.flatnonzero(counted.missing >= 0)

    def describe(position: int) -> Violation:
        at = bad[position]
        return _describe(
            history, *(int(column[at]) for column in (counted.receive_row, counted.transmit_row, counted.missing))
        )

    groups = history.rows.group[counted.receive_row]
    broken = Violations(counted.receive_row[bad], groups[bad], describe)
    return over_groups(history, promises, "S5", np.bincount(groups, minlength=len(history.groups)), broken)


def _counted(history: History, promises: Promises) -> _Counted:
    rows, promised = history.rows, promises.pairs("S5")
    # Only groups in which a process counts acknowledgments matter: do not parse the details of the others.
    asking = np.zeros(len(history.groups) + 1, np.bool_)
    asking[:-1] = promises.groups("S5")
    sent, received = (_acknowledgments(history, kind, asking) for kind in ("transmit", "receive"))
    names = history.columns.typed.frames(sent)
    _require(history, sent[names < 0], "gives it no name")
    mine = promised[rows.process[received], rows.group[received]]
    at = _first_of_that_name(names, history.columns.typed.frames(received))
    # A frame transmitted after the end of a crashed log is unknown, and therefore excused.
    mine &= at >= 0
    received, at = received[mine], at[mine]
    # Where processes change between sending and receiving, only an acknowledgment of the same view counts.
    changing = promises.of_family(lambda promised: promised.onlookers)[rows.process[received]]
    same = ~changing | (rows.view[received] == rows.view[sent[at]])
    received, at = received[same], at[same]
    code, sets = history.columns.typed.senders(sent)
    _require(history, sent[at[code[at] < 0]], "does not say for which senders")
    missing = _missing(history, promises, received, rows.process[sent[at]], code[at], sets)
    counted = missing > _NOT_COUNTED
    return _Counted(received[counted], sent[at[counted]], missing[counted])


def _acknowledgments(history: History, kind: str, asking: BoolArray) -> IntArray:
    """The rows of that kind whose frame acknowledges something.

    A transmitted data or null frame that names no senders acknowledges nothing. For a received one, this is decided
    later by its name.
    """
    rows, typed = history.of_kind(kind), history.columns.typed
    rows = rows[asking[history.rows.group[rows]]]
    rides = typed.is_of_type(rows, ("data", "null", "keep-alive"))
    if kind == "transmit":
        rides[rides] = typed.senders(rows[rides])[0] >= 0
    return rows[typed.is_of_type(rows, ("acknowledgment",)) | rides]


def _first_of_that_name(names: IntArray, asked: IntArray) -> IntArray:
    """For each name that is asked for, its first place among the others; -1 if it is not there."""
    place = np.full(int(max(names.max(initial=-1), asked.max(initial=-1))) + 2, -1, np.int64)
    place[names[::-1]] = np.arange(len(names))[::-1]  # backwards, so that the first wins
    place[-1] = -1
    return place[asked]


_NOT_COUNTED: Final = -2


def _missing(
    history: History,
    promises: Promises,
    received: IntArray,
    acknowledger: IntArray,
    said: IntArray,
    sets: list[list[str]],
) -> IntArray:
    """For each receipt, a sender that is missing; -1 if none is missing, -2 if the acknowledgment does not count."""
    stays, stay = history.stays, history.stay_at(received)
    code_of: dict[str, int] = {who: code for code, who in enumerate(history.processes)}
    senders = [frozenset(code_of[who] for who in each if who in code_of) for each in sets]
    keys = np.stack([stay, acknowledger, said], axis=1)
    # A few pairs of sender set and view cover a great many receipts.
    cases, case = np.unique(keys, axis=0, return_inverse=True)
    answers = []
    for here, peer, of in cases.tolist():
        if here < 0 or peer not in stays.receivers[here] or promises.roles.receiving[here]:
            answers.append(_NOT_COUNTED)
            continue
        process = int(stays.process[here])
        needed = {process, *(stays.senders[here] if promises.learns_all[process] else ())}
        answers.append(min(needed - senders[of] - {peer}, default=-1))
    return np.array(answers, np.int64)[case.ravel()]


def _require(history: History, flawed: IntArray, what: str) -> None:
    """A trace that does not contain this cannot be judged, and must not pass."""
    for row in flawed[:1].tolist():
        who, index = history.process_name(history.rows.process[row]), history.index(row)
        raise TraceError(f"{who} at index {index} transmits an acknowledgment and {what}")


def _describe(history: History, receive_row: int, transmit_row: int, missing: int) -> Violation:
    rows, stay = history.rows, int(history.stay_at(np.array([receive_row]))[0])
    who, peer = history.process_name(rows.process[receive_row]), history.process_name(rows.process[transmit_row])
    view, lacking = history.views[history.stays.view[stay]], history.process_name(missing)
    places = (history.index(receive_row), history.index(transmit_row))
    about = "it" if lacking == who else f"{lacking}, a sender of view {view},"
    sentence = (
        f"{who} received an acknowledgment from {peer} (index {places[0]}), its receiver in view {view}, but {peer} "
        f"did not have {about} among its senders when it transmitted it (index {places[1]})"
    )
    return Violation(sentence, (who, peer), (), places, (view,))
