"""The greeting of a TCP connection: which process is there, where it listens, and which others it knows."""

import struct
from typing import Final

import msgspec

from antiphon.errors import ProtocolViolation
from antiphon.sockets.transports.contract import HOST_BYTES_MAX, Address
from antiphon.types import ProcessId
from antiphon.wire.frame import Sealed, open_envelope, seal
from antiphon.wire.names import decode_process

HELLO: Final = 64
"""The kind of the first frame on a connection. No protocol family uses the kinds 64 to 127."""
GREETING_BYTES_MAX: Final = 1 << 18
"""The largest greeting, with the addresses of all others."""
OTHERS_MAX: Final = 1024
"""Others that one greeting may name."""
_CALL_BYTES: Final = 512
"""A caller's first greeting has at least this size: the answer to a stranger is never longer than what it sent."""
LENGTH: Final = struct.Struct(">I")


class Hello(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The body of a greeting."""

    process: str
    host: str
    port: int
    others: tuple[tuple[str, str, int], ...] = ()
    gone: bool = False
    """The process ends."""
    token: int = 0
    """A random number of the speaker for this connection."""
    echo: int = 0
    """The last token that the addressee gave the speaker: only the process itself can replace its connection."""
    padding: bytes = b""


def call(process: ProcessId, address: Address, token: int, echo: int) -> bytes:
    """The first greeting on a connection, by the process that calls. It names no other process."""
    hello = Hello(process, *address, token=token, echo=echo)
    short = seal(HELLO, msgspec.msgpack.encode(hello))
    padding = bytes(max(0, _CALL_BYTES - len(short)))
    return seal(HELLO, msgspec.msgpack.encode(msgspec.structs.replace(hello, padding=padding)))


def answer(process: ProcessId, address: Address, token: int, echo: int) -> bytes:
    """The first greeting by the process that was called: as short as possible."""
    return seal(HELLO, msgspec.msgpack.encode(Hello(process, *address, token=token, echo=echo)))


def introduction(process: ProcessId, address: Address, others: tuple[tuple[str, str, int], ...]) -> bytes:
    """A later greeting: these others are connected with the speaker."""
    return seal(HELLO, msgspec.msgpack.encode(Hello(process, *address, others[:OTHERS_MAX])))


def farewell(process: ProcessId, address: Address) -> bytes:
    """The last greeting: the process ends."""
    return seal(HELLO, msgspec.msgpack.encode(Hello(process, *address, gone=True)))


def hello_in(sealed: Sealed, which: str) -> Hello:
    """The greeting in this frame; `ProtocolViolation` if it is not one."""
    kind, body = open_envelope(sealed)
    if kind != HELLO:
        raise ProtocolViolation("kind", f"the {which} frame of a connection has kind {kind}: it is not a greeting")
    try:
        hello = msgspec.msgpack.decode(body, type=Hello)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ProtocolViolation("body", f"malformed greeting: {error}") from None
    if len(hello.others) > OTHERS_MAX:
        raise ProtocolViolation("body", f"a greeting names {len(hello.others):,} others")
    for name, host, port in ((hello.process, hello.host, hello.port), *hello.others):
        decode_process(name.encode())
        if len(host.encode()) > HOST_BYTES_MAX:
            raise ProtocolViolation("body", f"a greeting names a host of {len(host):,} characters")
        if not 0 < port < 65_536:
            raise ProtocolViolation("body", f"{name} cannot listen at port {port}")
    return hello
