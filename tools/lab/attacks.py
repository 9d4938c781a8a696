"""Attacks of hostile processes on members: extreme numbers, floods, garbage, connections that are never read.

Shared by `benchmarks/hostile.py` and by tests, which use a smaller scale. An attack is a coroutine that ends when the
last byte of it has left. It uses only what a process on the network can know: addresses, the view, a recent number.
"""

import asyncio
import contextlib
import random
import socket
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from antiphon.core.effects import Frame
from antiphon.protocols.newtop.frames import InstallFrame, ProbeFrame, ProposeFrame, VoteFrame
from antiphon.protocols.newtop.settings import Values
from antiphon.protocols.newtop.specimens import specimens
from antiphon.sockets.transports import greeting
from antiphon.sockets.transports.pieces import cut
from antiphon.testing.mutations import mutations, number_paths, path_name
from antiphon.types import Company, GroupId, ProcessId, View, epoch_of, formed_group, name_of
from antiphon.wire.codec import encode
from tools.lab.strangers import Address, TcpStranger, UdpStranger, garbage

STRANGER: Final = ProcessId("!stranger")
_ALONE: Final = Company((STRANGER,), None, 0, False)


@dataclass(frozen=True)
class Targets:
    """The members under attack, and the attacker's knowledge of them."""

    addresses: tuple[Address, ...]
    view: View
    known: int
    settings: Values
    """The settings that all members must share; otherwise they refuse any formation."""
    dice: random.Random
    scale: float = 1.0
    """Part of the usual number of datagrams, connections and frames."""

    def many(self, count: int) -> range:
        """A count, at the scale."""
        return range(max(1, int(count * self.scale)))


Attack = Callable[[Targets], Awaitable[None]]


# Numbers


def fields(view: View, sender: ProcessId) -> list[tuple[str, int]]:
    """Every kind of frame with each of its numbers: the name of the specimen, and the place of the number in it."""
    return [
        (kind, place) for kind, frame in specimens(view, sender, 1).items() for place in range(len(number_paths(frame)))
    ]


def field_name(view: View, sender: ProcessId, kind: str, place: int) -> str:
    """`vote: epoch`."""
    return f"{kind}: {path_name(number_paths(specimens(view, sender, 1)[kind])[place])}"


def lies(view: View, sender: ProcessId, known: int, settings: Values, kind: str, place: int) -> Iterator[bytes]:
    """The frame of that kind with that number at each of its extremes, as far as it can be encoded."""
    frame = specimens(view, sender, known)[kind]
    if isinstance(frame, ProbeFrame | ProposeFrame):
        frame = replace(frame, settings=settings)
    path = number_paths(frame)[place]
    for mutation in mutations(frame, known):
        if mutation.path == path:
            with contextlib.suppress(Exception):  # a number that has no encoding cannot be sent
                yield encode(mutation.frame)


def number_attack(transport: str, kind: str, place: int) -> Attack:
    """A stranger sends one kind of frame with one number at its extremes, to every member."""

    async def tcp(targets: Targets) -> None:
        for address in targets.addresses:
            stranger = await TcpStranger.connect(address, STRANGER)
            stranger.send(_entry(targets.view))
            for sealed in lies(targets.view, STRANGER, targets.known, targets.settings, kind, place):
                stranger.writer.write(sealed)
                await asyncio.sleep(0)
            await _drained(stranger)
            await stranger.close()

    async def udp(targets: Targets) -> None:
        stranger = UdpStranger(STRANGER)
        try:
            for address in targets.addresses:
                await stranger.greet(address)
                stranger.send(address, _entry(targets.view))
                for sealed in lies(targets.view, STRANGER, targets.known, targets.settings, kind, place):
                    stranger.send_bytes(sealed, address)
        finally:
            stranger.close()

    return tcp if transport == "tcp" else udp


def _entry(view: View) -> InstallFrame:
    """After it, frames of the stranger in that group are passed to the core."""
    return InstallFrame(view.group, STRANGER, 1, (_ALONE,))


async def _drained(stranger: TcpStranger) -> None:
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(2):
            await stranger.writer.drain()


# TCP


