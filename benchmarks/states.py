"""The time for a large state to reach a joiner, and the memory that it costs donor and joiner, on sockets.

Three real processes: a donor whose state is a generator, a member that sends all the time, and a joiner. Memory is how
far the peak of each process rises above what it was before it joined. Run from the root:

    python -m benchmarks.states [--mib 64] [--transport udp] [--json FILE]
"""

import argparse
import asyncio
import itertools
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import antiphon

_PIECE = bytes(65_536)
_PAUSE_S = 0.001


def main() -> None:
    """Start the three processes, wait for the joiner, print the report of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--transport", choices=["tcp", "udp"], default="tcp")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--role", choices=["donor", "sender", "joiner"], help=argparse.SUPPRESS)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.role is None:
        found = _measure(["--mib", str(arguments.mib), "--transport", arguments.transport], arguments.mib)
        if arguments.json is not None:
            arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    else:
        asyncio.run(_play(arguments.role, arguments.peer, arguments.mib, arguments.transport))


def _measure(options: list[str], mib: int) -> dict[str, Any]:
    donor, address = _start("donor", options)
    sender, _ = _start("sender", [*options, "--peer", address])
    joiner, _ = _start("joiner", [*options, "--peer", address])
    found = {role: json.loads(process.communicate()[0]) for role, process in (("joiner", joiner), ("sender", sender))}
    found["donor"] = json.loads(donor.communicate()[0])
    seconds = found["joiner"]["seconds"]
    print(f"{mib} MiB in {seconds:.2f} s, {mib / seconds:.0f} MiB/s; {found['joiner']['messages']} messages meanwhile")
    for role, figures in found.items():
        print(f"{role:8} peak memory +{figures['memory_mib']:.0f} MiB")
    return found


def _start(role: str, options: list[str]) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "benchmarks.states", "--role", role, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


async def _play(role: str, peer: str | None, mib: int, transport: str) -> None:
    async with antiphon.Member(name=role, peers=[peer] if peer else [], transport=transport) as member:
        begun, before = time.perf_counter(), _peak_mib()
        sizes = itertools.chain([0], itertools.repeat(mib))  # the sender gets nothing, so that its peak says something
        group = await member.join("store", snapshot=lambda: _pieces(next(sizes)))
        if role == "sender":
            await group.ready(2)
        print(member.address, flush=True)
        found = await {"donor": _stay, "sender": _send, "joiner": _take}[role](group)
        found |= {"seconds": time.perf_counter() - begun, "memory_mib": _peak_mib() - before}
    print(json.dumps(found))


def _pieces(mib: int) -> Iterator[bytes]:
    for _ in range(16 * mib):
        yield _PIECE


async def _take(group: antiphon.Group) -> dict[str, Any]:
    """Read the state and the messages sent meanwhile; then leave, which ends the benchmark."""
    size = messages = 0
    while not size:
        for event in await group.receive():
            if isinstance(event, antiphon.Reset):
                size = len(event.states[0])
            messages += isinstance(event, antiphon.Message)
    return {"bytes": size, "messages": messages + group.health.unread}


async def _stay(group: antiphon.Group) -> dict[str, Any]:
    """Read until the joiner has come and gone."""
    while events := await group.receive():
        if any(_gone(event) for event in events):
            break
    return {}


async def _send(group: antiphon.Group) -> dict[str, Any]:
    async def send() -> None:
        while True:
            await group.send(bytes(100))
            await asyncio.sleep(_PAUSE_S)

    sending = asyncio.create_task(send())
    await _stay(group)
    sending.cancel()
    return {}


def _gone(event: antiphon.Event) -> bool:
    return isinstance(event, antiphon.View) and any(each.process.startswith("joiner") for each in event.left)


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
