"""Numbered frames with their flow-control headers, from the typed columns of `transmit` and `receive` rows.

Headers are read only if flow control is on.
"""

import re
from typing import Final

import numpy as np

from antiphon.properties.tables.codes import firsts
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.history import History

_FORMATION: Final = re.compile(r"([^/@]+@[0-9]+)(/|$)")
"""The name of a frame begins with the identity of its group; a formed group has a number in it."""

NOTHING_KNOWN: Final = -(10**18)
"""Stands for a header field that is null or missing: below anything that a condition can require."""


NUMBERED: Final = ("data", "fragment", "state", "word", "remove", "flush", "null")
"""The types of frames that take a number."""
WITHOUT_PLACE: Final = ("flush", "null")
"""Numbered types that occupy no place in the window, unless blocks are counted."""


class Frames:
    """The numbered frames that processes transmitted, each once, in the order of rows."""

    def __init__(self, history: History, senders: BoolArray) -> None:
        """Read the frames of the chosen processes only."""
        rows, typed = history.rows, history.columns.typed
        at = history.of_kind("transmit")
        at = at[senders[rows.process[at]] & (rows.group[at] >= 0)]
        at = at[typed.is_of_type(at, NUMBERED)]
        received = history.of_kind("receive") if len(at) else at
        at, heard = _each_once(typed.frames(at), at, typed.frames(received))
        self.row: IntArray = at
        self.process, self.group = rows.process[at], rows.group[at]
        self.formation = _formations(*typed.streams(at))
        """For each frame a number for the formation of its group: each formation counts its frames from the start."""
        self.null: BoolArray = typed.is_of_type(at, WITHOUT_PLACE)
        self.number = typed.numbers("flow_number", at, NOTHING_KNOWN)
        """The flow number; the block number if the group counts blocks."""
        self.has_header: BoolArray = self.number > NOTHING_KNOWN
        self.complete = typed.numbers("flow_complete", at, NOTHING_KNOWN)
        self.stable = typed.numbers("flow_stable", at, NOTHING_KNOWN)
        self.super_stable = typed.numbers("flow_super_stable", at, NOTHING_KNOWN)
        self.receive_row: IntArray = _first_receipt(received, heard, len(at))
        """The row of its first receipt, -1 if no log has one."""


def slowest_frame_ns(history: History, since: int = 0) -> int:
    """The longest transit time of a named frame that was transmitted at that time or later."""
    sent, received = history.of_kind("transmit"), history.of_kind("receive")
    sent, received = (rows[history.rows.time[rows] >= since] for rows in (sent, received))
    first, heard = _each_once(history.columns.typed.frames(sent), sent, history.columns.typed.frames(received))
    known = heard >= 0
    transit_ns = history.rows.time[received[known]] - history.rows.time[first[heard[known]]]
    return max(int(transit_ns.max(initial=0)), 0)


def _each_once(sent: IntArray, at: IntArray, received: IntArray) -> tuple[IntArray, IntArray]:
    """The first transmit of each frame, and for each receipt its place among these; -1 for an unknown frame.

    A frame without a name is a frame of its own, which no receipt names.
    """
    named = sent >= 0
    first = np.concatenate([at[~named], at[named][firsts(sent[named])]])
    first.sort()
    name = sent[np.searchsorted(at, first)]
    place = np.full(int(max(sent.max(initial=-1), received.max(initial=-1))) + 2, -1, np.int64)
    place[name] = np.arange(len(first))
    place[-1] = -1  # of the receipts, and transmits, without a name
    return first, place[received]


def _formations(stream: IntArray, streams: list[str]) -> IntArray:
    formations = [found[1] if (found := _FORMATION.match(name)) else "" for name in streams]
    code_of = {name: code for code, name in enumerate(dict.fromkeys(["", *formations]))}
    codes: IntArray = np.array([*(code_of[name] for name in formations), 0], np.int64)[stream]
    return codes


def _first_receipt(received: IntArray, frame: IntArray, total: int) -> IntArray:
    receipts = np.full(total + 1, -1, np.int64)
    receipts[frame[::-1]] = received[::-1]  # backwards, so that the first wins; the last place takes unknown frames
    return receipts[:total]
