"""Broken links: losses of streams and datagrams, notices to processes, and the connected components."""

import json
import random
from collections.abc import Iterable

import pytest

from antiphon.core.contract import Capabilities
from antiphon.core.effects import Channel, Effect, Frame, InstallState, Scope, Transmit
from antiphon.protocols.newtop.formation.connections import Connections
from antiphon.protocols.newtop.frames import BlockFrame, InstallFrame
from antiphon.scenario.model import (
    Crash,
    Cut,
    Fault,
    Fixed,
    Heal,
    Hosts,
    Latency,
    Network,
    Partition,
    Pause,
    Stall,
    Suspect,
    Uniform,
)
from antiphon.scenario.units import Duration
from antiphon.sim.faults import Faults
from antiphon.sim.hosts import Host
from antiphon.sim.links import Links
from antiphon.sim.network import SimulatedNetwork
from antiphon.sim.node import Node
from antiphon.sim.world import EventQueue
from antiphon.trace.recorder import Recorder
from antiphon.types import WORLD, Company, GroupId, ProcessId, View, first_view, formed_group, formed_view

MS = 1_000_000
GROUP = GroupId("g")
FORMED, LATER = formed_group("g", 1, ProcessId("a"), 0), formed_group("g", 2, ProcessId("a"), 1)
NOTICE_MS = 50


class Listener:
    """A core that only records its calls."""

    capabilities = Capabilities(suspects=True, counts_connections=True)
    deadline: int | None = None
    needs_consumed = False

    def __init__(self) -> None:
        self.connections = Connections(frozenset({GROUP}))
        self.received: list[int] = []
        self.effects: list[Effect] = []
        self.told: list[tuple[str, str, int]] = []
        self.lost: list[tuple[str, frozenset[GroupId]]] = []

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0) -> None: ...
    def tick(self, now: int) -> None: ...
    def consumed(self, group: GroupId, position: int, now: int) -> bool:
        return False

    def writable(self, ready: bool, now: int) -> None: ...
    def drain(self, now: int) -> list[Effect]:
        effects, self.effects = self.effects, []
        return effects

    def unstable(self, group: GroupId) -> int:
        return 0

    def receive(self, frame: Frame, now: int) -> None:
        if isinstance(frame, BlockFrame):
            self.received.append(frame.clock)
        elif isinstance(frame, InstallFrame) and self.connections.came_too_late(frame):
            self._severed(frame.sender, now, frozenset({frame.group}))

    def viewed(self, view: View, now: int) -> None: ...
    def admits(self, frame: Frame, connection: int, /) -> bool:
        return self.connections.admits(frame, connection)

    def is_bound(self, frame: Frame) -> bool:
        return self.connections.is_bound(frame)

    def connected(self, peer: ProcessId, connection: int, now: int) -> Iterable[Frame]:
        return self.connections.connected(peer, connection)

    def disconnected(self, peer: ProcessId, now: int) -> None:
        self.connections.disconnected(peer)

    def broke(
        self, peer: ProcessId, connection: int, now: int, *, incoming: bool = True, outgoing: bool = True
    ) -> None:
        assert incoming is not outgoing
        if groups := self.connections.broke(peer, connection, incoming=incoming):
            self._severed(peer, now, groups)

    def _severed(self, peer: ProcessId, now: int, groups: frozenset[GroupId]) -> None:
        self.told.append(("severed", peer, now))
        self.lost.append((peer, groups))

    def suspect(self, process: ProcessId, now: int) -> None:
        self.told.append(("suspect", process, now))


class NoApplication:
    """No application."""

    def taken(self, node: Node, frame: Frame) -> None: ...
    def asked(self, node: Node, frame: Frame) -> None: ...
    def state(self, node: Node, group: GroupId) -> bytes:
        return b""

    def merge(self, node: Node, effect: InstallState) -> bytes:
        return b""

    def left(self, node: Node, group: GroupId) -> None: ...


