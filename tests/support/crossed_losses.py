"""Case C4 of docs/spec/newtop.md 9.8: messages of two groups are lost crosswise."""

from typing import Any

from tests.support.cluster import OMEGA_NS, SLOW_NS, Cluster


def cluster_of(*names: str, service: str, **settings: Any) -> Cluster:
    return Cluster(
        *names, **{"service": service, "suspect_after_ns": OMEGA_NS, "silence_timeout_ns": SLOW_NS, **settings}
    )


CROSSED = {
    "x": ["k1", "p", "r1", "s"],
    "y": ["k2", "p", "r2", "t"],
    "z": ["r2", "s"],
    "z'": ["r1", "t"],
}


def crossed_losses(service: str) -> Cluster:
    """C4: m in x depends on a lost message of y, and m4 in y on a lost message of x; four members crash."""
    cluster = Cluster(groups=CROSSED, service=service, suspect_after_ns=OMEGA_NS, silence_timeout_ns=SLOW_NS)
    cluster.send("k1", b"m5", group="x")
    cluster.move("k1", "r1")
    cluster.send("k2", b"m6", group="y")
    cluster.move("k2", "r2")
    cluster.send("r1", b"in z'", group="z'")
    cluster.move("r1", "t")
    cluster.send("t", b"m4", group="y")
    cluster.send("r2", b"in z", group="z")
    cluster.move("r2", "s")
    cluster.send("s", b"m", group="x")
    for name in ("k1", "k2", "r1", "r2"):
        cluster.crash(name)
        for other in cluster.cores:
            cluster.drop(name, other)
    cluster.move_all()
    assert cluster.delivered["p"] == []  # m waits for m6, m4 for m5
    return cluster
