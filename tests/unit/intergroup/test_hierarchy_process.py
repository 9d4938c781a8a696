"""Control processes on a network in virtual time: roles, distances, stability and cuts."""

from collections.abc import Iterator

import pytest

from antiphon.core.effects import Frame, Transmit
from antiphon.protocols.intergroup.hierarchy.effects import Listen
from antiphon.protocols.intergroup.hierarchy.frames import (
    HEADER_BYTES,
    AckReportFrame,
    CoordinatorDistance,
    CoordinatorFrame,
    CoordinatorLeaveFrame,
    DistanceAnswerFrame,
    DistanceQueryFrame,
    GlobalFrame,
    LocalFrame,
    Pair,
    RingQueryFrame,
    SearchResponseFrame,
    Site,
    SystemFrame,
)
from antiphon.protocols.intergroup.hierarchy.groups import RECORDS_MAX, JoinedGroup, plausible
from antiphon.protocols.intergroup.hierarchy.lookup import UNKNOWN
from antiphon.protocols.intergroup.hierarchy.peers import PEERS_MAX
from antiphon.protocols.intergroup.hierarchy.process import ControlProcess
from antiphon.protocols.intergroup.hierarchy.records import StabilityRecord, bitmap
from antiphon.protocols.intergroup.hierarchy.rules import HierarchyContext
from antiphon.protocols.intergroup.hierarchy.settings import HierarchySettings, Thresholds
from antiphon.protocols.intergroup.hierarchy.states import Input, State
from antiphon.protocols.intergroup.membership.claims import Claim
from antiphon.protocols.intergroup.membership.frames import CutFrame
from antiphon.protocols.intergroup.settings import DISTANCE_MIN
from antiphon.types import GroupId, ProcessId, ViewId
from antiphon.wire.codec import encode
from tests.support.frame_samples import HIERARCHY
from tools.lab.hierarchy_network import MS, SECOND, HierarchyNetwork, Host, Place, Topology

G, E, CONTROL = GroupId("g"), ViewId("00.e"), HierarchySettings().name
P, Q, R, ME = ProcessId("p"), ProcessId("q"), ProcessId("r"), ProcessId("me")
NEAR = Place(0, 0)
QUICK = HierarchySettings(state_change_ns=(SECOND, 2 * SECOND))


def network(settings: HierarchySettings = QUICK, regions: int = 1, **options: int) -> HierarchyNetwork:
    return HierarchyNetwork(Topology(regions=regions, **options), settings, seed=1)


def state(host: Host) -> State:
    return host.core.state


def until(net: HierarchyNetwork, host: Host, *states: State) -> None:
    """Let time pass until the process is in one of these states."""
    for _ in range(4_000):
        if state(host) in states:
            return
        net.run(50 * MS)
    raise AssertionError(f"{host.name} is {state(host)}")


def coordinator_and_child(settings: HierarchySettings = QUICK) -> tuple[HierarchyNetwork, Host, Host]:
    """One coordinator, and a child that joined it: the thresholds are raised once both are there."""
    net = network(HierarchySettings(thresholds=Thresholds(0, 1, 8), state_change_ns=settings.state_change_ns))
    first = net.add("p", NEAR, offset=7 * SECOND)
    until(net, first, State.COORDINATOR)
    child = net.add("q", NEAR, offset=900 * SECOND)
    until(net, child, State.CHILD)
    return net, first, child


# -------------------------------------------------------------------------------- roles


def test_a_process_that_hears_nobody_coordinates() -> None:
    net = network()
    first = net.add("p", NEAR)
    net.run(1_400 * MS)
    assert state(first) is State.LISTENING
    until(net, first, State.COORDINATOR)


def test_later_processes_become_children_when_there_are_enough_coordinators() -> None:
    net = network(HierarchySettings(state_change_ns=(60 * SECOND, 60 * SECOND)))
    hosts = []
    for number in range(12):
        hosts.append(net.add(f"p{number}", NEAR))
        until(net, hosts[-1], State.COORDINATOR, State.CHILD)
        net.run(2 * SECOND)
    assert [state(host) for host in hosts].count(State.COORDINATOR) == 6  # the first above (2 + 8) / 2


def test_h11_processes_that_start_together_do_not_all_coordinate() -> None:
    net = network()
    for number in range(60):
        net.add(f"p{number}", NEAR)
    net.run(10 * SECOND)
    assert len(net.coordinators()) <= 8


