"""The settings of flow control of each process, from its `start` row (docs/spec/flow-control.md 3 and 7)."""

from typing import Any, Final

import numpy as np

from antiphon.errors import TraceError
from antiphon.properties.families import promised_by
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.history import History

UNBOUNDED: Final = 2**62
"""Stands for a bound that is not configured; sums with it do not overflow."""

ALGORITHMS: Final = (0, 1, 2, 3)


class Windows:
    """The settings by process; a process without a `start` row has flow control off."""

    def __init__(self, history: History) -> None:
        total = len(history.processes)
        self.algorithm: IntArray = np.zeros(total, np.int64)
        """0 for off, or algorithm 1, 2 or 3."""
        self.frames: IntArray = np.full(total, UNBOUNDED, np.int64)
        """N: how many blocks (algorithms 1 and 2) or own frames (3) may be outstanding."""
        self.bytes: IntArray = np.full(total, UNBOUNDED, np.int64)
        self.by_block: BoolArray = np.zeros((total, len(history.groups)), np.bool_)
        """By process and group: flow numbers are block numbers, and nulls obey the window too."""
        self.own: IntArray = np.full(total, UNBOUNDED, np.int64)
        """If a window limits only a sender's own messages (InterGroup): how many of them may be unstable."""
        code_of = {group: code for code, group in enumerate(history.groups)}
        for row in history.of_kind("start").tolist():
            self._read(history, int(history.rows.process[row]), history.details[row], code_of)

    @property
    def on(self) -> BoolArray:
        """For each process: flow control is on."""
        return self.algorithm > 0

    def _read(self, history: History, process: int, detail: dict[str, Any], code_of: dict[str, int]) -> None:
        who, options = history.process_name(process), detail.get("options") or {}
        algorithm = _integer(who, options, "flow_control", 0)
        if algorithm not in ALGORITHMS:
            raise TraceError(f"the start row of {who} has an unknown algorithm of flow control")
        self.algorithm[process] = algorithm
        if promised_by(str(detail.get("protocol"))).onlookers:
            self.own[process] = _integer(who, options, "window", UNBOUNDED)
        if algorithm:
            self.frames[process] = _integer(who, options, "window", -1)
            self.bytes[process] = _integer(who, options, "window_bytes", UNBOUNDED)
        for group, entry in detail.get("groups", {}).items():
            if group in code_of:
                self.by_block[process, code_of[group]] = entry.get("numbering") == "block"


def _integer(who: str, options: Any, name: str, default: int) -> int:
    value = options.get(name, default) if isinstance(options, dict) else None
    if not isinstance(value, int) or not 0 <= value <= UNBOUNDED:
        raise TraceError(f"the start row of {who}: the option {name} is not a whole number in range")
    return value