class World:
    """Processes a, b, c, …, all in one view; each frame that one multicasts has the next number."""

    def __init__(
        self,
        processes: str,
        faults: Iterable[Fault] = (),
        *,
        transport: str = "stream",
        latency: Latency = Fixed(value=Duration(10 * MS)),  # noqa: B008 - a constant
        companies: Iterable[str] = (),
        renews: bool = False,
        merges: bool = False,
    ) -> None:
        self.queue = EventQueue()
        self.links = Links(self.queue, random.Random(3), NOTICE_MS * MS, renews=renews, merges=merges)
        settings = Network(transport=transport, latency=latency)  # type: ignore[arg-type]
        self.network = SimulatedNetwork(settings, self.queue, random.Random(1), "bytes", self.links)
        self.channel = Channel.STREAM if transport == "stream" else Channel.DATAGRAM
        self.cores = {name: Listener() for name in processes}
        self.nodes = {ProcessId(name): self._node(name) for name in processes}
        self.numbers = dict.fromkeys(processes, 0)
        view = first_view(GROUP, frozenset(self.nodes))
        for process in self.nodes:
            self.network.install(process, view)
        self.world = Recorder(WORLD)
        self.faults = Faults(
            tuple(faults),
            self.queue,
            self.nodes,
            self.network,
            self.world,
            [frozenset(map(ProcessId, company)) for company in companies],
            None,
            random.Random(2),
        )

    def _node(self, name: str) -> Node:
        return Node(
            ProcessId(name),
            self.cores[name],
            host=Host(),
            hosts=Hosts(),
            queue=self.queue,
            network=self.network,
            application=NoApplication(),
            recorder=None,
        )

    def send_at(self, name: str, *moments_ms: int, group: GroupId = GROUP) -> None:
        """Let a process multicast at these times."""
        for moment in moments_ms:
            self.queue.at(moment * MS, self._send, (name, group))

    def _send(self, which: tuple[str, GroupId]) -> None:
        name, group = which
        self.numbers[name] += 1
        frame = BlockFrame(group, ProcessId(name), self.numbers[name], self.numbers[name] - 1, 0, (b"x",))
        self.network.transmit(self.nodes[ProcessId(name)], Transmit(frame, Scope.VIEW, self.channel), self.queue.now)

    def form_at(self, moment_ms: int, group: GroupId) -> None:
        """Let all processes enter a formed group, and each send a frame to each other."""
        self.queue.at(moment_ms * MS, self._form, group)

    def _form(self, group: GroupId) -> None:
        companies = tuple(Company((process,), None, 0, primary=False) for process in sorted(self.nodes))
        for process, node in self.nodes.items():
            self.network.install(process, formed_view(group, 0, companies, process))
            others = [other for other in self.nodes if other != process]
            core = self.cores[process]
            assert not core.connections.bind(group, others)
            install = InstallFrame(group, process, 0, companies)
            core.effects += [Transmit(install, other, self.channel) for other in others]
            node.turn()

    def run(self) -> "World":
        assert self.queue.run(10**12)
        return self

    def severed(self, name: str) -> list[str]:
        return [peer for kind, peer, _ in self.cores[name].told if kind == "severed"]

    def components(self) -> object:
        (row,) = [row for row in self.world.rows if row["kind"] == "faults_end"]
        assert json.loads(row["detail"])["components"] == self.faults.components
        return self.faults.components


def ms(milliseconds: int) -> Duration:
    return Duration(milliseconds * MS)


def cut(a: str, b: str, at: int, until: int | None = None) -> Cut:
    return Cut(at=ms(at), until=None if until is None else ms(until), from_=a, to=b)


def split(*sides: str, at: int = 0, until: int | None = None) -> Partition:
    return Partition(at=ms(at), until=None if until is None else ms(until), sides=tuple(map(tuple, sides)))


