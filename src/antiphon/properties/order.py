"""O1 FIFO order and O3 causal order, over all groups of a process (properties.md 4, 7.1 and 7.5)."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from antiphon.properties.causality import Causality
from antiphon.properties.columns import BoolArray, IntArray
from antiphon.properties.findings import Broken, over_groups, over_run
from antiphon.properties.history import Deliveries, History
from antiphon.properties.promises import Promises
from antiphon.properties.verdict import Verdict, Violation

_NONE: Final = np.zeros(0, np.int64)

# -------------------------------------------------------------------------------- O1


def check_fifo(history: History, promises: Promises) -> list[Verdict]:
    """O1: messages of one sender in one group are delivered in the order in which they were sent."""
    asked = _asked(history, promises, "O1")
    stream = history.messages.stream[asked.message]
    order = np.lexsort((asked.row, stream, asked.process))
    row, message = asked.row[order], asked.message[order]
    together = (np.diff(asked.process[order]) == 0) & (np.diff(stream[order]) == 0)
    bad = np.flatnonzero(together & (np.diff(message) < 0)) + 1

    def tell(position: int) -> Violation:
        at = bad[position]
        return _tell_overtaken(history, row[at - 1 : at + 1], message[at - 1 : at + 1])

    groups = history.rows.group[row]
    opportunities = np.bincount(groups[1:][together], minlength=len(history.groups))
    return over_groups(history, promises, "O1", opportunities, Broken(row[bad], groups[bad], tell))


def _asked(history: History, promises: Promises, property_id: str) -> Deliveries:
    """The first deliveries under the promise; of what nobody sent, D1 speaks alone."""
    first = history.first
    return first.where(promises.deliveries(property_id) & history.messages.known[first.message])


def _tell_overtaken(history: History, rows: IntArray, messages: IntArray) -> Violation:
    who = history.process_name(history.rows.process[rows[0]])
    sender = history.process_name(history.messages.sender[messages[0]])
    names = [history.message_name(message) for message in messages]
    places = [history.index(row) for row in rows]
    sentence = (
        f"{who} delivered {names[0]} (index {places[0]}) before {names[1]} (index {places[1]}), "
        f"yet {sender} sent {names[1]} first"
    )
    return Violation(sentence, (who, who), tuple(names), tuple(places))


# -------------------------------------------------------------------------------- O3


class Past:
    """For each message, how far its past reaches into each stream: what 7.5 calls the map of dependencies.

    `reach[m, c]` is one more than the code of the last message of stream c that is m or happened before m,
    0 if there is none. Codes of a stream grow with the number, and all lower numbers of a sender are in the
    past too, so x -> m exactly if x < reach[m, stream of x], for x other than m.
    """

    def __init__(self, history: History, causality: Causality) -> None:
        self.stream = history.messages.stream
        streams = int(self.stream.max(initial=-1)) + 1
        self.reach: npt.NDArray[np.int32] = np.zeros((len(self.stream), streams), np.int32)
        self._carry(history, causality)

    def _carry(self, history: History, causality: Causality) -> None:
        """In causal order, each send takes over what its process sent and delivered since its last send."""
        reach, message = self.reach, causality.message
        begins = _previous_sends(history, causality).tolist()
        sent, stream = message.tolist(), self.stream.tolist()
        for event in causality.order:
            begin, this = begins[event], sent[event]
            if event - begin == 1:
                reach[this] = reach[sent[begin]]
            elif event > begin:
                reach[message[begin:event]].max(axis=0, out=reach[this])
            reach[this, stream[this]] = this + 1


def _previous_sends(history: History, causality: Causality) -> IntArray:
    """For each event the last send before it in the same log, else the first event of that log."""
    events = np.arange(len(causality.row))
    log_begin = np.searchsorted(causality.row, history.logs.begin)[history.rows.process[causality.row]]
    last_send = np.maximum.accumulate(np.where(causality.sending, events, -1))
    before = np.concatenate([[-1], last_send[:-1]]) if len(events) else last_send
    previous: IntArray = np.maximum(before, log_begin)
    return previous


@dataclass(frozen=True, slots=True)
class _Inversions:
    """What one process delivered against causal order."""

    late: IntArray
    """Positions of the deliveries that came after one of their consequences."""
    opportunities: int


def check_causal(history: History, promises: Promises, causality: Causality) -> list[Verdict]:
    """O3: of two messages that a process delivers, the cause comes first, across groups too."""
    asked = _asked(history, promises, "O3")
    past = Past(history, causality)
    begins = np.unique(asked.process, return_index=True)[1].tolist()
    late, opportunities = [_NONE], 0
    for begin, end in pairwise([*begins, len(asked.process)]):
        found = _inversions(history, past, asked.message[begin:end])
        late.append(begin + found.late)
        opportunities += found.opportunities
    positions = np.concatenate(late)

    def tell(position: int) -> Violation:
        return _tell_inversion(history, causality, past, asked, int(positions[position]))

    rows = asked.row[positions]
    return over_run(history, promises, "O3", opportunities, Broken(rows, history.rows.group[rows], tell))


def _inversions(history: History, past: Past, message: IntArray) -> _Inversions:
    """One process's deliveries in order: compare each with the running maximum of the pasts before it."""
    stream, sender = past.stream[message], history.messages.sender[message]
    by_stream = np.argsort(stream, kind="stable")
    columns, begin = np.unique(stream[by_stream], return_index=True)
    depends: BoolArray = np.zeros(len(message), np.bool_)
    late = [_NONE]
    for column, at in zip(columns, np.split(by_stream, begin[1:]), strict=True):
        reach = past.reach[message, column]
        depends |= (reach > message[at].min()) & (sender != sender[at[0]])
        before = np.concatenate([[0], np.maximum.accumulate(reach)[:-1]])
        late.append(at[before[at] > message[at]])
    return _Inversions(np.sort(np.concatenate(late)), int(depends.sum()))


