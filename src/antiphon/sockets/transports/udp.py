"""Datagrams between processes, each of which has one address: what is lost, the cores repair (newtop.md 4, 11.4).

There are no connections. Whoever knows an address says there who it is and whom it hears (`hello`), again and again
until it is answered, and more slowly after that: so one address is enough to get to know everybody, and who answers no
more is noticed. A datagram holds as many frames for one peer as fit; a frame larger than that leaves in pieces. With a
multicast address, what is for several leaves once, for all who listen there.
"""

import asyncio
import logging
import math
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from antiphon.errors import ConfigurationError, ProtocolViolation
from antiphon.sockets.transports.contract import Address, Receiver
from antiphon.sockets.transports.datagrams import DatagramSocket, Sockaddr, bound_socket, listening_socket
from antiphon.sockets.transports.pieces import PIECE, Piece, Puzzles, cut
from antiphon.types import ProcessId, split_process_id
from antiphon.wire.codec import sender_of
from antiphon.wire.frame import envelopes, open_envelope, seal
from antiphon.wire.names import decode_process

_log = logging.getLogger("antiphon.udp")
_HELLO: Final = 64
_RETRY_S: Final = (0.05, 2.0)
"""First and longest pause between two hellos to an address; the longest also between those that are answered."""
_LOST_S: Final = 10.0
"""Whoever is not heard for so long is no peer until it is heard again."""
_FORGET_S: Final = 60.0
"""For so long it is called all the same; addresses that the user has named are called for ever."""
_TRIES_MAX: Final = 8
"""So often somebody is called of whom we have only heard; who hears it now will tell us again."""
_TOLD_MAX: Final = 16
"""So many others are named in one hello, all of them in turn."""
_ANYWHERE: Final = ("", "0.0.0.0", "::")  # noqa: S104 - not bound here, but told by others


