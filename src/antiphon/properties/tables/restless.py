"""Groups whose members exclude each other until the end, because frames are too slow for their timeouts.

A run that ends at its `duration` may end in the middle of such an exclusion: some members have installed the next view,
and others have not heard of it yet.
"""

from antiphon.properties.tables.frames import slowest_frame_ns
from antiphon.properties.tables.history import History
from antiphon.properties.tables.membership import Membership


def is_restless(history: History, membership: Membership, group: int, circle: frozenset[int]) -> bool:
    """True if one of these excluded another too late for views to become final again, and frames were too slow."""
    end, suspectors = int(history.rows.time.max(initial=0)), membership.suspectors
    parted = any(
        membership.group[stay] == group
        and membership.process[stay] in circle
        and membership.time[stay] > end - suspectors.settling[membership.process[stay]]
        and not (membership.formed[stay] and membership.suspectors.merge[membership.process[stay]])
        and membership.preceding[stay] >= 0
        and circle & (membership.members[membership.preceding[stay]] - membership.members[stay])
        for stay in range(len(membership.process))
    )
    return parted and slowest_frame_ns(history, membership.last_fault) > suspectors.bearable_ns