def test_h11_if_coordinators_are_missing_few_of_many_children_take_their_place() -> None:
    net = network(QUICK)
    for number in range(60):
        net.add(f"p{number}", NEAR)
    net.run(10 * SECOND)
    for host in net.coordinators()[1:]:
        net.crash(host)
    most = 0
    for _ in range(60):
        net.run(SECOND)
        most = max(most, len(net.coordinators()))
    assert 2 <= len(net.coordinators()) <= most <= 8


def test_a_child_without_a_coordinator_searches_another_one() -> None:
    net, first, child = coordinator_and_child()
    net.crash(first)
    until(net, child, State.MOVING)
    until(net, child, State.COORDINATOR)  # there is no other


def test_a_coordinator_that_stops_hands_its_children_over() -> None:
    net, first, child = coordinator_and_child()
    net.run(3 * SECOND)
    net.stop(first)
    net.run(SECOND)
    assert state(child) is State.MOVING  # at once, and not after a timeout


def many_coordinators() -> HierarchyNetwork:
    """Five coordinators, where four are too many."""
    settings = HierarchySettings(thresholds=Thresholds(1, 4, 8), state_change_ns=(SECOND, 2 * SECOND))
    net = network(settings)
    apart: list[Host] = [net.add(f"p{number}", Place(0, 0)) for number in range(5)]
    net.parted = lambda _one, _other: True
    net.run(10 * SECOND)
    assert all(state(host) is State.COORDINATOR for host in apart)
    net.parted = None
    return net


def test_coordinators_that_are_too_many_become_children() -> None:
    net = many_coordinators()
    net.run(60 * SECOND)
    assert 1 <= len(net.coordinators()) <= 4
    states = [state(host) for host in net.hosts.values()]
    assert {*states} == {State.COORDINATOR, State.CHILD}


def test_h12_a_coordinator_that_leaves_is_not_counted_from_then_on() -> None:
    net = many_coordinators()
    leaver = None
    for _ in range(6_000):
        net.run(10 * MS)
        leaver = next((host for host in net.hosts.values() if state(host) is State.TO_CHILD), None)
        if leaver is not None:
            break
    assert leaver is not None
    staying = next(host for host in net.hosts.values() if state(host) is State.COORDINATOR)
    before = leaver.core.coordinators.leaving, staying.core.known_coordinators
    net.run(50 * MS)
    assert before[0]
    assert staying.core.known_coordinators == len(net.coordinators())


def test_h7_two_tables_in_the_dual_role() -> None:
    """A coordinator with a child joins another group: it knows both groups, and leaves its own when the child has."""
    process = ControlProcess(HierarchyContext(ME, QUICK, lambda: 0.5), 0)
    now = drive(process, 0, 4 * SECOND)
    assert now_is(process) is State.COORDINATOR
    child = LocalFrame(CONTROL, Q, ME, 4, 100, 0, ())
    process.receive(child, now)
    assert len(process.own) == 1
    process._take(Input.STEP_DOWN, now)
    assert now_is(process) is State.TO_CHILD
    now = answer_query(process, now, P)
    assert now_is(process) is State.LEAVING
    process.receive(LocalFrame(CONTROL, R, P, 4, 100, 0, ()), now)
    process.receive(LocalFrame(CONTROL, Q, ME, 4, 200, 0, ()), now)
    assert process.joined is not None
    assert R in process.joined.siblings
    assert R not in process.own.children
    assert Q in process.own.children
    process.receive(LocalFrame(CONTROL, Q, ME, 4, 300, 0, (), leaving=True), now)
    assert now_is(process) is State.CHILD


def test_h7_a_coordinator_whose_new_coordinator_steps_down_stays_one() -> None:
    process = ControlProcess(HierarchyContext(ME, QUICK, lambda: 0.5), 0)
    now = drive(process, 0, 4 * SECOND)
    process.receive(LocalFrame(CONTROL, Q, ME, 4, 100, 0, ()), now)
    process._take(Input.STEP_DOWN, now)
    now = answer_query(process, now, P)
    process.receive(CoordinatorLeaveFrame(CONTROL, P, 5), now)
    assert now_is(process) is State.COORDINATOR
    assert process.joined is None
    assert not process.coordinators.leaving


def _input(name: str):  # type: ignore[no-untyped-def]
    from antiphon.protocols.intergroup.hierarchy.states import Input  # noqa: PLC0415

    return Input[name]


def now_is(process: ControlProcess) -> State:
    return process.state  # a new access, so that mypy does not narrow it


def frames(process: ControlProcess, now: int) -> list[Frame]:
    return [effect.frame for effect in process.drain(now) if isinstance(effect, Transmit)]


