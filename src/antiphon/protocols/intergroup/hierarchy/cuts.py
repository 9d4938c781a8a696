"""Cuts on their way through the hierarchy: urgent, and each kept for a while (M18; docs/spec/intergroup.md 7.6)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from antiphon.protocols.intergroup.hierarchy.frames import CutRecord
from antiphon.protocols.intergroup.membership.claims import Claim
from antiphon.types import GroupId, ProcessId, ViewId

CUTS_MAX: Final = 16
"""In one message, and in this table: few groups are repaired at a time."""
CLAIMS_MAX: Final = 1_024
"""Of all cuts together: they travel in one message."""


@dataclass(slots=True)
class _Cut:
    gate: int
    claims: dict[ProcessId, Claim] = field(default_factory=dict)
    until: int = 0


class Cuts:
    """For each group and epoch, the greatest claim on each sender and the greatest gate that were told."""

    def __init__(self, keep_ns: int) -> None:
        self._keep_ns = keep_ns
        self._cuts: dict[tuple[GroupId, ViewId], _Cut] = {}

    def add(self, records: Iterable[CutRecord], now: int) -> bool:
        """True if a claim or a gate is greater than before, so that others must hear of it soon."""
        news = [self._add(record, now) for record in records]
        return any(news)

    def _add(self, record: CutRecord, now: int) -> bool:
        key = record.group, record.epoch
        cut = self._cuts.get(key)
        if len(record.claims) > CLAIMS_MAX or record.gate < 0 or (cut is None and len(self._cuts) >= CUTS_MAX):
            return False
        news = cut is None or record.gate > cut.gate
        if cut is None:
            self._cuts[key] = cut = _Cut(record.gate)
        cut.gate = max(cut.gate, record.gate)
        for process, claim in record.claims:
            known = cut.claims.get(process)
            if (known is None and self._claims < CLAIMS_MAX) or (known is not None and claim > known):
                cut.claims[process] = claim
                news = True
        if news:
            cut.until = now + self._keep_ns
        return news

    @property
    def _claims(self) -> int:
        return sum(len(cut.claims) for cut in self._cuts.values())

    def expire(self, now: int) -> None:
        self._cuts = {key: cut for key, cut in self._cuts.items() if cut.until > now}

    def records(self) -> tuple[CutRecord, ...]:
        """What a message tells of them."""
        return tuple(
            CutRecord(group, epoch, cut.gate, tuple(sorted(cut.claims.items())))
            for (group, epoch), cut in sorted(self._cuts.items())
        )
