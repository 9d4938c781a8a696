"""The examples as real processes, with a deadline."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.support.patience import SECONDS_MAX

EXAMPLES = Path(__file__).parents[2] / "examples"


class Running:
    """An example that runs, and what it has printed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []

    def type(self, *lines: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("".join(f"{line}\n" for line in lines).encode())

    async def prints(self, enough: Callable[[list[str]], bool]) -> None:
        assert self.process.stdout is not None
        while not enough(self.lines):
            line = await self.process.stdout.readline()
            assert line, f"it ended, having printed {self.lines}"
            self.lines.append(line.decode().rstrip())

    async def ends(self) -> None:
        """Its input is over: it leaves, and prints the rest."""
        output, errors = await self.process.communicate(b"")
        self.lines += output.decode().splitlines()
        assert (self.process.returncode, errors) == (0, b"")


@asynccontextmanager
async def running(example: str, *names: str) -> AsyncIterator[list[Running]]:
    """One process for each name; all but the first are told where the first one is."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    async with AsyncExitStack() as stack:
        found: list[Running] = []
        for name in names:
            place = ["--peer", address] if found else ["--bind", address]
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                str(EXAMPLES / example),
                *("--name", name, *place),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            stack.push_async_callback(reap, process)
            found.append(Running(process))
            if len(found) == 1:
                await found[0].prints(bool)
        yield found


async def reap(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.communicate()


async def chat() -> None:
    async with asyncio.timeout(SECONDS_MAX), running("chat.py", "ann", "bob", "eve") as (ann, bob, eve):
        for each in (ann, bob, eve):
            await each.prints(lambda lines: "* here: ann, bob, eve" in lines)
        ann.type("hello")
        await bob.prints(lambda lines: "ann: hello" in lines)
        bob.type("hello ann", "how are you?")
        eve.type("hi")
        for each in (ann, bob, eve):
            await each.prints(lambda lines: {"bob: how are you?", "eve: hi"} <= {*lines})
        eve.process.kill()
        for each in (ann, bob):
            await each.prints(lambda lines: any(line.startswith("* eve is gone") for line in lines))
        await ann.ends()
        await bob.prints(lambda lines: "* ann is gone: left" in lines)
        await bob.ends()
        said = [[line for line in each.lines if not line.startswith("*")] for each in (ann, bob, eve)]
        assert said[0] == said[1] == said[2]
        assert len(said[0]) == 4


async def bank() -> None:
    async with asyncio.timeout(SECONDS_MAX), running("bank.py", "north", "south") as (north, south):
        for each in (north, south):
            await each.prints(lambda lines: "* 2 branches" in lines)
        north.type("deposit ann 1000", "deposit bob 500", "transfer ann bob 300", "interest 5", "transfer eve ann 1")
        south.type("interest 10", "transfer bob ann 200", "rob bob", "deposit eve 7")
        for each in (north, south):
            await each.prints(lambda lines: len(transactions(lines)) == 9)
        assert transactions(north.lines) == transactions(south.lines)
        assert "rob bob: refused" in " ".join(transactions(north.lines))
        await north.ends()
        await south.prints(lambda lines: lines[-1] == "* 1 branches, no majority")
        await south.ends()


def transactions(lines: list[str]) -> list[str]:
    return [line for line in lines if line[0].isdecimal()]


def test_chat() -> None:
    asyncio.run(chat())


def test_bank() -> None:
    asyncio.run(bank())


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_fits_on_a_page(example: Path) -> None:
    assert len(example.read_text(encoding="utf-8").splitlines()) < 80
