"""Which connection a group lives on (docs/spec/newtop.md 1, E-47)."""

import pytest

from antiphon.core.effects import Frame
from antiphon.protocols.newtop.formation.connections import Connections
from antiphon.protocols.newtop.frames import AbortFrame, AliveFrame, BlockFrame, InstallFrame, ProbeFrame
from antiphon.types import Company, GroupId, ProcessId, formed_group

G, P1, P2 = GroupId("g"), ProcessId("p1"), ProcessId("p2")
FIRST, SECOND = formed_group("g", 1, P1, 0), formed_group("g", 2, P1, 1)


def install(group: GroupId, sender: ProcessId = P2) -> InstallFrame:
    companies = tuple(Company((process,), None, 0, primary=False) for process in (P1, P2))
    return InstallFrame(group, sender, 7, companies)


def data(group: GroupId, sender: ProcessId = P2) -> BlockFrame:
    return BlockFrame(group, sender, 8, 7, 7, (b"x",))


def mine() -> Connections:
    return Connections(frozenset({G}))


def test_a_configured_group_lives_on_the_first_connection() -> None:
    connections = mine()
    assert [connections.admits(data(G), number) for number in (0, 1, 2)] == [True, False, False]
    assert not connections.admits(AliveFrame(G, P2, 3, 1), 1)


def test_a_formed_group_lives_on_the_connection_that_brought_the_install() -> None:
    connections = mine()
    assert connections.admits(install(FIRST), 1)
    assert [connections.admits(data(FIRST), number) for number in (0, 1, 2)] == [False, True, False]
    assert connections.admits(install(FIRST), 2)  # again: the first one counts
    assert [connections.admits(data(FIRST), number) for number in (1, 2)] == [True, False]


def test_each_peer_has_its_own() -> None:
    connections, other = mine(), ProcessId("p3")
    connections.admits(install(FIRST, other), 0)
    assert connections.admits(data(FIRST, other), 0)
    assert not connections.admits(data(FIRST), 0)  # p2 has sent no install


@pytest.mark.parametrize("frame", [install(FIRST), AbortFrame(FIRST, P2), ProbeFrame(G, P2, joins=True)])
@pytest.mark.parametrize("connection", [0, 5])
def test_formations_belong_to_no_connection(frame: Frame, connection: int) -> None:
    assert mine().admits(frame, connection)


def test_a_break_concerns_the_groups_that_used_the_connection() -> None:
    connections = mine()
    connections.admits(install(FIRST), 0)
    connections.admits(install(SECOND), 1)
    assert connections.broke(P2, 0, incoming=True) == {G, FIRST}
    assert connections.broke(P2, 1, incoming=True) == {SECOND}
    assert connections.broke(P2, 2, incoming=True) == frozenset()
    assert connections.broke(ProcessId("p3"), 1, incoming=True) == frozenset()


def test_a_break_on_the_way_out_concerns_those_whose_first_frame_went_there() -> None:
    connections = mine()
    connections.sent(install(FIRST, P1), P2, 0)
    connections.sent(install(SECOND, P1), P2, 3)
    assert connections.broke(P2, 0, incoming=False) == {G, FIRST}
    assert connections.broke(P2, 3, incoming=False) == {SECOND}
    assert connections.broke(P2, 3, incoming=True) == frozenset()


def test_an_install_that_arrives_after_the_notice_of_the_break_comes_too_late() -> None:
    connections = mine()
    connections.admits(install(FIRST), 1)
    assert not connections.came_too_late(install(FIRST))
    connections.broke(P2, 1, incoming=True)
    connections.admits(install(SECOND), 1)
    assert connections.came_too_late(install(SECOND))


def test_a_group_that_is_left_is_forgotten() -> None:
    connections = mine()
    connections.admits(install(FIRST), 1)
    connections.sent(install(FIRST, P1), P2, 1)
    connections.forget(FIRST)
    assert not connections.admits(data(FIRST), 1)
    assert connections.broke(P2, 1, incoming=True) == connections.broke(P2, 1, incoming=False) == frozenset()


def test_earlier_groups_of_the_same_name_are_forgotten_too() -> None:
    connections, third, other = mine(), formed_group("g", 3, P1, 2), formed_group("h", 1, P1, 3)
    for group in (FIRST, SECOND, third, other):  # the process never was in the first two
        connections.admits(install(group), 1)
    connections.forget(SECOND)
    assert {group for _, group in connections._incoming} == {third, other}


def test_only_the_last_processes_that_are_gone_are_remembered() -> None:
    connections = mine()
    for number in range(3_000):
        connections.broke(ProcessId(f"q{number}"), 0, incoming=True)
    assert len(connections._broken) == 1_024
    late = install(FIRST, ProcessId("q2999"))
    assert connections.admits(late, 0)
    assert connections.came_too_late(late)


def test_only_the_last_broken_connection_of_a_process_counts() -> None:
    connections = mine()
    for number in (0, 1, 2):
        connections.broke(P2, number, incoming=True)
    assert connections._broken == {P2: 2}
    connections.admits(install(FIRST), 1)
    assert connections.came_too_late(install(FIRST))
    connections.admits(install(SECOND), 3)
    assert not connections.came_too_late(install(SECOND))
