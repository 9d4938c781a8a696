"""A chat room without a server: every line reaches everybody, in the same order.

python examples/chat.py --name ann --bind 127.0.0.1:7401
python examples/chat.py --name bob --bind 127.0.0.1:7402 --peer 127.0.0.1:7401

Type, press enter; the end of the input (control-D) leaves the room.
"""

import argparse
import asyncio
import sys

import antiphon


async def show(room: antiphon.Group) -> None:
    """Print what happens, until we have left."""
    async for event in room:
        match event:
            case antiphon.Message(sender=who, payload=line):
                print(f"{name(who)}: {line.decode(errors='replace')}", flush=True)
            case antiphon.View(members=members, left=left):
                for each in left:
                    print(f"* {name(each.process)} is gone: {each.reason}", flush=True)
                print(f"* here: {', '.join(map(name, members))}", flush=True)
            case antiphon.Blocked(by=str(slowest)):
                print(f"* waiting for {name(slowest)}", flush=True)


def name(process: str) -> str:
    """Without the number of its start."""
    return process.partition("#")[0]


async def typed_lines() -> asyncio.StreamReader:
    """The lines of the standard input, for `async for`."""
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    return lines


async def chat(options: argparse.Namespace) -> None:
    """Send what is typed, show what is said."""
    async with (
        asyncio.TaskGroup() as tasks,
        antiphon.join("chat", **vars(options)) as room,
    ):
        tasks.create_task(show(room))
        async for line in await typed_lines():
            await room.send(line.rstrip())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A chat room without a server.")
    parser.add_argument("--name", required=True, help="who you are")
    parser.add_argument("--bind", default="127.0.0.1:0", help="where you listen (host:port)")
    parser.add_argument("--peer", dest="peers", action="append", default=[], help="where somebody else listens")
    try:
        asyncio.run(chat(parser.parse_args()))
    except antiphon.ConfigurationError as error:
        sys.exit(str(error))
