"""The frames that are subject to flow control (F1, F2)."""

from functools import cached_property

import numpy as np

from antiphon.properties.tables.columns import IntArray
from antiphon.properties.tables.frames import Frames
from antiphon.properties.tables.history import History
from antiphon.properties.tables.windows import Windows


class FlowFrames:
    """The frames that are subject to flow control: all numbered ones; nulls only if the group counts blocks."""

    def __init__(self, history: History, windows: Windows) -> None:
        self._history, self.windows = history, windows

    @cached_property
    def frames(self) -> Frames:
        """All numbered frames of processes with flow control."""
        return Frames(self._history, self.windows.on)

    @cached_property
    def chosen(self) -> IntArray:
        """The frames that occupy a place in the window."""
        frames = self.frames
        return np.flatnonzero(~frames.null | self.windows.by_block[frames.process, frames.group])
