"""Hosts on one Linux machine for programs that are not ours: a network namespace each, joined pairwise by veth.

A program on a host has a mount namespace of its own: folders can be hidden from it, and it then finds them empty.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Final

_PROBE: Final = "ip link add name one type veth peer name two && mount -t tmpfs tmpfs /tmp"
_HIDE: Final = 'while [ "$1" != -- ]; do mount -t tmpfs tmpfs "$1"; shift; done; shift; exec "$@"'


@dataclass(frozen=True)
class Host:
    """Where a program runs: an address, and the namespace that has it; without one, this machine itself."""

    address: str = "127.0.0.1"
    namespace: str | None = None

    def command(self, *words: str, hidden: Sequence[Path] = ()) -> list[str]:
        """The command line that runs a command here, without a view of the hidden folders."""
        if self.namespace is None:
            assert not hidden, "this machine sees all of its folders"
            return [*words]
        there = ["ip", "netns", "exec", self.namespace]
        if not hidden:
            return [*there, *words]
        return [*there, "unshare", "--mount", "sh", "-ec", _HIDE, "sh", *map(str, hidden), "--", *words]


def obstacle() -> str:
    """Why this machine cannot have such hosts; empty if it can."""
    if sys.platform != "linux":
        return "namespaces need Linux"
    if os.geteuid() != 0:
        return "namespaces need root"
    missing = [name for name in ("ip", "unshare", "mount") if shutil.which(name) is None]
    if missing:
        return f"these commands are not installed: {', '.join(missing)}"
    probe = ["unshare", "--net", "--mount", "sh", "-ec", _PROBE]  # all of it is gone when the probe ends
    done = subprocess.run(probe, capture_output=True, text=True, check=False)
    return f"no namespaces can be made: {done.stderr.strip()}" if done.returncode else ""


@contextmanager
def hosts(number: int) -> Iterator[list[Host]]:
    """This many hosts, each with a way to each other; the namespaces are gone when the block ends."""
    made = [Host(f"10.78.0.{place + 1}", f"antiphon-{os.getpid()}-{place}") for place in range(number)]
    with ExitStack() as stack:
        for host in made:
            _ip("netns", "add", str(host.namespace))
            stack.callback(_ip, "netns", "del", str(host.namespace))
            _ip("-n", str(host.namespace), "link", "set", "lo", "up")
            _ip("-n", str(host.namespace), "addr", "add", f"{host.address}/32", "dev", "lo")
        for one, other in permutations(made, 2):
            if one.address < other.address:
                _ip("link", "add", _device(other), "netns", str(one.namespace), "type", "veth",
                    "peer", "name", _device(one), "netns", str(other.namespace))  # fmt: skip
        for one, other in permutations(made, 2):
            device = ("dev", _device(other))
            _ip("-n", str(one.namespace), "link", "set", *device, "up")
            _ip("-n", str(one.namespace), "route", "add", f"{other.address}/32", *device, "src", one.address)
        yield made


def _device(to: Host) -> str:
    return f"to-{to.address.rpartition('.')[2]}"


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
