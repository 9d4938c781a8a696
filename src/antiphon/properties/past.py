"""What happened before each message, carried along the sends of a run (properties.md 7.5), and why.

A chain of causes may pass through groups that a receiver is not in; so the map of dependencies is kept whole, for
all streams of the run, and whoever asks looks at the streams of the receiver's groups only.
"""

import numpy as np
import numpy.typing as npt

from antiphon.properties.causality import Causality
from antiphon.properties.columns import BoolArray, IntArray
from antiphon.properties.history import History


class Past:
    """For each message, how far its past reaches into each stream: what 7.5 calls the map of dependencies.

    `reach[m, c]` is one more than the code of the last message of stream c that is m or happened before m,
    0 if there is none. Codes of a stream grow with the number, and all lower numbers of a sender are in the
    past too, so x -> m exactly if x < reach[m, stream of x], for x other than m.
    """

    def __init__(self, history: History, causality: Causality) -> None:
        self.stream = history.messages.stream
        self.stream_begin = np.unique(self.stream, return_index=True)[1]
        """The first message of each stream."""
        self.reach: npt.NDArray[np.int32] = np.zeros((len(self.stream), len(self.stream_begin)), np.int32)
        self._history, self._causality = history, causality
        self._carry()

    def _carry(self) -> None:
        """In causal order, each send takes over what its process sent and delivered since its last send."""
        reach, message = self.reach, self._causality.message
        begin, end = (bounds.tolist() for bounds in _news(self._history, self._causality))
        sent, stream = message.tolist(), self.stream.tolist()
        for event in self._causality.order:
            first, last, this = begin[event], end[event], sent[event]
            if last - first == 1:
                reach[this] = reach[sent[first]]
            elif last > first:
                reach[message[first:last]].max(axis=0, out=reach[this])
            reach[this, stream[this]] = this + 1

    def direct(self) -> tuple[IntArray, IntArray]:
        """Pairs of cause and effect from which all others follow: what each send takes over, and its stream."""
        message, sends = self._causality.message, np.array(sorted(self._causality.order), np.int64)
        begin, end = (bounds[sends] for bounds in _news(self._history, self._causality))
        news = end - begin
        at = np.repeat(begin - np.cumsum(news) + news, news) + np.arange(int(news.sum()))
        same = np.flatnonzero(np.diff(self.stream) == 0)
        cause = np.concatenate([message[at], same])
        return cause, np.concatenate([np.repeat(message[sends], news), same + 1])

    def chain(self, cause: int, effect: int) -> list[str]:
        """Why cause -> effect, one step per process, from the cause on."""
        history, causality, messages = self._history, self._causality, self._history.messages
        steps = []
        while messages.sender[cause] != messages.sender[effect]:
            logged = messages.send_row[effect] >= 0
            send_row = messages.send_row[effect] if logged else history.logs.end[messages.sender[effect]] - 1
            begin = np.searchsorted(causality.row, history.logs.begin[messages.sender[effect]])
            through = causality.message[begin : np.searchsorted(causality.row, send_row)]
            # The first event of that log with the cause in its past is a delivery: a send hands on what it has.
            at = int(begin + np.flatnonzero(self.reach[through, self.stream[cause]] > cause)[0])
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


def _news(history: History, causality: Causality) -> tuple[IntArray, IntArray]:
    """For each event the part of its log that a send there takes over: from the last send before it on, up to it.

    Messages beyond the end of a crashed log take over the end of the log, not one another: in which order they were
    sent in different groups nobody can tell.
    """
    events = np.arange(len(causality.row))
    log_begin = np.searchsorted(causality.row, history.logs.begin)[history.rows.process[causality.row]]
    beyond: BoolArray = causality.sending & (history.messages.send_row[causality.message] < 0)
    last_send = np.maximum.accumulate(np.where(causality.sending & ~beyond, events, -1))
    before = np.concatenate([[-1], last_send[:-1]]) if len(events) else last_send
    # They all stand at the last row of their log, behind everything else there.
    end = np.where(beyond, np.searchsorted(causality.row, causality.row), events)
    return np.maximum(before, log_begin), end
