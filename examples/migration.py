"""A replica moves to another machine while its clients go on (Macedo94 Fig. 2.2): three processes in one, on loopback.

python examples/migration.py

`old` and `other` replicate a list of requests in the group `server`, and a client sends. Then the service moves to the
group `server.2`, where `new` joins it, and `old` leaves. No request is lost, and all replicas have the same list.
"""

import asyncio
import json
from contextlib import AsyncExitStack

import antiphon
from antiphon.recipes import Movable

REQUESTS = 300


class Replica:
    """The state is the list of all requests."""

    def __init__(self, member: antiphon.Member) -> None:
        self.requests: list[str] = []
        self.service = Movable(member, self.apply, self.snapshot, self.restore)

    def apply(self, _sender: str, request: bytes) -> None:
        self.requests.append(request.decode())

    def snapshot(self) -> bytes:
        return json.dumps(self.requests).encode()

    def restore(self, state: bytes) -> None:
        self.requests = json.loads(state)

    async def has_all(self) -> None:
        while len(self.requests) < REQUESTS:
            await asyncio.sleep(0.01)


async def send(client: Replica) -> None:
    for number in range(REQUESTS):
        await client.service.send(f"request {number}".encode())
        await asyncio.sleep(0.001)


async def main() -> None:
    async with AsyncExitStack() as stack:
        replicas: dict[str, Replica] = {}
        for name in ("client", "old", "other", "new"):
            peers = [next(iter(replicas.values())).service.address] if replicas else []
            member = await stack.enter_async_context(antiphon.Member(name=name, peers=peers, preset="local"))
            replicas[name] = Replica(member)
        for name in ("client", "old", "other"):
            await replicas[name].service.join("server", found="anyway" if name == "client" else "never")
        sending = asyncio.create_task(send(replicas["client"]))
        joining = asyncio.create_task(replicas["new"].service.arrive("server.2"))
        await replicas["other"].service.move("server.2")
        await joining
        await replicas["old"].service.leave()
        print("the service is in", replicas["other"].service.group.name, "and old has left")
        await sending
        for name in ("client", "other", "new"):
            await replicas[name].has_all()
            print(name, "has", len(replicas[name].requests), "requests")
        same = replicas["other"].requests == replicas["new"].requests == [f"request {n}" for n in range(REQUESTS)]
        print("all in the same order:", same)


if __name__ == "__main__":
    asyncio.run(main())
