"""A session: the frames between two processes, over one TCP connection after another, without a gap.

A connection may be reset although both processes live: by a router that restarts, or by a firewall. Each end counts
the frames that it has received, and keeps those that it sent until the other end has acknowledged them. On the next
connection both ends say how far they are (`Offer`), and the frames that are missing are sent again. So nothing is
lost, and to a core it is the same connection (docs/spec/newtop.md 1, E-47). If that is not possible the session ends.
"""

import asyncio
import errno
import struct
from collections import deque
from collections.abc import Awaitable, Callable, Container, Iterable
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NamedTuple

from antiphon.core.effects import Frame
from antiphon.errors import ProtocolViolation
from antiphon.sockets.transports.contract import Receiver
from antiphon.types import ProcessId
from antiphon.wire.codec import encode
from antiphon.wire.frame import Sealed, open_envelope, seal

if TYPE_CHECKING:
    from antiphon.sockets.transports.links import Link

OFFER: Final = 66
"""The kind of the second frame on a connection."""
RECEIVED: Final = 67
"""The kind of an acknowledgment."""
_ACKNOWLEDGED_FRAMES: Final = 256
"""An acknowledgment is due after this many frames."""
_ACKNOWLEDGED_PART: Final = 16
"""It is also due after this part of the bytes that we keep for the other end. It keeps as much for us, once both are in
a view; until then less. What is kept longer than necessary displaces the rest from the cache of the processor."""
_LARGE_BYTES: Final = 1 << 11
"""Larger frames are kept as objects, and encoded again if needed. The core keeps their payloads anyway, and memory that
is used again at once stays in the cache."""
_KEPT_BYTES_MAX: Final = 1 << 18
_MEMBER_BYTES_MAX: Final = 8 << 20
"""Frames kept for one peer, and for one in a view with us. A session whose peer lacks older frames cannot go on."""
_RESUME_S: Final = 2.0
"""A session without a connection ends after this time. Longer pauses are the core's business."""
_REFUSALS: Final = 2
"""Calls in a row that must be refused before a peer is taken for dead."""
_CALLS_MAX: Final = 25
_PAUSE_S: Final = 0.004
"""Calls of a peer whose connection was lost, and the pause between two of them."""
_OFFER: Final = struct.Struct(">QQQ")
_COUNT: Final = struct.Struct(">Q")


class Answer(Enum):
    """What came of a call to a peer whose connection was lost."""

    REFUSED = auto()
    """No process listens there."""
    CLOSED = auto()
    """The connection ended before a greeting. The system of a process that is being killed still accepts some."""
    OTHER = auto()
    """The peer answers, or nothing does: the backlog of its socket may be full."""


class Offer(NamedTuple):
    """What one end says about the session at the beginning of a connection."""

    own: int
    """Its token of the session: a random number, so that no other process can go on with it."""
    other: int
    """The other end's token; 0 if it knows of no session."""
    received: int
    """Frames that it has received in the session."""

    def sealed(self) -> bytes:
        return seal(OFFER, _OFFER.pack(*self))

    def is_met_by(self, offer: "Offer") -> bool:
        """Whether both ends mean the same session. Both come to the same answer."""
        return (self.own, self.other) == (offer.other, offer.own)


Kept = tuple[bytes | Frame, int]
"""A frame that was sent, as bytes or before it was encoded, and its size in bytes."""