def test_a_stream_that_met_a_cut_loses_all_later_frames() -> None:
    world = World("ab", [cut("a", "b", 100, 200)])
    world.send_at("a", 10, 50, 150, 250, 900)
    assert world.run().cores["b"].received == [1, 2]


def test_the_other_direction_goes_on() -> None:
    world = World("ab", [cut("a", "b", 100, 200)])
    world.send_at("a", 150)
    world.send_at("b", 10, 150, 900)
    assert world.run().cores["a"].received == [1, 2, 3]


def test_a_cut_during_which_nothing_is_sent_or_under_way_loses_nothing() -> None:
    world = World("ab", [cut("a", "b", 100, 200)])
    world.send_at("a", 10, 250)
    assert world.run().cores["b"].received == [1, 2]
    assert world.severed("a") == world.severed("b") == []


def test_both_ends_are_told_of_a_loss_soon_and_once() -> None:
    world = World("abc", [split("a", "b", at=100, until=200)])
    world.send_at("a", 150, 160, 900)
    world.send_at("b", 170, 900)
    world.run()
    assert (world.severed("a"), world.severed("b"), world.severed("c")) == (["b"], ["a"], [])
    times = [core.told[0][2] for core in (world.cores["a"], world.cores["b"])]
    assert all(150 * MS <= time <= (150 + NOTICE_MS) * MS for time in times)
    assert times[0] != times[1]
    assert world.cores["c"].received == [1, 2, 1, 3, 2]  # of a and b, as ever


@pytest.mark.parametrize("seed", range(5))
def test_a_cut_loses_a_suffix_of_each_stream_under_way(seed: int) -> None:
    world = World("abc", [split("a", "bc", at=100)], latency=Fixed(value=ms(50)))
    world.links.chance.seed(seed)
    world.send_at("a", *range(40, 100, 2))
    world.run()
    for name in "bc":
        received = world.cores[name].received
        assert received == [*range(1, len(received) + 1)]  # a prefix
        assert 5 <= len(received) < 30  # frames that had arrived before the cut are kept
        assert world.severed(name) == ["a"]
    assert sorted(world.severed("a")) == ["b", "c"]


def test_nothing_passes_a_partition_and_processes_on_no_side_keep_all_links() -> None:
    world = World("abcd", [split("a", "bc")])
    for name in "abcd":
        world.send_at(name, 10)
    world.run()
    assert [len(world.cores[name].received) for name in "abcd"] == [1, 2, 2, 3]


def test_to_datagrams_a_cut_is_loss_while_it_lasts() -> None:
    world = World("ab", [cut("a", "b", 100, 200)], transport="datagram")
    world.send_at("a", 10, 150, 199, 250)
    world.send_at("b", 150)
    world.run()
    assert world.cores["b"].received == [1, 4]
    assert world.cores["a"].received == [1]
    assert world.severed("a") == world.severed("b") == []


@pytest.mark.parametrize("transport", ["stream", "datagram"])
def test_healed_links_work_again_except_streams_with_losses(transport: str) -> None:
    world = World("abc", [split("a", "bc", at=100), cut("b", "c", 100, 900), Heal(at=ms(200))], transport=transport)
    world.send_at("a", 150, 300)
    world.send_at("b", 300)
    world.run()
    assert world.cores["c"].received == ([1] if transport == "stream" else [2, 1])
    assert world.cores["a"].received == [1]


def test_a_direction_is_open_again_when_the_last_cut_of_it_ends() -> None:
    world = World("ab", [cut("a", "b", 100, 200), split("a", "b", at=150, until=400)], transport="datagram")
    world.send_at("a", 120, 300, 500)
    assert world.run().cores["b"].received == [3]


def test_no_process_is_informed_of_a_crash() -> None:
    world = World("abc", [Crash(at=ms(100), process="a")])
    world.send_at("b", 150)
    world.run()
    assert [core.told for core in world.cores.values()] == [[], [], []]
    assert world.cores["a"].received == []


