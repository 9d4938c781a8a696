"""Hosts in network namespaces, and what the faults of netlab do to real sockets.

A receiver counts datagrams until a last one tells it to stop. The last one is sent over a link without faults, after
all others.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.netlab import GROUP, Lab, LinkChange, Process, obstacle

WITHIN_S = 60
DATAGRAMS = 500

SEND = """
import socket, sys
to, text, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(count):
    sender.sendto(f"{text} {number}".encode(), (to, 7000))
"""
RECEIVE = f"""
import json, socket
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
receiver.bind(("", 7000))
receiver.setsockopt(
    socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("{GROUP}") + socket.inet_aton("0.0.0.0")
)
print("ready", flush=True)
numbers = []
while True:
    text, number = receiver.recv(2048).split()
    if text == b"end":
        break
    numbers.append(int(number))
print(json.dumps(numbers), flush=True)
"""


@pytest.fixture(scope="module")
def shared() -> Iterator[Lab]:
    reason = obstacle()
    if reason:
        pytest.skip(reason)
    with Lab(3, seed=7) as lab:
        yield lab


@pytest.fixture
def lab(shared: Lab) -> Lab:
    shared.clear()
    return shared


def python(lab: Lab, host: int, code: str, *arguments: object) -> Process:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return lab.spawn(host, command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def printed(process: Process) -> str:
    text: str = process.communicate(timeout=WITHIN_S)[0]
    return text.strip()


def receivers(lab: Lab, *hosts: int) -> list[Process]:
    started = [python(lab, host, RECEIVE) for host in hosts]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    return started


def received(
    lab: Lab, source: int, hosts: list[int], to: str = "", change: LinkChange | None = None
) -> list[list[int]]:
    """The numbers that each host receives, of those that the source sends to an address."""
    if change:
        lab.link(source, hosts[0], both=False, **change)
    listening = receivers(lab, *hosts)
    assert python(lab, source, SEND, to or lab.ip(hosts[0]), "data", DATAGRAMS).wait(WITHIN_S) == 0
    lab.clear()
    lab.all_links(delay=0.2)  # so that the end overtakes nothing
    for host in hosts:
        assert python(lab, source, SEND, lab.ip(host), "end", 1).wait(WITHIN_S) == 0
    return [json.loads(printed(process)) for process in listening]


EVERYTHING = list(range(DATAGRAMS))


def test_without_faults_everything_arrives_in_order(lab: Lab) -> None:
    assert received(lab, 0, [1]) == [EVERYTHING]
    assert received(lab, 0, [1, 2], to=GROUP) == [EVERYTHING, EVERYTHING]


def test_loss_befalls_each_receiver_of_a_multicast_by_itself(lab: Lab) -> None:
    lossy, whole = received(lab, 0, [1, 2], to=GROUP, change={"loss": 0.2})
    assert 0.6 * DATAGRAMS < len(lossy) < 0.95 * DATAGRAMS
    assert whole == EVERYTHING


def test_duplicates_and_overtaking(lab: Lab) -> None:
    (twice,) = received(lab, 0, [1], change={"duplicate": 0.2})
    assert set(twice) == {*EVERYTHING}
    assert len(twice) > DATAGRAMS
    (mixed,) = received(lab, 0, [1], change={"delay": 0.005, "reorder": 0.25})
    assert sorted(mixed) == EVERYTHING != mixed


def test_corrupt_datagrams_are_refused_by_the_kernel(lab: Lab) -> None:
    (found,) = received(lab, 0, [1], change={"corrupt": 0.5})
    assert 0 < len(found) < DATAGRAMS
    assert sorted(found) == found


def test_a_partition_separates_and_heals(lab: Lab) -> None:
    lab.partition({0, 1}, {2})
    assert received(lab, 0, [1, 2], to=GROUP) == [EVERYTHING, []]
    lab.partition({0, 1}, {2})
    lab.heal()
    assert received(lab, 0, [1, 2], to=GROUP) == [EVERYTHING, EVERYTHING]


def test_a_cut_has_one_direction(lab: Lab) -> None:
    lab.link(0, 1, both=False, up=False)
    assert received(lab, 1, [0]) == [EVERYTHING]
    assert received(lab, 0, [1], change={"up": False}) == [[]]


def test_a_cable_can_be_pulled(lab: Lab) -> None:
    lab.unplug(1)
    assert python(lab, 0, SEND, lab.ip(1), "data", 10).wait(WITHIN_S) == 0
    lab.plug(1)
    assert received(lab, 0, [1]) == [EVERYTHING]


CONNECT = """
import socket, sys
peer = socket.create_connection((sys.argv[1], 7001))
print("connected", flush=True)
peer.settimeout(float(sys.argv[2]))
try:
    print(repr(peer.recv(1)))
except TimeoutError:
    print("nothing")
except ConnectionResetError:
    print("reset")
"""
ACCEPT = """
import socket
server = socket.create_server(("", 7001))
print("ready", flush=True)
peer, _ = server.accept()
input()
"""


@pytest.mark.parametrize(("how", "seen"), [("kill", ("b''", "reset")), ("power off", ("nothing",))])
def test_a_killed_process_closes_its_connections_and_a_dead_host_does_not(
    lab: Lab, how: str, seen: tuple[str, ...]
) -> None:
    server = lab.spawn(1, [sys.executable, "-c", ACCEPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    client = python(lab, 0, CONNECT, lab.ip(1), 1 if how == "power off" else WITHIN_S)
    assert client.stdout is not None
    assert client.stdout.readline() == "connected\n"
    if how == "kill":
        lab.kill(server)
    else:
        lab.power_off(1, server)
    assert printed(client) in seen


def test_a_paused_process_reads_on_when_it_is_resumed(lab: Lab) -> None:
    (listening,) = receivers(lab, 1)
    lab.pause(listening)
    assert python(lab, 0, SEND, lab.ip(1), "data", 50).wait(WITHIN_S) == 0
    assert python(lab, 0, SEND, lab.ip(1), "end", 1).wait(WITHIN_S) == 0
    assert listening.poll() is None
    lab.resume(listening)
    assert json.loads(printed(listening)) == list(range(50))


def test_limits_and_small_disks(lab: Lab) -> None:
    wait = "import sys; sys.stdin.readline()\n"
    open_many = (
        wait + "try:\n kept = [open('/dev/null') for _ in range(99)]\nexcept OSError as error: print(error.errno)"
    )
    fill = "import sys\ntry:\n open(sys.argv[1], 'wb', 0).write(b'x' * (1 << 21)) < 1 << 21 and 1 / 0\n"
    fill += "except (OSError, ZeroDivisionError): print('full')"
    limited = lab.spawn(
        0, [sys.executable, "-c", open_many], files=32, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert limited.communicate("\n", timeout=WITHIN_S)[0] == "24\n"  # EMFILE
    disk = lab.small_disk(1 << 20)
    assert printed(python(lab, 0, fill, disk / "file")) == "full"


def test_nothing_is_left_behind() -> None:
    reason = obstacle()
    if reason:
        pytest.skip(reason)
    with Lab(1, name="nlgone") as lab:
        child = lab.spawn(0, ["sleep", "600"])
        folder = lab.small_disk(1 << 16)
        assert Path("/run/netns/nlgone-0").exists()
    assert child.poll() is not None
    assert not folder.exists()
    assert not Path("/run/netns/nlgone-0").exists()