def drive(process: ControlProcess, now: int, lasts: int) -> int:
    """Let time pass for one process that hears nobody."""
    until_ = now + lasts
    while process.deadline is not None and process.deadline <= until_:
        now = max(now, process.deadline)
        process.tick(now)
        process.drain(now)
    return until_


def answer_query(process: ControlProcess, now: int, coordinator: ProcessId) -> int:
    """The first ring has an answer of this coordinator."""
    query = None
    while query is None:
        assert process.deadline is not None
        now = max(now, process.deadline)
        process.tick(now)
        query = next((each for each in frames(process, now) if isinstance(each, RingQueryFrame)), None)
    process.receive(SearchResponseFrame(CONTROL, coordinator, ME, query.nonce, query.ttl, 0), now + MS)
    while process.joined is None:
        assert process.deadline is not None
        now = max(now, process.deadline)
        process.tick(now)
    return now


def child_of(coordinator: ProcessId) -> tuple[ControlProcess, int]:
    """A process that has joined that coordinator."""
    process = ControlProcess(HierarchyContext(ME, QUICK, lambda: 0.5), 0)
    process.receive(GlobalFrame(CONTROL, coordinator, 1, 3, 9, 30, (), 0), 1)
    now = answer_query(process, 1, coordinator)
    assert now_is(process) is State.CHILD
    return process, now


# -------------------------------------------------------------------------------- what is sent and heard


def test_h5_only_coordinators_send_global_messages() -> None:
    net, first, child = coordinator_and_child()
    sent: dict[ProcessId, list[str]] = {first.name: [], child.name: []}
    carry_out = net._carry_out

    def note(host: Host, effect: object) -> None:
        if isinstance(effect, Transmit):
            sent[host.name].append(effect.frame.kind)
        carry_out(host, effect)  # type: ignore[arg-type]

    net._carry_out = note  # type: ignore[method-assign]
    net.run(10 * SECOND)
    assert {*sent[first.name]} == {"coordinator", "global"}
    assert {*sent[child.name]} == {"local"}


def test_a_child_knows_the_number_of_coordinators_from_its_coordinator_only() -> None:
    process, now = child_of(P)
    assert process.known_coordinators == 0
    process.receive(GlobalFrame(CONTROL, Q, 1, 3, 9, 30, (), 0), now)
    assert process.known_coordinators == 0
    process.receive(ccon(), now)
    assert process.known_coordinators == 5


def ccon(timestamp: int = 10, **fields: object) -> CoordinatorFrame:
    usual = CoordinatorFrame(CONTROL, P, 16, timestamp, 0, 3, 5, 30, (), (), ())
    return usual._replace(**fields)  # type: ignore[arg-type]


def test_a_process_listens_to_the_addresses_of_its_roles() -> None:
    process = ControlProcess(HierarchyContext(ME, QUICK, lambda: 0.5), 0)
    process.receive(GlobalFrame(CONTROL, P, 1, 3, 9, 30, (), 0), 1)
    listens: list[Listen] = [each for each in process.drain(1) if isinstance(each, Listen)]
    assert listens == [Listen((), coordinators=True)]
    answer_query(process, 1, P)
    listens = [each for each in process.drain(1) if isinstance(each, Listen)]
    assert listens[-1] == Listen((P,), coordinators=False)


def test_h8_a_child_that_is_not_heard_raises_its_ttl_and_then_searches_again() -> None:
    context = HierarchyContext(ME, QUICK, lambda: 0.5)
    group = JoinedGroup(context, P, 16, 0)
    heard = Pair(ME, 1, 1)
    ttls = []
    for number in range(1, 16):
        group.heard(ccon(number, locals=1, pairs=(heard,) if number == 2 else ()), number)
        if not group.reaches():
            break
        ttls.append(group.ttl)
    assert ttls == [16] * 4 + [32] * 3 + [64] * 3 + [127] * 3
    assert number == 14


def test_h8_a_child_waits_longer_where_entries_take_turns() -> None:
    group = JoinedGroup(HierarchyContext(ME, QUICK, lambda: 0.5), P, 16, 0)
    others = tuple(Pair(ProcessId(f"p{number:02d}"), 1, 1) for number in range(10))
    for number in range(1, 15):
        group.heard(ccon(number, locals=50, pairs=others), number)
        assert group.reaches()
        assert group.ttl == 16
    group.heard(ccon(15, locals=50, pairs=others), 15)
    assert group.reaches()
    assert group.ttl == 32


