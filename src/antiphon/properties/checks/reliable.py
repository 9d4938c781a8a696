"""O2 reliable FIFO order and O4 reliable causal order: no predecessor is left out (docs/spec/properties.md 4).

Both are judged at the moment of a delivery: a message that should have come before it had not. A message that is
missing at the end of a log, with nothing delivered after it, is a matter of liveness. A missing message is owed only
while its sender is in the views of the receiver without interruption (`spans.py`).
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from antiphon.properties.promises import Promises
from antiphon.properties.tables.codes import firsts
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.history import NEVER, Deliveries, History
from antiphon.properties.tables.membership import Accusation, Membership
from antiphon.properties.tables.past import Past
from antiphon.properties.tables.sequencers import Sequencers
from antiphon.properties.tables.spans import Spans
from antiphon.properties.tables.stability_reports import StabilityReports
from antiphon.properties.verdicts.findings import Violations, over_groups, over_run
from antiphon.properties.verdicts.verdict import Verdict, Violation

_NONE: Final = np.zeros(0, np.int64)

# -------------------------------------------------------------------------------- O2


def check_reliable_fifo(
    history: History, promises: Promises, spans: Spans, stability: StabilityReports
) -> list[Verdict]:
    """O2: before a process delivers a message, it has delivered the sender's previous one, if due (`spans.py`)."""
    asked = promises.judged_deliveries("O2")
    number, sender = history.messages.number[asked.message], history.messages.sender[asked.message]
    begin = spans.begin(spans.stay_at(_taken(history, asked, stability)), sender)
    due_from = np.minimum(spans.first_number(begin, sender), _lowest_before(history, asked, begin))
    owes: BoolArray = (begin >= 0) & (number - 1 >= due_from)
    gaps = np.flatnonzero(owes & ~_follows(history, asked))

    def describe(position: int) -> Violation:
        at = gaps[position]
        return _describe_gap(history, int(asked.row[at]), int(asked.message[at]), int(begin[at]))

    opportunities = np.bincount(asked.group[owes], minlength=len(history.groups))
    return over_groups(history, promises, "O2", opportunities, Violations(asked.row[gaps], asked.group[gaps], describe))


def _taken(history: History, asked: Deliveries, stability: StabilityReports) -> IntArray:
    """For each delivery the row whose view it belongs to: its own row, or in a private view the row of the receipt.

    A private view belongs to the protocol and is traced at once. A slow application gets the messages of older views
    later.
    """
    stay = history.stay_at(asked.row)
    private = (stay >= 0) & np.append(history.stays.private, False)[stay]
    if not private.any():
        return asked.row
    messages, arrivals = history.messages, stability.arrivals
    message = arrivals.find(asked.group, messages.sender[asked.message], messages.number[asked.message])
    first = np.full(len(message), NEVER, np.int64)
    heard = private & (message >= 0)
    first[heard] = arrivals.first_row(asked.process[heard], message[heard])
    return np.minimum(first, asked.row)


def _follows(history: History, asked: Deliveries) -> BoolArray:
    """For each delivery: whether the same process delivered the previous message of the stream before."""
    stream, number = history.messages.stream[asked.message], history.messages.number[asked.message]
    order = np.lexsort((number, stream, asked.process))
    follows = np.zeros(len(order), np.bool_)
    follows[order[1:]] = (
        (np.diff(asked.process[order]) == 0)
        & (np.diff(stream[order]) == 0)
        & (np.diff(number[order]) == 1)
        & (np.diff(asked.row[order]) > 0)
    )
    return follows