async def never_reading_prober(targets: Targets) -> None:
    """Probes, and answers that are never read."""
    for address in targets.addresses:
        reader, writer = await asyncio.open_connection(*address, limit=1)
        writer.write(greeting.call(STRANGER, ("127.0.0.1", 9), 1, 0))
        probes = encode(ProbeFrame(targets.view.group, STRANGER, False, targets.settings)) * 500
        for _ in targets.many(400):
            writer.write(probes)
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(0.2):
                    await writer.drain()
            if writer.is_closing() or reader.at_eof():
                break
        writer.transport.abort()


async def connection_flood(targets: Targets) -> None:
    """Connections with a greeting, each under another name, that close at once."""
    for number in targets.many(2_000):
        with contextlib.suppress(OSError):
            stranger = await TcpStranger.connect(targets.addresses[0], f"!x{number}", port=1 + number % 60_000)
            stranger.writer.transport.abort()


async def half_open(targets: Targets) -> None:
    """Connections that say nothing."""
    silent = []
    for number in targets.many(600):
        with contextlib.suppress(OSError):
            silent.append(await asyncio.open_connection(*targets.addresses[number % len(targets.addresses)]))
    await asyncio.sleep(1)
    for _, writer in silent:
        writer.transport.abort()


async def slow_greeting(targets: Targets) -> None:
    """Connections that send their greeting byte by byte."""
    hello = greeting.call(STRANGER, ("127.0.0.1", 9), 1, 0)
    slow = [await asyncio.open_connection(*targets.addresses[0]) for _ in targets.many(60)]
    for place in targets.many(30):
        for _, writer in slow:
            if not writer.is_closing():
                writer.write(hello[place : place + 1])
        await asyncio.sleep(0.05)
    for _, writer in slow:
        writer.transport.abort()


async def held_connections(targets: Targets) -> None:
    """Many greeted connections that stay."""
    held = []
    for number in targets.many(400):
        with contextlib.suppress(OSError):
            held.append(await TcpStranger.connect(targets.addresses[0], f"!h{number}"))
    await asyncio.sleep(1)
    for stranger in held:
        stranger.writer.transport.abort()


async def large_frame_in_part(targets: Targets) -> None:
    """The beginning of the largest frame, on many connections."""
    head = (17 << 20).to_bytes(4) + b"\x03\x01" + bytes(4)
    held = []
    for number in targets.many(20):
        with contextlib.suppress(OSError):
            stranger = await TcpStranger.connect(targets.addresses[0], f"!l{number}")
            stranger.writer.write(head + bytes(1 << 20))
            await _drained(stranger)
            held.append(stranger)
    for stranger in held:
        stranger.writer.transport.abort()


async def tcp_garbage(targets: Targets) -> None:
    """Bytes that are no greeting, and bytes that are no frame after a greeting."""
    for number, noise in enumerate(garbage(targets.dice, len(targets.many(200)))):
        address = targets.addresses[number % len(targets.addresses)]
        with contextlib.suppress(OSError):
            if number % 2:
                stranger = await TcpStranger.connect(address, STRANGER)
                writer = stranger.writer
            else:
                _, writer = await asyncio.open_connection(*address)
            writer.write(noise)
            await asyncio.sleep(0.002)
            writer.transport.abort()


async def impostor(targets: Targets) -> None:
    """Connections under the names of members."""
    for member in targets.view.members:
        for address in targets.addresses:
            with contextlib.suppress(OSError):
                stranger = await TcpStranger.connect(address, member)
                await asyncio.sleep(0.02)
                stranger.writer.transport.abort()


async def tcp_frames(targets: Targets, frames: list[Frame]) -> None:
    """The frames of a stranger, to each member."""
    for address in targets.addresses:
        stranger = await TcpStranger.connect(address, STRANGER)
        for begin in range(0, len(frames), 100):
            stranger.send(*frames[begin : begin + 100])
            await _drained(stranger)
        await asyncio.sleep(0.05)
        await stranger.close()


# UDP


async def greeting_flood(targets: Targets) -> None:
    """Greetings under ever new names, some with a forged address."""
    stranger = UdpStranger(STRANGER)
    for number in targets.many(20_000):
        address = targets.addresses[number % len(targets.addresses)]
        stranger.send_bytes(stranger.hello(f"!x{number}", padding=bytes(300), port=1 + number % 60_000), address)
        if number % 50 == 0:
            await asyncio.sleep(0.001)
    stranger.close()


