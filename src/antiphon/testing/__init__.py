"""The public test kit: members of one group in virtual time, on a network that is drawn from a seed.

The same `Group` and `Member` as in production, the same cores and frames; only the sockets and the clock are
replaced. There are no real delays, and the same seed gives the same events at the same times, on any machine.
"""

from antiphon.testing.clock import VirtualTimeLoop, run
from antiphon.testing.cluster import Cluster, cluster

__all__ = ["Cluster", "VirtualTimeLoop", "cluster", "run"]