def _lowest_before(history: History, asked: Deliveries, begin: IntArray) -> IntArray:
    """The lowest number of the stream that the process delivered before, in the same run of views; NEVER if none.

    From there on, numbers grow by 1 (docs/spec/properties.md 7.1), even if the sender's log does not tell what it sent
    in which view.
    """
    stream, number = history.messages.stream[asked.message], history.messages.number[asked.message]
    order = np.lexsort((asked.row, begin, stream, asked.process))
    changes = np.zeros(len(order), np.bool_)
    for key in (begin, stream, asked.process):
        changes[1:] |= np.diff(key[order]) != 0
    run = np.cumsum(changes)
    # Each run is shifted below the previous one, so that the running minimum restarts there.
    depth = run * (int(number.max(initial=0)) + 1)
    lowest = np.minimum.accumulate(number[order] - depth) + depth
    before = np.full(len(order), NEVER, np.int64)
    before[order[1:]] = np.where(changes[1:], NEVER, lowest[:-1])
    return before


def _describe_gap(history: History, row: int, message: int, begin: int) -> Violation:
    process, sender = history.rows.process[row], history.messages.sender[message]
    who, source, name = history.process_name(process), history.process_name(sender), history.message_name(message)
    number = history.messages.number[message] - 1
    missing = f"{history.groups[history.messages.group[message]]}/{source}:{number}"
    views = history.views[history.stays.view[begin]], history.views[history.rows.view[row]]
    lasting = f"in view {views[0]}" if views[0] == views[1] else f"in every view from {views[0]} to {views[1]}"
    sentence = (
        f"{who} delivered {name} (index {history.index(row)}) but had not delivered {missing} before, "
        f"which {source} sent first; {source} was with {who} {lasting}"
    )
    return Violation(sentence, (who,), (name, missing), (history.index(row),), tuple(dict.fromkeys(views)))


# -------------------------------------------------------------------------------- O4


@dataclass(frozen=True, slots=True)
class _Losses:
    """What one process left out: causes that it never delivered, each with the first delivery that needed it."""

    cause: IntArray
    at: IntArray
    """Positions among the deliveries of the process."""
    opportunities: int


def check_reliable_causal(
    history: History, promises: Promises, past: Past, spans: Spans, membership: Membership, sequencers: Sequencers
) -> list[Verdict]:
    """O4: before a process delivers a message, it has delivered the causes in its groups, of senders in its views.

    A cause that comes later is reported by O3 (docs/spec/properties.md 7.5). O4 counts causes that never come, each
    once. Exceptions of asymmetric groups are left out (`sequencers.py`).
    """
    asked = promises.judged_deliveries("O4")
    duties = _Duties(history, promises, past, spans, _forgiven(promises, membership))
    since = duties.with_us_since(asked)
    begins = firsts(asked.process).tolist()
    causes, effects, opportunities = [_NONE], [_NONE], 0
    for begin, end in pairwise([*begins, len(asked.process)]):
        part = slice(begin, end)
        own = Deliveries(asked.row[part], asked.process[part], asked.message[part], asked.group[part])
        found = _losses(history, past, duties, own, since[part])
        causes.append(found.cause)
        effects.append(begin + found.at)
        opportunities += found.opportunities
    cause, effect = np.concatenate(causes), np.concatenate(effects)
    owed = [
        not sequencers.excuse(int(asked.process[at]), int(lost), int(asked.message[at]), int(asked.row[at]))
        for lost, at in zip(cause.tolist(), effect.tolist(), strict=True)
    ]
    cause, effect = cause[np.array(owed, np.bool_)], effect[np.array(owed, np.bool_)]

    def describe(position: int) -> Violation:
        row, caused = int(asked.row[effect[position]]), int(asked.message[effect[position]])
        return _describe_loss(history, past, int(cause[position]), caused, row)

    rows = asked.row[effect]
    return over_run(history, promises, "O4", opportunities, Violations(rows, history.rows.group[rows], describe))


_NOTHING_DUE: Final = int(np.iinfo(np.int32).max)


