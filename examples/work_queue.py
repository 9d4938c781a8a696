"""A work queue without a server: each process gives its tasks to all members in turn, and does those given to it.

python examples/work_queue.py --name ann --bind 127.0.0.1:7701
python examples/work_queue.py --name bob --bind 127.0.0.1:7702 --peer 127.0.0.1:7701

Type paths of files: the members compute their SHA-256. FIFO order is enough: a worker does the tasks of one process as
they were typed (`Reliable()` is too weak), and nothing depends on messages of two senders (`Causal()`, `Total()` only
cost time). The view without a worker comes after its last results; tasks without a result go to others, once more.
"""

import argparse
import asyncio
import hashlib
import json
import sys
from itertools import count
from pathlib import Path

import antiphon


class Tasks:
    def __init__(self, group: antiphon.Group) -> None:
        self.group = group
        self.typed: asyncio.Queue[str] = asyncio.Queue()  # also those of workers that are gone
        self.given: dict[int, tuple[str, str]] = {}  # worker and path, until the result comes
        self.taken: asyncio.Queue[tuple[str, int, str]] = asyncio.Queue()

    async def give(self) -> None:
        for number in count():
            path, members = await self.typed.get(), self.group.health.members
            worker = members[number % len(members)]
            self.given[number] = worker, path  # before it is sent: the view may change meanwhile
            await self.group.send(json.dumps(["do", worker, number, path]).encode())

    async def work(self) -> None:
        while True:
            giver, number, path = await self.taken.get()
            try:
                result = hashlib.sha256(await asyncio.to_thread(Path(path).read_bytes)).hexdigest()
            except OSError as error:
                result = str(error.strerror)
            await self.group.send(json.dumps(["done", giver, number, result]).encode())

    async def follow(self) -> None:
        async for event in self.group:
            if isinstance(event, antiphon.View):
                print(f"* {len(event.members)} members", flush=True)
                for number in [each for each, (worker, _) in self.given.items() if worker not in event.members]:
                    print(f"* {self.given[number][1]}: its worker is gone, another member does it", flush=True)
                    self.typed.put_nowait(self.given.pop(number)[1])
            elif isinstance(event, antiphon.Message):
                kind, to, number, text = json.loads(event.payload)
                if (kind, to) == ("do", self.group.me):
                    self.taken.put_nowait((event.sender, number, text))
                elif (kind, to) == ("done", self.group.me) and number in self.given:
                    print(f"{self.given.pop(number)[1]}: {text} by {event.sender.partition('#')[0]}", flush=True)


async def main(options: argparse.Namespace) -> None:
    lines, fifo = asyncio.StreamReader(), antiphon.Fifo()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with asyncio.TaskGroup() as running, antiphon.join("tasks", service=fifo, **vars(options)) as group:
        tasks = Tasks(group)
        _, *at_work = [running.create_task(each()) for each in (tasks.follow, tasks.give, tasks.work)]
        async for line in lines:
            tasks.typed.put_nowait(line.decode().rstrip())
        while tasks.given or not tasks.typed.empty():
            await asyncio.sleep(0.1)
        for each in at_work:
            each.cancel()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A member of a work queue.")
    parser.add_argument("--name", required=True, help="the name of this process")
    parser.add_argument("--bind", default="127.0.0.1:0", help="its address (host:port)")
    parser.add_argument("--peer", dest="peers", action="append", default=[], help="the address of another member")
    asyncio.run(main(parser.parse_args()))
