"""Datagram sockets of an event loop, with the kernel's own batching where it has it.

asyncio's datagram transports send and receive one datagram per call. Here a batch of one size leaves in one call and
the kernel splits it (`UDP_SEGMENT`). A batch that arrives is read in one call (`UDP_GRO`). If the kernel or
the device does not support that, datagrams go one by one, with the same result.
"""

import asyncio
import logging
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

from antiphon.errors import ConfigurationError

_log = logging.getLogger("antiphon.udp")
Sockaddr = tuple[Any, ...]
"""An address as sockets have it."""

DATAGRAM_BYTES_MAX: Final = 65_507
"""The largest payload of a UDP datagram over IPv4."""
_UDP_SEGMENT: Final = 103
_UDP_GRO: Final = 104
"""From linux/udp.h; Python has no names for them."""
_SEGMENT: Final = struct.Struct("=H")
_SIZE: Final = struct.Struct("=i")
_SEGMENTS_MAX: Final = 64
_READS_MAX: Final = 64
"""Reads in one turn, before other tasks of the event loop run."""
_BUFFER_BYTES: Final = 4 << 20
"""Requested from the kernel for each direction, to hold bursts; it may grant less."""
_BACKLOG_BYTES_MAX: Final = 1 << 20
"""Bytes that wait for a full socket; datagrams beyond that are lost."""


class DatagramSocket:
    """A bound socket, with the datagrams that wait until it is writable."""

    def __init__(
        self, bound: socket.socket, arrived: Callable[[bytes, Sockaddr], None], filled: Callable[[bool], None]
    ) -> None:
        """`filled`: called with True when the socket is full, and with False when it is writable again."""
        bound.setblocking(False)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            bound.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
        self._socket = bound
        self._arrived = arrived
        self._filled = filled
        self._segment_bytes_max = DATAGRAM_BYTES_MAX if _offers(bound, _UDP_SEGMENT, 0) else 0
        _offers(bound, _UDP_GRO, 1)
        self._room = memoryview(bytearray(1 << 16))
        self._backlog: deque[tuple[list[bytes], Sockaddr]] = deque()
        self._backlog_bytes = 0
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(bound.fileno(), self._read)

    @property
    def family(self) -> int:
        """The address family."""
        return self._socket.family

    @property
    def name(self) -> Sockaddr:
        """Where it is bound."""
        name: Sockaddr = self._socket.getsockname()
        return name

    def send(self, datagrams: list[bytes], to: Sockaddr) -> None:
        """Send datagrams in order; if the socket is full, they wait."""
        for batch in self._batches(datagrams):
            if self._backlog or not self._try(batch, to):
                self._keep(batch, to)

    def close(self) -> None:
        """Try once to send what waits, then close. A second call does nothing."""
        if self._socket.fileno() < 0:
            return
        if self._backlog:
            self._write()
        self._loop.remove_writer(self._socket.fileno())
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()

    # Sending

    def _batches(self, datagrams: list[bytes]) -> Iterator[list[bytes]]:
        """Runs of datagrams of one size, where only the last may be shorter: so the kernel can split them."""
        batch: list[bytes] = []
        room = 0
        for datagram in datagrams:
            size = len(datagram)
            follows = 0 < len(batch) < _SEGMENTS_MAX and len(batch[-1]) == len(batch[0])
            if follows and size <= min(len(batch[0]), room):
                batch.append(datagram)
                room -= size
                continue
            if batch:
                yield batch
            batch = [datagram]
            room = DATAGRAM_BYTES_MAX - size if size <= self._segment_bytes_max else 0
        if batch:
            yield batch

    def _try(self, batch: list[bytes], to: Sockaddr) -> bool:
        """False if the socket is full. After any other error the datagram is lost, as any datagram may be."""
        try:
            if len(batch) == 1:
                self._socket.sendto(batch[0], to)
            else:
                segment = socket.IPPROTO_UDP, _UDP_SEGMENT, _SEGMENT.pack(len(batch[0]))
                self._socket.sendmsg(batch, [segment], 0, to)
        except BlockingIOError:
            return False
        except OSError as error:
            if len(batch) > 1:  # the device does not support segmentation, or not of this size
                self._segment_bytes_max = len(batch[0]) - 1
                return all(self._try([datagram], to) for datagram in batch)
            _log.debug("a datagram to %s is lost: %s", to, error)
        return True

    def _keep(self, batch: list[bytes], to: Sockaddr) -> None:
        size = sum(map(len, batch))
        if self._backlog_bytes + size > _BACKLOG_BYTES_MAX:
            return
        self._backlog.append((batch, to))
        self._backlog_bytes += size
        if len(self._backlog) == 1:
            self._loop.add_writer(self._socket.fileno(), self._write)
            self._filled(True)

    def _write(self) -> None:
        """The socket is writable again."""
        while self._backlog:
            batch, to = self._backlog[0]
            if not self._try(batch, to):
                return
            self._backlog.popleft()
            self._backlog_bytes -= sum(map(len, batch))
        self._loop.remove_writer(self._socket.fileno())
        self._filled(False)

    # Receiving

    def _read(self) -> None:
        """Read the datagrams that have arrived."""
        for _ in range(_READS_MAX):
            try:
                size, notes, _, source = self._socket.recvmsg_into([self._room], socket.CMSG_SPACE(4))
            except BlockingIOError:
                return
            except OSError as error:
                _log.debug("cannot read from a datagram socket: %s", error)
                return
            step = _SIZE.unpack_from(notes[0][2])[0] if notes else size
            for begin in range(0, size, step or 1):
                self._arrived(bytes(self._room[begin : min(begin + step, size)]), source)


def bound_socket(family: int, sockaddr: Sockaddr) -> socket.socket:
    """A socket at this address."""
    bound = socket.socket(family, socket.SOCK_DGRAM)
    try:
        bound.bind(sockaddr)
    except OSError:
        bound.close()
        raise
    return bound


def listening_socket(group: Sockaddr, bound: socket.socket) -> socket.socket:
    """A socket at the multicast address, on the interface of `bound`. From now on `bound` multicasts there."""
    if bound.family != socket.AF_INET:
        raise ConfigurationError("multicast needs an IPv4 address to bind to")
    interface = socket.inet_aton(bound.getsockname()[0])
    bound.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
    listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group[0]) + interface)
        listening.bind(group)
    except OSError:
        listening.close()
        raise
    return listening


def _offers(bound: socket.socket, option: int, value: int) -> bool:
    if sys.platform != "linux":
        return False
    try:
        bound.setsockopt(socket.IPPROTO_UDP, option, value)
    except OSError:
        return False
    return True
