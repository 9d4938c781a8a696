"""Datagrams to groups and to single processes, without any repair: the cores repair losses (InterGroup).

A group has its own multicast address (intergroup.md 1). A frame to the group leaves once for all listeners, and
processes outside the group are not woken. Members are told each other's addresses; there is no discovery. A process
that starts again is a new peer. One frame is one datagram, so each loss affects one frame, as in the simulator.
"""

import asyncio
import random
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from antiphon.core.effects import Frame
from antiphon.errors import ProtocolViolation
from antiphon.limited_log import LimitedLog
from antiphon.sockets.offenders import Offence
from antiphon.sockets.transports.contract import Address, Receiver, Seed
from antiphon.sockets.transports.datagrams import DatagramSocket, Sockaddr, bound_socket, listening_socket
from antiphon.types import GroupId, ProcessId, split_process_id
from antiphon.wire.codec import sender_of


@dataclass(frozen=True, slots=True)
class LinkFaults:
    """Faults that are added to incoming datagrams, all drawn from one seeded random stream."""

    chance: random.Random = field(default_factory=random.Random)
    loss: Mapping[str, float] = field(default_factory=dict)
    """By name of the sender, in all its incarnations: the share of datagrams that are dropped."""
    duplicate: float = 0.0
    reorder: float = 0.0
    """Share of datagrams that are delayed."""
    late_s: float = 0.0
    """The largest of these delays."""

    def arrivals(self, sender: ProcessId) -> list[float]:
        """The delay of each copy of a datagram, in seconds; empty if the datagram is lost."""
        draw, lost = self.chance.random, self.loss.get(split_process_id(sender)[0], 0.0)
        copies = 2 if self.duplicate and draw() < self.duplicate else 1
        kept = [None for _ in range(copies) if not lost or draw() >= lost]
        return [draw() * self.late_s if self.reorder and draw() < self.reorder else 0.0 for _ in kept]


class MulticastMesh:
    """The transport of one process."""

    streams: Final = False
    seeds: Final[tuple[Seed, ...]] = ()
    offenders: tuple[Offence, ...] = ()

    def __init__(self, me: ProcessId, bind: Address, link_faults: LinkFaults | None = None) -> None:
        self.address = bind
        """Where others find us; with port 0, known once we are bound."""
        self._me = me
        self._link_faults = link_faults or LinkFaults()
        self._log = LimitedLog("antiphon.multicast")
        self._peers: dict[ProcessId, Address] = {}
        self._groups: dict[GroupId, Address] = {}
        self._listening: dict[GroupId, DatagramSocket] = {}
        self._forbidden: frozenset[str] = frozenset()
        self._waiting: dict[Sockaddr, list[bytes]] = {}
        self._closed = False

    async def open(self, receiver: Receiver) -> None:
        """Bind the socket; no peers are known yet."""
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        self._bound = bound_socket(socket.AF_INET, self.address)
        self.address = self._bound.getsockname()
        interface = socket.inet_aton(self.address[0])  # multicasts leave by this interface
        self._bound.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
        self._socket = DatagramSocket(self._bound, self._arrived, self._filled)

    def meet(self, peers: Mapping[ProcessId, Address], groups: Mapping[GroupId, Address]) -> None:
        """Add peers, and the multicast addresses of groups."""
        self._peers |= peers
        self._groups |= groups

    @property
    def peers(self) -> tuple[ProcessId, ...]:
        """The peers that `meet` has named."""
        return tuple(sorted(self._peers))

    def connection(self, peer: ProcessId) -> int | None:
        """Datagrams have no connections; a known peer always has connection 0."""
        return 0 if peer in self._peers else None

    def listen(self, group: GroupId) -> None:
        """Receive the multicasts of that group from now on."""
        bound = listening_socket(self._groups[group], self._bound)
        self._listening[group] = DatagramSocket(bound, self._arrived, lambda _: None)

    def unlisten(self, group: GroupId) -> None:
        """Stop receiving the multicasts of that group."""
        self._listening.pop(group).close()

    def send(self, sealed: bytes, peers: Iterable[ProcessId], frame: Frame | None = None) -> None:  # noqa: ARG002
        """Keep a frame for each of these until `flush`. A peer that we have not met yet loses it."""
        for peer in peers:
            if peer in self._peers:
                self._waiting.setdefault(self._peers[peer], []).append(sealed)

    def multicast(self, sealed: bytes, group: GroupId) -> None:
        """Keep a frame for all listeners of a group until `flush`."""
        self._waiting.setdefault(self._groups[group], []).append(sealed)

    def flush(self) -> None:
        """Send one datagram per frame, in as few system calls as possible."""
        waiting, self._waiting = self._waiting, {}
        for to, datagrams in waiting.items():
            self._socket.send(datagrams, to)

    def set_members(self, members: frozenset[ProcessId]) -> None:
        """Does nothing: no peer can block a datagram socket."""

    def forbid(self, names: frozenset[str]) -> None:
        """Drop everything from the processes of these names, as in a partition, until the next call.

        A multicast cannot leave out a listener, so the receivers must ignore it.
        """
        self._forbidden = names

    async def close(self) -> None:
        """Close all sockets."""
        self._closed = True
        for each in (self._socket, *self._listening.values()):
            each.close()

    def _arrived(self, datagram: bytes, source: Sockaddr) -> None:
        """Ignore datagrams of unknown processes and our own, which loop back."""
        try:
            sender = sender_of(datagram)
        except ProtocolViolation as violation:
            self._log.warn(f"datagram from {source[0]}", "a datagram from %s is dropped: %s", source, violation)
            return
        if sender not in self._peers or split_process_id(sender)[0] in self._forbidden:
            return
        for late_s in self._link_faults.arrivals(sender):
            if late_s:
                self._loop.call_later(late_s, self._hand_over, sender, datagram)
            else:
                self._hand_over(sender, datagram)

    def _hand_over(self, sender: ProcessId, datagram: bytes) -> None:
        if not self._closed:
            self._receiver.arrived(sender, 0, [datagram])

    def _filled(self, full: bool) -> None:
        self._receiver.writable(not full)
