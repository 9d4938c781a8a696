"""Costs of strangers, which are in no view with us: no endless freeze, and no unbounded table."""

from antiphon.protocols.newtop.formation.connections import Connections
from antiphon.protocols.newtop.formation.formation import Formations
from antiphon.protocols.newtop.formation.freezes import STRANGERS, Freezes
from antiphon.protocols.newtop.formation.proposals import EarlyProposals
from antiphon.protocols.newtop.frames import InstallFrame, ProbeFrame, ProposeFrame, VoteFrame
from antiphon.types import GroupId, ProcessId, formed_group
from tests.support.cluster import GROUP, OMEGA_NS
from tests.support.forming import Forming

EVE = ProcessId("eve")


def formations(cluster: Forming, name: str) -> Formations:
    found = cluster.core(name)._formations
    assert found is not None
    return found


def frozen(cluster: Forming, name: str) -> bool:
    return formations(cluster, name).stage.procedure is not None


def propose(cluster: Forming, name: str, group: str, initiator: ProcessId, attempt: int) -> None:
    """A proposal that names a process with the group that it is in, or with none."""
    core = cluster.core(name)
    own = core.current(GroupId(group))
    members: list[tuple[ProcessId, GroupId | None]] = [
        (ProcessId(name), None if own is None else own.view.group),
        (initiator, None),
    ]
    frame = ProposeFrame(formed_group(group, 9, initiator, attempt), initiator, tuple(sorted(members)))
    core.receive(frame, cluster.now)
    cluster.settle(name)


def test_an_unsolicited_proposal_stops_nothing() -> None:
    cluster = Forming("a", "b", invitations=False)
    propose(cluster, "a", "club", EVE, 1)
    assert not frozen(cluster, "a")
    assert [frame.number for frame in cluster.control["a"] if isinstance(frame, VoteFrame)] == [None]


def test_where_invitations_are_allowed_a_process_is_taken_into_a_new_group() -> None:
    cluster = Forming("a", "b")
    propose(cluster, "a", "club", EVE, 1)
    assert frozen(cluster, "a")


def test_an_initiator_that_says_nothing_more_stops_us_for_two_suspicion_times() -> None:
    cluster = Forming("a", "b")
    propose(cluster, "a", GROUP, EVE, 1)
    assert frozen(cluster, "a")
    cluster.wait(2 * OMEGA_NS - 1)
    assert frozen(cluster, "a")
    cluster.wait(1)
    assert not frozen(cluster, "a")


def test_strangers_that_propose_again_and_again_under_new_names_stop_us_for_a_part_of_the_time() -> None:
    cluster = Forming("a", "b")
    stopped_ns = 0
    step_ns = OMEGA_NS // 4
    for attempt in range(400):
        propose(cluster, "a", GROUP, ProcessId(f"eve{attempt}"), attempt + 1)
        if frozen(cluster, "a"):
            stopped_ns += step_ns
        cluster.wait(step_ns)
    assert 0 < stopped_ns < 400 * step_ns * 3 // 10


def test_joiners_that_never_vote_stop_us_for_a_part_of_the_time() -> None:
    cluster = Forming("a", "b")
    stopped_ns = 0
    step_ns = OMEGA_NS // 4
    for attempt in range(400):
        joiner = ProcessId(f"eve{attempt}")
        cluster.core("a").receive(ProbeFrame(GroupId(GROUP), joiner, True), cluster.now)
        cluster.settle("a")
        if frozen(cluster, "a"):
            stopped_ns += step_ns
        cluster.wait(step_ns)
        for pair in (("a", "b"), ("b", "a")):
            cluster.move(*pair, len(cluster.channels[pair]))
    assert 0 < stopped_ns < 400 * step_ns * 4 // 10


def test_time_is_given_back_and_each_member_has_a_bucket_of_its_own() -> None:
    freezes = Freezes(100)
    freezes.cost(STRANGERS, 120, 0)
    assert not freezes.allows(STRANGERS, 79)
    assert freezes.allows(STRANGERS, 84)
    assert freezes.allows(ProcessId("b"), 0)


def test_installs_of_groups_that_we_are_not_in_are_remembered_up_to_a_bound() -> None:
    connections = Connections(frozenset())
    ours = formed_group("orders", 1, ProcessId("a"), 1)
    assert connections.admits(InstallFrame(ours, ProcessId("b"), 1, ()), 3)
    connections.bind(ours, (ProcessId("b"),))
    for number in range(5_000):
        sender = ProcessId(f"eve{number % 50}")
        connections.admits(InstallFrame(formed_group("x", 1, sender, number), sender, 1, ()), 0)
    assert len(connections._incoming) <= 1_025
    assert connections.broke(ProcessId("b"), 3, incoming=True) == {ours}
    alone = Connections(frozenset())
    for number in range(200):
        alone.admits(InstallFrame(formed_group("x", 1, EVE, number), EVE, 1, ()), 0)
    assert len(alone._incoming) == 64


def test_proposals_that_wait_for_connections_are_bounded() -> None:
    early = EarlyProposals(ProcessId("a"), lambda *_: None)
    for number in range(100):
        sender = ProcessId(f"eve{number}")
        early.postpone(ProposeFrame(formed_group("x", 1, sender, 1), sender, ((sender, None),)), ())
    assert len(early._kept) == 64


def test_names_that_only_strangers_know_leave_nothing_behind() -> None:
    cluster = Forming("a", "b", invitations=False)
    found = formations(cluster, "a")
    before = {*found.attempts.epochs}
    for number in range(5_000):
        name = GroupId(f"x{number}")
        cluster.core("a").receive(VoteFrame(formed_group(name, 1, EVE, 1), EVE, None, 1), cluster.now)
        cluster.core("a").receive(ProbeFrame(name, EVE, False), cluster.now)
        propose(cluster, "a", name, EVE, 1)
    assert {*found.attempts.epochs} == before
    assert found.acquaintances.known.keys() == {GROUP}
    assert len(found.attempts.refused) == 4_096


def test_probes_of_invented_processes_do_not_hide_a_lost_member() -> None:
    cluster = Forming("a", "b", "c", merge_every_ns=OMEGA_NS)
    found = formations(cluster, "a")
    for number in range(1_000):
        cluster.core("a").receive(ProbeFrame(GroupId(GROUP), ProcessId(f"eve{number}"), False), cluster.now)
    assert len(found.acquaintances.known[GroupId(GROUP)]) == 2 + 64
    asked = [found.acquaintances.lost(GroupId(GROUP), (ProcessId("a"), ProcessId("b"))) for _ in range(4)]
    assert "c" in asked
