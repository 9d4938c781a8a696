"""The control hierarchy as Berket00 chapter 2 describes it: start, ring search, the change of roles, fault handling.

The tables and formulas have tests of their own: `tests/unit/intergroup/test_hierarchy_parts.py`.
"""

from collections import Counter

import pytest

from antiphon.protocols.intergroup.hierarchy.frames import RingQueryFrame
from antiphon.protocols.intergroup.hierarchy.settings import HierarchySettings, Thresholds
from antiphon.protocols.intergroup.hierarchy.states import Input, State
from tools.lab.hierarchy_network import MS, SECOND, Faults, HierarchyNetwork, Host, Place, Topology


def network(settings: HierarchySettings, *, regions: int = 3, loss: float = 0.0) -> HierarchyNetwork:
    return HierarchyNetwork(Topology(regions=regions, sites=2), settings, seed=3, faults=Faults(loss=loss))


def noted_queries(net: HierarchyNetwork) -> list[tuple[str, int]]:
    """By process, the TTLs of its ring queries, from now on."""
    found: list[tuple[str, int]] = []
    multicast = net._multicast

    def note(host: Host, effect) -> None:  # type: ignore[no-untyped-def]
        if isinstance(effect.frame, RingQueryFrame):
            found.append((host.name, effect.ttl))
        multicast(host, effect)

    net._multicast = note  # type: ignore[method-assign]
    return found


@pytest.mark.parametrize(("place", "rings"), [((0, 0), [1]), ((0, 1), [1, 2, 4, 8]), ((1, 0), [1, 2, 4, 8, 16, 32])])
def test_the_ring_search_ends_with_the_first_ring_that_has_a_coordinator(
    place: tuple[int, int], rings: list[int]
) -> None:
    """§2.6.1: the coordinator is in the same site, in the same region, or far away."""
    net = network(HierarchySettings(thresholds=Thresholds(0, 1, 8)))
    net.add("c", Place(0, 0))
    net.run(6 * SECOND)
    queries = noted_queries(net)
    child = net.add("p", Place(*place))
    net.run(10 * SECOND)
    assert child.core.state is State.CHILD
    assert child.core.joined is not None
    assert child.core.joined.coordinator == "c"
    assert queries == [("p", ring) for ring in rings]


def test_a_search_without_an_answer_makes_a_coordinator() -> None:
    """§2.6.1. The process hears GCons, but its questions do not arrive."""
    net = network(HierarchySettings(thresholds=Thresholds(0, 1, 8)))
    net.add("c", Place(0, 0))
    net.run(6 * SECOND)
    queries = noted_queries(net)
    lonely = net.add("p", Place(1, 0))
    net.run(1_400 * MS)
    net.parted = lambda one, other: one != other
    net.run(15 * SECOND)
    assert lonely.core.state is State.COORDINATOR
    assert [ttl for _, ttl in queries] == [1, 2, 4, 8, 16, 32, 64, 127, 127, 127]


def test_the_change_to_child_takes_the_children_along() -> None:
    """§2.6.2, Fig. 2.4: CoordLeave, a ring search, and the end of the role when the last child has gone."""
    net = network(HierarchySettings(thresholds=Thresholds(1, 2, 2), state_change_ns=(SECOND, 2 * SECOND)), regions=1)
    for number in range(12):
        net.add(f"p{number:02d}", Place(0, 0))
    net.parted = lambda _one, _other: True
    net.run(8 * SECOND)
    net.parted = None
    net.run(120 * SECOND)
    changes = sum((Counter(host.core.changes) for host in net.hosts.values()), Counter[tuple[State, Input]]())
    assert changes[State.COORDINATOR, Input.STEP_DOWN] >= 9
    assert changes[State.LEAVING, Input.EMPTIED] >= 9
    assert 1 <= len(net.coordinators()) <= 2


@pytest.mark.parametrize("loss", [0.0, 0.25])
def test_the_hierarchy_heals_after_a_partition(loss: float) -> None:
    """Both sides have coordinators of their own; afterwards there is one hierarchy again."""
    net = network(HierarchySettings(thresholds=Thresholds(2, 5, 4), state_change_ns=(SECOND, 2 * SECOND)), loss=loss)
    for number in range(24):
        net.add(f"p{number:02d}", Place(number % 3, number % 2))
    net.run(20 * SECOND)
    net.parted = lambda one, other: (one.region == 0) != (other.region == 0)
    net.run(40 * SECOND)
    assert any(host.place.region == 0 for host in net.coordinators())
    net.parted = None
    net.faults = Faults()
    net.run(90 * SECOND)
    known = {host.core.known_coordinators for host in net.hosts.values()}
    assert known == {len(net.coordinators())}
    assert 2 <= len(net.coordinators()) <= 5


def test_a_silent_process_is_forgotten_after_a_timeout() -> None:
    """§2.6.3."""
    net = network(HierarchySettings(), regions=1)
    hosts = [net.add(f"p{number:02d}", Place(0, 0)) for number in range(10)]
    net.run(20 * SECOND)
    dead = next(host for host in hosts if host.core.state is State.CHILD)
    net.crash(dead)
    net.run(3 * SECOND)
    assert any(dead.name in host.core.known() for host in net.hosts.values())
    net.run(12 * SECOND)
    assert not any(dead.name in host.core.known() for host in net.hosts.values())