def test_h8_a_coordinator_reaches_all_that_it_has_answered() -> None:
    net = network()
    first = net.add("p", NEAR)
    until(net, first, State.COORDINATOR)
    core = first.core
    assert core.own.far_ttl(net.now) == 0
    core.receive(RingQueryFrame(CONTROL, Q, 32, 1), net.now)
    assert core.own.far_ttl(net.now) == 32
    core.receive(LocalFrame(CONTROL, R, P, 64, 1, 0, ()), net.now)
    assert core.own.far_ttl(net.now) == 64
    assert core.own.far_ttl(net.now + 11 * SECOND) == 64


# -------------------------------------------------------------------------------- distances


def test_h1_distances_over_the_hierarchy() -> None:
    """Every leg of Table 2.1, with the mean distance from a coordinator to its children."""
    process, now = child_of(P)
    assert process.distance(Site(ME, P)) == DISTANCE_MIN
    assert process.distance(Site(Q, R)) == UNKNOWN
    assert process.joined is not None
    now += SECOND
    process.receive(
        ccon(
            now - 5 * MS + 400 * SECOND,
            pairs=(Pair(ME, now - 10 * MS, now - 5 * MS + 400 * SECOND),),
            distances=((Q, 3 * MS),),
            coordinator_distances=(CoordinatorDistance(R, 40 * MS, 6 * MS),),
        ),
        now,
    )
    to_coordinator = 5 * MS
    assert process.distance(Site(P, P)) == to_coordinator
    assert process.distance(Site(Q, P)) == to_coordinator + 3 * MS  # in our group, not heard directly
    assert process.distance(Site(ProcessId("x"), P)) == to_coordinator  # in our group, unknown
    assert process.distance(Site(R, R)) == to_coordinator + 40 * MS
    assert process.distance(Site(ProcessId("y"), R)) == to_coordinator + 46 * MS


def test_h1_distances_of_a_coordinator() -> None:
    process = ControlProcess(HierarchyContext(ME, QUICK, lambda: 0.5), 0)
    now = drive(process, 0, 4 * SECOND)
    pair = Pair(ME, now - 80 * MS, 7)
    process.receive(GlobalFrame(CONTROL, R, 7, 3, 2, 30, (pair,), 6 * MS), now)
    assert process.distance(Site(R, R)) == 40 * MS
    assert process.distance(Site(Q, R)) == 46 * MS
    assert process.distance(Site(Q, P)) == UNKNOWN
    process.receive(LocalFrame(CONTROL, Q, ME, 1, 7, 0, (Pair(ME, now - 8 * MS, 7),)), now)
    assert process.distance(Site(Q, ME)) == 4 * MS


def test_members_are_told_distances_on_the_network() -> None:
    """Regions that are 20 to 80 ms apart, clocks that are 1000 s apart."""
    net = network(regions=4)
    answers: list[DistanceAnswerFrame] = []
    net.told = lambda _host, effect: (
        answers.append(effect.frame) if isinstance(effect.frame, DistanceAnswerFrame) else None
    )
    hosts = [
        net.add(f"p{number:02d}", Place(number % 4, 0), offset=1000 * SECOND * (number % 3)) for number in range(16)
    ]
    net.run(60 * SECOND)
    for one in hosts:
        sites = tuple(other.core.site for other in hosts)
        one.core.receive(DistanceQueryFrame(G, ProcessId("m"), sites), net.now + one.offset)
        net._settle(one)
        for other, (_, found) in zip(hosts, answers.pop().distances, strict=True):
            true = DISTANCE_MIN if one is other else max(net.delay(one.place, other.place), DISTANCE_MIN)
            way = one.core.site.coordinator, other.core.site.coordinator
            assert found >= true * 0.9
            if one.name in way or other.name in way or way[0] == way[1]:
                assert found <= 2 * true + 60 * MS


# -------------------------------------------------------------------------------- stability and cuts


class Listening:
    """The members of all hosts, each in one slot; they note what they are told."""

    def __init__(self, net: HierarchyNetwork, hosts: list[Host]) -> None:
        self.net, self.hosts = net, hosts
        self.records: dict[ProcessId, StabilityRecord] = {}
        self.cuts: dict[ProcessId, tuple[int, CutFrame]] = {}
        net.told = self._told

    def _told(self, host: Host, effect: Transmit) -> None:
        if isinstance(effect.frame, SystemFrame):
            self.records[host.name] = effect.frame.record
        elif isinstance(effect.frame, CutFrame):
            self.cuts.setdefault(host.name, (self.net.now, effect.frame))

    def acknowledge(self, acks: Iterator[int]) -> None:
        for slot, (host, ack) in enumerate(zip(self.hosts, acks, strict=False)):
            member = ProcessId(f"m{slot}")
            host.core.receive(AckReportFrame(G, member, E, ack, slot), self.net.now + host.offset)


