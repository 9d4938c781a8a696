"""Algorithm A of the Notes: the worked example, its costs, and the counterexample of N1 (docs/spec/multicast.md 3)."""

from typing import Final

import pytest

from antiphon.protocols.classic.as_printed import printed
from antiphon.protocols.classic.rules import ADOPTED, Rules
from tests.support.classic_cluster import ClassicCluster

SITES: Final = ("1", "2", "3")
CLOCKS: Final = {"1": 15, "2": 16, "3": 17}
ARRIVALS: Final = {"1": ("m3", "m2", "m1"), "2": ("m2", "m1", "m3"), "3": ("m1", "m3", "m2")}
TABLE: Final = {
    "arrivals": {
        "1": ["m3 15.1u", "m2 16.1u", "m1 17.1u"],
        "2": ["m2 16.2u", "m1 17.2u", "m3 18.2u"],
        "3": ["m1 17.3u", "m3 18.3u", "m2 19.3u"],
    },
    "m1": {
        "1": ["m3 15.1u", "m2 16.1u", "m1 17.3d"],
        "2": ["m2 16.2u", "m1 17.3d", "m3 18.2u"],
        "3": ["m1 17.3d", "m3 18.3u", "m2 19.3u"],
    },
    "m2": {
        "1": ["m3 15.1u", "m1 17.3d", "m2 19.3d"],
        "2": ["m1 17.3d", "m3 18.2u", "m2 19.3d"],
        "3": ["m3 18.3u", "m2 19.3d"],
    },
    "m3": {
        "1": ["m1 17.3d", "m3 18.3d", "m2 19.3d"],
        "2": ["m3 18.3d", "m2 19.3d"],
        "3": ["m3 18.3d", "m2 19.3d"],
    },
}
"""The queues of the three sites at each step, in order, before the deliveries of the step."""
DELIVERED: Final[dict[str, dict[str, list[bytes]]]] = {
    "m1": {"1": [], "2": [], "3": [b"m1"]},
    "m2": {"1": [], "2": [b"m1"], "3": [b"m1"]},
    "m3": {site: [b"m1", b"m3", b"m2"] for site in SITES},
}


@pytest.mark.parametrize(
    "originators",
    [{"m1": "3", "m2": "2", "m3": "1"}, {"m1": "s1", "m2": "s2", "m3": "s3"}],
    ids=["inside", "outside"],
)
def test_the_worked_example_of_three_simultaneous_multicasts(originators: dict[str, str]) -> None:
    """Every queue at every step. The first arrival at each site may be its own message."""
    outside = [name for name in originators.values() if name not in SITES]
    cluster = ClassicCluster(*SITES, outside=outside, clocks=CLOCKS)
    for message, originator in originators.items():
        cluster.send(originator, message.encode())
    for site, arrivals in ARRIVALS.items():
        for message in arrivals:
            if originators[message] != site:
                cluster.move_kind("data", originators[message], site)
    assert {site: cluster.queue(site) for site in SITES} == TABLE["arrivals"]
    for message, originator in originators.items():
        assert commit(cluster, originator) == TABLE[message]
        for site in SITES:
            cluster.settle(site)
            assert cluster.payloads(site) == DELIVERED[message][site]
    assert not any(cluster.queue(site) for site in SITES)


def commit(cluster: ClassicCluster, originator: str) -> dict[str, list[str]]:
    """Move all proposals to an originator and its commit to all sites; returns the queues before delivery."""
    others = [site for site in SITES if site != originator]
    for site in others:
        cluster.feed(site, originator, cluster.under_way(site, originator, "proposal"))
    queues = {originator: cluster.queue(originator)} if originator in SITES else {}
    cluster.settle(originator)
    for site in others:
        cluster.feed(originator, site, cluster.under_way(originator, site, "commit"))
        queues[site] = cluster.queue(site)
    return queues


@pytest.mark.parametrize(
    ("rules", "b_at_site_1", "one_order"), [(ADOPTED, 19, True), (printed(("N1",)), 17, False)], ids=["ours", "printed"]
)
def test_n1_a_committed_stamp_moves_the_clock(rules: Rules, b_at_site_1: int, one_order: bool) -> None:
    """The counterexample of N1: site 1 delivers a, committed at 18.3, before it has heard of b, committed at 17.3."""
    cluster = ClassicCluster(*SITES, outside=["A", "B"], clocks=CLOCKS, rules=rules)
    cluster.send("A", b"a")
    cluster.send("B", b"b")
    for site in ("2", "3"):
        cluster.move("B", site)
        cluster.move("A", site)
    cluster.move("A", "1")
    assert cluster.queue("1") == ["a 15.1u"]
    assert cluster.queue("2") == ["b 16.2u", "a 17.2u"]
    assert cluster.queue("3") == ["b 17.3u", "a 18.3u"]
    for site in SITES:
        cluster.move(site, "A")
    cluster.move_kind("commit", "A", "1")
    assert cluster.payloads("1") == [b"a"]
    cluster.move("B", "1")
    assert cluster.queue("1") == [f"b {b_at_site_1}.1u"]
    cluster.move_all()
    assert cluster.payloads("2") == cluster.payloads("3") == ([b"a", b"b"] if one_order else [b"b", b"a"])
    assert cluster.payloads("1") == [b"a", b"b"]


@pytest.mark.parametrize("members", [1, 2, 3, 5])
def test_a_costs_three_frames_a_site(members: int) -> None:
    """3n in the notes: n data, n proposals, n commits, including the own ones. Ours do not travel: 3·(n-1).

    From outside the group there is no own copy: 3n.
    """
    names = [f"p{i}" for i in range(members)]
    cluster = ClassicCluster(*names, outside=["s"])
    for originator, receivers in (("p0", members - 1), ("s", members)):
        cluster.travelled.clear()
        cluster.send(originator, b"m")
        cluster.move_all()
        assert cluster.kinds() == ({"data": receivers, "proposal": receivers, "commit": receivers} if receivers else {})
