"""Datagrams between processes with one address each; the cores repair losses (newtop.md 4, 11.4).

There are no connections. A process that knows an address sends its name and the peers that it hears there (`hello`). It
repeats this until it is answered, and more slowly after that. So one address is enough to find all peers, and a peer
that stops answering is noticed. A datagram holds as many frames for one peer as fit; a larger frame leaves in pieces.
With a multicast address, a frame for several peers leaves once, for all that listen there.

A source address can be forged. So a process is a peer only after it has repeated a number that was sent to its address
(`challenges.py`). Before that it gets no more bytes than it sent, and no state is kept for it.
"""

import asyncio
import socket
from collections.abc import Iterable
from typing import Final

import msgspec

from antiphon.core.effects import Frame
from antiphon.errors import ConfigurationError, ProtocolViolation
from antiphon.sockets.offenders import Offence, Offenders
from antiphon.sockets.transports.challenges import Challenges
from antiphon.sockets.transports.contacts import Contact
from antiphon.sockets.transports.contract import Address, Receiver, Seed, Unreached
from antiphon.sockets.transports.datagrams import DatagramSocket, Sockaddr, bound_socket, listening_socket
from antiphon.sockets.transports.pieces import GUEST_BYTES_MAX, PIECE, Piece, Reassembly, cut
from antiphon.sockets.transports.seeds import Companions, Seeds, reason_of
from antiphon.sockets.transports.udp_greeting import HELLO, TOLD_MAX, Hello, hello_in
from antiphon.types import ProcessId, split_process_id
from antiphon.wire.codec import sender_of
from antiphon.wire.frame import envelopes, seal
from antiphon.wire.names import decode_process