class Session:
    """Invariant: frames `_base` to `sent` are kept, in their order; the other end may lack some of them.

    Those that are `waiting` are the last of them.
    """

    __slots__ = (
        "_base",
        "_kept",
        "_kept_bytes",
        "_kept_bytes_max",
        "_owed_bytes",
        "_owed_frames",
        "_owes",
        "link",
        "number",
        "other",
        "own",
        "peer",
        "received",
        "waiting",
    )

    def __init__(self, peer: ProcessId, number: int, own: int, other: int) -> None:
        self.peer = peer
        self.number = number
        """The number of this session; to a core it is the number of the connection."""
        self.own = own
        self.other = other
        self.link: Link | None = None
        """The connection in use; None while there is none."""
        self.received = 0
        self.waiting: list[bytes] = []
        """Frames that the next `flush` sends."""
        self._base = 0
        self._kept: deque[Kept] = deque()
        self._kept_bytes = 0
        self._kept_bytes_max = _KEPT_BYTES_MAX
        self._owed_frames = self._owed_bytes = 0  # received and not acknowledged
        self._owes = False  # whether an acknowledgment is due; a plain attribute, because it is read in every turn

    @property
    def sent(self) -> int:
        return self._base + len(self._kept)

    @property
    def offer(self) -> Offer:
        return Offer(self.own, self.other, self.received)

    def trust(self) -> None:
        """The peer is in a view with us: more is kept for it."""
        self._kept_bytes_max = _MEMBER_BYTES_MAX

    def distrust(self) -> None:
        """The peer is in no view with us any more."""
        self._kept_bytes_max = _KEPT_BYTES_MAX
        self._trim()

    def send(self, sealed: bytes, kept: Kept) -> None:
        """Keep a frame, and let it wait for `flush`."""
        self.waiting.append(sealed)
        self._kept.append(kept)
        self._kept_bytes += kept[1]

    def flush(self) -> None:
        """Send what waits; without a connection it is kept for the next one."""
        waiting, self.waiting = self.waiting, []
        if self._kept_bytes > self._kept_bytes_max:
            self._trim()
        if self.link is not None:
            if self._owes:
                self._owe_nothing()
                waiting.insert(0, seal(RECEIVED, _COUNT.pack(self.received)))
            self.link.write_all(waiting)

    def took(self, frames: int, size_bytes: int) -> bool:
        """Frames have arrived; True if an acknowledgment is due, which `flush` sends."""
        self.received += frames
        self._owed_frames += frames
        self._owed_bytes += size_bytes
        if self._owed_frames >= _ACKNOWLEDGED_FRAMES or self._owed_bytes * _ACKNOWLEDGED_PART >= self._kept_bytes_max:
            self._owes = True
        return self._owes

    def can_go_on_from(self, received: int) -> bool:
        """Whether we still have everything that the other end lacks."""
        return self._base <= received <= self.sent

    def acknowledged(self, received: int) -> None:
        """The other end has received this many frames."""
        if received > self.sent:
            raise ProtocolViolation("body", f"{received} frames are acknowledged, but only {self.sent} were sent")
        if self._base < received:
            self._drop(received - self._base)

    def go_on(self, link: "Link", received: int) -> None:
        """Use this connection, and send again what the other end has not received."""
        self.acknowledged(received)
        self.link = link
        self._owe_nothing()
        self.waiting.clear()
        link.write_all([kept if isinstance(kept, bytes) else encode(kept) for kept, _ in self._kept])

    def _owe_nothing(self) -> None:
        self._owed_frames = self._owed_bytes = 0
        self._owes = False

    def _trim(self) -> None:
        while self._kept_bytes > self._kept_bytes_max:
            self._drop(1)

    def _drop(self, frames: int) -> None:
        """Forget the oldest frames."""
        kept, size_bytes = self._kept, 0
        for _ in range(frames):
            size_bytes += kept.popleft()[1]
        self._kept_bytes -= size_bytes
        self._base += frames


