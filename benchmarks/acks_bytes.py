"""The cost of acknowledgments with 2, 4, 8 … 256 senders: bytes, frames and work per receiver and period, by protocol.

Every sender sends one message a period. `apart`: this number of processes only send, and four others only receive.
`everybody`: this number of processes do both, as in the paper's typical group. Counted are

    numbers   acknowledgment fields alone: 8 bytes a number
    fields    the same with the names that say whose numbers they are
    frames    whole encoded frames; of those that would be sent anyway, what the acknowledgments add to them

each once, whatever the fan-out, and the work that the cores count themselves. Run from the root of the repository:

    python -m benchmarks.acks_bytes [--shape apart|everybody] [--largest 256] [--json FILE] [--plot FILE.svg|FILE.png]
"""

import argparse
import json
import platform
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from matplotlib.figure import Figure

import antiphon
from antiphon.core.effects import Effect, Transmit
from antiphon.protocols.acks.frames import AckFrame, MessageFrame, VectorAckFrame
from antiphon.protocols.acks.settings import Role
from antiphon.wire.codec import encode
from tools.lab.acks_cluster import UNIT, AcksCluster

KINDS: Final = ("timestamp", "vector", "explicit", "transitive")
RECEIVERS: Final = 4
NUMBER_BYTES: Final = 8
TODAY_NS: Final = 1_700_000_000 * 1_000_000_000
"""A present-day clock value, because a stamp near 0 would be shorter when encoded."""
WARM_UP, MEASURED = 3, 4
"""Periods."""
COUNTED: Final = ("numbers", "fields", "frames", "count", "receiver_work", "sender_work")


def roles_of(shape: str, senders: int) -> dict[str, Role]:
    """Names of one length, so that sizes compare."""
    if shape == "everybody":
        return {f"p{number:03}": "both" for number in range(senders)}
    names: dict[str, Role] = {f"s{number:03}": "sender" for number in range(senders)}
    return names | {f"r{number:03}": "receiver" for number in range(RECEIVERS)}


class Meter:
    """Adds up the bytes that the receivers of a cluster transmit."""

    def __init__(self, roles: dict[str, Role]) -> None:
        self._roles = roles
        self.on = False
        self.totals = dict.fromkeys(COUNTED[:4], 0)

    def see(self, name: str, effect: Effect) -> None:
        """One effect of one process."""
        if not self.on or not isinstance(effect, Transmit) or self._roles[name] == "sender":
            return
        frame = effect.frame
        if isinstance(frame, AckFrame):
            self._add(1 + bool(frame.time), 0, len(encode(frame)))
        elif isinstance(frame, VectorAckFrame):
            self._add(len(frame.entries), sum(len(sender) for sender, _ in frame.entries), len(encode(frame)))
        elif isinstance(frame, MessageFrame):
            listed = frame.past + frame.alone
            sent_anyway = self._roles[name] == "both"
            if listed or not sent_anyway:
                plain = len(encode(frame._replace(past=(), alone=()))) if sent_anyway else 0
                self._add(len(listed), sum(len(sender) for sender, _ in listed), len(encode(frame)) - plain)

    def _add(self, numbers: int, names_bytes: int, frame_bytes: int) -> None:
        self.totals["numbers"] += NUMBER_BYTES * numbers
        self.totals["fields"] += NUMBER_BYTES * numbers + names_bytes
        self.totals["frames"] += frame_bytes
        self.totals["count"] += 1