def _tell_inversion(history: History, causality: Causality, past: Past, asked: Deliveries, late: int) -> Violation:
    """The late message, the nearest consequence delivered before it, and the chain that links them."""
    cause, process = int(asked.message[late]), asked.process[late]
    begin = np.searchsorted(asked.process, process)
    reach = past.reach[asked.message[begin:late], past.stream[cause]]
    early = begin + np.flatnonzero(reach > cause)[-1]
    effect = int(asked.message[early])
    who, names = history.process_name(process), (history.message_name(effect), history.message_name(cause))
    places = (history.index(asked.row[early]), history.index(asked.row[late]))
    sentence = (
        f"{who} delivered {names[0]} (index {places[0]}) before {names[1]} (index {places[1]}), "
        f"yet {names[1]} happened before {names[0]}: " + ", and ".join(_chain(history, causality, past, cause, effect))
    )
    return Violation(sentence, (who, who), names, places)


def _chain(history: History, causality: Causality, past: Past, cause: int, effect: int) -> list[str]:
    """Why cause -> effect, one step per process, from the cause on."""
    messages, steps = history.messages, []
    while messages.sender[cause] != messages.sender[effect]:
        logged = messages.send_row[effect] >= 0
        send_row = messages.send_row[effect] if logged else history.logs.end[messages.sender[effect]] - 1
        begin = np.searchsorted(causality.row, history.logs.begin[messages.sender[effect]])
        through = causality.message[begin : np.searchsorted(causality.row, send_row)]
        # The first event of that log with the cause in its past is a delivery: a send hands on what it has.
        at = int(begin + np.flatnonzero(past.reach[through, past.stream[cause]] > cause)[0])
        carrier, row = int(causality.message[at]), causality.row[at]
        steps.append(
            f"{history.process_name(messages.sender[effect])} delivered {history.message_name(carrier)} "
            f"(index {history.index(row)}) before it sent {history.message_name(effect)} "
            + (f"(index {history.index(send_row)})" if logged else "(beyond the end of its log)")
        )
        effect = carrier
    if cause != effect:
        sender = history.process_name(messages.sender[cause])
        steps.append(f"{sender} sent {history.message_name(cause)} before {history.message_name(effect)}")
    return steps[::-1]