def test_suspicions_are_injected_only_where_they_are_possible() -> None:
    faults: list[Fault] = [
        Crash(at=ms(1), process="d"),
        Pause(at=ms(1), until=ms(30), process="c"),
        Suspect(at=ms(10), process="a", by=("b", "c", "d")),
        Suspect(at=ms(20), process="b", by="a"),
    ]
    world = World("abcd", faults).run()
    told = {name: core.told for name, core in world.cores.items()}
    assert told["a"] == [("suspect", "b", 20 * MS)]
    assert told["b"] == [("suspect", "a", 10 * MS)]
    assert told["c"] == [("suspect", "a", 30 * MS)]
    assert told["d"] == []


@pytest.mark.parametrize(
    ("faults", "components"),
    [
        ([], ["abcd"]),
        ([Suspect(at=ms(1), process="a", by="b")], ["abcd"]),
        ([Crash(at=ms(1), process="a")], ["bcd"]),
        ([Pause(at=ms(1), process="a")], ["bcd"]),
        ([Pause(at=ms(1), until=ms(2), process="a")], ["abcd"]),
        ([split("ab", "cd")], ["ab", "cd"]),
        ([split("ab", "cd"), Crash(at=ms(1), process="c")], ["ab", "d"]),
        ([split("a", "b", "c", "d")], ["a", "b", "c", "d"]),
        ([split("a", "bc")], []),  # d is connected with all: a, d, b are no clique
        ([cut("a", "b", 1)], []),
        ([cut("a", other, 1) for other in "bcd"], ["a", "bcd"]),
        ([cut(other, "a", 1) for other in "bcd"], ["a", "bcd"]),
        ([cut("a", "d", 1), cut("b", "d", 1)], []),  # c relays their frames
        ([cut("c", each, 1) for each in "ab"] + [cut(each, "d", 1) for each in "ab"], []),  # ab to c to d to ab
        ([cut("c", each, 1) for each in "ab"] + [cut("d", each, 1) for each in "ab"], ["ab", "cd"]),
        ([split("ab", "cd"), Heal(at=ms(10))], ["abcd"]),
        ([split("ab", "cd", at=0, until=9)], ["abcd"]),
        ([split("ab", "cd"), cut("a", "b", 1)], ["a", "b", "cd"]),
    ],
    ids=str,
)
@pytest.mark.parametrize("transport", ["stream", "datagram"])
def test_a_stable_component_is_a_clique_of_live_processes(
    faults: list[Fault], components: list[str], transport: str
) -> None:
    assert World("abcd", faults, transport=transport).run().components() == ([[*each] for each in components] or [[]])


def test_a_stream_with_losses_connects_no_processes() -> None:
    for transport, components in (("stream", [["a"], ["b", "c"]]), ("datagram", [["a", "b", "c"]])):
        world = World("abc", [split("a", "bc", at=100, until=200)], transport=transport)
        world.send_at("a", 150)
        assert world.run().components() == components


@pytest.mark.parametrize(
    ("companies", "components"),
    [(["abcd"], [["c", "d"]]), (["ac", "bd"], [["b"], ["c", "d"]]), ([], [["b"], ["c", "d"]])],
)
def test_processes_that_wait_for_a_stalled_one_are_in_no_component(
    companies: list[str], components: list[list[str]]
) -> None:
    """Only processes that share a group with it and are connected with it; the others continue without it."""
    world = World("abcd", [Stall(at=ms(1), process="a"), split("ab", "cd")], companies=companies)
    assert world.run().components() == components


def test_links_have_their_own_random_stream() -> None:
    """A run with a cut that loses nothing is the run without it."""
    latency = Uniform(low=Duration(0), high=ms(20))
    runs = []
    for faults in ([], [cut("a", "b", 400, 500)]):
        world = World("abc", faults, latency=latency)
        world.send_at("a", 10, 20, 30, 600, 610)
        world.send_at("b", 15, 25, 700)
        world.run()
        runs.append({name: core.received for name, core in world.cores.items()})
    assert runs[0] == runs[1]