def run(kind: str, shape: str, senders: int) -> dict[str, float]:
    """One group for some periods; everything per process in its role, and per period."""
    roles, chance = roles_of(shape, senders), random.Random(senders)
    cluster = AcksCluster(
        roles=roles,
        kind=kind,
        latency=UNIT // 2,
        skews=dict.fromkeys(roles, TODAY_NS),
        first_sends={name: chance.randrange(UNIT) for name in roles},
        first_acks={name: chance.randrange(UNIT) for name in roles},
    )
    meter = Meter(roles)
    cluster.watch = meter.see
    sending = [name for name, role in roles.items() if role != "receiver"]
    receiving = [name for name, role in roles.items() if role != "sender"]
    for period in range(WARM_UP + MEASURED):
        for name in sending:
            cluster.at(period * UNIT + chance.randrange(UNIT), cluster.send, name)
    cluster.run(WARM_UP * UNIT)
    before = {name: dict(cluster.cores[name].costs()) for name in roles}
    meter.on = True
    cluster.run((WARM_UP + MEASURED) * UNIT)
    result = {name: total / len(receiving) / MEASURED for name, total in meter.totals.items()}
    for work, names in (("receiver_work", receiving), ("sender_work", sending)):
        done = sum(cluster.cores[name].costs()[work] - before[name][work] for name in names)
        result[work] = done / len(names) / MEASURED
    return {name: round(value, 1) for name, value in result.items()}


def measure(shape: str, largest: int) -> Iterator[dict[str, Any]]:
    """Every size, every protocol."""
    senders = 2
    while senders <= largest:
        for kind in KINDS:
            yield {"senders": senders, "acks": kind, **run(kind, shape, senders)}
        senders *= 2


def shape_of(cases: list[dict[str, Any]], kind: str, what: str) -> float:
    """The factor in cost when the senders double, at the large end: 1 is constant, 2 linear."""
    values = [case[what] for case in cases if case["acks"] == kind]
    return values[-1] / values[-2] if len(values) > 1 and values[-2] else 1.0


def sentence(cases: list[dict[str, Any]]) -> str:
    """Whether timestamp acknowledgments are constant and vectors linear."""
    said = []
    for what in ("numbers", "frames"):
        timestamp, vector = shape_of(cases, "timestamp", what), shape_of(cases, "vector", what)
        constant = "constant" if timestamp < 1.05 else "NOT constant"
        linear = "linear" if 1.8 < vector < 2.2 else "NOT linear"
        said.append(f"in {what} timestamp is {constant} (x{timestamp:.2f}) and vector {linear} (x{vector:.2f})")
    return "When the senders double for the last time, " + "; ".join(said) + "."


def show(cases: list[dict[str, Any]]) -> None:
    """A table for people."""
    print(f"{'senders':>7} {'acks':<10} " + " ".join(f"{name:>13}" for name in COUNTED))
    for case in cases:
        print(f"{case['senders']:>7} {case['acks']:<10} " + " ".join(f"{case[name]:>13,.1f}" for name in COUNTED))
    print(sentence(cases))


def plot(cases: list[dict[str, Any]], shape: str, file: Path) -> None:
    """Bytes of fields and of frames over the number of senders, both on logarithmic scales."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    for position, what in enumerate(("fields", "frames"), start=1):
        axes = figure.add_subplot(1, 2, position)
        for kind in KINDS:
            points = [(case["senders"], case[what]) for case in cases if case["acks"] == kind]
            axes.plot(*zip(*points, strict=True), marker="o", label=kind)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=10)
        axes.set_xlabel(f"senders ({shape})")
        axes.set_ylabel(f"bytes of {what} per receiver and period")
        axes.grid(visible=True, alpha=0.3)
    axes.legend()
    figure.savefig(file)


def main() -> None:
    """Measure, show, and keep the result where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--shape", choices=("apart", "everybody"), default="apart")
    parser.add_argument("--largest", type=int, default=256, help="the largest number of senders")
    parser.add_argument("--json", type=Path, help="write the result here")
    parser.add_argument("--plot", type=Path, help="draw it here, as SVG or PNG")
    arguments = parser.parse_args()
    cases = [*measure(arguments.shape, arguments.largest)]
    show(cases)
    if arguments.json:
        result = {
            "question": "cost of acknowledgments per receiver and period",
            "command": " ".join(["python", "-m", "benchmarks.acks_bytes", *sys.argv[1:]]),
            "version": antiphon.__version__,
            "machine": f"{platform.machine()}, CPython {platform.python_version()}",
            "shape": arguments.shape,
            "cases": cases,
            "finding": sentence(cases),
        }
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")
    if arguments.plot:
        plot(cases, arguments.shape, arguments.plot)


if __name__ == "__main__":
    main()
