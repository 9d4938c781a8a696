"""A member in a process of its own, for tests that stop it: `python -m tests.support.waiting_member NAME BIND PEER…`.

Prints the number of members of each view that it reads, and ends when its input does.
"""

import asyncio
import sys

import antiphon
from tests.support.loopback import FAST


async def show(group: antiphon.Group) -> None:
    async for event in group:
        if isinstance(event, antiphon.View):
            sys.stdout.write(f"{len(event.members)}\n")
            sys.stdout.flush()


async def main(name: str, bind: str, *peers: str) -> None:
    async with antiphon.join("orders", name=name, bind=bind, peers=peers, **FAST) as group:
        reading = asyncio.create_task(show(group))
        await asyncio.to_thread(sys.stdin.read)
        reading.cancel()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
