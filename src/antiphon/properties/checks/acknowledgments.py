"""S5: whoever acknowledges knows the sender that counts it (docs/spec/properties.md 5; Berket98 §6).

An acknowledgment speaks for the senders that its process had in mind when it left: its `transmit` row names them. If
one is missing there, the smallest timestamp says nothing about it, and what it takes for stable may be lost (Fig. 4).
Transitive acknowledgments ride on data and null frames, and those of InterGroup's senders on data and keep-alives:
these then name the senders likewise.
"""

import json
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.errors import TraceError
from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.frames import NAME, TYPE, extracted
from antiphon.properties.tables.history import History
from antiphon.properties.verdicts.findings import Broken, nothing_asked, over_groups
from antiphon.properties.verdicts.verdict import Verdict, Violation

_SENDERS: Final = r'"senders":\s*(?P<senders>\[\s*(?:"(?:[^"\\]|\\.)*"\s*,?\s*)*\])'


@dataclass(frozen=True, slots=True)
class _Counted:
    """Acknowledgments that somebody received of one of its receivers."""

    receive_row: IntArray
    transmit_row: IntArray
    missing: IntArray
    """A sender that the acknowledgment does not speak for and had to, -1 if there is none."""


def check_acknowledgers(history: History, promises: Promises) -> list[Verdict]:
    """S5: an acknowledgment that a process counts was sent by one that had it among its senders.

    Counted is what comes from a receiver of the view in force. Where processes find out about everybody's messages,
    every sender of that view must be among them; the acknowledger itself always is.
    """
    if not promises.groups("S5").any():
        return nothing_asked(history, promises, "S5")
    counted = _counted(history, promises)
    bad = np.flatnonzero(counted.missing >= 0)

    def tell(position: int) -> Violation:
        at = bad[position]
        return _tell(
            history, *(int(column[at]) for column in (counted.receive_row, counted.transmit_row, counted.missing))
        )

    groups = history.rows.group[counted.receive_row]
    broken = Broken(counted.receive_row[bad], groups[bad], tell)
    return over_groups(history, promises, "S5", np.bincount(groups, minlength=len(history.groups)), broken)


def _counted(history: History, promises: Promises) -> _Counted:
    rows, promised = history.rows, promises.pairs("S5")
    # Whoever counts an acknowledgment asks; only then are the details of thousands of rows looked at.
    asking = np.zeros(len(history.groups) + 1, np.bool_)
    asking[:-1] = promises.groups("S5")
    sent, sent_names, sent_texts = _acknowledgments(history, "transmit", asking)
    unnamed = np.asarray(pc.is_null(sent_names).to_numpy(zero_copy_only=False), np.bool_)
    _require(history, sent[unnamed], "gives it no name")
    received, received_names, _ = _acknowledgments(history, "receive", asking)
    mine = promised[rows.process[received], rows.group[received]]
    found = pc.fill_null(pc.index_in(received_names, sent_names, skip_nulls=True), -1)
    at = np.asarray(found.to_numpy(zero_copy_only=False), np.int64)
    # What left beyond the end of a crashed log is not known, and excused.
    mine &= at >= 0
    received, at = received[mine], at[mine]
    texts = pc.dictionary_encode(extracted(sent_texts, _SENDERS, "senders"))
    text = np.asarray(pc.fill_null(texts.indices, -1).to_numpy(zero_copy_only=False), np.int64)[at]
    _require(history, sent[at[text < 0]], "does not say for which senders")
    missing = _missing(history, promises, received, rows.process[sent[at]], text, texts.dictionary.to_pylist())
    counted = missing > _NOT_COUNTED
    return _Counted(received[counted], sent[at[counted]], missing[counted])


def _acknowledgments(history: History, kind: str, asking: BoolArray) -> tuple[IntArray, pa.Array, pa.Array]:
    """The rows of that kind with a frame that acknowledges, the names of the frames, and the whole details.

    A data or null frame that is transmitted without senders carries nothing; whether one that is received does, its
    name tells later.
    """
    rows = history.of_kind(kind)
    rows = rows[asking[history.rows.group[rows]]]
    # One text serves all receivers of a frame; take each text apart once.
    details = pc.dictionary_encode(history.columns.texts("detail", rows))
    texts = details.dictionary
    of_type = extracted(texts, TYPE, "type")
    acknowledges = pc.is_in(of_type, pa.array(["acknowledgment"]))
    rides = pc.is_in(of_type, pa.array(["data", "null", "keep-alive"]))
    if kind == "transmit":
        rides = pc.and_(rides, pc.is_valid(extracted(texts, _SENDERS, "senders")))
    chosen = pc.fill_null(pc.or_(acknowledges, rides).take(details.indices), fill_value=False)
    place = details.indices.filter(chosen)
    names = extracted(texts, NAME, "frame").take(place)
    return rows[np.asarray(chosen.to_numpy(zero_copy_only=False), np.bool_)], names, texts.take(place)


_NOT_COUNTED: Final = -2


def _missing(
    history: History, promises: Promises, received: IntArray, acknowledger: IntArray, text: IntArray, texts: list[str]
) -> IntArray:
    """By receipt a sender that is missing, -1 if none is, -2 if the acknowledgment does not count."""
    stays, stay = history.stays, history.stay_at(received)
    code_of: dict[str, int] = {who: code for code, who in enumerate(history.processes)}
    senders = [frozenset(code_of[who] for who in json.loads(each) if who in code_of) for each in texts]
    keys = np.stack([stay, acknowledger, text], axis=1)
    # One sender set and one view serve a great many receipts.
    cases, case = np.unique(keys, axis=0, return_inverse=True)
    answers = []
    for here, peer, said in cases.tolist():
        if here < 0 or peer not in stays.receivers[here]:
            answers.append(_NOT_COUNTED)
            continue
        process = int(stays.process[here])
        needed = {process, *(stays.senders[here] if promises.learns_all[process] else ())}
        answers.append(min(needed - senders[said] - {peer}, default=-1))
    return np.array(answers, np.int64)[case.ravel()]


def _require(history: History, flawed: IntArray, what: str) -> None:
    """A trace that does not say it cannot be judged, and must not pass for that."""
    for row in flawed[:1].tolist():
        who, index = history.process_name(history.rows.process[row]), history.index(row)
        raise TraceError(f"{who} at index {index} transmits an acknowledgment and {what}")


def _tell(history: History, receive_row: int, transmit_row: int, missing: int) -> Violation:
    rows, stay = history.rows, int(history.stay_at(np.array([receive_row]))[0])
    who, peer = history.process_name(rows.process[receive_row]), history.process_name(rows.process[transmit_row])
    view, lacking = history.views[history.stays.view[stay]], history.process_name(missing)
    places = (history.index(receive_row), history.index(transmit_row))
    about = "it" if lacking == who else f"{lacking}, a sender of view {view},"
    sentence = (
        f"{who} received an acknowledgment of {peer} (index {places[0]}), its receiver in view {view}, and {peer} did "
        f"not have {about} among its senders when it sent it (index {places[1]})"
    )
    return Violation(sentence, (who, peer), (), places, (view,))
