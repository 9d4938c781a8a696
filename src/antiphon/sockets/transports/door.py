"""The listening side of a TCP mesh: which callers get in.

asyncio's server makes a task and a transport for every caller before the caller can be refused. Here a caller above the
limits costs one `accept` and one `close`.
"""

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Final

from antiphon.errors import ConfigurationError
from antiphon.limited_log import LimitedLog
from antiphon.sockets.limits import SourceRates
from antiphon.sockets.offenders import Offenders
from antiphon.sockets.transports.datagrams import Sockaddr

_BACKLOG: Final = 128
_CALLS_EACH: Final = (64.0, 256.0)
_CALLS_TOTAL: Final = (256.0, 1024.0)
"""Callers per second that get in, and the burst: of one address, and of all."""
_ACCEPTS_MAX: Final = 32
"""Callers in one turn of the loop."""
_REST_S: Final = 0.005
"""After a turn with only refusals nothing is accepted for this time: a flood must not take all of the processor."""
_NO_FILES_S: Final = 1.0
"""The same, after the system had no file descriptor left."""
_RESET: Final = struct.pack("ii", 1, 0)


class Door:
    """The listening sockets of one process."""

    def __init__(self, make: Callable[[], asyncio.BaseProtocol], offenders: Offenders) -> None:
        """`make`: the protocol of a caller that gets in."""
        self._make = make
        self._offenders = offenders
        self._log = LimitedLog("antiphon.tcp")
        self._rates = SourceRates(_CALLS_EACH, _CALLS_TOTAL)
        self._sockets: list[socket.socket] = []
        self._entering: set[asyncio.Task[object]] = set()

    async def open(self, host: str, port: int) -> int:
        """Listen at all addresses of that host; returns the port of the first."""
        self._loop = asyncio.get_running_loop()
        try:
            found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            for family, *_, sockaddr in dict.fromkeys(found):
                self._sockets.append(_listening(family, sockaddr))
        except OSError as error:
            self.close()
            raise ConfigurationError(f"cannot listen at {host}:{port}: {error.strerror or error}") from None
        for each in self._sockets:
            self._loop.add_reader(each.fileno(), self._accept, each)
        return int(self._sockets[0].getsockname()[1])

    def close(self) -> None:
        """Stop listening."""
        for each in self._sockets:
            if each.fileno() >= 0:
                self._loop.remove_reader(each.fileno())
                each.close()
        self._sockets.clear()

    def _accept(self, listening: socket.socket) -> None:
        refused = 0
        for _ in range(_ACCEPTS_MAX):
            try:
                caller, source = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._log.warn("accept", "no caller can be accepted: %s", error)
                self._rest(listening, _NO_FILES_S)
                return
            if self._rates.take(source[0], self._loop.time()):
                self._let_in(caller)
            else:
                refused += 1
                self._offenders.note(source[0], "connects too often")
                caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                caller.close()
        if refused == _ACCEPTS_MAX:
            self._rest(listening, _REST_S)

    def _rest(self, listening: socket.socket, pause_s: float) -> None:
        self._loop.remove_reader(listening.fileno())
        self._loop.call_later(pause_s, self._resume, listening)

    def _resume(self, listening: socket.socket) -> None:
        if listening.fileno() >= 0:
            self._loop.add_reader(listening.fileno(), self._accept, listening)

    def _let_in(self, caller: socket.socket) -> None:
        caller.setblocking(False)
        task: asyncio.Task[object] = self._loop.create_task(self._enter(caller))
        self._entering.add(task)
        task.add_done_callback(self._entering.discard)

    async def _enter(self, caller: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, caller)
        except OSError:
            caller.close()


def _listening(family: int, sockaddr: Sockaddr) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(sockaddr)
        listening.listen(_BACKLOG)
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening
