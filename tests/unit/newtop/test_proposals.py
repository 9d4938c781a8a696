"""Proposals that arrive before the connections that they need (`formation/proposals.py`)."""

from antiphon.protocols.newtop.formation.connections import Connections
from antiphon.protocols.newtop.formation.proposals import EarlyProposals
from antiphon.protocols.newtop.frames import AbortFrame, FormationFrame, ProposeFrame, VoteFrame
from antiphon.types import GroupId, ProcessId, formed_group

P1, P2, P3 = (ProcessId(name) for name in ("p1", "p2", "p3"))
FIRST, SECOND = formed_group("g", 1, P2, 0), formed_group("g", 1, P2, 1)


def propose(group: GroupId = FIRST, initiator: ProcessId = P2) -> ProposeFrame:
    return ProposeFrame(group, initiator, tuple((member, None) for member in (P1, P2, P3)))


class Desk:
    """The connections of p1, and its transmitted frames."""

    def __init__(self, *peers: ProcessId) -> None:
        self.votes: list[tuple[FormationFrame, ProcessId]] = []
        self.connections = Connections(
            frozenset(), EarlyProposals(P1, lambda frame, to: self.votes.append((frame, to)))
        )
        for peer in peers:
            assert self.connections.connected(peer, 0) == []


def test_a_proposal_to_connected_processes_is_received() -> None:
    desk = Desk(P2, P3)
    assert desk.connections.admits(propose(), 0)
    assert desk.votes == []


def test_an_early_proposal_is_given_back_with_the_missing_connection() -> None:
    desk = Desk(P2)
    assert not desk.connections.admits(propose(), 0)
    assert desk.connections.connected(P3, 4) == [propose()]
    assert desk.connections.connected(P3, 5) == []
    assert desk.votes == []


def test_an_early_proposal_that_is_repeated_is_refused() -> None:
    desk = Desk(P2)
    assert not desk.connections.admits(propose(), 0)
    assert not desk.connections.admits(propose(), 0)
    assert desk.votes == [(VoteFrame(FIRST, P1, None, 0), P2)]
    assert desk.connections.connected(P3, 0) == []


def test_an_initiator_has_one_proposal_at_a_time() -> None:
    desk = Desk(P2)
    assert not desk.connections.admits(propose(), 0)
    assert not desk.connections.admits(propose(SECOND), 0)
    assert desk.connections.connected(P3, 0) == [propose(SECOND)]


def test_an_abort_ends_the_wait_and_is_received() -> None:
    desk = Desk(P2)
    assert not desk.connections.admits(propose(), 0)
    assert desk.connections.admits(AbortFrame(FIRST, P2), 0)
    assert desk.connections.connected(P3, 0) == []


def test_the_proposal_of_a_peer_that_is_disconnected_is_void() -> None:
    desk = Desk(P2)
    assert not desk.connections.admits(propose(), 0)
    desk.connections.disconnected(P2)
    assert desk.connections.connected(P3, 0) == []
    assert desk.connections.connected(P2, 1) == []


def test_an_install_binds_its_group_to_the_connection_in_use() -> None:
    desk = Desk(P2)
    desk.connections.disconnected(P2)
    desk.connections.connected(P2, 1)
    assert desk.connections.bind(FIRST, [P2, P3]) == [P3]
    assert desk.connections.broke(P2, 1, incoming=False) == {FIRST}
    assert desk.connections.broke(P2, 0, incoming=False) == frozenset()


def test_a_driver_that_reports_no_connections_severs_no_peer() -> None:
    assert Desk().connections.bind(FIRST, [P2, P3]) == []
