"""netlab: a few hosts on one Linux machine, joined by a network that can be broken.

Each host is a network namespace with one TAP interface, eth0 (10.77.0.1, 10.77.0.2, …). One small software switch in
this process holds the other end of every TAP. It delays, drops, duplicates, reorders, corrupts or rate-limits every
frame per *directed* pair of hosts, all from one seed. netlab needs root, iproute2 and /dev/net/tun. It needs no netem
queue discipline, no bridge and no packet filter, so it works on small kernels too.

    with Lab(5, seed=7) as lab:
        lab.link(0, 1, delay=0.02, jitter=0.005, loss=0.1)  # seconds, probabilities; both directions
        member = lab.spawn(0, ["python3", "member.py"], clock="+90s", files=64)
        lab.partition({0, 1}, {2, 3, 4}); time.sleep(5); lab.heal()
        lab.pause(member); lab.resume(member); lab.kill(member); lab.unplug(3); lab.plug(3)

`python tools/netlab.py` says whether this machine can do it. `tests/netlab` measures what each fault does.
"""

import contextlib
import fcntl
import heapq
import os
import random
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypedDict, Unpack

TUN: Final = Path("/dev/net/tun")
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000

GROUP: Final = "239.77.0.1"
"""A multicast address that the hosts may use."""

HEADERS: Final = 42
"""Bytes of Ethernet, IP and UDP headers: a corrupted frame keeps them, so that a checksum refuses it."""

POLL_SECONDS: Final = 0.2
BURST: Final = 64
"""Frames read from one host before the others get their turn."""


class LinkChange(TypedDict, total=False):
    """The fields of `Link`, any of them."""

    delay: float
    jitter: float
    loss: float
    duplicate: float
    reorder: float
    corrupt: float
    rate: float
    queue: int
    up: bool


@dataclass(frozen=True, slots=True)
class Link:
    """The faults for frames from one host to another."""

    delay: float = 0.0
    """Seconds."""
    jitter: float = 0.0
    """Uniform, plus or minus, in seconds; larger than the spacing of frames it reorders them."""
    loss: float = 0.0
    """A probability, for each frame by itself; so are the next three."""
    duplicate: float = 0.0
    reorder: float = 0.0
    """The chance to skip the delay and overtake."""
    corrupt: float = 0.0
    """The chance that one bit of the payload flips."""
    rate: float = 0.0
    """Bits per second; 0: unlimited."""
    queue: int = 65_536
    """Bytes that may wait for `rate` before frames are dropped."""
    up: bool = True


@dataclass(slots=True)
class Counts:
    """The fates of the frames of one directed link."""

    sent: int = 0
    lost: int = 0
    duplicated: int = 0
    blocked: int = 0
    overflowed: int = 0


class Fates:
    """Decides when copies of a frame arrive, and as what. It has no clock and no sockets."""

    def __init__(self, hosts: int, seed: int) -> None:
        pairs = [(a, b) for a in range(hosts) for b in range(hosts) if a != b]
        self.links = {pair: Link() for pair in pairs}
        self.counts = {pair: Counts() for pair in pairs}
        self._idle_at = dict.fromkeys(pairs, 0.0)
        """The time when a rate-limited link has sent all its frames."""
        self._random = random.Random(seed)

    def copies(self, pair: tuple[int, int], frame: bytes, now: float) -> Iterator[tuple[float, bytes]]:
        """Arrival time and content of each copy of a frame that enters a link now."""
        link, counts = self.links[pair], self.counts[pair]
        if not link.up:
            counts.blocked += 1
            return
        if self._happens(link.loss):
            counts.lost += 1
            return
        start = self._sent_at(pair, link, len(frame), now)
        if start is None:
            counts.overflowed += 1
            return
        counts.sent += 1
        yield self._due(link, start), self._content(link, frame)
        if self._happens(link.duplicate):
            counts.duplicated += 1
            yield self._due(link, start), self._content(link, frame)

    def _happens(self, probability: float) -> bool:
        return probability > 0 and self._random.random() < probability

    def _sent_at(self, pair: tuple[int, int], link: Link, size: int, now: float) -> float | None:
        """When the last bit of the frame leaves; None if the queue is full."""
        if not link.rate:
            return now
        start = max(now, self._idle_at[pair])
        if (start - now) * link.rate / 8 > link.queue:
            return None
        self._idle_at[pair] = start + size * 8 / link.rate
        return self._idle_at[pair]

    def _due(self, link: Link, start: float) -> float:
        if self._happens(link.reorder):
            return start
        spread = link.jitter * (2 * self._random.random() - 1) if link.jitter else 0.0
        return start + link.delay + spread

    def _content(self, link: Link, frame: bytes) -> bytes:
        if len(frame) <= HEADERS or not self._happens(link.corrupt):
            return frame
        place = self._random.randrange(HEADERS, len(frame))
        return frame[:place] + bytes([frame[place] ^ 1 << self._random.randrange(8)]) + frame[place + 1 :]