_RETRY_S: Final = (0.05, 2.0)
"""First and longest pause between two hellos to an address; the longest also between those that are answered."""
_LOST_S: Final = 10.0
"""A peer that was not heard for this long is dropped until it is heard again."""
_FORGET_S: Final = 60.0
"""A dropped peer is still called for this long. The user's addresses and members of our views are called for ever."""
_TRIES_MAX: Final = 8
"""Calls to a process that we know only from others. A peer that hears it will name it again."""
_CALL_BYTES: Final = 512
"""A first greeting has at least this size: the answer to a stranger is never longer than what it sent."""
_CONTACTS_MAX: Final = (256, 1024)
"""Limits of addresses that are called and were not given by the user: from one informant, and in total."""
_ANYWHERE: Final = ("", "0.0.0.0", "::")  # noqa: S104 - not bound here, but told by others


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
        """`advertise`: where others reach us, if not where we are bound; `datagram_bytes`: the largest datagram."""
        self._me = me
        self._bind = bind
        self._advertise = advertise
        self.address = advertise or bind
        """Where others find us; with port 0, known once we are bound."""
        self._multicast = multicast
        self._seeds = Seeds(peers)
        self._companions = Companions()
        self._datagram_bytes = datagram_bytes
        self._contacts: dict[Address, Contact] = {}
        self._met: dict[ProcessId, Contact] = {}
        self._callers: dict[Contact, asyncio.Task[None]] = {}
        self._forbidden: frozenset[str] = frozenset()
        self._waiting: dict[Sockaddr, list[bytes]] = {}
        self._sockets: list[DatagramSocket] = []
        self._members: frozenset[ProcessId] = frozenset()
        """The peers in views with us."""
        self._offenders = Offenders("antiphon.udp")
        self._challenges = Challenges()
        self._reassembly = Reassembly(), Reassembly(*GUEST_BYTES_MAX)
        """Pieces of frames from members, and from other peers."""

    async def open(self, receiver: Receiver) -> None:
        """Bind the socket, then call the peers."""
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        host, port = self._bind
        try:
            found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE)
            bound = bound_socket(found[0][0], found[0][4])
        except OSError as error:
            raise ConfigurationError(f"cannot bind to {host}:{port}: {error.strerror or error}") from None
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
        """The peers that we hear."""
        return tuple(sorted(self._met))

    @property
    def seeds(self) -> tuple[Seed, ...]:
        """The addresses that the user gave, and the state of each."""
        heard = {address: contact.process for address, contact in self._contacts.items() if contact.process is not None}
        return self._seeds.states(self._met, heard)

    @property
    def offenders(self) -> tuple[Offence, ...]:
        """Which processes broke a rule, and how often; the latest first."""
        return self._offenders.recent

    @property
    def _listens_at(self) -> str:
        return "" if self._multicast is None else "{}:{}".format(*self._multicast)

    def connection(self, peer: ProcessId) -> int | None:
        """Datagrams have no connections; a peer that we hear counts as connected, with number 0."""
        return 0 if peer in self._met else None

    def send(self, sealed: bytes, peers: Iterable[ProcessId], frame: Frame | None = None) -> None:  # noqa: ARG002
        """A frame to a peer that we do not hear is lost."""
        found = [contact for peer in peers if (contact := self._met.get(peer)) is not None]
        if self._forbidden:
            found = [contact for contact in found if contact.name not in self._forbidden]
        if self._multicast is not None and sum(contact.listens for contact in found) > 1:
            self._waiting.setdefault(self._multicast, []).append(sealed)
            found = [contact for contact in found if not contact.listens]
        for contact in found:
            if contact.to is not None:
                self._waiting.setdefault(contact.to, []).append(sealed)

    def flush(self) -> None:
        """Send all frames in as few datagrams and system calls as possible."""
        waiting, self._waiting = self._waiting, {}
        for to, frames in waiting.items():
            self.transmit(self._packed(frames), to)

    def transmit(self, datagrams: list[bytes], to: Sockaddr) -> None:
        """Send datagrams to one address."""
        self._sockets[0].send(datagrams, to)

    def set_members(self, members: frozenset[ProcessId]) -> None:
        """Members may tell us of more addresses and send larger frames. There is no backpressure.

        Members are called for ever: after a long partition they must find each other again.
        """
        self._companions.meet(members)
        self._members = members

    async def close(self) -> None:
        """Send a farewell to all peers, then close."""
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
        """Connect with the processes at these addresses."""
        for address in addresses:
            self._seeds.add(address)
            self._call(address, named=True)

    def forbid(self, names: frozenset[str]) -> None:
        """Send nothing to the processes of these names, as in a partition, until the next call."""
        self._forbidden = names

    # Calling

    def _call(self, address: Address, *, named: bool = False, told_by: str = "") -> Contact | None:
        """The contact at this address; None if it is our own address, or if there are too many contacts."""
        contact = self._contacts.get(address)
        if address == self.address:
            self._seeds.failed(address, Unreached.OWN)
        elif contact is None and (named or self._make_room(told_by)):
            contact = self._contacts[address] = Contact(address, named, self._literal(address), told_by=told_by)
            self._callers[contact] = caller = self._loop.create_task(self._keep_calling(contact))
            caller.add_done_callback(lambda _: self._callers.pop(contact, None))
        elif contact is not None and named:
            contact.named, contact.told_by = True, ""
        return contact

    def _make_room(self, told_by: str) -> bool:
        """Drop the oldest unheard address; one that this host gave, if it gave too many. False if there is none."""
        others = [contact for contact in self._contacts.values() if not contact.named]
        same = [contact for contact in others if contact.told_by == told_by]
        each, total = _CONTACTS_MAX
        crowd = same if len(same) >= each else others if len(others) >= total else []
        if not crowd:
            return True
        self._offenders.note(told_by, "tells of too many addresses")
        unheard = next((contact for contact in crowd if not self._hears(contact)), None)
        if unheard is not None:
            self._stop_calling(unheard)
        return unheard is not None

    async def _keep_calling(self, contact: Contact) -> None:
        pause, longest = _RETRY_S
        tries = 0
        while tries < _TRIES_MAX or self._is_worth_calling(contact):
            heard = None if contact.process is None else self._met.get(contact.process)
            if heard is None:
                await self._locate(contact)
                self._seeds.unanswered(contact.address, resolved=contact.to is not None)
            if heard in (None, contact):  # else it is called at the address that it advertises
                self._greet(contact, asks=True)
            tries += 1
            await asyncio.sleep(pause)
            pause = min(2 * pause, longest)
            if self._hears(contact) and not self._is_fresh(contact):
                self._part(contact)
        del self._contacts[contact.address]

    def _is_worth_calling(self, contact: Contact) -> bool:
        recent = self._loop.time() - contact.heard_at <= _FORGET_S
        return contact.named or recent or contact.process in self._companions

    def _hears(self, contact: Contact) -> bool:
        return contact.process is not None and self._met.get(contact.process) is contact

    async def _locate(self, contact: Contact) -> None:
        """Resolve the address again: a host name may have moved."""
        literal = self._literal(contact.address)
        if literal is not None:
            contact.to = literal
            return
        try:
            found = await self._loop.getaddrinfo(
                *contact.address, family=self._sockets[0].family, type=socket.SOCK_DGRAM
            )
        except (OSError, UnicodeError):
            return
        contact.to = found[0][4]

    def _literal(self, address: Address) -> Sockaddr | None:
        try:
            socket.inet_pton(self._sockets[0].family, address[0])
        except (OSError, ValueError):
            return None
        return address if self._sockets[0].family == socket.AF_INET else (*address, 0, 0)

    def _greet(self, contact: Contact, *, asks: bool = False, gone: bool = False) -> None:
        if contact.to is None:
            return
        known = self._hears(contact)
        others = self._others(contact) if known else ()
        hello = self._hello(contact.to, contact.token, asks=asks, gone=gone, others=others)
        while len(hello) > self._datagram_bytes and others:
            others = others[: len(others) // 2]
            hello = self._hello(contact.to, contact.token, asks=asks, gone=gone, others=others)
        if asks and not known:
            padding = bytes(max(0, _CALL_BYTES - len(hello)))
            hello = self._hello(contact.to, contact.token, asks=True, padding=padding)
        self.transmit([hello], contact.to)

    def _hello(
        self,
        to: Sockaddr,
        echo: int,
        *,
        asks: bool = False,
        gone: bool = False,
        others: tuple[Address, ...] = (),
        padding: bytes = b"",
    ) -> bytes:
        token = self._challenges.token(to)
        hello = Hello(self._me, *self.address, self._listens_at, asks, gone, others, token, echo, padding)
        return seal(HELLO, msgspec.msgpack.encode(hello))

    def _others(self, contact: Contact) -> tuple[Address, ...]:
        known = [self._met[peer].address for peer in sorted(self._met) if self._met[peer] is not contact]
        begin = contact.told % len(known) if known else 0
        contact.told += TOLD_MAX
        return tuple((known[begin:] + known[:begin])[:TOLD_MAX])

    # Receiving

    def _arrived(self, datagram: bytes, source: Sockaddr) -> None:
        self._take(datagram, source, overheard=False)

    def _overheard(self, datagram: bytes, source: Sockaddr) -> None:
        self._take(datagram, source, overheard=True)

    def _take(self, datagram: bytes, source: Sockaddr, *, overheard: bool) -> None:
        try:
            frames = envelopes(datagram)
            kind = frames[0][5]
            if kind == HELLO:
                self._greeted(frames[0], source)
            elif kind == PIECE:
                self._join(Piece(frames[0]), overheard=overheard)
            else:
                self._hand_over(sender_of(frames[0]), frames, overheard=overheard)
        except ProtocolViolation as violation:
            self._offenders.note(source[0], "sends malformed frames", detail=str(violation))
            for contact in self._contacts.values():
                if contact.named and contact.to == source:
                    self._seeds.failed(contact.address, reason_of(violation))

    def _hand_over(self, peer: ProcessId, frames: list[bytes], *, overheard: bool) -> None:
        contact = self._met.get(peer)
        if contact is not None:
            contact.heard_at = now_s = self._loop.time()
            if peer not in self._members and not self._challenges.reads(contact.host, len(frames), now_s):
                self._offenders.note(contact.host, "sends too many frames", peer)
                return
            self._receiver.arrived(peer, 0, frames, overheard=overheard)

    def _join(self, piece: Piece, *, overheard: bool) -> None:
        if piece.sender not in self._met:
            return
        whole = self._reassembly[piece.sender not in self._members].add(piece)
        if whole is not None:
            self._hand_over(piece.sender, [whole], overheard=overheard)

    def _greeted(self, sealed: bytes, source: Sockaddr) -> None:
        """A greeting has arrived."""
        hello = hello_in(sealed)
        peer = decode_process(hello.process.encode())
        address = source[0] if hello.host in _ANYWHERE else hello.host, hello.port
        contact = self._contacts.get(address)
        known = contact is not None and self._met.get(peer) is contact
        if not known and not self._challenges.admits(source, self._loop.time()):
            self._offenders.note(source[0], "greets too often", peer)
            return
        to = (None if contact is None else contact.to) or self._literal(address) or source
        proven = hello.echo == self._challenges.token(to)
        if peer == self._me:
            self._met_ourselves(hello, source)
        elif hello.gone:
            if proven:
                self._farewell(peer)
        elif not known and self._is_outdated(peer):
            return
        elif proven:
            self._take_in(peer, address, hello, source, to)
        elif hello.asks:
            self._challenge(to, hello.token, len(sealed))

    def _met_ourselves(self, hello: Hello, source: Sockaddr) -> None:
        """Our own greeting has come back: the address is another name of our own, unless another process was there."""
        at_source = [contact for contact in self._contacts.values() if contact.to == source]
        if hello.token == self._challenges.token(source) and not any(contact.process for contact in at_source):
            for contact in at_source:
                self._seeds.failed(contact.address, Unreached.OWN)
                self._stop_calling(contact)

    def _challenge(self, to: Sockaddr, echo: int, size_bytes: int) -> None:
        """Ask for the proof, with no more bytes than we received."""
        answer = self._hello(to, echo, asks=True)
        if len(answer) <= size_bytes:
            self.transmit([answer], to)

    def _take_in(self, peer: ProcessId, address: Address, hello: Hello, source: Sockaddr, to: Sockaddr) -> None:
        """The process has proved that it receives at `to`; the source of a datagram can be forged."""
        elsewhere = self._met.get(peer)
        if elsewhere is not None and elsewhere.address != address and self._is_fresh(elsewhere):
            self._offenders.note(to[0], "claims the name of a process that is heard elsewhere", peer)
            return
        contact = self._call(address, told_by=to[0])
        if contact is not None:
            contact.to = contact.to or to
            self._meet(peer, contact, hello)
            self._note_names(peer, contact, source)

    def _is_outdated(self, peer: ProcessId) -> bool:
        return any(_succeeds(other, peer) for other in self._met)

    def _is_fresh(self, contact: Contact) -> bool:
        return self._loop.time() - contact.heard_at <= _LOST_S

    def _meet(self, peer: ProcessId, contact: Contact, hello: Hello) -> None:
        """A greeting of a proven process: it is a peer now, and it is answered if it asks."""
        known = self._met.get(peer) is contact
        if not known:
            self._replace(peer, contact)
        contact.heard_at = self._loop.time()
        contact.listens = hello.multicast == self._listens_at
        contact.token = hello.token
        for other in hello.others:
            self._call(other, told_by="" if peer in self._members else contact.host)
        if hello.asks:
            self._greet(contact)
        if not known:
            self._receiver.connected(peer)

    def _replace(self, peer: ProcessId, contact: Contact) -> None:
        """The process that was at that address is gone; so are earlier incarnations, unless they are heard elsewhere.

        An earlier incarnation that is heard elsewhere may be another process with the same name.
        """
        if self._hears(contact):
            self._part(contact)
        for other, known in [*self._met.items()]:
            if other == peer or (_succeeds(peer, other) and not self._is_fresh(known)):
                self._farewell(other)
        contact.process = peer
        self._met[peer] = contact

    def _note_names(self, peer: ProcessId, contact: Contact, source: Sockaddr) -> None:
        """Note the process at addresses that the user gave and that differ from the advertised one."""
        for other in self._contacts.values():
            if other.named and other is not contact and other.to == source:
                other.process = peer

    def _part(self, contact: Contact) -> None:
        assert contact.process is not None
        del self._met[contact.process]
        self._drop_pieces(contact.process)

    def _farewell(self, peer: ProcessId) -> None:
        """Drop a peer that ended. An address that the user named is still called."""
        contact = self._met.pop(peer, None)
        self._drop_pieces(peer)
        if contact is not None:
            contact.process = None
            if not contact.named:
                self._stop_calling(contact)

    def _drop_pieces(self, peer: ProcessId) -> None:
        for each in self._reassembly:
            each.forget(peer)

    def _stop_calling(self, contact: Contact) -> None:
        if self._hears(contact):
            self._part(contact)
        self._contacts.pop(contact.address, None)
        if contact in self._callers:
            self._callers[contact].cancel()

    def _filled(self, full: bool) -> None:
        self._receiver.writable(not full)


def _succeeds(one: ProcessId, other: ProcessId) -> bool:
    """Whether `one` is a later incarnation of the same process."""
    (name, incarnation), (other_name, other_incarnation) = split_process_id(one), split_process_id(other)
    return name == other_name and incarnation > other_incarnation
