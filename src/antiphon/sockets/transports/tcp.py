"""A mesh of TCP connections: one for each pair of processes, and each process listens at one address.

Whoever connects says who it is (`hello`), where it listens, and whom it knows; so one address is enough to get to know
everybody; who closes says that too. Whom nobody reaches for long is forgotten, unless the user has named its address.
Of two processes the one with the lower identity makes the connection that frames use. If the other one
comes first, knowing nothing but an address, that is an introduction: it is told who is here, and is called back. Hence
no two connections ever compete. A connection that ends may have lost frames: it is over for the groups that used it,
the next one has the next number (docs/spec/newtop.md 1, E-47).
"""

import asyncio
import logging
import mmap
import struct
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from antiphon.errors import ConfigurationError, ProtocolViolation
from antiphon.sockets.transports.contract import Address, Receiver
from antiphon.types import ProcessId, split_process_id
from antiphon.wire.frame import BODY_BYTES_MAX, ENVELOPE_BYTES, Sealed, open_envelope, seal
from antiphon.wire.names import decode_process

_log = logging.getLogger("antiphon.tcp")
_LENGTH: Final = struct.Struct(">I")
_HELLO: Final = 64
"""The kind of the first frame on a connection; the range above 63 is no protocol's."""
_BUFFER_BYTES: Final = 1 << 20
"""What a peer sends in one turn is read in one piece, if it is there, and so answered once. No greeting is longer."""
_LARGE_BYTES: Final = 1 << 14
"""A frame of so many bytes is not copied to be written with others, nor to be read."""
HIGH_WATER_BYTES: Final = 1 << 20
"""So much may wait in one connection before messages of applications gather instead (packing)."""
_RETRY_S: Final = (0.05, 2.0)
"""First and longest pause between two attempts to connect."""
_TRIES_MAX: Final = 35
"""So often somebody is called who does not answer: for a minute if the call is refused, for four if it is lost.

Addresses that the user has named are called for ever.
"""
_GREETING_S: Final = 5.0
"""So long a stranger may take to say who it is."""
_OTHERS_MAX: Final = 1024
"""So many others we may be told of: we call them all."""
_FAREWELL_S: Final = 1.0
"""So long peers may take to read what we said last."""


