"""Proposals that arrive before the connections that they need (docs/spec/newtop.md 11.1).

Connections come up one after another, and a proposal may arrive sooner. In a group with a peer that no connection
leads to, we would be severed from that peer from the start. Such a proposal therefore waits for the connection. If it
is proposed again meanwhile, we vote no.
"""

from collections.abc import Callable, Container
from typing import Final

from antiphon.protocols.newtop.frames import FormationFrame, ProposeFrame, VoteFrame
from antiphon.types import ProcessId

_KEPT_MAX: Final = 64
"""Proposals that wait at the same time; the oldest gives way."""


class EarlyProposals:
    """The postponed proposals at one process."""

    def __init__(self, me: ProcessId, transmit: Callable[[FormationFrame, ProcessId], None]) -> None:
        self._me = me
        self._transmit = transmit
        self._kept: dict[ProcessId, ProposeFrame] = {}
        """By initiator, which makes one proposal at a time."""

    def postpone(self, frame: FormationFrame, connected: Container[ProcessId]) -> bool:
        """Keep an early proposal, or vote no if it was kept before. Other frames of the group end the wait."""
        waited = [initiator for initiator, proposal in self._kept.items() if proposal.group == frame.group]
        for initiator in waited:
            del self._kept[initiator]
        if not isinstance(frame, ProposeFrame) or self._is_timely(frame, connected):
            return False
        if waited:
            self._transmit(VoteFrame(frame.group, self._me, None, 0), frame.sender)
        else:
            self._kept[frame.sender] = frame
            if len(self._kept) > _KEPT_MAX:
                del self._kept[next(iter(self._kept))]
        return True

    def take_ready(self, connected: Container[ProcessId]) -> list[ProposeFrame]:
        """The proposals that can be handled now."""
        ready = [frame for frame in self._kept.values() if self._is_timely(frame, connected)]
        for frame in ready:
            del self._kept[frame.sender]
        return ready

    def forget(self, initiator: ProcessId) -> None:
        """Drop the proposal of this initiator: the connection to it is lost."""
        self._kept.pop(initiator, None)

    def _is_timely(self, frame: ProposeFrame, connected: Container[ProcessId]) -> bool:
        return all(member == self._me or member in connected for member, _ in frame.members)