class _Duties:
    """What processes owe: from which message on each stream is due, while its sender stays in the view."""

    def __init__(
        self, history: History, promises: Promises, past: Past, spans: Spans, forgiven: list[Accusation]
    ) -> None:
        self._history, self._spans = history, spans
        self.promised = promises.pairs("O4")
        self.sender: IntArray = history.messages.sender[past.stream_begin]
        """By stream."""
        group = history.messages.group[past.stream_begin]
        codes = np.arange(len(history.groups))
        # Streams are sorted by group, so those of one group are adjacent.
        self._low = np.searchsorted(group, codes)
        self._high = np.searchsorted(group, codes, side="right")
        self._offset, self._due = self._due_in_stays(past)
        until = spans.end_of_formation(np.array([failure.row for failure in forgiven], np.int64)).tolist()
        self._forgiven = list(zip(forgiven, until, strict=True))

    def _due_in_stays(self, past: Past) -> tuple[IntArray, npt.NDArray[np.int32]]:
        """For each stay, the first message due of each stream of its group; and where the entries of a stay begin."""
        messages, spans, groups = self._history.messages, self._spans, self._history.stays.group
        counts = (self._high - self._low)[groups]
        offset = np.concatenate([[0], np.cumsum(counts)])
        stay = np.repeat(np.arange(len(groups)), counts)
        stream = np.repeat(self._low[groups] - offset[:-1], counts) + np.arange(int(offset[-1]))
        begin = spans.begin(stay, self.sender[stream])
        number = spans.first_number(begin, self.sender[stream])
        width = int(messages.number.max(initial=0)) + 2
        place = past.stream * width + messages.number
        due = np.searchsorted(place, stream * width + np.minimum(number, width - 1))
        return offset, np.where(number == NEVER, _NOTHING_DUE, due).astype(np.int32)

    def due(self, own: Deliveries) -> npt.NDArray[np.int32]:
        """For each delivery of one process and each stream: the first message of the stream that is due then."""
        stays, process = self._history.stays, own.process[0]
        streams = len(self.sender)
        due = np.full((len(own.row), streams), _NOTHING_DUE, np.int32)
        for stay in range(*np.searchsorted(stays.process, [process, process + 1]).tolist()):
            group, following = stays.group[stay], stays.following[stay]
            if self.promised[process, group]:
                end = min(self._spans.leave[stay], stays.row[following] if following >= 0 else NEVER)
                begin, end = np.searchsorted(own.row, [stays.row[stay], end]).tolist()
                values = self._due[self._offset[stay] : self._offset[stay + 1]]
                due[begin:end, self._low[group] : self._high[group]] = values
        self._excuse(due, own)
        return due

    def _excuse(self, due: npt.NDArray[np.int32], own: Deliveries) -> None:
        """After the confirmed failure of its sender, a cause is due in its own group only (errata-newtop.md E-64)."""
        for failure, until in self._forgiven:
            if failure.process == own.process[0]:
                low, high = self._low[failure.group], self._high[failure.group]
                later = np.flatnonzero((own.row > failure.row) & (own.row < until) & (own.group != failure.group))
                columns = np.flatnonzero(self.sender[low:high] == failure.peer)
                due[np.ix_(later, low + columns)] = _NOTHING_DUE

    def with_us_since(self, asked: Deliveries) -> IntArray:
        """For each delivery: the row since which the sender has been in view in that group without interruption.

        -1 if it was already in the first view there, unless that view was joined; NEVER if it is in no view of the
        process at that moment.
        """
        stays = self._history.stays
        stay = self._spans.stay_at(asked.row)
        begin = self._spans.begin(stay, self._history.messages.sender[asked.message])
        initial = (stays.preceding[begin] < 0) & ~stays.formed[begin]
        row = np.where(initial, -1, stays.row[begin])
        since: IntArray = np.where(begin >= 0, row, NEVER)
        return since

    def deliverable_since(self, process: int, message: IntArray) -> IntArray:
        """The row at which the process entered the view in which the message was sent; -1 if no log tells that view.

        If the process never enters that view, only the view at the delivery of the effect matters.
        """
        history, messages = self._history, self._history.messages
        send_row = messages.send_row[message]
        view = np.where(send_row >= 0, history.rows.view[send_row], -1)
        stay = self._spans.installed(np.full(len(message), process), messages.group[message], view)
        row = np.where(stay >= 0, history.stays.row[stay], NEVER - 1)
        return np.where(send_row >= 0, row, -1)


