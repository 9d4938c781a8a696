"""A process with changing groups, seen by its driver and its application: the test controls the core."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from antiphon.core.contract import Capabilities
from antiphon.core.effects import Deliver, Effect, Frame, InstallState, InstallView, Left, Scope, Transmit
from antiphon.protocols.assembly import outside_of
from antiphon.protocols.newtop.frames import AliveFrame, BlockFrame
from antiphon.scenario.model import STATE_BYTES_MIN, Hosts, Network, Scenario
from antiphon.scenario.placement import groups_of
from antiphon.scenario.read import parse_scenario
from antiphon.scenario.units import Duration
from antiphon.sim.hosts import Host
from antiphon.sim.links import Links
from antiphon.sim.network import SimulatedNetwork
from antiphon.sim.node import Node
from antiphon.sim.run import Run, simulate
from antiphon.sim.states import States
from antiphon.sim.workload import Applications
from antiphon.sim.world import EventQueue
from antiphon.trace.recorder import Recorder, digest
from antiphon.types import (
    Company,
    GroupId,
    ProcessId,
    View,
    first_view,
    formed_group,
    formed_view,
    shrunk_view,
)

G, P1, P2, P3 = GroupId("g"), ProcessId("p1"), ProcessId("p2"), ProcessId("p3#1")
V0 = first_view(G, frozenset({P1, P2}))
FORMED = formed_group("g", 1, P1, 0)
COMPANIES = (Company((P1, P2), V0.id, 2, primary=True), Company((P3,), None, 0, primary=False))
W0 = formed_view(FORMED, 7, COMPANIES, P1)
JOINED = formed_view(FORMED, 7, COMPANIES, P3)
SIZE = 100


class Puppet:
    """A core that records its calls and returns the effects that the test gives it."""

    capabilities = Capabilities(suspects=True, changes=True)
    deadline: int | None = None
    needs_consumed = False

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.effects: list[Effect] = []

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0) -> None:
        self.asked.append(("send", group, payload, label))

    def form(self, name: GroupId, members: tuple[ProcessId, ...], now: int) -> None:
        self.asked.append(("form", name, members))

    def join(self, name: GroupId, contacts: tuple[ProcessId, ...], now: int) -> None:
        self.asked.append(("join", name, contacts))

    def leave(self, name: GroupId, now: int) -> None:
        self.asked.append(("leave", name))

    def merge(self, name: GroupId, others: tuple[ProcessId, ...], now: int) -> None:
        self.asked.append(("merge", name, others))

    def state(self, view: View, state: bytes, now: int) -> None:
        self.asked.append(("state", view.id, state))

    def receive(self, frame: Frame, now: int) -> None: ...
    def tick(self, now: int) -> None: ...
    def consumed(self, group: GroupId, position: int, now: int) -> bool:
        return False

    def writable(self, ready: bool, now: int) -> None: ...
    def suspect(self, process: ProcessId, now: int) -> None: ...
    def viewed(self, view: View, now: int) -> None:
        self.asked.append(("viewed", view.id))

    def drain(self, now: int) -> list[Effect]:
        effects, self.effects = self.effects, []
        return effects

    def retains(self, name: GroupId) -> bool:
        return False

    def unstable(self, group: GroupId) -> int:
        assert group == G
        return 0


class Alone:
    """One process under test; the others are present and silent."""

    def __init__(self, process: ProcessId = P1, *, outside: bool = False, consume_ms: int = 0) -> None:
        self.queue = EventQueue()
        self.network = SimulatedNetwork(
            Network(), self.queue, random.Random(1), "bytes", Links(self.queue, random.Random(2), 0)
        )
        self.states = States({G: SIZE})
        self.applications = Applications((), self.queue, random.Random(3), self.states)
        hosts = Hosts(consume=Duration(consume_ms * 1_000_000))
        self.cores = {name: Puppet() for name in (P1, P2, P3)}
        nodes = {
            name: Node(
                name,
                core,
                host=Host(),
                hosts=hosts,
                queue=self.queue,
                network=self.network,
                application=self.applications,
                recorder=Recorder(name, {G: "total"}, signed=True),
                outside=frozenset({G} if outside else ()),
            )
            for name, core in self.cores.items()
        }
        self.node, self.core = nodes[process], self.cores[process]
        assert self.node.recorder is not None
        self.recorder = self.node.recorder

    def do(self, *effects: Effect) -> None:
        self.core.effects += effects
        self.node.turn()

    def told(self, *kinds: str) -> list[dict[str, Any]]:
        return [row for row in self.recorder.rows if row["kind"] in kinds]

    def states_told(self) -> list[tuple[dict[str, Any], str, int]]:
        return [(json.loads(row["detail"]), row["view"], row["digest"]) for row in self.told("state")]

    def last_asked(self) -> tuple[Any, ...]:
        return self.core.asked[-1]

    def send(self, payload: bytes) -> None:
        self.applications.request(self.node, G, payload)


def data(number: int, *payloads: bytes, group: GroupId = G, sender: ProcessId = P2) -> Deliver:
    return Deliver(BlockFrame(group, sender, number + 1, number, 0, payloads, number))


def test_a_state_goes_out_as_it_is_when_the_application_gets_to_the_view() -> None:
    world = Alone(consume_ms=5)
    world.do(InstallView(V0), data(0, b"a"), data(1, b"b"), InstallView(W0, snapshot=True), data(2, b"c", group=FORMED))
    assert world.states_told() == []  # its application is busy with the first message
    world.queue.run(10**9)
    (asked,) = (entry for entry in world.core.asked if entry[0] == "state")
    other = States({G: SIZE})
    for deliver in (data(0, b"a"), data(1, b"b")):
        other.delivered(P2, deliver.frame)
    assert asked == ("state", W0.id, other.of(P2, G))
    assert world.states_told() == [({"class": 0, "role": "snapshot"}, W0.id, digest(other.of(P2, G)))]
    kinds = [row["kind"] for row in world.told("view", "deliver", "state")]
    assert kinds == ["view", "deliver", "deliver", "view", "state", "deliver"]


def test_a_joiner_takes_the_one_state_as_it_is() -> None:
    theirs = States({G: SIZE})
    theirs.delivered(P1, data(0, b"a").frame)
    state = theirs.of(P1, G)
    world = Alone(P3, outside=True)
    smaller = shrunk_view(JOINED, [(P2, 9)])
    world.do(InstallView(JOINED), InstallView(smaller), InstallState(FORMED, ((0, state),), None))
    assert world.states_told() == [
        ({"class": 0, "role": "installed"}, JOINED.id, digest(state)),
        ({"role": "merged"}, JOINED.id, digest(state)),
    ]
    assert (world.told("view")[0]["previous"], world.told("view")[0]["transitional"]) == (None, [])
    theirs.delivered(P1, data(7, b"b", group=FORMED).frame)
    world.do(data(7, b"b", group=FORMED))
    assert world.states.of(P3, G) == theirs.of(P1, G)


def test_going_over_to_a_successor_leaves_no_row() -> None:
    world = Alone()
    world.do(InstallView(V0), Left(G, True, FORMED), InstallView(W0))
    assert [row["kind"] for row in world.recorder.rows] == ["view", "view"]
    assert world.node.accepts(G)


def test_a_leaver_is_out_when_its_application_reads_it() -> None:
    world = Alone(consume_ms=5)
    world.do(InstallView(V0))
    world.node.leave(G)
    assert world.last_asked() == ("leave", G)
    assert not world.node.accepts(G)
    world.send(b"too late")
    alive = Transmit(AliveFrame(G, P1, 3, 1), Scope.VIEW)
    world.do(data(0, b"a"), data(1, b"b"), alive, Left(G, graceful=True))
    assert world.told("leave") == []
    world.queue.run(10**9)
    assert [row["kind"] for row in world.told("deliver", "leave")] == ["deliver", "deliver", "leave"]
    (row,) = world.told("leave")
    assert (row["view"], row["detail"]) == (V0.id, '{"graceful":true}')
    assert [entry for entry in world.core.asked if entry[0] == "send"] == []
    world.core.effects.append(alive)
    with pytest.raises(KeyError):
        world.node.turn()  # the network knows of no view


def test_a_returning_process_joins_after_its_leave_and_without_a_state() -> None:
    world = Alone()
    world.do(InstallView(V0), data(0, b"a"))
    world.node.leave(G)
    world.node.join(G, (P2,))
    assert world.last_asked() == ("leave", G)
    world.do(Left(G, graceful=False))
    assert world.last_asked() == ("join", G, (P2,))
    assert [row["kind"] for row in world.told("leave", "join")] == ["leave", "join"]
    assert world.told("join")[0]["view"] is None
    assert world.states.of(P1, G) == bytes(SIZE)
    assert world.node.accepts(G)


def test_requests_that_were_not_sent_before_the_leave_do_not_count() -> None:
    world = Alone()
    world.do(InstallView(V0))
    world.send(b"a")
    world.node.leave(G)
    world.do(Left(G, graceful=False))
    world.node.join(G, (P2,))
    world.send(b"b")
    assert [entry for entry in world.core.asked if entry[0] == "send"] == [("send", G, b"a", 0), ("send", G, b"b", 0)]


def test_nothing_is_sent_to_a_group_before_one_is_in_it_or_has_asked_to_be() -> None:
    joiner, invited, founder = Alone(outside=True), Alone(outside=True), Alone(outside=True)
    for world in (joiner, invited, founder):
        world.send(b"too early")
        assert world.core.asked == []
    joiner.node.join(G, (P2,))
    founder.node.form(G, (P1, P2))
    assert founder.core.asked == [("form", G, (P1, P2))]
    invited.do(InstallView(W0))
    for world in (joiner, invited, founder):
        world.send(b"now")
        assert world.last_asked() == ("send", G, b"now", 0)


def test_a_merge_is_asked_of_the_core() -> None:
    world = Alone()
    world.node.merge(G, (P2, P3))
    assert world.core.asked == [("merge", G, (P2, P3))]


# States of applications


def test_states_are_equal_if_the_same_was_delivered_in_the_same_order() -> None:
    states = States({G: SIZE})
    deliveries = {
        "a": [data(0, b"x", b"y")],
        "b": [data(0, b"x"), data(1, b"y", group=FORMED)],  # for any packing and any formation
        "c": [data(1, b"y"), data(0, b"x")],
        "d": [data(0, b"x")],
        "e": [data(0, b"x"), data(1, b"y", sender=P1)],
        "f": [data(0, b"x"), data(2, b"y")],
        "g": [],
    }
    for name, delivered in deliveries.items():
        for deliver in delivered:
            states.delivered(ProcessId(name), deliver.frame)
    found = {name: states.of(ProcessId(name), G) for name in deliveries}
    assert found["a"] == found["b"]
    assert len({*found.values()}) == len(found) - 1
    assert {len(state) for state in found.values()} == {SIZE}


@pytest.mark.parametrize("size", [STATE_BYTES_MIN, STATE_BYTES_MIN + 1, 5 * STATE_BYTES_MIN, 1000])
def test_all_members_have_the_same_state_after_a_merge(size: int) -> None:
    states = States({G: size})
    states.delivered(P1, data(0, b"one").frame)
    states.delivered(P2, data(1, b"two").frame)
    one, two = states.of(P1, G), states.of(P2, G)
    assert len(one) == size
    merged = {
        states.merge(P1, InstallState(FORMED, ((2, two),), 0)),
        states.merge(P2, InstallState(FORMED, ((0, one),), 2)),
        states.merge(P3, InstallState(FORMED, ((0, one), (2, two)), None)),
    }
    assert len(merged) == 1
    assert merged.isdisjoint({one, two})
    assert states.merge(P3, InstallState(FORMED, ((0, two), (2, one)), None)) not in merged
    assert {states.of(process, G) for process in (P1, P2)} == merged


def test_a_class_without_remaining_members_has_no_effect() -> None:
    states = States({G: SIZE})
    states.delivered(P1, data(0, b"one").frame)
    before = states.of(P1, G)
    assert states.merge(P1, InstallState(FORMED, (), 0)) == before
    assert states.merge(P3, InstallState(FORMED, (), None)) == bytes(SIZE)


# Whole runs, with cores that know no other process


class Loner(Puppet):
    """A core that is alone in every group it is in, or joins, or forms; like members that probe, it never sleeps."""

    deadline = 10**9

    def tick(self, now: int) -> None:
        self.deadline = now + 10**9

    def __init__(self, me: ProcessId, groups: frozenset[GroupId]) -> None:
        super().__init__()
        self.me = me
        self.effects += [InstallView(first_view(group, frozenset({me}))) for group in sorted(groups)]

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0) -> None:
        super().send(group, payload, now, label)
        frame = BlockFrame(group, self.me, len(self.asked), len(self.asked) - 1, 0, (payload,), label)
        self.effects += [Transmit(frame), Deliver(frame)]

    def join(self, name: GroupId, contacts: tuple[ProcessId, ...], now: int) -> None:
        super().join(name, contacts, now)
        self.effects.append(InstallView(first_view(name, frozenset({self.me}))))

    def form(self, name: GroupId, members: tuple[ProcessId, ...], now: int) -> None:
        super().form(name, members, now)
        self.effects.append(InstallView(first_view(name, frozenset({self.me}))))

    def leave(self, name: GroupId, now: int) -> None:
        super().leave(name, now)
        self.effects.append(Left(name, graceful=True))

    def unstable(self, group: GroupId) -> int:
        return 0


RUN = """
name = "changing"
quiet = "12s"
duration = "1m"
[[group]]
name = "g"
members = ["p1", "p2", "p3"]
[[group]]
name = "h"
members = ["p1", "p2"]
formed = true
[[workload]]
group = "g"
messages = 100
interval = "100ms"
[[workload]]
group = "h"
messages = 100
interval = "100ms"
senders = ["p1", "p2"]
"""


def fault(at: str, kind: str, *lines: str) -> str:
    return "\n".join(("[[fault]]", f'at = "{at}"', f'kind = "{kind}"', *lines, ""))


FORMED_AT_2S = fault("2s", "form", 'process = "p1"', 'group = "h"')


@pytest.fixture
def loners(monkeypatch: pytest.MonkeyPatch) -> dict[ProcessId, Loner]:
    cores: dict[ProcessId, Loner] = {}

    def builder(scenario: Scenario, _: random.Random) -> Callable[[ProcessId], Loner]:
        def build(process: ProcessId) -> Loner:
            own = frozenset(GroupId(group.name) for group in groups_of(scenario, process))
            cores[process] = Loner(process, own - outside_of(scenario, process))
            return cores[process]

        return build

    monkeypatch.setattr("antiphon.sim.run.core_builder", builder)
    return cores


def numbers(run: Run, process: str, group: str, incarnation: int = 0) -> list[tuple[int, int]]:
    """Numbers of the requested messages by their time, in milliseconds."""
    (history,) = (each for each in run.histories if (each.process, each.incarnation) == (process, incarnation))
    return [
        (row["requested"] // 1_000_000, row["number"])
        for row in history.rows
        if row["kind"] == "send" and row["group"] == group
    ]


def test_a_recovered_process_is_a_new_incarnation_and_its_senders_continue(loners: dict[ProcessId, Loner]) -> None:
    moves = fault("3050ms", "crash", 'process = "p3"') + fault("5s", "recover", 'process = "p3"')
    moves += fault("1s", "pause", 'process = "p3"', 'until = "7s"')
    run = simulate(parse_scenario(RUN + FORMED_AT_2S + moves))
    named = [(each.process, each.incarnation) for each in run.histories]
    assert named == [("p1", 0), ("p2", 0), ("p3", 0), ("p3", 1), ("world", 0)]
    old, new = run.histories[2:4]
    assert [row["kind"] for row in old.rows][-1] == "crash"
    kinds = [row["kind"] for row in new.rows]
    assert (kinds[:3], kinds[-1]) == (["start", "join", "view"], "stop")
    start = json.loads(new.rows[0]["detail"])
    assert start["groups"] == {"g": {"numbering": "separate", "service": "total"}}
    assert loners[ProcessId("p3#1")].asked[0] == ("join", "g", (P1, P2))
    assert new.rows[2]["members"] == ["p3#1"]
    assert numbers(run, "p3", "g")[-1] == (900, 8)  # paused from then on, until it crashed
    assert numbers(run, "p3", "g", 1) == [(5000 + 100 * number, number) for number in range(51)]


def test_a_process_that_stays_down_asks_for_nothing_more(loners: dict[ProcessId, Loner]) -> None:
    run = simulate(parse_scenario(RUN + FORMED_AT_2S + fault("3s", "crash", 'process = "p3"')))
    assert numbers(run, "p3", "g")[-1][0] <= 3000
    assert run.quiet


def test_an_application_sends_nothing_before_its_join_and_after_its_leave(loners: dict[ProcessId, Loner]) -> None:
    moves = fault("3010ms", "join", 'process = "p3"', 'group = "g"')
    moves += fault("4010ms", "leave", 'process = "p2"', 'group = "g"')
    moves += fault("6010ms", "join", 'process = "p2"', 'group = "g"', 'via = ["p3"]')
    run = simulate(parse_scenario(RUN + FORMED_AT_2S + moves))
    starts = [json.loads(history.rows[0]["detail"])["groups"]["g"].get("members") for history in run.histories[:3]]
    assert starts == [["p1", "p2"], ["p1", "p2"], None]
    assert numbers(run, "p3", "g")[0] == (3100, 0)
    told = [at for at, _ in numbers(run, "p2", "g")]
    assert [at for at in told if 4000 < at < 6100] == []
    assert [number for _, number in numbers(run, "p2", "g")] == [*range(len(told))]
    assert ("join", "g", (ProcessId("p3"),)) in loners[P2].asked


def test_applications_send_nothing_in_a_group_before_it_is_formed(loners: dict[ProcessId, Loner]) -> None:
    run = simulate(parse_scenario(RUN + FORMED_AT_2S))
    assert ("form", "h", (P1, P2)) in loners[P1].asked
    assert numbers(run, "p1", "h")[0] == (2000, 0)
    assert numbers(run, "p2", "h") == []  # it does not know any view


def test_a_merge_searches_for_current_incarnations(loners: dict[ProcessId, Loner]) -> None:
    moves = fault("1s", "crash", 'process = "p3"') + fault("2s", "recover", 'process = "p3"')
    moves += fault("3s", "merge", 'process = "p1"', 'group = "g"')
    simulate(parse_scenario(RUN + FORMED_AT_2S + moves))
    assert ("merge", "g", (P2, P3)) in loners[P1].asked


def test_a_run_continues_while_a_process_is_joining_and_its_end_reports_it(
    loners: dict[ProcessId, Loner], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Loner, "join", Puppet.join)  # no member admits it
    monkeypatch.setattr(Loner, "send", Puppet.send)
    moves = fault("3s", "join", 'process = "p3"', 'group = "g"')
    run = simulate(parse_scenario(RUN + FORMED_AT_2S + moves))
    assert (run.virtual_ns, run.quiet) == (60 * 10**9, True)
    stop = run.histories[2].rows[-1]
    assert json.loads(stop["detail"])["joining"] == ["g"]


def test_a_run_does_not_wait_for_one_that_crashed_on_its_way(loners: dict[ProcessId, Loner]) -> None:
    moves = fault("3s", "leave", 'process = "p3"', 'group = "g"') + fault("3s", "crash", 'process = "p3"')
    assert simulate(parse_scenario(RUN + FORMED_AT_2S + moves)).virtual_ns < 30 * 10**9
