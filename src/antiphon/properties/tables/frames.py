"""Numbered frames with their flow-control headers, from the details of `transmit` and `receive` rows.

Headers are read only if flow control is on. There are hundreds of thousands of JSON details, so the few needed members
are extracted by regular expressions over whole columns. A quote inside a string is escaped, so no key is mistaken.
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.history import History

TYPE: Final = r'"type":\s*"(?P<type>[a-z-]+)"'
NAME: Final = r'"frame":\s*"(?P<frame>(?:[^"\\]|\\.)*)"'
_FLOW: Final = (
    r'"flow":\s*\[\s*(?P<number>-?[0-9]{1,18})\s*,\s*(?P<complete>-?[0-9]{1,18})\s*,\s*(?P<stable>-?[0-9]{1,18})\s*'
    r"(?:,\s*(?:(?P<super_stable>-?[0-9]{1,18})|null)\s*)?\]"
)

_FORMATION: Final = r"^(?P<formation>[^/@]+@[0-9]+)/"
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
        rows = history.rows
        at = history.of_kind("transmit")
        at = at[senders[rows.process[at]] & (rows.group[at] >= 0)]
        details = history.columns.texts("detail", at)
        kind = extracted(details, TYPE, "type")
        numbered = np.asarray(pc.is_in(kind, pa.array(NUMBERED)).to_numpy(zero_copy_only=False))
        at, details, kind = at[numbered], details.filter(pa.array(numbered)), kind.filter(pa.array(numbered))
        received = history.of_kind("receive") if len(at) else at
        # All receivers of a frame share one text, so parse each text once.
        texts = pc.dictionary_encode(history.columns.texts("detail", received))
        names = extracted(details, NAME, "frame")
        first, heard = _join(names, extracted(texts.dictionary, NAME, "frame"))
        of_text = np.append(heard, -1)[
            np.asarray(pc.fill_null(texts.indices, -1).to_numpy(zero_copy_only=False), np.int64)
        ]
        self.row: IntArray = at[first]
        self.process, self.group = rows.process[self.row], rows.group[self.row]
        self.formation = _formations(names.take(pa.array(first)))
        """For each frame a number for the formation of its group: each formation counts its frames from the start."""
        null = pc.is_in(kind, pa.array(WITHOUT_PLACE))
        self.null: BoolArray = np.asarray(null.to_numpy(zero_copy_only=False), np.bool_)[first]
        self._read_headers(details.take(pa.array(first)))
        self.receive_row: IntArray = _first_receipt(received, of_text, len(first))
        """The row of its first receipt, -1 if no log has one."""

    def _read_headers(self, details: pa.Array) -> None:
        headers = pc.extract_regex(details, _FLOW)
        self.has_header: BoolArray = np.asarray(pc.is_valid(headers).to_numpy(zero_copy_only=False), np.bool_)
        self.number = _numbers(headers, "number")
        """The flow number; the block number if the group counts blocks."""
        self.complete = _numbers(headers, "complete")
        self.stable = _numbers(headers, "stable")
        self.super_stable = _numbers(headers, "super_stable")


def extracted(texts: pa.Array, pattern: str, name: str) -> pa.Array:
    """One string of each JSON text, null if there is none."""
    return pc.struct_field(pc.extract_regex(texts, pattern), name)


def slowest_frame_ns(history: History, since: int = 0) -> int:
    """The longest transit time of a named frame that was transmitted at that time or later."""
    left, slowest = dict[str, int](), 0
    for kind in ("transmit", "receive"):
        rows = history.of_kind(kind)
        rows = rows[history.rows.time[rows] >= since]
        names = extracted(history.columns.texts("detail", rows), NAME, "frame").to_pylist()
        for name, time in zip(names, history.rows.time[rows].tolist(), strict=True):
            if name is not None and kind == "transmit":
                left.setdefault(name, time)
            elif name in left:
                slowest = max(slowest, time - left[name])
    return slowest


def _formations(names: pa.Array) -> IntArray:
    formation = extracted(names, _FORMATION, "formation")
    codes = pc.fill_null(pc.dictionary_encode(formation).indices, -1)
    return np.asarray(codes.to_numpy(zero_copy_only=False), np.int64) + 1


def _numbers(headers: pa.Array, name: str) -> IntArray:
    texts = pc.fill_null(pc.struct_field(headers, name), "")
    given = pc.if_else(pc.equal(texts, ""), str(NOTHING_KNOWN), texts)
    return np.asarray(pc.cast(given, pa.int64()).to_numpy(zero_copy_only=False), np.int64)


def _join(sent: pa.Array, received: pa.Array) -> tuple[IntArray, IntArray]:
    """The first transmit of each frame name, and for each received name its place among these."""
    unnamed = pc.is_null(sent)
    places = pa.array([f"\0{place}" for place in range(len(sent))]) if pc.any(unnamed).as_py() else sent
    coded = pc.dictionary_encode(pc.if_else(unnamed, places, sent))
    codes = np.asarray(coded.indices.to_numpy(zero_copy_only=False), np.int64)
    first = np.unique(codes, return_index=True)[1]
    heard = pc.fill_null(pc.index_in(received, coded.dictionary), -1)
    return first, np.asarray(heard.to_numpy(zero_copy_only=False), np.int64)


def _first_receipt(received: IntArray, frame: IntArray, total: int) -> IntArray:
    receipts = np.full(total + 1, -1, np.int64)
    receipts[frame[::-1]] = received[::-1]  # backwards, so that the first wins; the last place takes unknown frames
    return receipts[:total]