def _forgiven(promises: Promises, membership: Membership) -> list[Accusation]:
    """The `confirm` rows after which causes of the failed process are not due in other groups."""
    return [
        failure
        for failure in membership.confirmations
        if promises.service(failure.process, failure.group) in _SKIPS_FAILED
        or promises.view_change[failure.process, failure.group] in _REMOVES_LATE
    ]


_SKIPS_FAILED: Final = ("causal-fast", "causal-relative", "causal-vector")
"""Services that do not wait for messages of a member whose failure is confirmed, although it is still in view."""

_REMOVES_LATE: Final = ("remove", "closed", "halted")
"""View changes in which a failed member leaves only with a remove; other groups do not wait for that (E-31)."""


def _losses(history: History, past: Past, duties: _Duties, own: Deliveries, since: IntArray) -> _Losses:
    """One process: for each stream with messages it never delivered, the first delivery that depends on each."""
    process, messages = int(own.process[0]), history.messages
    reach, due = past.reach[own.message], duties.due(own)
    foreign = duties.sender != messages.sender[own.message][:, None]
    depends = (reach > due) & foreign & (since < NEVER)[:, None]
    lost = _never_delivered(history, duties, process)
    # A process that joined lacks all earlier messages. Leave out what was never due or has no effect here.
    stream = past.stream[lost]
    lost = lost[(lost >= due.min(axis=0)[stream]) & (lost < reach.max(axis=0)[stream])]
    stream = past.stream[lost]
    causes, at = [_NONE], [_NONE]
    for column in np.unique(stream).tolist():
        here = lost[stream == column]
        needed = _first_need(here, duties.deliverable_since(process, here), reach[:, column], due[:, column], since)
        causes.append(here[needed < len(own.row)])
        at.append(needed[needed < len(own.row)])
    return _Losses(np.concatenate(causes), np.concatenate(at), int(depends.any(axis=1).sum()))


def _never_delivered(history: History, duties: _Duties, process: int) -> IntArray:
    """The messages of the process's groups that it never delivers; unsent messages are reported by D1 alone."""
    missing: BoolArray = history.messages.known & duties.promised[process][history.messages.group]
    missing[history.first.message[history.first.process == process]] = False
    return np.flatnonzero(missing)


def _first_need(
    lost: IntArray,
    deliverable: IntArray,
    reach: npt.NDArray[np.int32],
    due: npt.NDArray[np.int32],
    since: IntArray,
) -> IntArray:
    """For each lost message of one stream, the first delivery that owes it; the number of deliveries if none does.

    Deliveries with the same `due` belong to one run of views with the sender of the lost messages. A delivery counts if
    its own sender was in view since the lost message could have come. Few values of either occur.
    """
    first = np.full(len(lost), len(reach), np.int64)
    for begin in np.unique(due[due < _NOTHING_DUE]).tolist():
        for moment in np.unique(deliverable).tolist():
            usable = (due == begin) & (since <= moment) & (since < NEVER)
            furthest = np.maximum.accumulate(np.where(usable, reach, 0))
            asked = (lost >= begin) & (deliverable == moment)
            first[asked] = np.minimum(first[asked], np.searchsorted(furthest, lost[asked], side="right"))
    return first


def _describe_loss(history: History, past: Past, cause: int, effect: int, row: int) -> Violation:
    who = history.process_name(history.rows.process[row])
    names = history.message_name(effect), history.message_name(cause)
    sentence = (
        f"{who} delivered {names[0]} (index {history.index(row)}) but never {names[1]}, "
        f"although {names[1]} happened before {names[0]} and its sender was in view: "
        + ", and ".join(past.chain(cause, effect))
    )
    return Violation(sentence, (who,), names, (history.index(row),))
