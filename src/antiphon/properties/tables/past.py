"""The causal past of each message, carried along the sends of a run (docs/spec/properties.md 7.5), and its chains.

A chain of causes may pass through groups that a receiver is not in. So the map of dependencies is complete,
for all streams of the run, and a checker reads only the streams of the receiver's groups. If groups are ordered
independently, a chain does not leave its group: what a process did in another group is not part of the past.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from antiphon.properties.promises import Promises
from antiphon.properties.tables.causality import Causality
from antiphon.properties.tables.codes import firsts, parts
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.history import History


@dataclass(frozen=True, slots=True)
class _Logs:
    """The events of a run, log by log; a process has one log for each set of groups with a common order."""

    log: IntArray
    row: IntArray
    message: IntArray
    sending: BoolArray
    place: IntArray
    """Log and row in one number, which grows along all events."""

    def find(self, log: int | np.int64, row: int | np.int64, width: int) -> int:
        """The position of a row of a log among the events, or where it would be."""
        return int(np.searchsorted(self.place, log * width + row))


class Pasts:
    """The past of each message, in the sense of each property."""

    def __init__(self, history: History, promises: Promises, causality: Causality) -> None:
        self._history, self._promises, self._causality = history, promises, causality
        self._known: dict[tuple[bool, tuple[int, ...]], Past] = {}

    def of(self, property_id: str) -> "Past":
        """The past within the groups that are held to one order.

        For O4, where each process chooses its own service, causes are not followed through a process that delivers
        earlier than the group's order: a change of the view may remove what only such a process delivered.
        """
        realms = self._promises.realms(property_id)
        early = self._promises.hurries & (property_id == "O4")
        # Only the partition of the groups matters, not its numbering.
        key = bool(early.any()), tuple(np.unique(realms, return_inverse=True)[1].tolist())
        if key not in self._known:
            self._known[key] = Past(self._history, self._without(early), realms)
        return self._known[key]

    def _without(self, early: BoolArray) -> Causality:
        """The events without the deliveries of these processes in these groups."""
        every, history = self._causality, self._history
        process, group = history.rows.process[every.row], history.messages.group[every.message]
        kept = every.sending | ~early[process, group]
        return (
            every if kept.all() else Causality(every.row[kept], every.message[kept], every.sending[kept], every.circles)
        )


class Past:
    """For each message, how far its past reaches into each stream: the map of dependencies of 7.5.

    `reach[m, c]` is one more than the code of the last message of stream c that is m or happened before m, 0 if there
    is none. Codes of a stream grow with the number, and all lower numbers of a sender are in the past too. So x -> m
    exactly if x < reach[m, stream of x], for x other than m.
    """

    def __init__(self, history: History, causality: Causality, realm: IntArray) -> None:
        """`realm` is by group: causes are followed only within groups with the same number."""
        self.stream = history.messages.stream
        self.stream_begin = firsts(self.stream)
        """The first message of each stream."""
        self.reach: npt.NDArray[np.int32] = np.zeros((len(self.stream), len(self.stream_begin)), np.int32)
        self._history, self._realm = history, realm
        self._realms, self._width = int(realm.max(initial=0)) + 1, len(history.rows.kind)
        self._events = self._by_log(causality)
        self._carry()

    def _by_log(self, causality: Causality) -> _Logs:
        log = self._log(self._history.rows.process[causality.row], causality.message)
        # Stable sort: messages beyond the end of a crashed log come after everything else there.
        sorting = np.argsort(log * self._width + causality.row, kind="stable")
        log, row = log[sorting], causality.row[sorting]
        message, sending = causality.message[sorting], causality.sending[sorting]
        return _Logs(log, row, message, sending, log * self._width + row)

    def _log(self, process: IntArray, message: IntArray) -> IntArray:
        return process * self._realms + self._realm[self._history.messages.group[message]]

    def _carry(self) -> None:
        """Each send takes over all that its log sent and delivered before it; repeated until nothing changes.

        One pass over all logs carries what is delivered in a log to what is sent there. First knowledge of a message
        passes no process twice, so there are at most as many passes as processes. One group in causal order, where all
        get everything directly, needs two. There are no circles of causes here, so there is one fixed point.
        """
        of, reach, end = self._events, self.reach, self._news()[1]
        sent = of.message[of.sending]
        reach[sent, self.stream[sent]] = sent + 1
        sends = np.flatnonzero(of.sending & (end > np.searchsorted(of.log, of.log)))
        logs = [(int(np.searchsorted(of.log, log)), sends[at]) for log, at in parts(of.log[sends])]
        news = True
        while news:
            news = False
            for begin, own in logs:
                so_far = np.maximum.accumulate(reach[of.message[begin : own[-1]]], axis=0)
                known, message = so_far[end[own] - 1 - begin], of.message[own]
                known[np.arange(len(own)), self.stream[message]] = message + 1
                news |= not np.array_equal(known, reach[message])
                reach[message] = known

    def _news(self) -> tuple[IntArray, IntArray]:
        """For each event the part of its log that a send there takes over: from the last send before it, up to it.

        Messages beyond the end of a crashed log take over the end of the log, but not one another: their order in
        different groups is unknown.
        """
        of = self._events
        events = np.arange(len(of.row))
        log_begin = np.searchsorted(of.log, of.log)
        beyond: BoolArray = of.sending & (self._history.messages.send_row[of.message] < 0)
        last_send = np.maximum.accumulate(np.where(of.sending & ~beyond, events, -1))
        before = np.concatenate([[-1], last_send[:-1]]) if len(events) else last_send
        # They all have the last row of their log, after everything else there.
        end = np.where(beyond, np.searchsorted(of.place, of.place), events)
        return np.maximum(before, log_begin), end

    def direct(self) -> tuple[IntArray, IntArray]:
        """Pairs of cause and effect from which all others follow: what each send takes over, and its stream."""
        message, sends = self._events.message, np.flatnonzero(self._events.sending)
        begin, end = (bounds[sends] for bounds in self._news())
        news = end - begin
        at = np.repeat(begin - np.cumsum(news) + news, news) + np.arange(int(news.sum()))
        same = np.flatnonzero(np.diff(self.stream) == 0)
        cause = np.concatenate([message[at], same])
        return cause, np.concatenate([np.repeat(message[sends], news), same + 1])

    def chain(self, cause: int, effect: int) -> list[str]:
        """Why cause -> effect: one step per process, starting at the cause."""
        history, events, messages = self._history, self._events, self._history.messages
        steps = []
        while messages.sender[cause] != messages.sender[effect]:
            logged, sender = messages.send_row[effect] >= 0, messages.sender[effect]
            send_row = messages.send_row[effect] if logged else history.logs.end[sender] - 1
            log = sender * self._realms + self._realm[messages.group[effect]]
            begin = events.find(log, 0, self._width)
            through = events.message[begin : events.find(log, send_row, self._width)]
            # The first event of that log with the cause in its past is a delivery, because a send only passes it on.
            at = begin + int(np.flatnonzero(self.reach[through, self.stream[cause]] > cause)[0])
            carrier, row = int(events.message[at]), events.row[at]
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
