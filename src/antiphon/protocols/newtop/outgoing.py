"""The outgoing queue of one group: notices to members, a state, messages of the application; in this order."""

from collections import deque

from antiphon.protocols.newtop.frames import Ask, Notice
from antiphon.protocols.newtop.outbox import Outbox, Parcel, Stream, Unsent

_NOTHING: Parcel = (0, (), False)


class Outgoing:
    """Invariant: a notice leaves before a state, a state before anything of the application."""

    __slots__ = ("_donations", "donation", "notices", "outbox", "overdue")

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self.notices: deque[Notice] = deque()
        """Notices to members, for numbered messages."""
        self.donation: tuple[int, Outbox | Stream] | None = None
        """Being sent: the state of our class, with its place in the first view; or a word about primary views."""
        self._donations: deque[tuple[int, Outbox | Stream]] = deque()  # those that wait behind it
        self.overdue = 0
        """Number of messages in the outbox that had left in the previous group, for its sequencer."""

    @property
    def waiting(self) -> bool:
        """True if anything waits to leave."""
        return bool(self.outbox.waiting or self.notices or self.donation is not None)

    @property
    def privileged(self) -> bool:
        """True if the next frame is not of the application: then the gate does not apply."""
        return bool(self.notices) or self.donation is not None

    @property
    def flushes(self) -> bool:
        """True if the next frame is a flush, to which no window applies."""
        return bool(self.notices) and self.notices[0].kind == "flush"

    @property
    def least_bytes(self) -> int:
        """Minimum size of the next numbered message."""
        if self.notices:
            return 0
        source: Outbox | Stream = self.outbox if self.donation is None else self.donation[1]
        return source.least_bytes if source.waiting else 0

    def tell(self, *notices: Notice) -> None:
        """Queue a notice to members."""
        self.notices.extend(notices)

    def next_notice(self) -> Notice:
        """The next notice; there must be one."""
        return self.notices.popleft()

    def donate(self, place: int, source: Outbox | Stream) -> None:
        """Queue our state, or a word about primary views. An empty one is not sent."""
        if source.waiting:
            self._donations.append((place, source))
            self._next_donation()

    @property
    def next_ask(self) -> Ask | None:
        """The mark of the next frame, if it brings a request or an answer."""
        return None if self.notices or self.donation is not None else self.outbox.next_ask

    def take(self, room_bytes: int) -> tuple[Notice | None, int | None, Parcel]:
        """The contents of the next frame: a notice, or a part of a state with its place, or messages."""
        if self.notices:
            return self.notices.popleft(), None, _NOTHING
        if self.donation is None:
            return None, None, self.outbox.take(room_bytes)
        place, source = self.donation
        parcel = source.take(room_bytes)
        if not source.waiting:
            self.donation = None
            self._next_donation()
        return None, place, parcel

    def _next_donation(self) -> None:
        if self.donation is None and self._donations:
            self.donation = self._donations.popleft()

    def take_over(self, messages: list[Unsent], overdue: int) -> None:
        """Take over messages of the previous group; the first `overdue` of them had left there."""
        for message in messages:
            self.outbox.put(*message)
        self.overdue = overdue

    def caught_up(self, messages: int) -> None:
        """Overdue messages have left again."""
        self.overdue = max(0, self.overdue - messages)
