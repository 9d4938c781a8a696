"""The members on the host of a control process, and what they have told (docs/spec/intergroup.md 3.11, 4.5)."""

from typing import Final

from antiphon.protocols.intergroup.hierarchy.frames import AckReportFrame
from antiphon.protocols.intergroup.hierarchy.records import (
    SLOTS_MAX,
    MemberReport,
    StabilityRecord,
    of_members,
)
from antiphon.types import GroupId, ProcessId

MEMBERS_MAX: Final = 4_096


class Members:
    """Invariant: each entry is the last report of a member that has not left and is not silent."""

    def __init__(self) -> None:
        self._reports: dict[tuple[GroupId, ProcessId], MemberReport] = {}

    def report(self, frame: AckReportFrame, now: int) -> None:
        key = frame.group, frame.sender
        if frame.leaving:
            self._reports.pop(key, None)
        elif (frame.slot is None or frame.slot < SLOTS_MAX) and (
            key in self._reports or len(self._reports) < MEMBERS_MAX
        ):
            self._reports[key] = MemberReport(frame.epoch, frame.ack, frame.slot, now)

    def gone(self, member: ProcessId) -> None:
        """Its connection has ended."""
        self._reports = {key: report for key, report in self._reports.items() if key[1] != member}

    def expire(self, now: int, timeout: int) -> None:
        self._reports = {key: report for key, report in self._reports.items() if now - report.at <= timeout}

    def of(self, group: GroupId) -> list[ProcessId]:
        return [member for known, member in self._reports if known == group]

    def all(self) -> list[tuple[GroupId, ProcessId]]:
        return list(self._reports)

    def records(self) -> tuple[StabilityRecord, ...]:
        return of_members(self._reports)
