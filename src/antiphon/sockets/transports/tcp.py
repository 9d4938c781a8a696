"""A mesh of TCP connections: one for each pair of processes, and each process listens at one address.

A process that connects says its name (`hello`) and where it listens; once accepted, each side tells which others it is
connected with. So one address is enough to find all. A process that closes says that too. A process that stays
unreachable is forgotten, unless the user has named its address. Of two processes, the one with the lower identity makes
the connection that frames use. If the other one calls first, because it knows only an address, its call is an
introduction: it is answered and called back. Hence no two connections ever compete.

A connection that is reset is replaced at once, and the session goes on (`sessions.py`). If the address refuses the new
connection, or another process answers there, the peer is probably dead: the driver is told (`gone`). A session that
cannot go on may have lost frames: it is over for the groups that used it, and the next one has the next number
(docs/spec/newtop.md 1, E-47).

A process in no view with us is a guest. What it may hold is bounded (`guests.py`, `door.py`, `addresses.py`), and it
never holds a member back.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from antiphon.core.effects import Frame
from antiphon.errors import ProtocolViolation
from antiphon.sockets.limits import Rate
from antiphon.sockets.offenders import Offence, Offenders
from antiphon.sockets.transports import greeting
from antiphon.sockets.transports.addresses import Addresses
from antiphon.sockets.transports.contract import Address, Receiver, Seed, Unreached
from antiphon.sockets.transports.door import Door
from antiphon.sockets.transports.greeting import Hello
from antiphon.sockets.transports.guests import Guests
from antiphon.sockets.transports.links import GREETING_S, Link
from antiphon.sockets.transports.seeds import Companions, Seeds, reason_of
from antiphon.sockets.transports.sessions import Answer, Offer, Sessions, is_refusal
from antiphon.types import ProcessId, split_process_id
from antiphon.wire.frame import Sealed
from antiphon.wire.names import decode_process

_RETRY_S: Final = (0.05, 2.0)
"""First and longest pause between two attempts to connect."""
_TRIES_MAX: Final = 35
"""Calls of a process that does not answer: for a minute if the call is refused, for four if it is lost.

