"""The members on the host of a control process, and what they have told (docs/spec/intergroup.md 3.11, 4.5)."""

from collections.abc import Iterable
from typing import Final

from antiphon.core.effects import Channel, Transmit
from antiphon.protocols.intergroup.hierarchy.frames import AckReportFrame, CutRecord, Site, SystemFrame
from antiphon.protocols.intergroup.hierarchy.records import (
    SLOTS_MAX,
    MemberReport,
    StabilityRecord,
    of_members,
)
from antiphon.protocols.intergroup.membership.frames import CutFrame
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

    def all(self) -> list[tuple[GroupId, ProcessId]]:
        return list(self._reports)

    def records(self) -> tuple[StabilityRecord, ...]:
        return of_members(self._reports)

    def told(self, records: Iterable[StabilityRecord], site: Site) -> list[Transmit]:
        """System records for the members that they are about; `site`: of this control process."""
        return [
            Transmit(SystemFrame(group, site.process, record, site.coordinator), member, Channel.STREAM)
            for record in records
            for group, member in self._reports
            if group == record.group
        ]

    def told_cuts(self, cuts: Iterable[CutRecord], me: ProcessId) -> list[Transmit]:
        """Cuts for the members of their groups."""
        return [
            Transmit(CutFrame(group, me, cut.epoch, cut.gate, cut.claims), member, Channel.STREAM)
            for cut in cuts
            for group, member in self._reports
            if group == cut.group
        ]
