"""Figures of groups that change, from tallies: late joiners and recovered processes."""

from typing import Any

from antiphon.pipeline.figures.summing import Taken, of_run

TALLY: dict[str, Any] = {
    "group": "orders",
    "incarnation": 0,
    "type": None,
    "idle": False,
    "sent": 0,
    "frames": 0,
    "moves": 0,
    "blocks": 0,
    "blocked_ns": 0,
    "first_request_ns": 0,
    "frames_with_copies": 0,
    "first_ns": 0,
    "last_ns": 2_000,
    "view_changes": 0,
} | dict.fromkeys(
    "payload_bytes header_bytes stamp_bytes packed copies wire_bytes sender_work receiver_work unstable_max "
    "idle_ns unstable_blocks_max buffers_max".split()
)


def tally(process: str, delivered: int, **columns: Any) -> dict[str, Any]:
    return TALLY | {"process": process, "delivered": delivered, "last_delivery_ns": 1_000} | columns


def test_the_rate_of_a_group_is_that_of_its_permanent_members() -> None:
    rows = [tally("p1", 10), tally("p2", 8), tally("p3", 1, moves=1)]
    (group,) = of_run("r", rows, Taken({}, {})).groups
    assert group.per_second == 8e6
    assert [member.process for member in group.members] == ["p1", "p2", "p3"]


def test_incarnations_of_a_process_are_one_member() -> None:
    reborn = tally("p2", 3, incarnation=1, blocks=1, blocked_ns=4_000, last_ns=9_000)
    rows = [tally("p1", 10), tally("p2", 4, moves=1, blocks=1, blocked_ns=1_500), reborn]
    (group,) = of_run("r", rows, Taken({}, {})).groups
    assert [(member.process, member.delivered) for member in group.members] == [("p1", 10), ("p2", 7)]
    assert (group.flow.blocked_times, group.flow.blocked_ns) == (2, 1_500 + 4_000)
    assert group.per_second == 1e7
