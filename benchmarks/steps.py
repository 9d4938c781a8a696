"""The cost of each step of one ordered message in the core and the codec: in a loop, and with cold caches.

Three cores in this process hand frames to one another, one message at a time. `cold`: before each step other memory is
walked through, so that nothing of ours is left in the caches; a process that runs a few hundred times a second is in
between. Sockets, the event loop and the application are not in it (`antiphon bench`).

    python -m benchmarks.steps [--messages 2000] [--json FILE]
"""

import argparse
import json
import os
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter_ns
from typing import Final

from antiphon.api.settings import settings
from antiphon.core.effects import Deliver, Effect, Frame, Transmit
from antiphon.protocols.newtop.process import NewtopProcess
from antiphon.types import GroupId, ProcessId, first_view
from antiphon.wire.codec import decode, encode

GROUP: Final = GroupId("bench")
NAMES: Final = tuple(ProcessId(f"m{number}") for number in (1, 2, 3))
PAYLOAD: Final = bytes(32)
APART_NS: Final = 3_300_000
CACHES: Final = bytearray(24 << 20)
"""More than the caches of a core hold."""


class Steps:
    """Three members, and the times of their steps."""

    def __init__(self, prepare: Callable[[], object]) -> None:
        chosen = settings("local", {"suspect_after": 5.0, "merge_every": 5.0}).core(datagrams=False, tracing=False)
        chosen = replace(chosen, merely_total=frozenset({GROUP}))  # as a group with the service `Total()`
        view = first_view(GROUP, frozenset(NAMES))
        self.took: dict[str, list[int]] = defaultdict(list)
        self._prepare = prepare
        self._cores = {name: NewtopProcess(name, {GROUP: view}, chosen) for name in NAMES}
        self._taken = dict.fromkeys(NAMES, 0)
        self._now = 0

    def message(self, number: int) -> None:
        """From the sending to all deliveries."""
        sender, one, other = (NAMES[(number + place) % 3] for place in range(3))
        self._now += APART_NS
        self._let_time_pass()
        self._cores[sender].send(GROUP, PAYLOAD, self._now)
        [message] = self._drain(sender, "send")
        answers = {name: self._receive(name, message, "answer") for name in (one, other)}
        for sent, to in ((one, sender), (other, sender), (other, one), (one, other)):
            self._receive(to, answers[sent][0], "deliver")

    def _receive(self, name: ProcessId, sealed: bytes, step: str) -> list[bytes]:
        with self._timed(f"{step}: decode and note"):
            self._cores[name].receive(decode(sealed), self._now)
        return self._drain(name, step)

    def _drain(self, name: ProcessId, step: str) -> list[bytes]:
        core = self._cores[name]
        with self._timed(f"{step}: core"):
            effects = core.drain(self._now)
        with self._timed(f"{step}: encode"):
            sealed = [encode(effect.frame) for effect in effects if isinstance(effect, Transmit)]
        self._consume(name, effects)
        return sealed

    def _let_time_pass(self) -> None:
        """Send and receive due frames, and the answers to them, without counting them."""
        for core in self._cores.values():
            core.tick(self._now)
        while said := [frame for name in NAMES for frame in self._said(name)]:
            for frame in said:
                for name in NAMES:
                    if name != frame.sender:
                        self._cores[name].receive(frame, self._now)

    def _said(self, name: ProcessId) -> list[Frame]:
        effects = self._cores[name].drain(self._now)
        self._consume(name, effects)
        return [each.frame for each in effects if isinstance(each, Transmit)]

    def _consume(self, name: ProcessId, effects: list[Effect]) -> None:
        """The application takes what is delivered."""
        delivered = sum(isinstance(effect, Deliver) for effect in effects)
        if delivered:
            self._taken[name] += delivered
            self._cores[name].consumed(GROUP, self._taken[name], self._now)

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        self._prepare()
        began = perf_counter_ns()
        yield
        self.took[step].append(perf_counter_ns() - began)


def microseconds(messages: int, prepare: Callable[[], object]) -> dict[str, float]:
    """By step, the median of one; `whole`: of all steps of a message, at all members together."""
    steps = Steps(prepare)
    for number in range(messages):
        steps.message(number)
    medians = {step: statistics.median(took) / 1e3 for step, took in steps.took.items()}
    whole = sum(medians[step] * len(took) for step, took in steps.took.items()) / messages
    return {**medians, "whole": whole}


def main() -> None:
    """Measure, print, and write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    warm = microseconds(arguments.messages, lambda: None)
    cold = microseconds(max(1, arguments.messages // 10), lambda: bytes(CACHES))
    for step in warm:
        print(f"{step:28} {warm[step]:6.1f} µs, cold {cold[step]:6.1f} µs")
    if arguments.json is not None:
        document = {"cores": os.cpu_count(), "load": os.getloadavg(), "warm": warm, "cold": cold}
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
