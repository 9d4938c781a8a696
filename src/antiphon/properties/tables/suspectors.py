"""The settings of failure detection of each process, from its `start` row (docs/spec/newtop.md 9.2 and 12).

They give the bounds in time by which "eventually" is judged for a change of views.
"""

from functools import cache
from typing import Any, Final

import numpy as np

from antiphon.errors import TraceError
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.history import History
from antiphon.scenario.units import Duration
from antiphon.types import split_process_id

SETTLING_SUSPICIONS: Final = 6
"""How many times ω an exclusion may take: an overdue answer, a grace in a view of two, a missing vote, an adopted
suspicion, and twice a refutation after which all begins again (docs/spec/newtop.md 9.2, 9.4 and 9.5)."""

MERGING_ROUNDS: Final = 3
"""How many rounds of searching and forming a group may need until all that can are in one view: two initiators may
conflict, or a member may be excluded meanwhile (docs/spec/newtop.md 11.1 and 11.2)."""

FORMING_SUSPICIONS: Final = 4
"""How many times ω a formation may take if no `start` row tells."""

LATE: Final = 2
"""How many times the settling time an exclusion may take before it is late: others may fail meanwhile."""


class Suspectors:
    """The settings by process, in nanoseconds; 0 for what is off, or if no `start` row tells."""

    def __init__(self, history: History) -> None:
        total = len(history.processes)
        self.after: IntArray = np.zeros(total, np.int64)
        """ω: the silence after which a member is suspected; 0: members are never suspected."""
        self.probe: IntArray = np.zeros(total, np.int64)
        """After how long an idle group looks for crashed members; 0: it does not."""
        self.silence: IntArray = np.zeros(total, np.int64)
        """How long a member that owes an answer may be silent."""
        self.merge: IntArray = np.zeros(total, np.int64)
        """After how long a process asks the next one outside its view; 0: separated groups stay separated."""
        self.form: IntArray = np.zeros(total, np.int64)
        """How long a formation may take before it is aborted."""
        self._others = len({split_process_id(who)[0] for who in history.processes})
        self._changes = len(history.of_kind("join", "leave")) > 0 or bool(history.stays.formed.any())
        self.keep_alive: IntArray = np.zeros(total, np.int64)
        """If members transmit periodically, their longest period."""
        self.report: IntArray = np.zeros(total, np.int64)
        """If processes that only receive report in turn, the longest time until one of them has its turn."""
        self.off: BoolArray = np.zeros(total, np.bool_)
        """True if the `start` row says that members are never suspected."""
        self.unprobed: BoolArray = np.zeros(total, np.bool_)
        """True if the `start` row says that idle groups do not look for crashed members."""
        for row in history.of_kind("start").tolist():
            self._read(history, int(history.rows.process[row]), history.details[row].get("options"))

    @property
    def settling(self) -> IntArray:
        """For each process: the time in which views become final if nothing else fails; 0 without suspicions."""
        return np.where(self.after > 0, self.excluding + self._uniting, 0)

    @property
    def excluding(self) -> IntArray:
        """For each process: the time in which departed members are excluded."""
        return self.probe + self.silence + SETTLING_SUSPICIONS * self.after

    @property
    def bearable_ns(self) -> int:
        """If a message or a frame is in transit for longer, a member may rightly be suspected."""
        return int(self.after[self.after > 0].min(initial=np.iinfo(np.int64).max)) // 2

    @property
    def _uniting(self) -> IntArray:
        """For each process: the time in which processes that look for each other merge, and joiners are in the group.

        A round asks all others one after another (`merge_every` each), then forms; 0 if nothing is formed.
        """
        forming = np.where(self.form > 0, self.form, FORMING_SUSPICIONS * self.after)
        rounds = MERGING_ROUNDS * (self._others * self.merge + forming)
        return np.where((self.merge > 0) | self._changes, rounds, 0)

    def _read(self, history: History, process: int, options: Any) -> None:
        if not isinstance(options, dict):
            return
        named = {
            "suspect_after": self.after,
            "idle_probe": self.probe,
            "time_silence": self.silence,
            "merge_every": self.merge,
            "form_within": self.form,
        }
        for name, settings in named.items():
            settings[process] = _nanoseconds(history, process, name, options.get(name))
        self.off[process] = "suspect_after" in options and not self.after[process]
        self.unprobed[process] = "idle_probe" in options and not self.probe[process]
        periods = [_nanoseconds(history, process, name, options.get(name)) for name in ("send_every", "ack_every")]
        alive = options.get("keep_alive")
        longest = alive.get("high", alive.get("value")) if isinstance(alive, dict) else None
        self.keep_alive[process] = max(*periods, _nanoseconds(history, process, "keep_alive", longest))
        every = _nanoseconds(history, process, "report_every", options.get("report_every"))
        self.report[process] = every * len(history.processes)


def _nanoseconds(history: History, process: int, name: str, value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, str):
        try:
            return _parsed(value)
        except ValueError:
            pass
    who = history.process_name(process)
    raise TraceError(f"the start row of {who}: the option {name} is not a duration")


@cache
def _parsed(text: str) -> int:
    return Duration.parse(text)
