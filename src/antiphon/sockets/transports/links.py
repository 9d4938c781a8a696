"""One TCP connection: bytes to frames and back, with its greeting, its offer (`sessions.py`) and its buffers."""

import asyncio
import mmap
import secrets
import socket
from typing import Final, Literal, Protocol

from antiphon.errors import ProtocolViolation
from antiphon.sockets.transports.contract import Address, Unreached
from antiphon.sockets.transports.greeting import GREETING_BYTES_MAX, HELLO, LENGTH, Hello, hello_in
from antiphon.sockets.transports.sessions import RECEIVED, Offer, Session, count_in, offer_in
from antiphon.types import ProcessId
from antiphon.wire.frame import BODY_BYTES_MAX, ENVELOPE_BYTES, Sealed

_BUFFER_BYTES: Final = 1 << 20
"""Large enough for what a member sends in one turn: it is read at once, and so answered once."""
_LARGE_BYTES: Final = 1 << 14
"""Frames from this size on are not copied, neither into a joint write nor out of the read buffer."""
HIGH_WATER_BYTES: Final = 1 << 20
"""Bytes that may wait in a member's connection. Above it, application messages wait and are packed."""
GUEST_BYTES_MAX: Final = 1 << 18
"""Bytes that may wait for a process in no view with us; then its connection ends."""
_GUEST_READ_BYTES: Final = 1 << 14
"""Bytes that are read at once from a process in no view with us."""
_REST_S: Final = 0.05
"""If a process sends too many frames, reading from it pauses for this time."""
GREETING_S: Final = 5.0
"""Timeout for the greeting of the other end, and its offer."""

_MESH_KINDS: Final = range(HELLO, 128)
"""Kinds of the transport's own frames. Families of other packages have the kinds from 128 on."""


class Mesh(Protocol):
    """The calls of a connection to the mesh that it belongs to."""

    def call(self, link: "Link") -> bytes:
        """Our first greeting, to the process that we have called."""

    def opened(self, link: "Link") -> None:
        """A connection is established."""

    def greeted(self, link: "Link", hello: Hello, size_bytes: int) -> None:
        """Its first frame has arrived, with this size."""

    def offered(self, link: "Link", theirs: Offer) -> None:
        """The other end has said how far its session is."""

    def learned(self, link: "Link", hello: Hello) -> None:
        """A later greeting has arrived."""

    def arrived(self, link: "Link", sealed: list[Sealed]) -> None:
        """Frames have arrived."""

    def violated(self, link: "Link", violation: ProtocolViolation) -> None:
        """What arrived is not a valid frame, so the connection ends."""

    def may_read_on(self, link: "Link", frames: int) -> bool:
        """Count frames from a process in no view with us; False if reading from it must pause."""

    def may_hold(self, link: "Link", size_bytes: int) -> bool:
        """Whether this connection may have a read buffer of this size."""

    def filled(self, link: "Link", full: bool) -> None:
        """The buffer of a connection is above its high water, or below its low water again."""

    def lost(self, link: "Link") -> None:
        """The connection has ended."""


