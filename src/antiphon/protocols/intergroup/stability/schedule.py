"""When a process that does not send reports what it has: the interval of RTCP (docs/spec/intergroup.md 4.5).

All receivers together report at one rate, however many there are. Reports are multicast, so each receiver knows how
many others report.
"""

from typing import Final

from antiphon.protocols.intergroup.frames import ReportFrame
from antiphon.protocols.intergroup.repair.adaptation import SECOND
from antiphon.protocols.intergroup.repair.requests import Draw
from antiphon.types import ProcessId

FORGET_AFTER: Final = 5
"""A receiver that is silent for this number of its mean intervals does not report any more."""
EARLY_REPORTS: Final = 3
"""The first reports come soon: a sender keeps messages until it knows that the receiver has begun (J9)."""
EARLY_NS: Final = SECOND // 2
REPORTERS_MAX: Final = 65_536


class Reporters:
    """The receivers that report, and the mean interval between the reports of one of them."""

    def __init__(self, every_ns: int) -> None:
        self._every_ns = every_ns
        self._heard: dict[ProcessId, int] = {}

    def __len__(self) -> int:
        return len(self._heard)

    @property
    def interval_ns(self) -> int:
        """The mean interval between the reports of one receiver, if these are all."""
        return max(len(self._heard), 1) * self._every_ns

    def heard(self, reporter: ProcessId, now: int) -> None:
        if reporter in self._heard or len(self._heard) < REPORTERS_MAX:
            self._heard[reporter] = now

    def left(self, reporter: ProcessId) -> None:
        self._heard.pop(reporter, None)

    def forget_silent(self, now: int) -> None:
        oldest = now - FORGET_AFTER * max(self.interval_ns, EARLY_NS)
        self._heard = {reporter: at for reporter, at in self._heard.items() if at >= oldest}


class ReportSchedule:
    """The times at which one receiver reports."""

    def __init__(self, me: ProcessId, every_ns: int, draw: Draw) -> None:
        self._me, self._draw = me, draw
        self._reporters = Reporters(every_ns)
        self.begin(0)

    @property
    def reporters(self) -> int:
        """The number of receivers that report, with this one."""
        return max(len(self._reporters), 1)

    def begin(self, now: int) -> None:
        """The first report is due at once."""
        self.next_at, self._last, self._sent, self._share = now, now, 0, 0.0

    def note(self, report: ReportFrame, now: int) -> None:
        """Another process reports; a report that names no source is its last."""
        if report.sources == ():
            self._reporters.left(report.sender)
        else:
            self._reporters.heard(report.sender, now)

    def is_due(self, now: int) -> bool:
        """True if a report must leave now. If others have begun to report meanwhile, it waits longer."""
        if now < self.next_at:
            return False
        self._reporters.forget_silent(now)
        self.next_at = self._last + self._interval()
        return now >= self.next_at

    def sent(self, now: int) -> None:
        """A report leaves."""
        self._reporters.heard(self._me, now)
        self._last = now
        self._sent += 1
        self._share = 0.5 + self._draw()
        self.next_at = now + self._interval()

    def _interval(self) -> int:
        mean = self._reporters.interval_ns
        if self._sent < EARLY_REPORTS:
            mean = min(mean, EARLY_NS)
        return int(mean * self._share)