# Connections after the first (E-47)


def test_a_group_that_is_formed_after_a_loss_lives_on_the_next_connection() -> None:
    world = World("ab", [split("a", "b", at=100, until=200)], renews=True)
    world.send_at("a", 10, 150, 250)  # the third finds its direction open, and its group dead
    world.form_at(300, FORMED)
    world.send_at("a", 350, group=FORMED)
    world.send_at("a", 360)
    world.send_at("b", 370, group=FORMED)
    world.run()
    assert (world.cores["a"].received, world.cores["b"].received) == ([1], [1, 4])
    assert world.cores["a"].lost == [("b", frozenset({GROUP}))]
    assert world.cores["b"].lost == [("a", frozenset({GROUP}))]


def test_every_break_is_told_with_the_groups_that_used_the_connection() -> None:
    world = World("ab", [cut("a", "b", 100, 200), cut("a", "b", 400, 500), cut("a", "b", 600, 700)], renews=True)
    world.send_at("a", 150)
    world.form_at(300, FORMED)
    world.send_at("a", 450, 460, group=FORMED)
    world.send_at("a", 550, group=FORMED)  # by the third connection, which nothing is bound to
    world.form_at(580, LATER)
    world.send_at("a", 650, group=LATER)
    world.run()
    assert world.cores["b"].received == []
    groups = [frozenset({GROUP}), frozenset({FORMED}), frozenset({LATER})]
    assert world.cores["a"].lost == [("b", each) for each in groups]
    assert world.cores["b"].lost == [("a", each) for each in groups]


def test_a_loss_on_an_unused_connection_breaks_nothing() -> None:
    world = World("ab", [cut("a", "b", 100, 200), cut("a", "b", 250, 300)], renews=True)
    world.send_at("a", 150, 160, 260)
    world.form_at(400, FORMED)
    world.send_at("a", 450, group=FORMED)
    world.run()
    assert world.cores["b"].received == [4]
    assert world.links.connections == {(ProcessId("a"), ProcessId("b")): 1}
    assert len(world.cores["b"].lost) == 1


def test_an_install_that_is_under_way_when_its_connection_breaks_comes_too_late() -> None:
    """The end of the stream is lost; the receiver is told before its last frames arrive."""
    latency = Fixed(value=ms(500))
    world = World("ab", [cut("a", "b", 100, 150)], latency=latency, renews=True)
    world.links.chance.seed(2)  # a late end: some of it gets through
    world.form_at(10, FORMED)
    world.send_at("a", *range(20, 100), group=FORMED)
    world.run()
    received = world.cores["b"].received
    assert received == [*range(1, len(received) + 1)]
    assert 0 < len(received) < 80
    told = [groups for _, groups in world.cores["b"].lost]
    assert told == [frozenset({GROUP}), frozenset({FORMED})]


@pytest.mark.parametrize(("merges", "components"), [(False, [[]]), (True, [["a", "b", "c"]])])
def test_members_that_merge_again_are_connected_unless_cut_now(merges: bool, components: list[list[str]]) -> None:
    """Without merging, processes that are connected only for later groups are in no component: nothing is demanded."""
    world = World("abc", [split("a", "bc", at=100, until=200)], renews=True, merges=merges)
    world.send_at("a", 150)
    assert world.run().components() == components


def test_a_fault_of_a_name_affects_every_incarnation() -> None:
    queue = EventQueue()
    links = Links(queue, random.Random(3), 0)
    a, b, again, third = ProcessId("a"), ProcessId("b"), ProcessId("b#1"), ProcessId("b#2")
    for process in (a, b, again):
        links.attach(process)
    fault = split("a", "b")
    assert links.cut(fault) == [(a, b), (a, again), (b, a), (again, a)]
    links.attach(third)
    assert links.is_cut((a, third))
    links.mend(fault)
    assert not links.is_cut((a, third))
    assert links.use((a, third)) == 0  # connections of its own
