"""Connections with processes that are in no view with us: how many there may be, in total and from one address.

If there are too many, the oldest ends. A caller that holds connections open without use therefore keeps no place.
"""

from typing import TYPE_CHECKING, Final

from antiphon.sockets.limits import SourceRates
from antiphon.sockets.offenders import Offenders

if TYPE_CHECKING:
    from antiphon.sockets.transports.links import Link

HALF_OPEN_MAX: Final = (32, 128)
"""Connections without a greeting yet: from one address, and in total."""
GUESTS_MAX: Final = (256, 512)
"""Connections with named processes that are in no view with us: from one address, and in total."""
FRAMES_EACH: Final = (1_000.0, 2_000.0)
FRAMES_TOTAL: Final = (2_000.0, 4_000.0)
"""Frames of guests that are read in a second, and the burst: from one address, and from all."""
_BUFFERS_BYTES_MAX: Final = 64 << 20
"""Limit of all larger read buffers for incomplete frames of guests; first buffers do not count."""


class Guests:
    """Invariant: a connection is in one place only: half open, guest, or neither."""

    def __init__(self, offenders: Offenders) -> None:
        self._offenders = offenders
        self._frames = SourceRates(FRAMES_EACH, FRAMES_TOTAL)
        self.half_open: dict[Link, None] = {}
        """The oldest first."""
        self.named: dict[Link, None] = {}
        """In order of their greetings, the oldest first."""

    def called(self, link: "Link") -> None:
        """A connection is established, without a greeting yet."""
        self.half_open[link] = None
        self._trim(self.half_open, HALF_OPEN_MAX, link, "opens connections without a greeting")

    def greeted(self, link: "Link") -> None:
        """The process at the other end has given its name; it is in no view with us."""
        self.half_open.pop(link, None)
        self.named[link] = None
        self._trim(self.named, GUESTS_MAX, link, "holds too many connections")

    def admitted(self, link: "Link") -> None:
        """The process is now in a view with us: the limits for guests no longer apply."""
        self.named.pop(link, None)

    def left(self, link: "Link") -> None:
        """The connection has ended."""
        self.half_open.pop(link, None)
        self.named.pop(link, None)

    def may_read_on(self, link: "Link", frames: int, now_s: float) -> bool:
        """Count frames that a guest has sent; False if reading from it must pause."""
        enough = self._frames.spend(link.source, now_s, frames)
        if frames and not enough:
            self._offenders.note(link.source, "sends too many frames", link.claimed)
        return enough

    def has_room_for(self, link: "Link", size_bytes: int) -> bool:
        """Whether a guest may replace its first read buffer by one of this size."""
        others_bytes = sum(other.larger_bytes for other in self.named if other is not link)
        if size_bytes + others_bytes <= _BUFFERS_BYTES_MAX:
            return True
        self._offenders.note(link.source, "sends frames that no buffer is left for", link.claimed)
        return False

    def _trim(self, links: "dict[Link, None]", limits: tuple[int, int], last: "Link", what: str) -> None:
        each, total = limits
        same = [link for link in links if link.source == last.source]
        surplus = same[0] if len(same) > each else next(iter(links)) if len(links) > total else None
        if surplus is not None:
            self._offenders.note(surplus.source, what, surplus.claimed)
            del links[surplus]
            surplus.abort(for_good=True)