def many(number: int, settings: HierarchySettings = QUICK) -> tuple[HierarchyNetwork, list[Host]]:
    net = network(settings)
    hosts = [net.add(f"p{each:02d}", NEAR) for each in range(number)]
    net.run(10 * SECOND)
    return net, hosts


def test_the_least_acknowledgment_of_all_members_reaches_every_member() -> None:
    net, hosts = many(30)
    there = Listening(net, hosts)
    for second in range(12):
        there.acknowledge(iter(range(100 + second, 200)))
        net.run(SECOND)
    full = bitmap((1 << 30) - 1)
    assert there.records.keys() == net.hosts.keys()
    assert all(record.senders == full for record in there.records.values())
    assert all(105 <= record.ack <= 111 for record in there.records.values())  # at most 4.5 s behind (T10)


def test_m18_a_cut_reaches_all_members_at_once() -> None:
    net, hosts = many(30)
    there = Listening(net, hosts)
    there.acknowledge(iter([5] * 30))
    net.run(SECOND)
    begin = net.now
    cut = CutFrame(G, ProcessId("m3"), E, 5, ((P, Claim(1, 9, 5)),))
    hosts[3].core.receive(cut, net.now)
    net._settle(hosts[3])
    for _ in range(20):
        there.acknowledge(iter([5] * 30))
        net.run(100 * MS)
    assert there.cuts.keys() == net.hosts.keys()
    assert max(at for at, _ in there.cuts.values()) - begin < SECOND
    assert {frame.claims for _, frame in there.cuts.values()} == {cut.claims}


# -------------------------------------------------------------------------------- other processes that lie


def test_numbers_of_other_processes_are_bounded() -> None:
    process, now = child_of(P)
    process.receive(ccon(locals=1 << 60, coordinators=1 << 60, population=1 << 60), now)
    assert process.known_coordinators <= PEERS_MAX
    assert process._local_members <= PEERS_MAX + 1
    wrong = StabilityRecord(G, E, 5, bytes(4_000))
    assert plausible((wrong, StabilityRecord(G, E, 5)) * RECORDS_MAX) == (StabilityRecord(G, E, 5),) * (
        RECORDS_MAX // 2
    )


def test_frames_for_others_and_our_own_are_ignored() -> None:
    process, now = child_of(P)
    for frame in (
        LocalFrame(CONTROL, Q, R, 1, 5, 0, ()),
        LocalFrame(CONTROL, ME, P, 1, 5, 0, ()),
        ccon()._replace(sender=R),
        SearchResponseFrame(CONTROL, R, Q, 1, 1, 0),
        RingQueryFrame(CONTROL, Q, 8, 1),
        CoordinatorLeaveFrame(CONTROL, R, 5),
    ):
        process.drain(now)
        process.receive(frame, now)
        assert now_is(process) is State.CHILD
        assert not process.has_effects
    assert process.joined is not None
    assert len(process.joined.siblings) == 0


def test_a_process_that_has_stopped_does_nothing() -> None:
    process, now = child_of(P)
    process.stop(now)
    assert [each.kind for each in frames(process, now)][-1:] == ["local"]
    assert process.deadline is None
    process.receive(ccon(), now)
    process.tick(now)
    assert not process.has_effects


@pytest.mark.parametrize("name", ["local", "coordinator", "global"])
def test_the_estimated_size_of_a_message_is_near_the_true_one(name: str) -> None:
    frame = HIERARCHY[name]
    assert isinstance(frame, LocalFrame | CoordinatorFrame | GlobalFrame)
    entries = tuple(Pair(ProcessId(f"p{number:05d}"), 1 << 50, 1 << 50) for number in range(100))
    frame = frame._replace(pairs=entries, cuts=(), sender=ProcessId("p12345"))
    ip_and_udp = 28
    assert frame.size == pytest.approx(len(encode(frame)) + ip_and_udp, rel=0.1)
    assert ip_and_udp < HEADER_BYTES


@pytest.mark.parametrize("ttl", [0, 128, 1 << 40])
def test_a_ttl_beyond_the_system_is_not_answered(ttl: int) -> None:
    process = ControlProcess(HierarchyContext(ME, QUICK, lambda: 0.5), 0)
    now = drive(process, 0, 4 * SECOND)
    process.receive(RingQueryFrame(CONTROL, Q, ttl, 1), now)
    assert not process.has_effects
    process.receive(LocalFrame(CONTROL, R, ME, ttl, 1, 0, ()), now)
    assert 1 <= process.own.far_ttl(now) <= QUICK.system_ttl