class Sessions:
    """The sessions of one process. Invariant: one without a connection is in `_ends`, and ends if it gets none soon."""

    def __init__(self, call: Callable[[ProcessId], Awaitable[Answer]], count: Callable[[ProcessId], int]) -> None:
        """`call`: tries to connect with a peer. `count`: the number of a new session."""
        self.receiver: Receiver | None = None
        self.open: dict[ProcessId, Session] = {}
        self._call = call
        self._count = count
        self._ends: dict[Session, asyncio.TimerHandle] = {}
        self._looking: dict[Session, asyncio.Task[None]] = {}
        self._dirty: list[Session] = []
        self._closed = False

    @property
    def tasks(self) -> tuple[asyncio.Task[None], ...]:
        return tuple(self._looking.values())

    # Frames

    def send(self, sealed: bytes, peers: Iterable[ProcessId], frame: Frame | None) -> None:
        """Keep a frame for each of these until `flush`."""
        size_bytes = len(sealed)
        kept = (sealed if frame is None or size_bytes < _LARGE_BYTES else frame), size_bytes
        for peer in peers:
            session = self.open.get(peer)
            if session is not None:
                if not session.waiting:
                    self._dirty.append(session)
                session.send(sealed, kept)

    def flush(self) -> None:
        """Send what waits, and acknowledgments that are due."""
        dirty, self._dirty = self._dirty, []
        for session in dirty:
            session.flush()

    def arrived(self, link: "Link", sealed: list[Sealed]) -> None:
        """Frames have arrived by this connection."""
        session = link.session
        if session is not None and session.link is link and self.receiver is not None:
            frames = len(sealed)  # under light load there is one
            size_bytes = len(sealed[0]) if frames == 1 else sum(map(len, sealed))
            if session.took(frames, size_bytes) and not session.waiting:
                self._dirty.append(session)
            self.receiver.arrived(session.peer, session.number, sealed)

    # Connections

    def offer(self, peer: ProcessId, token: int) -> Offer:
        """A new connection replaces an earlier one with that peer: our offer says how far we are."""
        session = self.open.get(peer)
        if session is None:
            return Offer(token, 0, 0)
        self._suspend(session)  # frames that still arrive by the earlier connection are ignored from here on
        return session.offer

    def offered(self, link: "Link", theirs: Offer) -> bool:
        """Both ends have said how far they are; True if this begins a new session."""
        assert link.peer is not None
        assert link.offer is not None
        session = self.open.get(link.peer)
        is_same = link.offer.is_met_by(theirs)
        if is_same and session is not None and session.can_go_on_from(theirs.received):
            self._stop_looking(session)
            link.session = session
            session.go_on(link, theirs.received)
            return False
        if session is not None:
            self._end(session)
        if is_same:  # the other end goes on with a session that has just ended here, by its timer or because of a gap
            link.abort()  # our next offer says that there is no session
            return False
        link.session = Session(link.peer, self._count(link.peer), link.offer.own, theirs.own)
        self.open[link.peer] = link.session
        link.session.go_on(link, 0)
        return True

    def lost(self, link: "Link") -> bool:
        """A connection has ended without a farewell; True if we look for the next one."""
        assert link.peer is not None
        session = self.open.get(link.peer)
        if session is None or session.link not in (link, None):
            return False
        if link.is_ended_for_good:
            self._end(session)
            return False
        if not self._closed:
            self._suspend(session)
            if session not in self._looking:
                self._looking[session] = asyncio.get_running_loop().create_task(self._look_for(session))
        return True

    def give_up(self, peers: Iterable[ProcessId]) -> None:
        """End these sessions."""
        for peer in [*peers]:
            self._end(self.open[peer])

    def report_dead(self, known: Container[ProcessId], ended: ProcessId | None = None) -> None:
        """Report peers without a known address as dead: they said farewell, or another process has the address.

        `ended`: the connection of this one has just ended.
        """
        for session in [session for session in self._ends if session.peer not in known]:
            self._dead(session)
        if ended is not None and ended in self.open:
            self._dead(self.open[ended])

    def close(self) -> None:
        """Stop all retries; nothing is reported any more."""
        self._closed = True
        for task in self._looking.values():
            task.cancel()
        for timer in self._ends.values():
            timer.cancel()

    # Looking for the peer of a connection that was reset

    async def _look_for(self, session: Session) -> None:
        """Call the peer at once. If its address refuses calls, it is probably dead."""
        refusals = 0
        for _ in range(_CALLS_MAX):
            answer = await self._call(session.peer)
            refusals = refusals + 1 if answer is Answer.REFUSED else 0
            if refusals == _REFUSALS:
                self._report_gone(session)
            if refusals == _REFUSALS or answer is Answer.OTHER:
                break
            await asyncio.sleep(_PAUSE_S)
        self._looking.pop(session, None)

    def _suspend(self, session: Session) -> None:
        session.link = None
        if session not in self._ends:
            self._ends[session] = asyncio.get_running_loop().call_later(_RESUME_S, self._end, session)

    def _dead(self, session: Session) -> None:
        self._end(session)
        self._report_gone(session)

    def _report_gone(self, session: Session) -> None:
        if self.receiver is not None and not self._closed:
            self.receiver.gone(session.peer)

    def _end(self, session: Session) -> None:
        """Frames may be lost: to a core, this is the end of the connection."""
        if self.open.get(session.peer) is session:
            del self.open[session.peer]
            self._stop_looking(session)
            if self.receiver is not None and not self._closed:
                self.receiver.broke(session.peer, session.number)

    def _stop_looking(self, session: Session) -> None:
        if session in self._looking:
            self._looking.pop(session).cancel()
        if session in self._ends:
            self._ends.pop(session).cancel()


def offer_in(sealed: Sealed) -> Offer:
    """The offer in this frame; `ProtocolViolation` if it is not one."""
    kind, body = open_envelope(sealed)
    if kind != OFFER or len(body) != _OFFER.size:
        raise ProtocolViolation("kind", f"the second frame of a connection has kind {kind}: it is not an offer")
    return Offer(*_OFFER.unpack(body))


def count_in(sealed: Sealed) -> int:
    """The number of frames that this acknowledgment is about."""
    _, body = open_envelope(sealed)
    if len(body) != _COUNT.size:
        raise ProtocolViolation("body", f"an acknowledgment has {len(body)} bytes")
    (count,) = _COUNT.unpack(body)
    return int(count)


def is_refusal(error: Exception) -> bool:
    """Whether an attempt to connect was refused at every address of that host."""
    if isinstance(error, ConnectionRefusedError):
        return True
    text = str(error)  # asyncio joins the errors of several addresses into one text
    return 0 < text.count("[Errno ") == text.count(f"[Errno {errno.ECONNREFUSED}]")
