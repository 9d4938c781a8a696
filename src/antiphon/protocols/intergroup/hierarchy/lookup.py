"""How far away a process is, from what the hierarchy knows (Berket00 Table 2.1; errata H1)."""

from typing import Any, Final

from antiphon.protocols.intergroup.hierarchy.frames import Site
from antiphon.protocols.intergroup.hierarchy.groups import CoordinatorGroup, JoinedGroup, OwnGroup
from antiphon.protocols.intergroup.hierarchy.peers import DISTANCE_MAX, Peers
from antiphon.protocols.intergroup.repair.adaptation import SECOND
from antiphon.protocols.intergroup.settings import DISTANCE_MIN
from antiphon.types import ProcessId

UNKNOWN: Final = SECOND // 10
"""If nothing is known. Distances only set timers, so any value is safe that is not too small."""


def distance(
    me: ProcessId, site: Site, own: OwnGroup, joined: JoinedGroup | None, coordinators: CoordinatorGroup
) -> int:
    """The one-way distance from this control process to a site, in nanoseconds."""
    if site.process == me:
        return DISTANCE_MIN
    direct = _direct(site.process, own, joined, coordinators)
    if direct is None:
        direct = _across(site, me, joined, coordinators)
    return UNKNOWN if direct is None else min(max(direct, DISTANCE_MIN), DISTANCE_MAX)


def _direct(
    process: ProcessId, own: OwnGroup, joined: JoinedGroup | None, coordinators: CoordinatorGroup
) -> int | None:
    """The distance that we have measured ourselves."""
    tables: list[Peers[Any]] = [own.children, *([] if joined is None else [joined.siblings]), coordinators.peers]
    for table in tables:
        peer = table.get(process)
        if peer is not None and not peer.learned and peer.distance is not None:
            return peer.distance
    return None


def _across(site: Site, me: ProcessId, joined: JoinedGroup | None, coordinators: CoordinatorGroup) -> int | None:
    """The sum of the legs: to our coordinator if we are a child, to the coordinator of the site, and from there."""
    first, start = 0, me
    if joined is not None:
        up = joined.siblings.get(joined.coordinator)
        if up is None or up.distance is None:
            return None
        first, start = up.distance, joined.coordinator
        sibling = joined.siblings.get(site.process)
        if sibling is not None and sibling.learned and sibling.distance is not None:
            return first + sibling.distance
    if start == site.process:
        return first
    is_coordinator = site.process == site.coordinator or site.process in coordinators.peers
    end = coordinators.peers.get(site.process if is_coordinator else site.coordinator)
    if start == site.coordinator and not is_coordinator:
        return first  # in the group of our coordinator, which has not told us of it
    if end is None or end.distance is None:
        return None
    return first + end.distance + (0 if is_coordinator else end.mean)
