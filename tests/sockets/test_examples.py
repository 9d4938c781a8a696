"""The examples as real processes, with a deadline."""

import asyncio
import hashlib
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.support.patience import SECONDS_MAX

EXAMPLES = Path(__file__).parents[2] / "examples"
SLOW = re.compile(
    r"^\w+: (messages of this process wait for .+|.+( answers late| does not hear this process| other members))$"
)
"""Warnings about a member that is stopped, or that a busy machine holds up."""


class Running:
    """A running example and its output."""

    def __init__(self, process: asyncio.subprocess.Process, address: str) -> None:
        self.process = process
        self.address = address
        """Of the first one."""
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
        """End its input: it leaves, and prints the rest."""
        output, errors = await self.process.communicate(b"")
        self.lines += output.decode().splitlines()
        told = [line for line in errors.decode().splitlines() if not SLOW.search(line)]
        assert (self.process.returncode, told) == (0, [])


@asynccontextmanager
async def running(example: str, *names: str, peers: Sequence[str] = ()) -> AsyncIterator[list[Running]]:
    """One process for each name; all but the first are told where the first one is, and all these peers."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    async with AsyncExitStack() as stack:
        found: list[Running] = []
        for name in names:
            place = ["--peer", address] if found else ["--bind", address]
            place += [part for peer in peers for part in ("--peer", peer)]
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                str(EXAMPLES / example),
                *("--name", name, *place),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            stack.push_async_callback(reap, process)
            found.append(Running(process, address))
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
        for lines in said:
            assert sorted(lines) == ["ann: hello", "bob: hello ann", "bob: how are you?", "eve: hi"]
            assert [line for line in lines if "eve" not in line] == [
                "ann: hello",
                "bob: hello ann",
                "bob: how are you?",
            ]


async def bank() -> None:
    async with asyncio.timeout(SECONDS_MAX), running("bank.py", "north", "south") as (north, south):
        for each in (north, south):
            await each.prints(lambda lines: lines[-2:] == ["* 2 branches", "* in business"])
        north.type("deposit ann 1000", "deposit bob 500", "transfer ann bob 300", "interest 5", "transfer eve ann 1")
        south.type("interest 10", "transfer bob ann 200", "rob bob", "deposit eve 7")
        for each in (north, south):
            await each.prints(lambda lines: len(transactions(lines)) == 9)
        assert transactions(north.lines) == transactions(south.lines)
        assert "rob bob: refused" in " ".join(transactions(north.lines))
        await north.ends()
        await south.prints(lambda lines: lines[-2:] == ["* 1 branches", "* in business"])
        await south.ends()


async def booking() -> None:
    async with asyncio.timeout(SECONDS_MAX), running("booking.py", "ann", "bob") as (ann, bob):
        for each in (ann, bob):
            await each.prints(lambda lines: "* here: ann, bob" in lines)
        ann.type("12", "is it yours?")
        bob.type("12")
        for each in (ann, bob):
            await each.prints(lambda lines: "* all members know of your wish for seat 12" in lines)
            await each.prints(lambda lines: len(seats(lines)) == 2 and "ann: is it yours?" in lines)
        assert seats(ann.lines) == seats(bob.lines)
        assert len({*seats(ann.lines)}) == 1  # both wishes, one owner
        await ann.ends()
        await bob.ends()


async def work_queue(folder: Path) -> None:
    """Of three members one is stopped, gets tasks, and is killed: the others do them."""
    files = [folder / f"{number}.txt" for number in range(6)]
    for file in files:
        file.write_text(file.name)
    async with asyncio.timeout(SECONDS_MAX), running("work_queue.py", "ann", "bob", "eve") as (ann, bob, eve):
        for each in (ann, bob, eve):
            await each.prints(lambda lines: "* 3 members" in lines)
        eve.process.send_signal(signal.SIGSTOP)
        ann.type(*map(str, files[:3]), "/no/such/file")
        await ann.prints(lambda lines: len(results(lines)) == 3)  # they wait for no other member
        eve.process.kill()
        bob.type(*map(str, files[3:]))
        await bob.prints(lambda lines: len(results(lines)) == 3)
        await ann.prints(lambda lines: len(results(lines)) == 4)
        await ann.ends()
        await bob.ends()
        assert sum(line.endswith("its worker is gone, another member does it") for line in ann.lines) == 1
        expected = {f"{file}: {hashlib.sha256(file.name.encode()).hexdigest()}" for file in files}
        done = {line.partition(" by ")[0] for line in results(ann.lines + bob.lines)}
        assert done == expected | {"/no/such/file: No such file or directory"}


def results(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("/")]


def seats(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("seat ")]


async def branch_out_of_business() -> None:
    """One of two branches is killed: the other keeps typed lines until the first one is back."""
    async with asyncio.timeout(SECONDS_MAX), running("bank.py", "north", "south") as (north, south):
        for each in (north, south):
            await each.prints(lambda lines: lines[-2:] == ["* 2 branches", "* in business"])
        north.type("deposit ann 100")
        await south.prints(lambda lines: len(transactions(lines)) == 1)
        south.process.kill()
        await north.prints(lambda lines: lines[-1] == "* 1 branches")
        north.type("deposit ann 20")
        await north.prints(lambda lines: lines[-1] == "* out of business: this waits")
        assert len(transactions(north.lines)) == 1
        async with running("bank.py", "south", peers=[north.address]) as (again,):
            for each in (north, again):
                await each.prints(lambda lines: "2 deposit ann 20: {'ann': 120}" in lines)


def transactions(lines: list[str]) -> list[str]:
    return [line for line in lines if line[0].isdecimal()]


def test_chat() -> None:
    asyncio.run(chat())


def test_bank() -> None:
    asyncio.run(bank())


def test_work_queue(tmp_path: Path) -> None:
    asyncio.run(work_queue(tmp_path))


def test_booking() -> None:
    asyncio.run(booking())


def test_a_branch_that_is_not_primary_keeps_what_is_typed() -> None:
    asyncio.run(branch_out_of_business())


def test_a_replica_moves_while_requests_go_on() -> None:
    async def moves() -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(EXAMPLES / "migration.py"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(SECONDS_MAX):
            output, errors = await process.communicate()
        assert (process.returncode, errors) == (0, b"")
        assert output.decode().splitlines()[-1] == "all in the same order: True"

    asyncio.run(moves())


@pytest.mark.parametrize("example", ["chat.py", "booking.py"])
def test_a_wrong_argument_is_one_sentence(example: str) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / example), "--name", "ann", "--peer", "nonsense"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "'nonsense' is not an address such as 10.0.0.5:7400\n")


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_fits_on_a_page(example: Path) -> None:
    assert len(example.read_text(encoding="utf-8").splitlines()) < 80
