"""Chooses the transport of a member from the user's settings; refuses combinations that are impossible."""

import ipaddress
from collections.abc import Callable
from typing import Final

from antiphon.errors import ConfigurationError
from antiphon.sockets.transports.contract import Address, Transport
from antiphon.sockets.transports.tcp import TcpMesh
from antiphon.sockets.transports.udp import UdpMesh
from antiphon.types import ProcessId

TransportMaker = Callable[[ProcessId], Transport]
"""Makes a custom transport for a process, such as `MemoryNetwork.attach`."""

TRANSPORTS: Final = ("tcp", "udp")
ANYWHERE: Final = ("0.0.0.0", "::", "*")  # noqa: S104 - only recognised, not bound


def make_transport(
    chosen: object,
    me: ProcessId,
    bind: str,
    peers: list[str],
    *,
    advertise: str | None,
    multicast: str | None,
    datagram_bytes: int,
) -> Transport:
    """The transport for the frames of a process."""
    if not isinstance(chosen, str):
        if peers or advertise or multicast:
            raise ConfigurationError(
                "a transport of your own knows its addresses: leave peers, advertise and multicast out"
            )
        return _custom(chosen, me)
    if chosen not in TRANSPORTS:
        raise ConfigurationError(f"there is no transport {chosen!r}; take one of {', '.join(TRANSPORTS)}")
    address, seeds = parse_address(bind), [parse_address(peer) for peer in peers]
    shown = None if advertise is None else parse_address(advertise)
    if shown is None and address[0] in ANYWHERE:
        raise ConfigurationError(
            f"bind={bind!r} listens at every address of this machine: name the one that others reach, as advertise=…"
        )
    if shown is not None and not shown[1]:
        raise ConfigurationError(f"advertise={advertise!r} names no port: others must know where to call")
    if chosen == "udp":
        group = None if multicast is None else _parse_multicast(multicast)
        return UdpMesh(me, address, seeds, advertise=shown, multicast=group, datagram_bytes=datagram_bytes)
    if multicast is not None:
        raise ConfigurationError(f"multicast needs transport 'udp', not {chosen!r}")
    return TcpMesh(me, address, seeds, advertise=shown)


def _custom(maker: object, me: ProcessId) -> Transport:
    if not callable(maker):
        names = ", ".join(map(repr, TRANSPORTS))
        raise ConfigurationError(f"transport must be {names}, or a function that makes one, not {maker!r}")
    made: Transport = maker(me)
    return made


def parse_address(text: object) -> Address:
    """`host:port`."""
    if not isinstance(text, str):
        raise ConfigurationError(f"{text!r} is not an address such as '10.0.0.5:7400'")
    host, colon, port = text.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdecimal()) or int(port) > 65_535:
        raise ConfigurationError(f"{text!r} is not an address such as 10.0.0.5:7400")
    return host.strip("[]"), int(port)


def _parse_multicast(text: str) -> Address:
    host, port = parse_address(text)
    try:
        group = ipaddress.IPv4Address(host)
    except ValueError:
        group = None
    if group is None or not group.is_multicast or not port:
        raise ConfigurationError(f"{text!r} is not a multicast address such as 239.1.2.3:7500")
    return host, port
