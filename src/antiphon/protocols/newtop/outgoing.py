"""What waits to leave in one group: notices to members, a state, messages of the application; in this order."""

from collections import deque

from antiphon.protocols.newtop.frames import Notice
from antiphon.protocols.newtop.outbox import Outbox, Parcel, Stream, Unsent

_NOTHING: Parcel = (0, (), False)


class Outgoing:
    """Invariant: a notice leaves before a state, a state before anything of the application."""

    __slots__ = ("donation", "notices", "outbox", "overdue")

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self.notices: deque[Notice] = deque()
        """What members are to be told by a numbered message."""
        self.donation: tuple[int, Outbox | Stream] | None = None
        """The state of our class, by its place in the first view, on its way to members from elsewhere."""
        self.overdue = 0
        """How many messages in the outbox had left in the previous group, on their way to its sequencer."""

    @property
    def waiting(self) -> bool:
        """Whether anything wants to leave."""
        return bool(self.outbox.waiting or self.notices or self.donation is not None)

    @property
    def privileged(self) -> bool:
        """Whether the next to leave is not of the application: then the gate does not hold it."""
        return bool(self.notices) or self.donation is not None

    @property
    def flushes(self) -> bool:
        """Whether the next to leave is a flush, which no window holds."""
        return bool(self.notices) and self.notices[0].kind == "flush"

    @property
    def least_bytes(self) -> int:
        """How much the next numbered message carries at least."""
        if self.notices:
            return 0
        source: Outbox | Stream = self.outbox if self.donation is None else self.donation[1]
        return source.least_bytes if source.waiting else 0

    def tell(self, *notices: Notice) -> None:
        """Members are to be told this."""
        self.notices.extend(notices)

    def next_notice(self) -> Notice:
        """There must be one."""
        return self.notices.popleft()

    def donate(self, place: int, source: Outbox | Stream) -> None:
        """Our state is to leave; of an empty one nothing does."""
        self.donation = (place, source) if source.waiting else None

    def take(self, room_bytes: int) -> tuple[Notice | None, int | None, Parcel]:
        """What the next frame carries: a notice, or a part of a state with its place, or messages."""
        if self.notices:
            return self.notices.popleft(), None, _NOTHING
        if self.donation is None:
            return None, None, self.outbox.take(room_bytes)
        place, source = self.donation
        parcel = source.take(room_bytes)
        if not source.waiting:
            self.donation = None
        return None, place, parcel

    def take_over(self, messages: list[Unsent], overdue: int) -> None:
        """What the previous group has left to us; the first `overdue` of them had left there."""
        for payload, label in messages:
            self.outbox.put(payload, label)
        self.overdue = overdue

    def caught_up(self, messages: int) -> None:
        """So many messages that were overdue have left again."""
        self.overdue = max(0, self.overdue - messages)
