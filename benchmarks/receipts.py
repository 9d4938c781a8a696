"""What receipts cost while nobody uses them: three members in this process, over TCP, all sending 32 bytes.

Turns with and without receipts alternate, so that a change of the machine's speed affects both. `without`: `send`
returns nothing, batches have no receipts, and deliveries confirm nothing. CPU time counts. Run from the root:

    python -m benchmarks.receipts [--turns 40] [--messages 60000] [--json FILE]
"""

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from antiphon import Group, Member, Message
from antiphon.api.outgoing import Outgoing
from antiphon.api.receipts import Confirmations

NAMES = ("a", "b", "c")
PAYLOAD = bytes(32)
GROUP = "bench"


async def _send(self: Group, payload: bytes) -> Any:
    """`Group.send` without its receipt."""
    outgoing = self._outgoing
    batch = outgoing.batch
    if len(batch) >= outgoing.credit or type(payload) is not bytes or len(payload) > outgoing.credit_bytes:
        return await outgoing.send_in_turn(payload)
    is_first = not batch
    batch.append(payload)
    if is_first:
        outgoing.urge()
    return None


def _collect(self: Outgoing) -> None:
    """`Outgoing.collect` without receipts."""
    if self.batch and not self._member.draining:
        batch = self.batch
        self.batch = []
        self.credit = max(0, self.credit - len(batch))
        self._member.send_all(self._group, batch)


def _confirm_nothing(_self: Confirmations, _end: int) -> None:
    """`Confirmations.deliver` without anybody to tell; a mock would cost more than what it replaces."""


@contextmanager
def _without_receipts() -> Iterator[None]:
    with (
        mock.patch.object(Group, "send", _send),
        mock.patch.object(Outgoing, "collect", _collect),
        mock.patch.object(Confirmations, "deliver", _confirm_nothing),
    ):
        yield


async def _read(group: Group, messages: int) -> None:
    while messages > 0:
        messages -= sum(isinstance(event, Message) for event in await group.receive())


async def _write(group: Group, messages: int) -> None:
    for number in range(messages):
        await group.send(PAYLOAD)
        if number % 64 == 63:
            await asyncio.sleep(0)


async def _turn(groups: list[Group], messages: int) -> float:
    """CPU time for one message, in nanoseconds: sent, and delivered at three members."""
    begun = time.process_time_ns()
    each = messages // len(groups)
    await asyncio.gather(
        *(_write(group, each) for group in groups), *(_read(group, each * len(groups)) for group in groups)
    )
    return (time.process_time_ns() - begun) / (each * len(groups))


async def measure(turns: int, messages: int) -> dict[str, Any]:
    """The cost of a message with and without receipts, and what the receipts add."""
    async with AsyncExitStack() as stack:
        members: list[Member] = []
        for name in NAMES:
            peers = [member.address for member in members]
            members.append(await stack.enter_async_context(Member(name=name, peers=peers, preset="local")))
        groups = [await member.join(GROUP) for member in members]
        await asyncio.gather(*(group.ready(len(NAMES)) for group in groups))
        await _turn(groups, messages)  # warm
        took: dict[str, list[float]] = {"with": [], "without": []}
        for number in range(turns):
            for kind in ("with", "without") if number % 2 else ("without", "with"):
                if kind == "with":
                    took[kind].append(await _turn(groups, messages))
                    continue
                with _without_receipts():
                    took[kind].append(await _turn(groups, messages))
    ratios = [one / other for one, other in zip(took["with"], took["without"], strict=True)]
    quartiles = statistics.quantiles(ratios, n=4)
    return {
        "turns": turns,
        "messages": messages,
        "cpu_ns_per_message": {kind: statistics.median(times) for kind, times in took.items()},
        "added": {"median": statistics.median(ratios) - 1, "quartiles": [quartiles[0] - 1, quartiles[2] - 1]},
    }


def main() -> None:
    """Print what receipts add to the cost of a message."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--messages", type=int, default=60_000, help="in one turn, of all members together")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    chosen = parser.parse_args()
    found = asyncio.run(measure(chosen.turns, chosen.messages))
    for kind, cost_ns in found["cpu_ns_per_message"].items():
        print(f"CPU time per message, {kind} receipts: {cost_ns:,.0f} ns")
    low, high = found["added"]["quartiles"]
    print(f"receipts add {found['added']['median']:.1%} (quartiles {low:.1%} to {high:.1%})")
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