Addresses that the user has named are called for ever, and so are processes that were in a view with us, more rarely.
"""
_RARELY_S: Final = 10.0
"""Pause between two later calls to a process that was in a view with us."""
_GUEST_CALLS_MAX: Final = 128
"""If this many addresses are being called, a guest that disconnected is not called back."""
_GUESTS_LOOKED_FOR_MAX: Final = 64
"""If this many sessions try to reconnect, the session of a guest ends with its connection."""
_SPREAD: Final = (16.0, 64.0)
"""Newcomers per second that we tell our peers of, and the burst. Above it, a newcomer must introduce itself."""
_FAREWELL_S: Final = 1.0
"""Peers may take this long to read our last frames."""


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
        self._seeds = Seeds(peers)
        self._companions = Companions()
        self._forbidden: frozenset[str] = frozenset()
        self._members: frozenset[ProcessId] = frozenset()
        """The peers in views with us."""
        self._offenders = Offenders("antiphon.tcp")
        self._addresses = Addresses()
        self._links: dict[ProcessId, Link] = {}
        self._guests = Guests(self._offenders)
        self._callers: dict[Address, asyncio.Task[None]] = {}
        self._full: set[Link] = set()
        """Full connections of members."""
        self._sessions = Sessions(self._connect_with, self._addresses.count)
        self.flush = self._sessions.flush
        """`Transport.flush`, without a call in between: it runs in every turn."""
        self._door = Door(lambda: Link(self, called=True), self._offenders)
        self._spreading = Rate(*_SPREAD)
        self._closing = False

    async def open(self, receiver: Receiver) -> None:
        """Listen, then call the peers."""
        self._receiver = self._sessions.receiver = receiver
        host, port = self._bind
        port = await self._door.open(host, port)
        if self._advertise is None:
            self.address = host, port
        for address in self._seeds:
            self._call(address)

    @property
    def peers(self) -> tuple[ProcessId, ...]:
        """The peers that we have a session with."""
        return tuple(sorted(self._sessions.open))

    @property
    def seeds(self) -> tuple[Seed, ...]:
        """The addresses that the user gave, and the state of each."""
        known = self._addresses.known
        connected = self._sessions.open
        return self._seeds.states(connected, {known[peer]: peer for peer in connected if peer in known})

    @property
    def offenders(self) -> tuple[Offence, ...]:
        """Which processes broke a rule, and how often; the latest first."""
        return self._offenders.recent

    def connection(self, peer: ProcessId) -> int | None:
        """The number of the session with it."""
        session = self._sessions.open.get(peer)
        return None if session is None else session.number

    def send(self, sealed: bytes, peers: Iterable[ProcessId], frame: Frame | None = None) -> None:
        """A frame to a peer without a session is lost."""
        self._sessions.send(sealed, peers, frame)

    def set_members(self, members: frozenset[ProcessId]) -> None:
        """Apply backpressure only for these. A full connection of another process ends.

        The addresses of members are kept: after a long cut they must find each other again.
        """
        self._companions.meet(members)
        before, self._members = self._members, members
        for peer in members - before:
            self._welcome(peer)
        for link in [link for link in self._full if link.peer not in members]:
            link.abort(for_good=True)
        for peer in before - members:
            self._make_guest(peer)

    def _welcome(self, peer: ProcessId) -> None:
        link = self._links.get(peer)
        if link is not None:
            self._guests.admitted(link)
            link.trust()
        if peer in self._sessions.open:
            self._sessions.open[peer].trust()

    def _make_guest(self, peer: ProcessId) -> None:
        if peer in self._sessions.open:
            self._sessions.open[peer].distrust()
        link = self._links.get(peer)
        if link is not None:
            link.distrust()
            self._guests.greeted(link)

    async def close(self) -> None:
        """Send a farewell, and wait for a limited time until the peers have read what is buffered."""
        self._closing = True
        self._sessions.close()
        for task in self._callers.values():
            task.cancel()
        self._door.close()
        links = [*self._links.values(), *self._guests.half_open]
        for link in self._links.values():
            link.write(greeting.farewell(self._me, self.address))
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
        await asyncio.gather(*self._callers.values(), *self._sessions.tasks, return_exceptions=True)

    def meet(self, addresses: Iterable[Address]) -> None:
        """Connect with the processes at these addresses."""
        for address in addresses:
            self._seeds.add(address)
            self._call(address)

    def forbid(self, names: frozenset[str]) -> None:
        """Cut off the processes of these names, as by a partition, until the next call."""
        self._forbidden = names
        for link in [link for peer, link in self._links.items() if split_process_id(peer)[0] in names]:
            link.abort(for_good=True)
        self._sessions.give_up(peer for peer in self._sessions.open if split_process_id(peer)[0] in names)

    # Calling

    def _call(self, address: Address, *, in_s: float = 0.0) -> None:
        if address == self.address:
            self._seeds.failed(address, Unreached.OWN)
        elif address not in self._callers and not self._closing:
            self._callers[address] = asyncio.get_running_loop().create_task(self._keep_calling(address, in_s))

    async def _keep_calling(self, address: Address, in_s: float) -> None:
        """Retry while there is no connection with the process at this address."""
        pause, longest = _RETRY_S
        tries = 0
        await asyncio.sleep(in_s)
        while (address in self._seeds and not self._seeds.is_own(address)) or address in self._addresses:
            if self._wanted(address):
                tries += 1
                link = await self._try(address)
                if link is not None:
                    await link.ended.wait()
                    if link.failure is not None:
                        self._seeds.failed(address, link.failure)
                    if link.session is not None:  # else it refused us, or will call us: keep the longer pause
                        (pause, longest), tries = _RETRY_S, 0
            else:
                tries = 0
            if tries >= _TRIES_MAX and address not in self._seeds and self._wanted(address):
                longest = _RARELY_S
                self._addresses.forget(peer for peer in self._addresses.at(address) if peer not in self._companions)
            await asyncio.sleep(pause)
            pause = min(2 * pause, longest)
        del self._callers[address]

    def _wanted(self, address: Address) -> bool:
        return not any(peer in self._links for peer in self._addresses.at(address))

    async def _try(self, address: Address) -> Link | None:
        try:
            return await self._connect(address)
        except (OSError, ValueError) as error:
            self._seeds.failed(address, reason_of(error))
            return None

    async def _connect_with(self, peer: ProcessId) -> Answer:
        """Call a peer whose connection was lost."""
        address = self._addresses.known.get(peer)
        if address is None:
            return Answer.OTHER
        try:
            link = await self._connect(address)
        except ConnectionResetError:
            return Answer.CLOSED
        except (OSError, ValueError) as error:
            return Answer.REFUSED if is_refusal(error) else Answer.OTHER
        await link.ended.wait()
        return Answer.OTHER if link.failure is None else Answer.CLOSED

    async def _connect(self, address: Address) -> Link:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(GREETING_S):
            _, link = await loop.create_connection(lambda: Link(self, called=False, address=address), *address)
        return link

    # Calls of links

    def call(self, link: Link) -> bytes:
        """Our first greeting on a connection that we have made."""
        assert link.address is not None
        return greeting.call(self._me, self.address, link.token, self._addresses.token_at(link.address))

    def opened(self, link: Link) -> None:
        """A connection is established; its first frame will name the process."""
        self._guests.called(link)
        if self._closing:
            link.abort()

    def greeted(self, link: Link, hello: Hello, size_bytes: int) -> None:
        """We know which process is there: a connection for frames, or an introduction."""
        peer = decode_process(hello.process.encode())
        link.claimed = peer
        if link.address is not None:
            self._seeds.greeted(link.address, peer)
        if peer == self._me:  # we have called ourselves, by another name of our address
            for other in self._guests.half_open:
                if other.address is not None and other.token == hello.token:
                    self._seeds.failed(other.address, Unreached.OWN)
        if peer == self._me or split_process_id(peer)[0] in self._forbidden or not self._is_itself(peer, link, hello):
            link.end()
            return
        self._addresses.forget_oldest(self._links.keys() | self._members)
        self._addresses.note(peer, (hello.host, hello.port))
        self._addresses.forget(self._displaced_by(peer))
        self._sessions.report_dead(self._addresses.known)
        if link.called:
            self._answer(link, peer, size_bytes)
        if (self._me < peer) is link.called:
            link.end()  # an introduction; the process with the lower identity calls back
            self._call((hello.host, hello.port), in_s=_RETRY_S[0] if peer in self._sessions.open else 0.0)
            return
        if peer in self._links:
            self._links[peer].abort()  # it has ended at the other end, which we have not noticed yet
            self._addresses.left(peer)
        self._addresses.met(peer, hello.token)
        link.accept(peer, self._sessions.offer(peer, link.token))
        others = self._introduction(self._links)
        self._links[peer] = link
        self._guests.greeted(link)
        if peer in self._members:
            self._welcome(peer)
        if others:
            link.write(others)

    def offered(self, link: Link, theirs: Offer) -> None:
        """Both ends have said how far they are: the session goes on, or there is a new one."""
        assert link.peer is not None
        if self._links.get(link.peer) is link and self._sessions.offered(link, theirs):
            if link.peer in self._members:
                self._welcome(link.peer)
            self._spread(link.peer)
            self._receiver.connected(link.peer)

    def _is_itself(self, peer: ProcessId, link: Link, hello: Hello) -> bool:
        """Only the process itself may replace its connection: it knows the token that we gave it there."""
        before = self._links.get(peer)
        if before is None or before.session is None or hello.echo == before.token:
            return True
        self._offenders.note(link.source, "claims the name of a process that is connected", peer)
        before.write(greeting.introduction(self._me, self.address, ()))  # a write reveals a broken connection
        return False

    def _answer(self, link: Link, peer: ProcessId, size_bytes: int) -> None:
        """A process that is not known gets no more bytes than it has sent."""
        answer = greeting.answer(self._me, self.address, link.token, self._addresses.token(peer))
        if len(answer) <= size_bytes:
            link.write(answer)

    def _introduction(self, peers: Iterable[ProcessId]) -> bytes:
        """A greeting that names only connected peers: addresses of dead ones would circulate for ever."""
        known = self._addresses.known
        others = tuple((peer, *known[peer]) for peer in peers if peer in known)
        return greeting.introduction(self._me, self.address, others) if others else b""

    def _spread(self, newcomer: ProcessId) -> None:
        """Introduce a newcomer to our peers, within the rate limit."""
        if not self._spreading.take(asyncio.get_running_loop().time()):
            return
        introduction = self._introduction([newcomer])
        for peer, link in self._links.items():
            if peer != newcomer:
                link.write(introduction)

    def _displaced_by(self, peer: ProcessId) -> list[ProcessId]:
        """Processes that had its address before, and are not connected."""
        address = self._addresses.known.get(peer)
        if address is None:
            return []
        return [other for other in self._addresses.at(address) if other != peer and other not in self._links]

    def learned(self, link: Link, hello: Hello) -> None:
        """A peer knows another process, or ends."""
        assert link.peer is not None
        if hello.gone:
            self._addresses.forget([link.peer])
        trusted = link.peer in self._members or self._is_named(link)
        for name, host, port in hello.others:
            peer = decode_process(name.encode())
            if peer == self._me or peer in self._addresses.known or self._is_present(peer):
                continue
            if not self._addresses.has_room_for(peer, link.peer, trusted=trusted):
                self._offenders.note(link.source, "tells of too many processes", link.peer)
            elif self._addresses.note(peer, (host, port)):
                self._sessions.report_dead(self._addresses.known)
                self._call((host, port))

    def _is_present(self, peer: ProcessId) -> bool:
        """Whether an incarnation of it is connected or in a view with us: only the process itself can replace that."""
        latest = self._addresses.latest(peer)
        return latest in self._links or latest in self._sessions.open or latest in self._members

    def _is_named(self, link: Link) -> bool:
        """Whether the user has named the address of that peer."""
        assert link.peer is not None
        return link.address in self._seeds or self._addresses.known.get(link.peer) in self._seeds

    def arrived(self, link: Link, sealed: list[Sealed]) -> None:
        """Frames of a peer."""
        self._sessions.arrived(link, sealed)

    def violated(self, link: Link, violation: ProtocolViolation) -> None:
        """What arrived is not a valid frame."""
        if link.failure is not None and link.address is not None:
            link.failure = reason_of(violation)
        self._offenders.note(link.source, "sends malformed frames", link.claimed, detail=str(violation))

    def may_read_on(self, link: Link, frames: int) -> bool:
        """Frames of guests are limited in rate; those of members are not."""
        return link.peer in self._members or self._guests.may_read_on(link, frames, asyncio.get_running_loop().time())

    def may_hold(self, link: Link, size_bytes: int) -> bool:
        """The limit holds for all guests together, not for members."""
        return link.peer in self._members or self._guests.has_room_for(link, size_bytes)

    def filled(self, link: Link, full: bool) -> None:
        """A full connection of a process that is in no view with us ends: it must not hold members back."""
        if full and link.peer not in self._members:
            self._offenders.note(link.source, "reads too little", link.claimed)
            link.abort(for_good=True)
            return
        before = bool(self._full)
        if full:
            self._full.add(link)
        else:
            self._full.discard(link)
        if bool(self._full) is not before:
            self._receiver.writable(not self._full)

    def lost(self, link: Link) -> None:
        """A connection has ended."""
        self._guests.left(link)
        self.filled(link, False)
        if link.peer is None or self._links.get(link.peer) is not link:
            return
        del self._links[link.peer]
        self._addresses.left(link.peer)
        if self._closing:
            return
        if link.peer not in self._addresses.known:
            self._sessions.report_dead(self._addresses.known, link.peer)  # it said that it ends, or it has restarted
            return
        if link.peer not in self._members and len(self._sessions.tasks) >= _GUESTS_LOOKED_FOR_MAX:
            link.is_ended_for_good = True
        looked_for = self._sessions.lost(link)
        self._call_back(link.peer, in_s=_RETRY_S[0] if looked_for else 0.0)

    def _call_back(self, peer: ProcessId, *, in_s: float) -> None:
        address = self._addresses.known[peer]
        if peer in self._members or address in self._seeds or len(self._callers) < _GUEST_CALLS_MAX:
            self._call(address, in_s=in_s)
        elif address not in self._callers:
            self._addresses.forget([peer])