def destinations(source: int, frame: bytes, hosts: int) -> list[int]:
    """The hosts that a frame is for, by its Ethernet address: ours are 02:00:00:00:00:(host + 1)."""
    if frame[0] & 1:  # broadcast or multicast
        return [host for host in range(hosts) if host != source]
    host = frame[5] - 1
    return [host] if frame[:5] == b"\x02\0\0\0\0" and 0 <= host < hosts and host != source else []


class Switch(threading.Thread):
    """Forwards frames between TAP file descriptors; `fates` decides what becomes of them."""

    def __init__(self, taps: list[int], seed: int) -> None:
        super().__init__(daemon=True)
        self.fates = Fates(len(taps), seed)
        self._taps = taps
        self._running = True
        self._waiting: list[tuple[float, int, int, bytes]] = []
        """A heap of (due, serial number, host, frame)."""
        self._serial = 0

    def stop(self) -> None:
        self._running = False
        self.join()

    def run(self) -> None:
        poll = select.epoll()
        hosts = {tap: host for host, tap in enumerate(self._taps)}
        for tap in self._taps:
            poll.register(tap, select.EPOLLIN)
        while self._running:
            wait = self._waiting[0][0] - time.monotonic() if self._waiting else POLL_SECONDS
            for tap, _ in poll.poll(min(max(wait, 0.0), POLL_SECONDS)):
                self._take(hosts[tap], tap)
            self._give(time.monotonic())
        poll.close()

    def _take(self, source: int, tap: int) -> None:
        for _ in range(BURST):
            try:
                frame = os.read(tap, 65_535)
            except BlockingIOError:
                return
            now = time.monotonic()
            for host in destinations(source, frame, len(self._taps)):
                for due, copy in self.fates.copies((source, host), frame, now):
                    self._serial += 1
                    heapq.heappush(self._waiting, (due, self._serial, host, copy))

    def _give(self, now: float) -> None:
        while self._waiting and self._waiting[0][0] <= now:
            _, _, host, frame = heapq.heappop(self._waiting)
            with contextlib.suppress(OSError):  # the receiving interface is down
                os.write(self._taps[host], frame)


Process = subprocess.Popen[Any]


def obstacle() -> str:
    """Why this machine cannot have a lab; empty if it can."""
    if sys.platform != "linux":
        return "network namespaces need Linux"
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not TUN.exists():
        return f"{TUN} does not exist"
    if shutil.which("ip") is None:
        return "the command `ip` of iproute2 is not installed"
    name = f"probe{os.getpid()}"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if done.returncode:
        return f"no network namespace can be made: {done.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return ""


def _faketime() -> str:
    found = sorted(Path("/usr/lib").glob("**/faketime/libfaketime.so.1"))
    if not found:
        raise FileNotFoundError("libfaketime is not installed: clocks of processes cannot be moved")
    return str(found[0])


