"""A member process that traces itself: told what to do in lines of JSON, it reports views and deliveries.

Run by tests as `python -m tests.support.traced_member --worker SETTINGS` (`tools/lab/processes.py`).
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from typing import Any

from antiphon import Group, Member, Message, Reset, View
from antiphon.node.lines import orders
from tools.lab.processes import tell


class Application:
    """Its state is all that it has delivered; it hands it over in pieces."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []

    def snapshot(self) -> Iterator[bytes]:
        for payload in [*self.seen]:
            yield payload + b"\n"

    async def read(self, group: Group) -> None:
        while events := await group.receive():
            for event in events:
                if isinstance(event, Message):
                    self.seen.append(event.payload)
                elif isinstance(event, Reset):
                    self.seen = [*dict.fromkeys(b"".join(event.states).splitlines())]
                    tell("state", messages=len(self.seen))
                elif isinstance(event, View):
                    tell("view", members=sorted(member.partition("#")[0] for member in event.members))
            tell("delivered", messages=len(self.seen))


async def play(name: str, peers: list[str], trace: str, settings: dict[str, Any]) -> None:
    application = Application()
    async with Member(name=name, peers=peers, trace=trace, **settings) as member:
        tell("address", address=member.address)
        group = await member.join("orders", snapshot=application.snapshot)
        reader = asyncio.create_task(application.read(group))
        async for order in orders():
            if order["do"] == "send":
                for number in range(order["messages"]):
                    await group.send(b"%s %d" % (name.encode(), order["first"] + number))
                    await asyncio.sleep(order.get("pause_s", 0))
        await group.leave()
        await reader
    tell("left")


if __name__ == "__main__":
    asyncio.run(play(**json.loads(sys.argv[2])))
