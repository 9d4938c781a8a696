"""The same loads through a group: every message in one order at all members, through the public API."""

import asyncio
import time
import zlib
from itertools import cycle, islice
from typing import Final

from antiphon.api.events import Message
from antiphon.api.group import Group
from antiphon.bench.meter import Meter, until

_END: Final = b"end"
"""The last message of a sender; no other message is this short."""
_RING: Final = 1024
"""How many different messages a sender has; their succession still distinguishes orders."""
_BURST: Final = 256
"""How many messages are sent between two readings of the clock."""
_HEAD_BYTES: Final = 32
"""Messages differ within these first bytes."""


class Outcome:
    """What one member read in one measurement."""

    def __init__(self, *, ordered: bool = True) -> None:
        """`ordered`: all members read one order, which is checked."""
        self._ordered = ordered
        self.meter = Meter()
        self.rate = 0.0
        self.digest = 0
        """Checksum of the messages in the order in which they came; equal at all members."""
        self.foreign: list[str] = []
        """Events other than messages: only flow control should occur."""

    async def read(self, group: Group, senders: int) -> None:
        """Read until all senders have sent everything."""
        ended = 0
        while ended < senders:
            events = await group.receive()
            payloads = [event.payload for event in events if type(event) is Message]
            if self._ordered:
                self.digest = zlib.crc32(b"".join([payload[:_HEAD_BYTES] for payload in payloads]), self.digest)
            self.meter.count += len(payloads)
            ended += payloads.count(_END)
            if len(payloads) < len(events):
                self.foreign += [type(event).__name__ for event in events if type(event) is not Message]


async def throughput(
    group: Group, size: int, begin_ns: int, end_ns: int, *, senders: list[int], me: int, ordered: bool = True
) -> Outcome:
    """Send as fast as the group accepts messages, if this member is a sender."""
    outcome = Outcome(ordered=ordered)
    reader = asyncio.create_task(outcome.read(group, len(senders)))
    measured = asyncio.create_task(outcome.meter.rate(begin_ns, end_ns))
    if me in senders:
        ring = cycle([(b"%6d%6d" % (me, number)).ljust(size, b".") for number in range(_RING)])
        await until(begin_ns)
        while time.monotonic_ns() < end_ns:
            for payload in islice(ring, _BURST):
                await group.send(payload)
        await group.send(_END)
    outcome.rate = await measured
    await reader
    return outcome


async def latency(group: Group, size: int, times_ns: list[int], members: int) -> list[int]:
    """Send at these times; return how long each message of any member took to arrive here, in nanoseconds."""
    took: list[int] = []

    async def read() -> None:
        ended = 0
        while ended < members:
            for event in await group.receive():
                if type(event) is not Message:
                    continue
                if event.payload == _END:
                    ended += 1
                else:
                    took.append(time.monotonic_ns() - int(event.payload[:20]))

    reader = asyncio.create_task(read())
    for moment in times_ns:
        await until(moment)
        await group.send((b"%20d" % time.monotonic_ns()).ljust(size, b"."))
    await group.send(_END)
    await reader
    return took
