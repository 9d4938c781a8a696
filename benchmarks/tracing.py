"""The cost of a trace: ordered messages per second with and without `trace=`, in turns of one run.

Three members in processes of their own, preset `lan`, all sending as fast as flow control lets them. Each turn starts
new processes, untraced and traced turns alternate, and the result is the ratio of their medians. Run from the root:

    python -m benchmarks.tracing [--bytes 32] [--seconds 3] [--turns 5] [--directory DIR] [--json FILE]
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import antiphon
from antiphon.bench.ordered import throughput
from antiphon.node.lines import orders
from tools.lab.processes import Process, tell

_MEMBERS = 3
_LEAD_NS = 300_000_000
"""All members learn the start of a measurement this time before it."""
_CALM: dict[str, Any] = {"preset": "lan", "suspect_after": 5.0, "merge_every": 5.0}
"""Long timeouts, so that a busy machine causes no exclusions."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=32, help="size of a message")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a turn")
    parser.add_argument("--turns", type=int, default=5, help="of each kind")
    parser.add_argument(
        "--directory", type=Path, help="where the traces go, each removed after its turn; default: /tmp"
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker is not None:
        asyncio.run(_play(**json.loads(arguments.worker)))
        return
    found = asyncio.run(_measure(arguments))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


async def _measure(arguments: argparse.Namespace) -> dict[str, Any]:
    turns: dict[str, list[dict[str, Any]]] = {"untraced": [], "traced": []}
    print(f"{'turn':>4} {'kind':10} {'messages/s':>12} {'CPU ns':>8} {'bytes':>6}   of each delivery")
    for turn in range(arguments.turns):
        for kind, done in turns.items():
            with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
                trace = str(Path(folder) / "run") if kind == "traced" else None
                done.append(await _turn(trace, arguments.bytes, arguments.seconds))
            shown = done[-1]
            each = shown["trace_bytes"] / shown["delivered"]
            print(f"{turn + 1:4} {kind:10} {shown['rate']:12,.0f} {shown['cpu_ns']:8,.0f} {each:6.1f}")
    rates = {kind: statistics.median(each["rate"] for each in done) for kind, done in turns.items()}
    costs = {kind: statistics.median(each["cpu_ns"] for each in done) for kind, done in turns.items()}
    ratio = rates["traced"] / rates["untraced"]
    print(f"medians: {rates['untraced']:,.0f} messages/s untraced, {rates['traced']:,.0f} traced, ratio {ratio:.2f}")
    print(f"CPU time of a delivery: {costs['untraced']:,.0f} ns untraced, {costs['traced']:,.0f} ns traced")
    return {
        "command": " ".join(sys.argv),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "members": _MEMBERS,
        "message_bytes": arguments.bytes,
        "messages_per_second": rates,
        "ratio": ratio,
        "cpu_ns_per_delivery": costs,
        "turns": turns,
    }


async def _turn(trace: str | None, size: int, seconds: float) -> dict[str, Any]:
    processes: list[Process] = []
    address = None
    for number in range(_MEMBERS):
        processes.append(Process("benchmarks.tracing", f"m{number + 1}", rank=number, peer=address, trace=trace))
        await processes[-1].start()
        address = address or (await processes[0].heard("address"))["address"]
    for process in processes:
        await process.heard("together")
    begin_ns = time.monotonic_ns() + _LEAD_NS
    for process in processes:
        await process.tell("load", size=size, begin_ns=begin_ns, end_ns=begin_ns + int(seconds * 1e9))
    found = [await process.heard("loaded", within_s=60 + 10 * seconds) for process in processes]
    for process in processes:
        await process.close()
    if len({each["digest"] for each in found}) > 1:
        raise SystemExit("the members have not delivered the same messages in the same order")
    journals = [*(Path(trace) / "journals").iterdir()] if trace is not None else []
    return {
        "rate": statistics.fmean(each["rate"] for each in found),
        "delivered": sum(each["delivered"] for each in found),
        "cpu_ns": 1e9 * sum(each["cpu_s"] for each in found) / sum(each["delivered"] for each in found),
        "trace_bytes": sum(journal.stat().st_size for journal in journals),
    }


async def _play(name: str, rank: int, peer: str | None, trace: str | None) -> None:
    peers = [] if peer is None else [peer]
    async with antiphon.Member(name=name, peers=peers, trace=trace, **_CALM) as member:
        tell("address", address=member.address)
        group = await member.join("bench")
        while group.view is None or len(group.view.members) < _MEMBERS:
            await group.receive()
        tell("together")
        async for order in orders():
            del order["do"]
            began_s = time.process_time()
            outcome = await throughput(group, **order, senders=[*range(_MEMBERS)], me=rank)
            cpu_s = time.process_time() - began_s
            tell("loaded", rate=outcome.rate, digest=outcome.digest, delivered=outcome.meter.count, cpu_s=cpu_s)


if __name__ == "__main__":
    main()
