"""The printed rules of the control hierarchy that are wrong, each in a class of its own: evidence, for tests only.

The numbers are those of docs/spec/errata-intergroup.md. A `HierarchyRules` with one of these replaces the adopted rule.
"""

from collections.abc import Iterable
from typing import Any

from antiphon.protocols.intergroup.hierarchy.frames import Pair
from antiphon.protocols.intergroup.hierarchy.peers import Peer, Peers, bounded
from antiphon.protocols.intergroup.hierarchy.records import Slots, StabilityRecord, SystemAck
from antiphon.types import ProcessId


class PairsOfTheSender(Peers[Any]):
    """H2, §2.2.2: in CCon and GCon, an entry tells when the indexed process received the sender, not the other way.

    So both times of the entry belong to the other direction, and the formula of §2.4 subtracts two clocks.
    """

    def __init__(self, me: ProcessId) -> None:
        super().__init__(me)
        self._echoes: dict[ProcessId, Pair] = {}

    def heard(self, sender: ProcessId, timestamp: int, pairs: tuple[Pair, ...], now: int) -> Peer[Any] | None:
        for pair in pairs:
            if pair.process == self._me:
                self._echoes[sender] = Pair(sender, pair.sent, pair.received)
        return super().heard(sender, timestamp, pairs, now)

    def pairs(self, entries: Iterable[tuple[ProcessId, Peer[Any]]], now: int) -> tuple[Pair, ...]:
        return tuple(
            self._echoes.get(pair.process, Pair(pair.process, pair.received, pair.sent))
            for pair in super().pairs(entries, now)
        )


class ThirdPartiesRefresh(Peers[Any]):
    """H9, §2.6.3: an entry in a CCon updates any entry, and is told on like one that was heard."""

    def told(self, process: ProcessId, distance: int, now: int, mean: int = 0) -> None:
        super().told(process, distance, now, mean)
        peer = self.get(process)
        if peer is not None:
            peer.heard, peer.distance = now, bounded(distance)

    def may_tell(self, peer: Peer[Any]) -> bool:  # noqa: ARG002
        return True


class LeastOfThoseKnown(SystemAck):
    """T2, §3.5: the minimum over the processes that are known, whoever they are."""

    def covers(self, record: StabilityRecord, required: Slots) -> bool:  # noqa: ARG002
        return True
