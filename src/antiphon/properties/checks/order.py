"""O1 FIFO order and O3 causal order, over all groups of a process (docs/spec/properties.md 4, 7.1 and 7.5)."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.codes import firsts, parts, sorting
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.history import Deliveries, History
from antiphon.properties.tables.past import Past
from antiphon.properties.tables.sequencers import Sequencers
from antiphon.properties.verdicts.findings import Violations, over_groups, over_run
from antiphon.properties.verdicts.verdict import Verdict, Violation

_NONE: Final = np.zeros(0, np.int64)

# -------------------------------------------------------------------------------- O1


def check_fifo(history: History, promises: Promises) -> list[Verdict]:
    """O1: messages of one sender in one group are delivered in the order in which they were sent."""
    asked = promises.judged_deliveries("O1")
    stream = history.messages.stream[asked.message]
    order = sorting(asked.process * (int(stream.max(initial=0)) + 1) + stream)  # deliveries are in the order of rows
    row, message = asked.row[order], asked.message[order]
    together = (np.diff(asked.process[order]) == 0) & (np.diff(stream[order]) == 0)
    bad = np.flatnonzero(together & (np.diff(message) < 0)) + 1

    def describe(position: int) -> Violation:
        at = bad[position]
        return _describe_overtaken(history, row[at - 1 : at + 1], message[at - 1 : at + 1])

    groups = history.rows.group[row]
    opportunities = np.bincount(groups[1:][together], minlength=len(history.groups))
    return over_groups(history, promises, "O1", opportunities, Violations(row[bad], groups[bad], describe))


def _describe_overtaken(history: History, rows: IntArray, messages: IntArray) -> Violation:
    who = history.process_name(history.rows.process[rows[0]])
    sender = history.process_name(history.messages.sender[messages[0]])
    names = [history.message_name(message) for message in messages]
    places = [history.index(row) for row in rows]
    sentence = (
        f"{who} delivered {names[0]} (index {places[0]}) before {names[1]} (index {places[1]}), "
        f"but {sender} sent {names[1]} first"
    )
    return Violation(sentence, (who, who), tuple(names), tuple(places))


# -------------------------------------------------------------------------------- O3


@dataclass(frozen=True, slots=True)
class _Inversions:
    """The deliveries of one process that violate causal order."""

    late: IntArray
    """Positions of the deliveries that came after one of their effects."""
    opportunities: int


def check_causal(history: History, promises: Promises, past: Past, sequencers: Sequencers) -> list[Verdict]:
    """O3: of two messages that a process delivers, the cause comes first, across groups too.

    Exceptions of asymmetric groups are left out (`sequencers.py`).
    """
    asked = promises.judged_deliveries("O3")
    begins = firsts(asked.process).tolist()
    late, opportunities = [_NONE], 0
    for begin, end in pairwise([*begins, len(asked.process)]):
        found = _inversions(history, past, asked.message[begin:end])
        late.append(begin + found.late)
        opportunities += found.opportunities
    positions = np.array(
        [at for at in np.concatenate(late).tolist() if not _excused(past, asked, sequencers, at)], np.int64
    )

    def describe(position: int) -> Violation:
        return _describe_inversion(history, past, asked, int(positions[position]))

    rows = asked.row[positions]
    return over_run(history, promises, "O3", opportunities, Violations(rows, history.rows.group[rows], describe))


def _inversions(history: History, past: Past, message: IntArray) -> _Inversions:
    """Compare each delivery of one process with the running maximum of the pasts before it."""
    stream, sender = past.stream[message], history.messages.sender[message]
    depends: BoolArray = np.zeros(len(message), np.bool_)
    late = [_NONE]
    for column, at in parts(stream):
        reach = past.reach[message, column]
        depends |= (reach > message[at].min()) & (sender != sender[at[0]])
        before = np.concatenate([[0], np.maximum.accumulate(reach)[:-1]])
        late.append(at[before[at] > message[at]])
    return _Inversions(np.sort(np.concatenate(late)), int(depends.sum()))


def _excused(past: Past, asked: Deliveries, sequencers: Sequencers, late: int) -> bool:
    """True if none of the effects delivered before it had to wait for it."""
    return all(
        sequencers.excuse(
            int(asked.process[late]), int(asked.message[late]), int(asked.message[early]), int(asked.row[early])
        )
        for early in _effects(past, asked, late)
    )


def _effects(past: Past, asked: Deliveries, late: int) -> IntArray:
    """The earlier deliveries of the same process that are effects of this one."""
    cause = int(asked.message[late])
    begin = np.searchsorted(asked.process, asked.process[late])
    effects: IntArray = begin + np.flatnonzero(past.reach[asked.message[begin:late], past.stream[cause]] > cause)
    return effects


def _describe_inversion(history: History, past: Past, asked: Deliveries, late: int) -> Violation:
    """Names the late message, the nearest effect delivered before it, and the chain that links them."""
    cause, process = int(asked.message[late]), asked.process[late]
    early = _effects(past, asked, late)[-1]
    effect = int(asked.message[early])
    who, names = history.process_name(process), (history.message_name(effect), history.message_name(cause))
    places = (history.index(asked.row[early]), history.index(asked.row[late]))
    sentence = (
        f"{who} delivered {names[0]} (index {places[0]}) before {names[1]} (index {places[1]}), "
        f"but {names[1]} happened before {names[0]}: " + ", and ".join(past.chain(cause, effect))
    )
    return Violation(sentence, (who, who), names, places)
