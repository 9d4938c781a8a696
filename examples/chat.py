"""A chat room without a server: every line reaches all participants, and no answer comes before its question.

python examples/chat.py --name ann --bind 127.0.0.1:7401
python examples/chat.py --name bob --bind 127.0.0.1:7402 --peer 127.0.0.1:7401

Type a line and press enter. The end of the input (control-D) leaves the room.

Causal order is enough: a line comes after all lines that its author had read. FIFO order would show some answers before
their questions. Total order would also give lines that were typed at the same time one order everywhere. No reader
needs that, and every line would wait for the slowest participant.
"""

import argparse
import asyncio
import sys

import antiphon


async def show(room: antiphon.Group) -> None:
    """Print all events, until we have left."""
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
    """The name without the incarnation."""
    return process.partition("#")[0]


async def typed_lines() -> asyncio.StreamReader:
    """The lines of the standard input, for `async for`."""
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    return lines


async def chat(options: argparse.Namespace) -> None:
    """Send what is typed, show what is delivered."""
    async with (
        asyncio.TaskGroup() as tasks,
        antiphon.join("chat", service=antiphon.Causal(), **vars(options)) as room,
    ):
        tasks.create_task(show(room))
        async for line in await typed_lines():
            await room.send(line.rstrip())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A chat room without a server.")
    parser.add_argument("--name", required=True, help="your name")
    parser.add_argument("--bind", default="127.0.0.1:0", help="your address (host:port)")
    parser.add_argument("--peer", dest="peers", action="append", default=[], help="the address of another participant")
    try:
        asyncio.run(chat(parser.parse_args()))
    except* antiphon.ConfigurationError as errors:  # in the group of tasks
        sys.exit(str(errors.exceptions[0]))