@dataclass(slots=True)
class Lab:
    """Hosts 0, 1, 2, … with a switch between them, for the time of a `with` block.

    Everything that it makes, namespaces, mounts and processes, is gone when the block ends.
    """

    hosts: int
    seed: int = 0
    name: str = field(default_factory=lambda: f"nl{os.getpid() % 10_000}")
    switch: Switch = field(init=False)
    _taps: list[int] = field(default_factory=list)
    _children: list[Process] = field(default_factory=list)
    _mounts: list[str] = field(default_factory=list)

    def namespace(self, host: int) -> str:
        return f"{self.name}-{host}"

    @staticmethod
    def ip(host: int) -> str:
        return f"10.77.0.{host + 1}"

    def __enter__(self) -> Self:
        try:
            for host in range(self.hosts):
                self._taps.append(self._make_host(host))
            self.switch = Switch(self._taps, self.seed)
            self.switch.start()
        except BaseException:
            self._clear_away()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.switch.stop()
        self._clear_away()

    def _make_host(self, host: int) -> int:
        tap = os.open(TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        device = f"{self.name}t{host}"
        fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH", device.encode(), IFF_TAP | IFF_NO_PI))
        _run("ip", "netns", "add", self.namespace(host))
        _run("ip", "link", "set", device, "netns", self.namespace(host))  # our descriptor stays valid
        address = f"{self.ip(host)}/24"
        self._configure(
            host,
            f"link set {device} name eth0 address {_ethernet(host)}",
            f"addr add {address} brd + dev eth0",
            "link set lo up",
            *self._routes(host),
        )
        return tap

    def _routes(self, host: int) -> list[str]:
        """Neighbours are fixed: faults then hit the traffic of the members, never address resolution."""
        others = [other for other in range(self.hosts) if other != host]
        return ["link set eth0 up", "route replace 224.0.0.0/4 dev eth0"] + [
            f"neigh replace {self.ip(other)} lladdr {_ethernet(other)} dev eth0 nud permanent" for other in others
        ]

    def _configure(self, host: int, *lines: str) -> None:
        command = ["ip", "-n", self.namespace(host), "-batch", "-"]
        subprocess.run(command, input="\n".join(lines), text=True, check=True, capture_output=True)

    def _clear_away(self) -> None:
        for process in self._children:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
        for tap in self._taps:
            os.close(tap)
        for folder in self._mounts:
            subprocess.run(["umount", "-l", folder], capture_output=True, check=False)
            with contextlib.suppress(OSError):
                Path(folder).rmdir()
        for host in range(self.hosts):
            subprocess.run(["ip", "netns", "del", self.namespace(host)], capture_output=True, check=False)

    # -------------------------------------------------------------------------------- the network

    def link(self, one: int, other: int, *, both: bool = True, **change: Unpack[LinkChange]) -> None:
        """Change the link from one host to the other, and back unless told otherwise."""
        links = self.switch.fates.links
        for pair in [(one, other), (other, one)] if both else [(one, other)]:
            links[pair] = replace(links[pair], **change)

    def all_links(self, **change: Unpack[LinkChange]) -> None:
        for one, other in [*self.switch.fates.links]:
            self.link(one, other, both=False, **change)

    def partition(self, *sides: set[int]) -> None:
        """Cut all links between different sides; hosts on no side are alone together."""
        side_of = {host: number for number, side in enumerate(sides) for host in side}
        for one, other in [*self.switch.fates.links]:
            self.link(one, other, both=False, up=side_of.get(one, -1) == side_of.get(other, -1))

    def heal(self) -> None:
        """Undo cuts; delays and losses stay."""
        self.all_links(up=True)

    def clear(self) -> None:
        """Make the network perfect again."""
        for pair in self.switch.fates.links:
            self.switch.fates.links[pair] = Link()

    def unplug(self, host: int) -> None:
        """Take the carrier away: unlike a cut, the host sees this one."""
        self._configure(host, "link set eth0 down")

    def plug(self, host: int) -> None:
        """Give the carrier back, with the routes and neighbours that were forgotten without it."""
        self._configure(host, *self._routes(host))

    # -------------------------------------------------------------------------------- the processes

    def prefix(self, host: int) -> tuple[str, ...]:
        """The command prefix that runs a command on a host."""
        return "ip", "netns", "exec", self.namespace(host)

    def spawn(
        self,
        host: int,
        command: list[str],
        *,
        clock: str = "",
        drift: float = 1.0,
        files: int = 0,
        file_bytes: int = 0,
        memory_bytes: int = 0,
        **popen: Any,
    ) -> Process:
        """Start a command on a host; it is killed when the lab ends.

        clock: "+90s" or "-1h" moves its wall clock; drift: 1.05 makes all its clocks 5 % fast (needs libfaketime).
        files, file_bytes, memory_bytes: resource limits.
        """
        environment = {**popen.pop("env", os.environ), "PYTHONUNBUFFERED": "1"}
        if clock or drift != 1.0:
            pace = f" x{drift}" if drift != 1.0 else ""
            environment |= {"LD_PRELOAD": _faketime(), "FAKETIME": f"{clock or '+0'}{pace}"}
            if drift == 1.0:
                environment["FAKETIME_DONT_FAKE_MONOTONIC"] = "1"
        process = subprocess.Popen([*self.prefix(host), *command], env=environment, **popen)
        self._children.append(process)  # `ip netns exec` replaces itself, so this is the command
        limits = {
            resource.RLIMIT_NOFILE: files,
            resource.RLIMIT_FSIZE: file_bytes,
            resource.RLIMIT_AS: memory_bytes,
        }
        for what, value in limits.items():
            if value:
                resource.prlimit(process.pid, what, (value, value))
        return process

    def small_disk(self, size_bytes: int) -> Path:
        """A folder on a disk of its own."""
        folder = tempfile.mkdtemp(prefix="netlab-disk-")
        _run("mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", folder)
        self._mounts.append(folder)
        return Path(folder)

    def pause(self, process: Process) -> None:
        process.send_signal(signal.SIGSTOP)

    def resume(self, process: Process) -> None:
        process.send_signal(signal.SIGCONT)

    def kill(self, process: Process) -> None:
        """The kernel still closes its sockets: peers see FIN or RST."""
        process.send_signal(signal.SIGKILL)
        process.wait()

    def power_off(self, host: int, process: Process) -> None:
        """Peers see nothing at all."""
        for other in range(self.hosts):
            if other != host:
                self.link(host, other, up=False)
        self.kill(process)


def _ethernet(host: int) -> str:
    return f"02:00:00:00:00:{host + 1:02x}"


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def main() -> int:
    """Say whether a lab is possible here."""
    reason = obstacle()
    print(f"no lab is possible here: {reason}" if reason else "labs are possible here")
    return 1 if reason else 0


if __name__ == "__main__":
    sys.exit(main())
