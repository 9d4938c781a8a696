"""Seats of a theatre, and a chat beside it: one member in two groups with different services.

A seat belongs to whoever is first in the agreed order. The group of seats is safe: what one member has printed, no
crash can undo. Type the number of a seat, or anything else to chat.
"""

import argparse
import asyncio
import sys

import antiphon
from antiphon import Total


async def show(member: antiphon.Member) -> None:
    """Print what both groups deliver, in their one order."""
    owners: dict[str, str] = {}
    async for group, event in member.events():
        match event:
            case antiphon.Message(sender=sender, payload=payload) if group.name == "seats":
                seat = payload.decode()
                owner = owners.setdefault(seat, name(sender))
                print(f"seat {seat} is {owner}'s", flush=True)
            case antiphon.Message(sender=sender, payload=payload):
                print(f"{name(sender)}: {payload.decode()}", flush=True)
            case antiphon.View(members=members) if group.name == "chat":
                print(f"* here: {', '.join(map(name, members))}", flush=True)


def name(process: str) -> str:
    """The name without the incarnation."""
    return process.partition("#")[0]


async def typed_lines() -> asyncio.StreamReader:
    """The lines of the standard input, for `async for`."""
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    return lines


async def book(options: argparse.Namespace) -> None:
    """Join both groups, and send what is typed."""
    async with asyncio.TaskGroup() as tasks, antiphon.Member(**vars(options)) as member:
        tasks.create_task(show(member))
        await asyncio.sleep(0)  # both groups are read as one from the start
        seats = await member.join("seats", service=Total(safe=True))
        chat = await member.join("chat", service=Total())
        async for line in await typed_lines():
            if not line.strip().isdigit():
                await chat.send(line.rstrip())
                continue
            receipt = await seats.send(line.strip())
            await receipt.stable()
            print(f"* all members know of your wish for seat {line.decode().strip()}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Seats of a theatre, and a chat, without a server.")
    parser.add_argument("--name", required=True, help="your name")
    parser.add_argument("--bind", default="127.0.0.1:0", help="your address (host:port)")
    parser.add_argument("--peer", dest="peers", action="append", default=[], help="the address of another participant")
    try:
        asyncio.run(book(parser.parse_args()))
    except* antiphon.ConfigurationError as errors:  # in the group of tasks
        sys.exit(str(errors.exceptions[0]))