class Link(asyncio.BufferedProtocol):
    """Invariant: `peer` is None until the mesh has accepted the greeting, `session` until both ends have made an offer.

    Data that arrives earlier is not taken for protocol frames.
    """

    def __init__(self, mesh: Mesh, *, called: bool, address: Address | None = None) -> None:
        """`called`: the other end opened the connection; otherwise `address` is the one that we call."""
        self._mesh = mesh
        self.called = called
        self.address = address
        self.source = ""
        """The host at the other end."""
        self.claimed = ""
        """The name that the process there gave."""
        self.peer: ProcessId | None = None
        self.failure: Unreached | None = Unreached.CLOSED
        """Why there is no greeting if the connection ends now; None once there is one."""
        self.offer: Offer | None = None
        """Our own, once it is made."""
        self.session: Session | None = None
        self.is_ended_for_good = False
        """Whether this end has closed it because the session must not go on."""
        self.token = secrets.randbits(63)
        self.ended = asyncio.Event()
        self._least_bytes = 0  # the size that the read buffer should have
        self._buffer = _empty_buffer(GREETING_BYTES_MAX)
        self._begin = self._end = 0  # received bytes that are not yet split into frames
        self._transport: asyncio.Transport | None = None
        self._beginning: asyncio.TimerHandle | None = None

    def accept(self, peer: ProcessId, offer: Offer) -> None:
        """Accept the greeting of that peer; `offer` tells it how far our session is."""
        self.peer, self.offer = peer, offer
        self.write(offer.sealed())

    def trust(self) -> None:
        """The peer is in a view with us: it gets the buffers of a member."""
        self._least_bytes = _BUFFER_BYTES
        if self._transport is not None:
            self._transport.set_write_buffer_limits(high=HIGH_WATER_BYTES)
            self._transport.resume_reading()

    def distrust(self) -> None:
        """The peer is in no view with us any more: it has the buffers of a guest. What waits for it may still leave."""
        self._least_bytes = 0
        if self.larger_bytes and self._end - self._begin < GREETING_BYTES_MAX:
            self._replace_buffer(GREETING_BYTES_MAX)
        if self._transport is not None:
            waiting = self._transport.get_write_buffer_size()
            self._transport.set_write_buffer_limits(high=max(GUEST_BYTES_MAX, waiting))

    @property
    def larger_bytes(self) -> int:
        """The size of the read buffer; 0 for the first one."""
        size = len(self._buffer)
        return size if size > GREETING_BYTES_MAX else 0

    def write(self, sealed: bytes) -> None:
        """Write at once, ahead of frames that wait in the session."""
        if self._transport is not None and sealed:
            self._transport.write(sealed)

    def write_all(self, frames: list[bytes]) -> None:
        """Small frames in one write, large ones as they are."""
        if len(frames) == 1:  # the usual case under light load
            if self._transport is not None:
                self._transport.write(frames[0])
            return
        small: list[bytes] = []
        for sealed in frames:
            if len(sealed) < _LARGE_BYTES:
                small.append(sealed)
            else:
                self.write(b"".join(small))
                self.write(sealed)
                small = []
        self.write(small[0] if len(small) == 1 else b"".join(small))

    def end(self) -> None:
        """Close after the write buffer is empty."""
        if self._transport is not None:
            self._transport.close()
        else:
            self.ended.set()

    def abort(self, *, for_good: bool = False) -> None:
        """Close at once; `for_good`: the session ends with it."""
        self.is_ended_for_good = self.is_ended_for_good or for_good
        if self._transport is not None:
            self._transport.abort()

    # Calls of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The caller greets first: an unknown process gets nothing before it has given its name."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.source = (transport.get_extra_info("peername") or ("?",))[0]
        # asyncio does it only for sockets that name their protocol. Without it, an answer may wait 40 ms for a
        # delayed acknowledgment of the peer.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport.set_write_buffer_limits(high=GUEST_BYTES_MAX)
        self._beginning = asyncio.get_running_loop().call_later(GREETING_S, self._give_up)
        self._mesh.opened(self)
        if not self.called and not transport.is_closing():
            transport.write(self._mesh.call(self))

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """The free part of the read buffer; `_make_room` has enlarged it if a frame needs that."""
        return (
            self._buffer[self._end :] if self._least_bytes else self._buffer[self._end : self._end + _GUEST_READ_BYTES]
        )

    def buffer_updated(self, nbytes: int) -> None:
        """Take out every whole frame."""
        self._end += nbytes
        frames: list[Sealed] = []
        try:
            needed = self._split(frames)
            if self.peer is None and frames:
                self._greet(frames.pop(0))
            if self.peer is not None and self.session is None and frames:
                self._take_offer(frames.pop(0))
            if self.session is not None and frames:
                self._take(frames)
            self._make_room(needed)
            if not self._least_bytes:
                self._pace(len(frames))
        except ProtocolViolation as violation:
            self._mesh.violated(self, violation)
            self.abort(for_good=True)
        except BaseException:
            self.is_ended_for_good = True  # frames count as received, and some were not processed: asyncio closes it
            raise

    def _pace(self, frames: int) -> None:
        """Limit the time that a process in no view with us can take."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._least_bytes or self._mesh.may_read_on(self, frames):
            transport.resume_reading()
        else:
            transport.pause_reading()
            asyncio.get_running_loop().call_later(_REST_S, self._pace, 0)

    def _split(self, frames: list[Sealed]) -> int:
        """Move complete frames into `frames`; returns the size of the incomplete one, as far as it is known."""
        buffer, begin, end = self._buffer, self._begin, self._end
        needed = ENVELOPE_BYTES
        while end - begin >= ENVELOPE_BYTES:
            (length,) = LENGTH.unpack_from(buffer, begin)
            if length > (BODY_BYTES_MAX if self.peer is not None else GREETING_BYTES_MAX - ENVELOPE_BYTES):
                raise ProtocolViolation("length", f"a body of {length} bytes exceeds the limit")
            needed = ENVELOPE_BYTES + length
            if end - begin < needed:
                break
            frame = buffer[begin : begin + needed]
            frames.append(bytes(frame) if length < _LARGE_BYTES else frame)
            begin += needed
            needed = ENVELOPE_BYTES
        self._begin = begin
        return needed

    def _make_room(self, needed: int) -> None:
        left = self._end - self._begin
        if self._begin and (not left or len(self._buffer) - self._begin < needed):
            self._buffer[:left] = self._buffer[self._begin : self._end]
            self._begin, self._end = 0, left
        if len(self._buffer) < needed or len(self._buffer) < self._least_bytes:
            size = max(needed + self._least_bytes, GREETING_BYTES_MAX)
            if self._mesh.may_hold(self, size):
                self._replace_buffer(size)
            else:
                self.abort(for_good=True)

    def _replace_buffer(self, size_bytes: int) -> None:
        left = self._end - self._begin
        other = _empty_buffer(size_bytes)
        other[:left] = self._buffer[self._begin : self._end]
        self._buffer, self._begin, self._end = other, 0, left

    def _greet(self, sealed: Sealed) -> None:
        hello = hello_in(sealed, "first")
        self.failure = None
        self._mesh.greeted(self, hello, len(sealed))

    def _take_offer(self, sealed: Sealed) -> None:
        self._mesh.offered(self, offer_in(sealed))
        if self.session is not None:
            self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._beginning is not None:
            self._beginning.cancel()

    def _give_up(self) -> None:
        self.failure = Unreached.SILENT
        self.abort()

    def _take(self, frames: list[Sealed]) -> None:
        """The frames of the core stay together: separate calls would cost it more turns."""
        for sealed in frames:
            if sealed[5] in _MESH_KINDS:  # rare: for the transport, not for the core
                frames = self._hear_own(frames)
                break
        if frames:
            self._mesh.arrived(self, frames)

    def _hear_own(self, frames: list[Sealed]) -> list[Sealed]:
        """Process the frames of the transport; returns the others."""
        for sealed in frames:
            if sealed[5] in _MESH_KINDS:
                self._hear(sealed)
        return [sealed for sealed in frames if sealed[5] not in _MESH_KINDS]

    def _hear(self, sealed: Sealed) -> None:
        if sealed[5] == RECEIVED and self.session is not None:
            self.session.acknowledged(count_in(sealed))
        else:
            self._mesh.learned(self, hello_in(sealed, "later"))

    def pause_writing(self) -> None:
        """Above high water."""
        self._mesh.filled(self, True)

    def resume_writing(self) -> None:
        """Below low water."""
        self._mesh.filled(self, False)

    def eof_received(self) -> Literal[False]:
        """The other side has closed: so do we."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """The connection has ended."""
        self._stop_waiting()
        self._transport = None
        self._mesh.lost(self)
        self.ended.set()


def _empty_buffer(size_bytes: int) -> memoryview:
    """A mapped buffer: only pages that were written to take memory."""
    return memoryview(mmap.mmap(-1, size_bytes))
