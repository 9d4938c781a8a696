"""Algorithm R, reliable multicast (Notes, "Multicast Algorithms"): whoever delivers a message has passed it on before.

So if its sender dies half-way, either no live member has the message or every live member gets it. No order is
promised, and nothing is ever held. Costs n² frames: that is the price of agreement without acknowledgments.
"""

from antiphon.protocols.classic.frames import ClassicFrame, DataFrame, RelayFrame
from antiphon.protocols.classic.seen import Seen
from antiphon.protocols.classic.site import Site
from antiphon.types import ProcessId


class Reliable:
    """One process's part in algorithm R; the algorithms built on R extend it."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._sent = 0
        self._seen: dict[ProcessId, Seen] = {}

    @property
    def held(self) -> int:
        """How many messages are kept here."""
        return 0

    def send(self, payload: bytes, label: int, request: int | None = None) -> None:
        """multicast(R, m): tag it, send it to all; our own copy does not travel."""
        self._sent += 1
        site = self._site
        frame = DataFrame(site.group, site.me, self._sent, (payload,), label, request, self._context())
        site.multicast(frame)
        if site.delivers:
            self._reliable(frame)

    def receive(self, frame: ClassicFrame) -> None:
        """Something came from a process that lives."""
        if not self._site.delivers:
            return
        if isinstance(frame, DataFrame):
            self._arrived(frame, frame.sender)
        elif isinstance(frame, RelayFrame) and frame.sender in self._site.members:
            self._arrived(frame.relayed, frame.sender)

    def lost(self) -> None:
        """Somebody was lost. What it sent is with a live member, who relays it, or with nobody."""

    def settle(self) -> None:
        """Nothing waits for the end of a turn."""

    def _context(self) -> tuple[DataFrame, ...]:
        """What travels inside our next message: nothing."""
        return ()

    def _arrived(self, frame: DataFrame, by: ProcessId) -> None:  # noqa: ARG002
        """A copy of a message came, from its sender or from a member who passed it on."""
        sender, site = frame.sender, self._site
        if sender == site.me:
            return  # somebody relays what we sent
        seen = self._seen.get(sender)
        if seen is None:
            seen = self._seen[sender] = Seen()
        if seen.add(frame.sequence):
            site.multicast(RelayFrame(site.group, site.me, frame))  # before the delivery
            self._reliable(frame)

    def _reliable(self, frame: DataFrame) -> None:
        """receive(R, m)."""
        self._site.deliver(frame)
