"""Algorithm R, reliable multicast (Notes, "Multicast Algorithms"): a member relays a message before it delivers it.

So if the sender crashes half-way, either no live member has the message, or every live member gets it. R promises no
order and holds no message. It costs n² frames: that is the price of agreement without acknowledgments.
"""

from antiphon.protocols.classic.frames import DataFrame, RelayFrame, Stamp
from antiphon.protocols.classic.seen import Seen
from antiphon.protocols.classic.site import Handlers, Site
from antiphon.types import ProcessId


class Reliable:
    """One process under algorithm R; the algorithms built on R extend it."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._sent = 0
        self._seen: dict[ProcessId, Seen] = {}

    @property
    def held(self) -> int:
        """Number of messages held here."""
        return 0

    def send(self, payload: bytes, label: int, request: int | None = None) -> None:
        """multicast(R, m): tag the message and transmit it to all; our own copy does not travel."""
        self._sent += 1
        site = self._site
        frame = DataFrame(site.group, site.me, self._sent, (payload,), label, request, self._context(), self._stamp())
        site.multicast(frame)
        if site.delivers:
            self._reliable(frame)

    @property
    def handlers(self) -> Handlers:
        return {DataFrame: self._data, RelayFrame: self._relay}

    def _data(self, frame: DataFrame) -> None:
        if self._site.delivers:
            self._arrived(frame, frame.sender)

    def _relay(self, frame: RelayFrame) -> None:
        if self._site.delivers and frame.sender in self._site.members:
            self._arrived(frame.relayed, frame.sender)

    def lost(self) -> None:
        """No effect: a live member has what the lost process sent, and relays it, or no live member has it."""

    def reach(self, now: int) -> None: ...

    def settle(self, now: int) -> None: ...

    def _context(self) -> tuple[DataFrame, ...]:
        """The messages that travel inside our next message."""
        return ()

    def _stamp(self) -> Stamp | None:
        """The stamp with which our next message leaves."""
        return None

    def _arrived(self, frame: DataFrame, by: ProcessId) -> None:  # noqa: ARG002
        """A copy of a message arrived, from its sender or from a member that relays it."""
        sender, site = frame.sender, self._site
        if sender == site.me:
            return  # a relay of our own message
        seen = self._seen.get(sender)
        if seen is None:
            seen = self._seen[sender] = Seen()
        if seen.add(frame.sequence):
            site.multicast(RelayFrame(site.group, site.me, frame))  # before the delivery
            self._reliable(frame)

    def _reliable(self, frame: DataFrame) -> None:
        """receive(R, m)."""
        self._site.deliver(frame)