async def fragments(targets: Targets) -> None:
    """Pieces of the largest frames, never the last one, under many names."""
    strangers = [UdpStranger(f"!f{number}") for number in targets.many(20)]
    for stranger in strangers:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2):
                await stranger.greet(targets.addresses[0])
        for number in range(5):
            pieces = cut(bytes([number]) * (4 << 20), stranger.name, 32_000)
            for piece in pieces[:-1]:
                stranger.send_bytes(piece, targets.addresses[0])
                await asyncio.sleep(0)
    for stranger in strangers:
        stranger.close()


async def udp_garbage(targets: Targets) -> None:
    """Datagrams that are no frames."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for number, noise in enumerate(garbage(targets.dice, len(targets.many(5_000)))):
            sender.sendto(noise, targets.addresses[number % len(targets.addresses)])
            if number % 50 == 0:
                await asyncio.sleep(0.001)


async def udp_frames(targets: Targets, frames: list[Frame]) -> None:
    """The frames of a stranger, to each member."""
    stranger = UdpStranger(STRANGER)
    for address in targets.addresses:
        await stranger.greet(address)
        for number, frame in enumerate(frames):
            stranger.send(address, frame)
            if number % 50 == 0:
                await asyncio.sleep(0.001)
    stranger.close()


# Frames for both


def unasked_proposals(targets: Targets) -> list[Frame]:
    """Proposals for groups that no application asked for."""
    members: tuple[tuple[ProcessId, GroupId | None], ...]
    members = tuple(sorted((each, None) for each in (*targets.view.members, STRANGER)))
    return [
        ProposeFrame(formed_group(f"x{n}", 1, STRANGER, 1), STRANGER, members, targets.settings)
        for n in targets.many(200)
    ]


def repeated_proposals(targets: Targets) -> list[Frame]:
    """Proposals for the group under attack, again and again."""
    view = targets.view
    members = tuple(sorted([*((each, view.group) for each in view.members), (STRANGER, None)]))
    epoch = epoch_of(view.group)
    return [
        ProposeFrame(formed_group(name_of(view.group), epoch + 1, STRANGER, n), STRANGER, members, targets.settings)
        for n in targets.many(200)
    ]


def unknown_groups(targets: Targets) -> list[Frame]:
    """Frames of groups that do not exist."""
    found: list[Frame] = []
    for number in targets.many(2_000):
        group = formed_group(f"x{number}", 1 + number % 9, STRANGER, number)
        found += [
            InstallFrame(group, STRANGER, 1, (_ALONE,)),
            VoteFrame(group, STRANGER, None, 1),
            ProbeFrame(GroupId(f"x{number}"), STRANGER, True, targets.settings),
        ]
    return found


async def joiners_that_never_vote(targets: Targets) -> None:
    """Requests to join under ever new names; the proposals that follow are never answered."""
    for number in targets.many(30):
        with contextlib.suppress(OSError):
            stranger = await TcpStranger.connect(targets.addresses[0], f"!j{number}")
            stranger.send(ProbeFrame(targets.view.group, stranger.name, True, targets.settings))
            await asyncio.sleep(0.05)
            stranger.writer.transport.abort()


def _tcp(frames: Callable[[Targets], list[Frame]]) -> Attack:
    return lambda targets: tcp_frames(targets, frames(targets))


def _udp(frames: Callable[[Targets], list[Frame]]) -> Attack:
    return lambda targets: udp_frames(targets, frames(targets))


ATTACKS: Final[dict[str, dict[str, Attack]]] = {
    "tcp": {
        "never-reading prober": never_reading_prober,
        "unasked proposals": _tcp(unasked_proposals),
        "repeated proposals": _tcp(repeated_proposals),
        "joiners that never vote": joiners_that_never_vote,
        "unknown groups": _tcp(unknown_groups),
        "hello flood": connection_flood,
        "half-open connections": half_open,
        "slow greeting": slow_greeting,
        "held connections": held_connections,
        "large frames in part": large_frame_in_part,
        "garbage": tcp_garbage,
        "impostor": impostor,
    },
    "udp": {
        "unasked proposals": _udp(unasked_proposals),
        "repeated proposals": _udp(repeated_proposals),
        "unknown groups": _udp(unknown_groups),
        "hello flood": greeting_flood,
        "fragments": fragments,
        "garbage": udp_garbage,
    },
}
"""By transport and name, the attacks of strangers without forged numbers."""