class _Hello(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Who speaks, where it is, and where others are."""

    process: str
    host: str
    port: int
    multicast: str = ""
    """The address at which it listens beside its own."""
    asks: bool = False
    """It wants to be answered."""
    gone: bool = False
    """It will not be here any more."""
    others: tuple[tuple[str, int], ...] = ()


@dataclass(slots=True, eq=False)
class _Contact:
    """An address at which somebody is, or may be."""

    address: Address
    named: bool
    """By the user, not by others: it is called for ever."""
    to: Sockaddr | None
    """What it is to a socket, as far as that is known."""
    process: ProcessId | None = None
    """Who was heard from there last."""
    listens: bool = False
    """At the multicast address that we send to."""
    heard_at: float = -math.inf
    told: int = 0
    """How many others we have told it of, the same ones again too."""
    puzzles: Puzzles = field(default_factory=Puzzles)


class UdpMesh:
    """The transport of one process."""

    streams: Final = False

    def __init__(
        self,
        me: ProcessId,
        bind: Address,
        peers: Iterable[Address] = (),
        *,
        advertise: Address | None = None,
        multicast: Address | None = None,
        datagram_bytes: int = 8192,
    ) -> None:
        """`advertise`: where others reach us, if not where we are bound; `datagram_bytes`: none is larger."""
        self._me = me
        self._bind = bind
        self._advertise = advertise
        self.address = advertise or bind
        """Where others find us; with port 0, known once we are bound."""
        self._multicast = multicast
        self._listens_at = "" if multicast is None else "{}:{}".format(*multicast)
        self._seeds = {*peers}
        self.alone = not self._seeds
        self._datagram_bytes = datagram_bytes
        self._contacts: dict[Address, _Contact] = {}
        self._met: dict[ProcessId, _Contact] = {}
        self._callers: dict[_Contact, asyncio.Task[None]] = {}
        self._forbidden: frozenset[str] = frozenset()
        self._waiting: dict[Sockaddr, list[bytes]] = {}
        self._sockets: list[DatagramSocket] = []

    async def open(self, receiver: Receiver) -> None:
        """Be bound, then call the peers."""
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        host, port = self._bind
        found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE)
        self._family: int = found[0][0]
        bound = bound_socket(self._family, found[0][4])
        if self._multicast is not None:
            try:
                listening = listening_socket(self._multicast, bound)
            except (OSError, ConfigurationError):
                bound.close()
                raise
            self._sockets.append(DatagramSocket(listening, self._overheard, lambda _: None))
        self._sockets.insert(0, DatagramSocket(bound, self._arrived, self._filled))
        if self._advertise is None:
            self.address = host, bound.getsockname()[1]
        for address in self._seeds:
            self._call(address, named=True)

    @property
    def peers(self) -> tuple[ProcessId, ...]:
        """Whom we hear."""
        return tuple(sorted(self._met))

    def connection(self, peer: ProcessId) -> int | None:
        """There are none; whom we hear has, as it were, one for ever."""
        return 0 if peer in self._met else None

    def send(self, sealed: bytes, peers: Iterable[ProcessId]) -> None:
        """What is for somebody whom we do not hear is lost."""
        found = [contact for peer in peers if (contact := self._met.get(peer)) is not None]
        if self._forbidden:
            found = [contact for contact in found if _name(contact) not in self._forbidden]
        if self._multicast is not None and sum(contact.listens for contact in found) > 1:
            self._waiting.setdefault(self._multicast, []).append(sealed)
            found = [contact for contact in found if not contact.listens]
        for contact in found:
            if contact.to is not None:
                self._waiting.setdefault(contact.to, []).append(sealed)

    def flush(self) -> None:
        """As few datagrams as hold it, and as few calls as the kernel lets them leave by."""
        waiting, self._waiting = self._waiting, {}
        for to, frames in waiting.items():
            self.transmit(self._packed(frames), to)

    def transmit(self, datagrams: list[bytes], to: Sockaddr) -> None:
        """Let datagrams leave for one address."""
        self._sockets[0].send(datagrams, to)

    def heed(self, members: frozenset[ProcessId]) -> None:
        """No socket waits for a peer."""

    async def close(self) -> None:
        """Say so, and be gone."""
        for contact in self._met.values():
            self._greet(contact, gone=True)
        for each in self._sockets:
            each.close()
        callers = [*self._callers.values()]
        for caller in callers:
            caller.cancel()
        await asyncio.gather(*callers, return_exceptions=True)

    def _packed(self, frames: list[bytes]) -> list[bytes]:
        datagrams: list[bytes] = []
        together: list[bytes] = []
        room = self._datagram_bytes
        for sealed in frames:
            if together and len(sealed) > room:
                datagrams.append(b"".join(together))
                together, room = [], self._datagram_bytes
            if len(sealed) > self._datagram_bytes:
                datagrams += cut(sealed, self._me, self._datagram_bytes)
            else:
                together.append(sealed)
                room -= len(sealed)
        if together:
            datagrams.append(b"".join(together))
        return datagrams

    def meet(self, addresses: Iterable[Address]) -> None:
        """Get to know whoever is there."""
        for address in addresses:
            self._call(address, named=True)

    def forbid(self, names: frozenset[str]) -> None:
        """Send nothing to the processes of these names, as in a partition, until others are named, or none."""
        self._forbidden = names

    # Calling

    def _call(self, address: Address, *, named: bool = False) -> _Contact | None:
        """Whoever is there; nobody where we are ourselves."""
        contact = self._contacts.get(address)
        if contact is None and address != self.address:
            contact = self._contacts[address] = _Contact(address, named, self._literal(address))
            self._callers[contact] = caller = self._loop.create_task(self._keep_calling(contact))
            caller.add_done_callback(lambda _: self._callers.pop(contact, None))
        return contact

    async def _keep_calling(self, contact: _Contact) -> None:
        pause, longest = _RETRY_S
        tries = 0
        while contact.named or tries < _TRIES_MAX or self._loop.time() - contact.heard_at <= _FORGET_S:
            heard = None if contact.process is None else self._met.get(contact.process)
            if heard is None:
                await self._locate(contact)
            if heard in (None, contact):  # else it is called by the address that it tells itself
                self._greet(contact, asks=True)
            tries += 1
            await asyncio.sleep(pause)
            pause = min(2 * pause, longest)
            if self._hears(contact) and self._loop.time() - contact.heard_at > _LOST_S:
                self._part(contact)
        del self._contacts[contact.address]

    def _hears(self, contact: _Contact) -> bool:
        return contact.process is not None and self._met.get(contact.process) is contact

    async def _locate(self, contact: _Contact) -> None:
        """A name may stand for another address than before."""
        literal = self._literal(contact.address)
        if literal is not None:
            contact.to = literal
            return
        try:
            found = await self._loop.getaddrinfo(*contact.address, family=self._family, type=socket.SOCK_DGRAM)
        except (OSError, UnicodeError):
            return
        contact.to = found[0][4]

    def _literal(self, address: Address) -> Sockaddr | None:
        try:
            socket.inet_pton(self._family, address[0])
        except (OSError, ValueError):
            return None
        return address if self._family == socket.AF_INET else (*address, 0, 0)

    def _greet(self, contact: _Contact, *, asks: bool = False, gone: bool = False) -> None:
        if contact.to is None:
            return
        others = self._others(contact)
        while True:
            hello = _Hello(self._me, *self.address, self._listens_at, asks, gone, others)
            sealed = seal(_HELLO, msgspec.msgpack.encode(hello))
            if len(sealed) <= self._datagram_bytes or not others:
                break
            others = others[: len(others) // 2]
        self.transmit([sealed], contact.to)

    def _others(self, contact: _Contact) -> tuple[Address, ...]:
        known = [self._met[peer].address for peer in sorted(self._met) if self._met[peer] is not contact]
        begin = contact.told % len(known) if known else 0
        contact.told += _TOLD_MAX
        return tuple((known[begin:] + known[:begin])[:_TOLD_MAX])

    # What comes

    def _arrived(self, datagram: bytes, source: Sockaddr) -> None:
        self._take(datagram, source, overheard=False)

    def _overheard(self, datagram: bytes, source: Sockaddr) -> None:
        self._take(datagram, source, overheard=True)

    def _take(self, datagram: bytes, source: Sockaddr, *, overheard: bool) -> None:
        try:
            frames = envelopes(datagram)
            kind = frames[0][5]
            if kind == _HELLO:
                self._greeted(_hello_in(frames[0]), source)
            elif kind == PIECE:
                self._join(Piece(frames[0]), overheard=overheard)
            else:
                self._hand_over(sender_of(frames[0]), frames, overheard=overheard)
        except ProtocolViolation as violation:
            _log.warning("a datagram from %s is dropped: %s", source, violation)

    def _hand_over(self, peer: ProcessId, frames: list[bytes], *, overheard: bool) -> None:
        contact = self._met.get(peer)
        if contact is not None:
            contact.heard_at = self._loop.time()
            self._receiver.arrived(peer, 0, frames, overheard=overheard)

    def _join(self, piece: Piece, *, overheard: bool) -> None:
        contact = self._met.get(piece.sender)
        whole = None if contact is None else contact.puzzles.add(piece)
        if whole is not None:
            self._hand_over(piece.sender, [whole], overheard=overheard)

    def _greeted(self, hello: _Hello, source: Sockaddr) -> None:
        peer = decode_process(hello.process.encode())
        address = source[0] if hello.host in _ANYWHERE else hello.host, hello.port
        if peer == self._me:
            self._forget(source)
        elif hello.gone:
            self._farewell(peer)
        elif not any(_succeeds(other, peer) for other in self._met):
            contact = self._call(address)
            if contact is not None:
                contact.to = contact.to or source
                self._meet(peer, contact, hello)
                self._note_names(peer, contact, source)

    def _meet(self, peer: ProcessId, contact: _Contact, hello: _Hello) -> None:
        """Somebody is there: it hears us, if it asks, and we hear it."""
        known = self._met.get(peer) is contact
        if not known:
            self._replace(peer, contact)
        contact.heard_at = self._loop.time()
        contact.listens = hello.multicast == self._listens_at
        for other in hello.others:
            self._call(other)
        if hello.asks:
            self._greet(contact)
        if not known:
            self._receiver.connected(peer)

    def _replace(self, peer: ProcessId, contact: _Contact) -> None:
        """Whoever was at that address is gone; so are earlier incarnations, and it is not elsewhere any more."""
        if self._hears(contact):
            self._part(contact)
        for other in [other for other in self._met if other == peer or _succeeds(peer, other)]:
            self._farewell(other)
        contact.process, contact.puzzles = peer, Puzzles()
        self._met[peer] = contact

    def _note_names(self, peer: ProcessId, contact: _Contact, source: Sockaddr) -> None:
        """The user may have named it otherwise than it does itself."""
        for other in self._contacts.values():
            if other.named and other is not contact and other.to == source:
                other.process = peer

    def _part(self, contact: _Contact) -> None:
        assert contact.process is not None
        del self._met[contact.process]

    def _farewell(self, peer: ProcessId) -> None:
        """It will not come back; whoever was named may, as another."""
        contact = self._met.pop(peer, None)
        if contact is not None:
            contact.process = None
            if not contact.named:
                self._stop_calling(contact)

    def _forget(self, source: Sockaddr) -> None:
        """That is our own address, by another name."""
        for contact in [contact for contact in self._contacts.values() if contact.to == source]:
            self._stop_calling(contact)

    def _stop_calling(self, contact: _Contact) -> None:
        del self._contacts[contact.address]
        self._callers[contact].cancel()

    def _filled(self, full: bool) -> None:
        self._receiver.writable(not full)


def _succeeds(one: ProcessId, other: ProcessId) -> bool:
    """Whether it is a later incarnation of the same process."""
    (name, incarnation), (other_name, other_incarnation) = split_process_id(one), split_process_id(other)
    return name == other_name and incarnation > other_incarnation


def _hello_in(sealed: bytes) -> _Hello:
    _, body = open_envelope(sealed)
    try:
        hello = msgspec.msgpack.decode(body, type=_Hello)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ProtocolViolation("body", f"a process says in a strange way who it is: {error}") from None
    ports = [hello.port, *(port for _, port in hello.others)]
    if len(hello.others) > _TOLD_MAX or not all(0 < port < 1 << 16 for port in ports):
        raise ProtocolViolation("body", "a process tells of more others than it may, or of impossible ports")
    return hello


def _name(contact: _Contact) -> str | None:
    return None if contact.process is None else split_process_id(contact.process)[0]
