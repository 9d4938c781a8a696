"""The greeting of a process on UDP: which process speaks, where it receives, and where others do."""

from typing import Final

import msgspec

from antiphon.errors import ProtocolViolation
from antiphon.sockets.transports.contract import HOST_BYTES_MAX
from antiphon.wire.frame import open_envelope

HELLO: Final = 64
"""The kind of a greeting. No protocol family uses the kinds 64 to 127."""
TOLD_MAX: Final = 16
"""Others that one greeting names; later greetings name the next ones."""


class Hello(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The body of a greeting: the speaker, its address, and addresses of others."""

    process: str
    host: str
    port: int
    multicast: str = ""
    """The multicast address at which it also listens."""
    asks: bool = False
    """It requests an answer."""
    gone: bool = False
    """The process ends."""
    others: tuple[tuple[str, int], ...] = ()
    token: int = 0
    """The addressee has to repeat this."""
    echo: int = 0
    """The token of the addressee, repeated: the speaker receives at this address."""
    padding: bytes = b""


def hello_in(sealed: bytes) -> Hello:
    """The greeting in this frame; `ProtocolViolation` if it is malformed."""
    _, body = open_envelope(sealed)
    try:
        hello = msgspec.msgpack.decode(body, type=Hello)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ProtocolViolation("body", f"malformed greeting: {error}") from None
    ports = [hello.port, *(port for _, port in hello.others)]
    if len(hello.others) > TOLD_MAX or not all(0 < port < 1 << 16 for port in ports):
        raise ProtocolViolation("body", "a greeting names too many others, or impossible ports")
    if any(len(host.encode()) > HOST_BYTES_MAX for host in (hello.host, *(host for host, _ in hello.others))):
        raise ProtocolViolation("body", "a greeting names a host that is too long")
    return hello