class _Hello(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Who speaks, where it listens, and where others do."""

    process: str
    host: str
    port: int
    others: tuple[tuple[str, str, int], ...] = ()
    gone: bool = False
    """It will not be here any more."""


class TcpMesh:
    """The transport of one process."""

    streams: Final = True

    def __init__(
        self, me: ProcessId, bind: Address, peers: Iterable[Address] = (), *, advertise: Address | None = None
    ) -> None:
        """`advertise`: where others reach us, if not where we listen."""
        self._me = me
        self._bind = bind
        self._advertise = advertise
        self.address = advertise or bind
        """Where others find us; with port 0, known once we listen."""
        self._seeds = {*peers}
        self.alone = not self._seeds
        self._forbidden: frozenset[str] = frozenset()
        self._addresses: dict[ProcessId, Address] = {}
        self._latest: dict[str, ProcessId] = {}  # by name, its incarnation among them: there is one
        self._links: dict[ProcessId, _Link] = {}
        self._numbers: dict[ProcessId, int] = {}
        self._next_number = 0  # of a connection with somebody of whom we know nothing: he may be one whom we forgot
        self._callers: dict[Address, asyncio.Task[None]] = {}
        self._full: set[_Link] = set()
        self._dirty: list[_Link] = []
        self._strangers: set[_Link] = set()
        self._server: asyncio.Server | None = None
        self._is_crowded = self._closing = False

    async def open(self, receiver: Receiver) -> None:
        """Listen, then call the peers."""
        self._receiver = receiver
        loop = asyncio.get_running_loop()
        host, port = self._bind
        try:
            self._server = await loop.create_server(lambda: _Link(self, called=True), host, port, start_serving=False)
        except OSError as error:
            raise ConfigurationError(f"cannot listen at {host}:{port}: {error.strerror or error}") from None
        await self._server.start_serving()
        if self._advertise is None:
            self.address = host, self._server.sockets[0].getsockname()[1]
        for address in self._seeds:
            self._call(address)

    @property
    def peers(self) -> tuple[ProcessId, ...]:
        """Whom we are connected with."""
        return tuple(sorted(self._links))

    def connection(self, peer: ProcessId) -> int | None:
        """The number of the connection with it."""
        link = self._links.get(peer)
        return None if link is None else link.number

    def send(self, sealed: bytes, peers: Iterable[ProcessId]) -> None:
        """What is for somebody without a connection is lost."""
        for peer in peers:
            link = self._links.get(peer)
            if link is not None:
                if not link.waiting:
                    self._dirty.append(link)
                link.waiting.append(sealed)

    def flush(self) -> None:
        """One write for each connection."""
        dirty, self._dirty = self._dirty, []
        for link in dirty:
            link.flush()

    def heed(self, members: frozenset[ProcessId]) -> None:
        """A connection that is full and of use to no group ends: whoever reads nothing must not hold up the others."""
        for link in [link for link in self._full if link.peer not in members]:
            link.abort()

    async def close(self) -> None:
        """What is in the buffers of connections still leaves, as long as the peers take it."""
        self._closing = True
        for task in self._callers.values():
            task.cancel()
        if self._server is not None:
            self._server.close()
        links = [*self._links.values(), *self._strangers]
        for link in self._links.values():
            link.write(self.hello(gone=True))
        for link in links:
            link.end()
        try:
            async with asyncio.timeout(_FAREWELL_S):
                for link in links:
                    await link.ended.wait()
        except TimeoutError:
            pass
        finally:
            for link in links:
                link.abort()
        await asyncio.gather(*self._callers.values(), return_exceptions=True)

    def meet(self, addresses: Iterable[Address]) -> None:
        """Get to know whoever is there."""
        for address in addresses:
            self._seeds.add(address)
            self._call(address)

    def forbid(self, names: frozenset[str]) -> None:
        """Be cut off from the processes of these names, as by a partition, until others are named, or none."""
        self._forbidden = names
        for link in [link for peer, link in self._links.items() if split_process_id(peer)[0] in names]:
            link.abort()

    # Calling

    def _call(self, address: Address) -> None:
        if address != self.address and address not in self._callers and not self._closing:
            self._callers[address] = asyncio.get_running_loop().create_task(self._keep_calling(address))

    async def _keep_calling(self, address: Address) -> None:
        """As long as there is no connection with whoever is there, try to make one."""
        pause, longest = _RETRY_S
        tries = 0
        while address in self._seeds or address in self._addresses.values():
            if self._wanted(address):
                tries += 1
                link = await self._try(address)
                if link is not None:
                    await link.ended.wait()
                    if link.peer is not None:  # else it refused us, or is to call us: no reason to hurry
                        pause, tries = _RETRY_S[0], 0
            else:
                tries = 0
            if tries >= _TRIES_MAX and address not in self._seeds and self._wanted(address):
                self._forget(peer for peer, known in [*self._addresses.items()] if known == address)
            await asyncio.sleep(pause)
            pause = min(2 * pause, longest)
        del self._callers[address]

    def _wanted(self, address: Address) -> bool:
        return not any(self._addresses.get(peer) == address for peer in self._links)

    def _forget(self, peers: Iterable[ProcessId]) -> None:
        """They are called no more; should one come back all the same, its connections are counted on."""
        for peer in peers:
            if self._addresses.pop(peer, None) is not None:
                del self._latest[split_process_id(peer)[0]]
            self._next_number = max(self._next_number, self._numbers.pop(peer, -1) + 1)

    async def _try(self, address: Address) -> "_Link | None":
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_GREETING_S):
                _, link = await loop.create_connection(lambda: _Link(self, called=False), *address)
        except (OSError, TimeoutError, ValueError):
            return None  # nobody is there, or that is no host
        return link

    # What links tell

    def hello(self, *, gone: bool = False) -> bytes:
        """Our first frame on any connection, and our last."""
        return self._introduction(() if gone else self.peers, gone=gone)

    def _introduction(self, peers: Iterable[ProcessId], *, gone: bool = False) -> bytes:
        """Tells of those with whom we are connected: rumours of others would never end."""
        others = tuple((peer, *self._addresses[peer]) for peer in peers if peer in self._addresses)[:_OTHERS_MAX]
        return seal(_HELLO, msgspec.msgpack.encode(_Hello(self._me, *self.address, others, gone)))

    def opened(self, link: "_Link") -> None:
        """A connection is there; who it is with, its first frame will tell."""
        self._strangers.add(link)
        if self._closing:
            link.abort()

    def greeted(self, link: "_Link", hello: _Hello) -> None:
        """We know who is there: a connection for frames, or an introduction."""
        self._strangers.discard(link)
        peer = decode_process(hello.process.encode())
        if peer == self._me or split_process_id(peer)[0] in self._forbidden:
            link.end()
            return
        self._note(peer, (hello.host, hello.port))
        self._forget(self._displaced_by(peer))
        self.learned(hello)
        if (self._me < peer) is link.called:
            link.end()  # introduced; the lower one calls
            self._call((hello.host, hello.port))
            return
        if peer in self._links:
            self._links[peer].abort()  # it has ended over there, and we have not heard of it yet
            self.lost(self._links[peer])
        link.peer, link.number = peer, self._numbers.get(peer, self._next_number - 1) + 1
        self._numbers[peer] = link.number
        self._links[peer] = link
        self._spread(peer)
        self._receiver.connected(peer)

    def _spread(self, newcomer: ProcessId) -> None:
        """Those we are connected with shall know."""
        introduction = self._introduction([newcomer])
        for peer, link in self._links.items():
            if peer != newcomer:
                link.write(introduction)

    def _displaced_by(self, peer: ProcessId) -> list[ProcessId]:
        """Who was where it is now, and is gone."""
        address = self._addresses.get(peer)
        return [
            other
            for other, known in self._addresses.items()
            if known == address and other != peer and other not in self._links
        ]

    def learned(self, hello: _Hello) -> None:
        """A peer knows somebody new, or will be gone."""
        if hello.gone:
            self._forget([decode_process(hello.process.encode())])
        for name, host, port in hello.others:
            peer = decode_process(name.encode())
            if peer == self._me or peer in self._addresses or not self._has_room_for(peer):
                continue
            if self._note(peer, (host, port)):
                self._call((host, port))

    def _has_room_for(self, peer: ProcessId) -> bool:
        """Whether we may be told of it: who stands for an earlier incarnation of itself takes no more room."""
        if len(self._addresses) < _OTHERS_MAX or split_process_id(peer)[0] in self._latest:
            return True
        if not self._is_crowded:
            self._is_crowded = True
            _log.warning("there are more processes than the %s that we call at most", _OTHERS_MAX)
        return False

    def _note(self, peer: ProcessId, address: Address) -> bool:
        """Where a process listens; unless it has been started anew since, which ends what it was before."""
        name, incarnation = split_process_id(peer)
        known = self._latest.get(name)
        if known is not None and known != peer:
            if split_process_id(known)[1] > incarnation:
                return False
            self._forget([known])
        self._latest[name] = peer
        self._addresses[peer] = address
        return True

    def arrived(self, link: "_Link", sealed: list[Sealed]) -> None:
        """Frames of a peer."""
        assert link.peer is not None
        if self._links.get(link.peer) is link:
            self._receiver.arrived(link.peer, link.number, sealed)

    def filled(self, link: "_Link", full: bool) -> None:
        """The buffer of a connection is above its high water, or below its low water again."""
        before = bool(self._full)
        if full:
            self._full.add(link)
        else:
            self._full.discard(link)
        if bool(self._full) is not before:
            self._receiver.writable(not self._full)

    def lost(self, link: "_Link") -> None:
        """A connection has ended."""
        self._strangers.discard(link)
        self.filled(link, False)
        if link.peer is not None and self._links.get(link.peer) is link:
            del self._links[link.peer]
            if not self._closing:
                self._receiver.broke(link.peer, link.number)
                if link.peer in self._addresses:  # else it has been started anew
                    self._call(self._addresses[link.peer])


class _Link(asyncio.BufferedProtocol):
    """One connection: bytes to frames and back."""

    def __init__(self, mesh: TcpMesh, *, called: bool) -> None:
        self._mesh = mesh
        self.called = called
        """By the other side."""
        self.peer: ProcessId | None = None
        self.number = -1
        self.waiting: list[bytes] = []
        self.ended = asyncio.Event()
        self._buffer = _empty_buffer(_BUFFER_BYTES)
        self._begin = self._end = 0  # what has come and is not taken out yet
        self._transport: asyncio.Transport | None = None
        self._greeting: asyncio.TimerHandle | None = None

    def write(self, sealed: bytes) -> None:
        """At once, before what waits."""
        if self._transport is not None and sealed:
            self._transport.write(sealed)

    def flush(self) -> None:
        """All that waits: small frames in one write, large ones as they are."""
        waiting, self.waiting = self.waiting, []
        small: list[bytes] = []
        for sealed in waiting:
            if len(sealed) < _LARGE_BYTES:
                small.append(sealed)
            else:
                self.write(b"".join(small))
                self.write(sealed)
                small = []
        self.write(small[0] if len(small) == 1 else b"".join(small))

    def end(self) -> None:
        """Let what is written leave, then close."""
        if self._transport is not None:
            self._transport.close()
        else:
            self.ended.set()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    # What asyncio tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say who we are."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=HIGH_WATER_BYTES)
        self._mesh.opened(self)
        self._greeting = asyncio.get_running_loop().call_later(_GREETING_S, self.abort)
        transport.write(self._mesh.hello())

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Room behind what has come; for a frame larger than the buffer, a larger one."""
        return self._buffer[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        """Take out every whole frame."""
        self._end += nbytes
        frames: list[Sealed] = []
        try:
            needed = self._split(frames)
            if self.peer is None and frames:
                self._greet(frames.pop(0))
            if self.peer is not None and frames:
                self._take(frames)
        except ProtocolViolation as violation:
            _log.warning("closing the connection with %s: %s", self.peer or "a stranger", violation)
            self.abort()
            return
        self._make_room(needed)

    def _split(self, frames: list[Sealed]) -> int:
        """Gives how long the frame is that has come in part, as far as that is known."""
        buffer, begin, end = self._buffer, self._begin, self._end
        needed = ENVELOPE_BYTES
        while end - begin >= ENVELOPE_BYTES:
            (length,) = _LENGTH.unpack_from(buffer, begin)
            if length > (BODY_BYTES_MAX if self.peer is not None else _BUFFER_BYTES - ENVELOPE_BYTES):
                raise ProtocolViolation("length", f"a body of {length} bytes is longer than any may be")
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
        if len(self._buffer) < needed:
            larger = _empty_buffer(needed + _BUFFER_BYTES)
            larger[:left] = self._buffer[self._begin : self._end]
            self._buffer, self._begin, self._end = larger, 0, left

    def _greet(self, sealed: Sealed) -> None:
        if self._greeting is not None:
            self._greeting.cancel()
        self._mesh.greeted(self, _hello_in(sealed, "first"))

    def _take(self, frames: list[Sealed]) -> None:
        begin = 0
        for place, sealed in enumerate(frames):
            if sealed[5] == _HELLO:  # rarely: somebody is new over there
                self._mesh.arrived(self, frames[begin:place])
                self._mesh.learned(_hello_in(sealed, "later"))
                begin = place + 1
        if begin < len(frames):
            self._mesh.arrived(self, frames[begin:] if begin else frames)

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
        """It is over."""
        if self._greeting is not None:
            self._greeting.cancel()
        self._transport = None
        self.waiting.clear()
        self._mesh.lost(self)
        self.ended.set()


def _empty_buffer(size_bytes: int) -> memoryview:
    """Of this much only the pages that something was read into are really there."""
    return memoryview(mmap.mmap(-1, size_bytes))


def _hello_in(sealed: Sealed, which: str) -> _Hello:
    kind, body = open_envelope(sealed)
    if kind != _HELLO:
        raise ProtocolViolation("kind", f"the {which} frame of a connection has kind {kind}, and says not who is there")
    try:
        hello = msgspec.msgpack.decode(body, type=_Hello)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ProtocolViolation("body", f"a process says in a strange way who it is: {error}") from None
    if len(hello.others) > _OTHERS_MAX:
        raise ProtocolViolation("body", f"a process says that it knows {len(hello.others):,} others")
    for name, _, port in ((hello.process, hello.host, hello.port), *hello.others):
        decode_process(name.encode())
        if not 0 < port < 65_536:
            raise ProtocolViolation("body", f"{name} does not listen at port {port}")
    return hello
