"""What vector and explicit acknowledgments share: a receiver has a number for each sender, and never compares them."""

from antiphon.core.clocks import TimestampClock
from antiphon.protocols.acks.acknowledging.contract import EVERYTHING, AckProtocol
from antiphon.protocols.acks.connections.links import Links
from antiphon.protocols.acks.frames import MessageFrame
from antiphon.types import GroupId, ProcessId


class PerSenderAcks(AckProtocol):
    """Streams are in order, so the last stamp received from a sender stands for all before it."""

    def __init__(self, group: GroupId, links: Links, clock: TimestampClock, *, watches_all: bool) -> None:
        super().__init__(group, links, clock, watches_all=watches_all)
        self._last_received: dict[ProcessId, int] = {}
        self._work = 0

    def add_sender(self, sender: ProcessId, value: int) -> None:
        """Entries are kept in the order of names, so that frames do not depend on the order of joining."""
        self._last_received = dict(sorted({**self._last_received, sender: value}.items()))

    def remove_sender(self, sender: ProcessId) -> None:
        del self._last_received[sender]

    def received(self, frame: MessageFrame) -> bool:
        self._work += 1
        if frame.stamp <= self._last_received.get(frame.sender, EVERYTHING):
            return False
        self._last_received[frame.sender] = frame.stamp
        return True

    @property
    def receiver_work(self) -> int:
        """One for each message, and one for each number transmitted."""
        return self._work
