"""What can be added up in a part of a run: counts, sums, least and largest values, for each kind of frame."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from antiphon.pipeline.figures.arrays import FOR_EVER, UNKNOWN, IntArray, added, counted, dense, largest, least
from antiphon.pipeline.figures.rows import Rows, found_at
from antiphon.pipeline.figures.summing import Row
from antiphon.types import WORLD

_WORK: Final = ("sender_work", "receiver_work")


def tallies(rows: Rows, done_ns: int | None) -> list[Row]:
    """For each group, process incarnation and type of frame; before all useful work of the run was done, and after."""
    frames = _Frames(rows)
    idle = rows.time > (FOR_EVER if done_ns is None else done_ns)
    width, owners = len(frames.names), len(rows.owners)
    code, keys = dense(((rows.group * owners + rows.owner) * width + frames.type) * 2 + idle)
    sums = _Sums(rows, code, len(keys))
    columns = {**sums.of_all(), **frames.sums(code, len(keys)), **sums.of_waits(), **sums.of_gauges(), **sums.of_work()}
    found: list[Row] = []
    for place, each in enumerate(keys.tolist()):
        rest, is_idle = divmod(each, 2)
        rest, kind = divmod(rest, width)
        group, who = divmod(rest, owners)
        process, incarnation = rows.owners[who]
        name = rows.codes.processes.texts[process]
        if name != WORLD:
            named = {"group": rows.codes.groups.texts[group], "process": name, "incarnation": incarnation}
            values = {column: values[place] for column, values in columns.items()}
            found.append({**named, "type": frames.names[kind], "idle": bool(is_idle), **values})
    return found


class _Frames:
    """The `transmit` rows of a part."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._at = rows.of_kind("transmit")
        self.type: IntArray = np.zeros(len(rows.kind), np.int64)
        self.type[self._at], self.names = rows.texts("frame_type", self._at)
        """The types of frames; the first stands for rows that are no frames."""

    def sums(self, code: IntArray, size: int) -> Mapping[str, list[Any]]:
        """By code: the frames, their bytes and copies."""
        own, at = code[self._at], self._at
        copies, packed, stamp_bytes = (
            self._rows.numbers(name, at) for name in ("frame_copies", "frame_messages", "stamp_bytes")
        )
        tells = copies != UNKNOWN
        frame_bytes = self._rows.payload_bytes[at] + self._rows.header_bytes[at]
        return {
            "frames": counted(own, size),
            "payload_bytes": added(own, self._rows.payload_bytes[at], size),
            "header_bytes": added(own, self._rows.header_bytes[at], size),
            "stamp_bytes": added(own, _or_zero(stamp_bytes), size),
            "packed": added(own, _or_zero(packed), size),
            "frames_with_copies": counted(own[tells], size),
            "copies": added(own, _or_zero(copies), size),
            "wire_bytes": added(own, _or_zero(copies) * frame_bytes, size),
        }


class _Sums:
    """Sums, least and largest values by code."""

    def __init__(self, rows: Rows, code: IntArray, size: int) -> None:
        self._rows, self._code, self._size = rows, code, size

    def of_all(self) -> Mapping[str, list[Any]]:
        """Counts of kinds, and the ranges of times."""
        rows, code, size = self._rows, self._code, self._size
        sends, delivers = rows.of_kind("send"), rows.of_kind("deliver")
        asked = sends[rows.requested[sends] != UNKNOWN]
        held = np.flatnonzero(rows.unstable != UNKNOWN)
        everywhere = np.arange(len(code))
        return {
            "sent": counted(code[sends], size),
            "delivered": counted(code[delivers], size),
            "moves": counted(code[rows.of_kind("crash", "leave", "join")], size),
            "blocks": counted(code[rows.of_kind("block")], size),
            "first_request_ns": least(code, rows.requested, asked, size),
            "last_delivery_ns": largest(code, rows.time, delivers, size),
            "unstable_max": largest(code, rows.unstable, held, size),
            "first_ns": least(code, rows.time, everywhere, size),
            "last_ns": largest(code, rows.time, everywhere, size),
        }

    def of_waits(self) -> Mapping[str, list[Any]]:
        """How long senders waited: the ends of all waits minus their beginnings; the last wait may have no end."""
        rows = self._rows
        end_ns = largest(rows.owner, rows.time, np.arange(len(rows.owner)), len(rows.owners))
        blocked_ns = [0] * self._size
        begins = rows.codes.kinds.code("block")
        for row in rows.of_kind("block", "unblock").tolist():
            end = end_ns[rows.owner[row]]
            assert end is not None
            remaining = end - int(rows.time[row])
            blocked_ns[self._code[row]] += remaining if rows.kind[row] == begins else -remaining
        return {"blocked_ns": blocked_ns}

    def of_gauges(self) -> Mapping[str, list[Any]]:
        """The highest readings."""
        at = self._rows.of_kind("gauge")
        values = self._rows.numbers("gauge_value", at)
        named, names = self._rows.texts("gauge_name", at)
        readings: IntArray = np.full(len(self._code), UNKNOWN, np.int64)
        readings[at] = values
        highest = {}
        for name in ("unstable_blocks", "buffers"):
            asked = np.array([each == name for each in names], np.bool_)[named]
            chosen = at[asked & (values != UNKNOWN)]
            highest[f"{name}_max"] = largest(self._code, readings, chosen, self._size)
        return highest

    def of_work(self) -> Mapping[str, list[Any]]:
        """What protocols count of their own work; None where they do not."""
        sums: dict[str, list[int | None]] = {name: [None] * self._size for name in _WORK}
        stops = self._rows.of_kind("stop")
        for row, detail in zip(stops.tolist(), self._rows.details(stops), strict=True):
            for name in _WORK:
                value = found_at(detail, "costs", name)
                if isinstance(value, int) and not isinstance(value, bool):
                    place = self._code[row]
                    sums[name][place] = (sums[name][place] or 0) + value
        return sums


def _or_zero(values: IntArray) -> IntArray:
    return np.where(values == UNKNOWN, 0, values)
