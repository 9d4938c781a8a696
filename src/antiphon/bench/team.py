"""The processes of a benchmark, seen from outside: start them, send them commands, collect their answers."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from math import ceil
from types import TracebackType
from typing import IO, Any, Final, Self

from antiphon.errors import AntiphonError

_AHEAD_NS: Final = 100_000_000
"""How far ahead the start of a measurement is announced."""
_FAREWELL_S: Final = 10.0


class BenchmarkFailed(AntiphonError):  # noqa: N818 - what happened
    """A process of a benchmark ended unexpectedly, or members did not read the same messages."""


class Team:
    """The members of a benchmark, one process each, connected and in one group for each service."""

    def __init__(self, members: int, transport: str, services: Iterable[str], *, batch: bool = True) -> None:
        """`services`: by name; `batch`: schedule them as batch processes, if the system supports it."""
        self.members = members
        self._policy = "batch" if batch else "default"
        self._children: list[subprocess.Popen[str]] = []
        self._logs: list[IO[str]] = []
        """What each of them writes to standard error: files, because a full pipe that nobody reads would stop it."""
        ready: list[dict[str, Any]] = []
        try:
            for rank in range(members):
                self._start(rank, transport, ready[0]["members"] if ready else dict.fromkeys(services))
                ready.append(self._hear(rank))
            self._all(do="meet", bare=[each["bare"] for each in ready])
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let all processes end; kill those that do not."""
        for child in self._children:
            assert child.stdin is not None
            child.stdin.close()
        for child in self._children:
            try:
                child.wait(_FAREWELL_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            assert child.stdout is not None
            child.stdout.close()
        for log in self._logs:
            log.close()

    def fan_out(self, size: int, seconds: float, *, packed: bool, senders: list[int]) -> float:
        """Messages per second at the slowest process of the baseline."""
        answers = self._together(seconds, do="fan-out", size=size, packed=packed, senders=senders)
        return min(float(each["rate"]) for each in answers)

    def order(
        self, size: int, seconds: float, *, senders: list[int], service: str = "total", profile: bool = False
    ) -> dict[str, Any]:
        """The answer of the slowest member of the group; all members must have read the same messages."""
        answers = self._together(seconds, do="order", size=size, senders=senders, service=service, profile=profile)
        if len({(each["digest"], each["delivered"]) for each in answers}) > 1:
            raise BenchmarkFailed("members read different messages, or the same messages in different orders")
        if any(each["views"] for each in answers):
            raise BenchmarkFailed("a member was excluded: this machine is too busy for a measurement")
        return min(answers, key=lambda each: float(each["rate"]))

    def ask(self, size: int, seconds: float, per_second: int, *, peers: int) -> list[int]:
        """How long bare requests to this many peers took until all had replied, in nanoseconds."""
        return self._samples("ask", size, seconds, per_second, first=1, peers=peers)

    def latency(self, size: int, seconds: float, per_second: int, *, service: str) -> list[int]:
        """How long ordered messages took, from `send` to each member that read them."""
        return self._samples("latency", size, seconds, per_second, first=self.members, service=service)

    def _samples(
        self, what: str, size: int, seconds: float, per_second: int, *, first: int, **more: int | str
    ) -> list[int]:
        """Samples of all members at that rate, one after another within each interval.

        `first`: how many samples of each member do not count, because all processes had slept longer before them.
        """
        begin, interval = time.monotonic_ns() + _AHEAD_NS, 10**9 // per_second
        numbers = range(1 + ceil(seconds * per_second))
        times = [
            [begin + number * interval + rank * interval // self.members for number in numbers]
            for rank in range(self.members)
        ]
        answers = self._all(do=what, size=size, times_ns=times, **more)
        return [took for each in answers for took in each["took_ns"][first:]]

    def _together(self, seconds: float, **order: Any) -> list[dict[str, Any]]:
        begin = time.monotonic_ns() + _AHEAD_NS
        return self._all(begin_ns=begin, end_ns=begin + int(seconds * 1e9), **order)

    def _all(self, **order: Any) -> list[dict[str, Any]]:
        line = json.dumps(order) + "\n"
        for child in self._children:
            assert child.stdin is not None
            child.stdin.write(line)
            child.stdin.flush()
        return [self._hear(rank) for rank in range(self.members)]

    def _start(self, rank: int, transport: str, peers: dict[str, str | None]) -> None:
        self._logs.append(tempfile.TemporaryFile("w+"))  # noqa: SIM115 - closed with the team
        self._children.append(
            subprocess.Popen(  # noqa: S603 - ourselves
                [
                    sys.executable,
                    "-m",
                    "antiphon.bench.worker",
                    str(rank),
                    transport,
                    self._policy,
                    json.dumps(peers),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._logs[rank],
                text=True,
            )
        )

    def _hear(self, rank: int) -> dict[str, Any]:
        child = self._children[rank]
        assert child.stdout is not None
        line = child.stdout.readline()
        if not line:
            child.wait(_FAREWELL_S)  # its log is complete then
            self._logs[rank].seek(0)
            last = self._logs[rank].read().strip().rpartition("\n")[2]
            raise BenchmarkFailed(
                f"member {rank + 1} of the benchmark ended unexpectedly: {last or 'no error message'}"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer
