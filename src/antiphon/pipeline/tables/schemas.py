"""The tables for people: their columns, types and meanings, in one place.

Bronze is the trace itself (`antiphon.trace.schema`); silver is what its events mean; gold is the figures of a run. A
table is shaped by its schema where it is made, so no other columns can result. Times are in nanoseconds.
"""

from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa

_TEXT, _TEXTS, _TRUTH = pa.string(), pa.list_(pa.string()), pa.bool_()
_SMALL, _COUNT, _RATIO = pa.int32(), pa.int64(), pa.float64()


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its layer, what one row stands for, and its columns."""

    layer: Literal["silver", "gold"]
    name: str
    row: str
    """What each row stands for."""
    columns: pa.Schema


def _column(name: str, kind: pa.DataType, meaning: str, *, nullable: bool = True) -> pa.Field:
    return pa.field(name, kind, nullable=nullable, metadata={"comment": meaning})


def meaning(field: pa.Field) -> str:
    """The meaning of a column, in a few words."""
    return str(field.metadata[b"comment"].decode())


_RUN: Final = _column("run", _TEXT, "the run", nullable=False)
_GROUP: Final = _column("group", _TEXT, "the group", nullable=False)
_MESSAGE: Final = (
    _RUN,
    _GROUP,
    _column("sender", _TEXT, "the sender of the message", nullable=False),
    _column("sender_incarnation", _SMALL, "how often the sender had restarted", nullable=False),
    _column("number", _COUNT, "counts the messages of this sender incarnation in the group", nullable=False),
)
_PROCESS: Final = (
    _column("process", _TEXT, "the process", nullable=False),
    _column("incarnation", _SMALL, "how often the process had restarted", nullable=False),
)
_MEMBER: Final = (_RUN, _GROUP, _column("process", _TEXT, "the member; null: the whole group"))

MESSAGES: Final = Table(
    "silver",
    "messages",
    "application message",
    pa.schema(
        [
            *_MESSAGE,
            _column("requested", _COUNT, "when the application called"),
            _column("sent", _COUNT, "when a frame took it and was transmitted", nullable=False),
            _column("payload_bytes", _SMALL, "its size"),
            _column("service", _TEXT, "the service of its delivery"),
            _column("view", _TEXT, "the sender's view when it was sent"),
        ]
    ),
)
DELIVERIES: Final = Table(
    "silver",
    "deliveries",
    "delivery of a message to an application",
    pa.schema(
        [
            *_MESSAGE,
            *_PROCESS,
            _column("time", _COUNT, "when it was delivered to the application", nullable=False),
            _column("requested", _COUNT, "when the sender's application called; null if the send is not in the trace"),
            _column("received", _COUNT, "when the message first arrived here; for an own message, when it left"),
            _column("latency_ns", _COUNT, "from the request to the delivery"),
            _column("overhead_ns", _COUNT, "delay overhead: from `received` to the delivery"),
        ]
    ),
)
VIEWS: Final = Table(
    "silver",
    "views",
    "installation of a view by a process",
    pa.schema(
        [
            _RUN,
            _GROUP,
            *_PROCESS,
            _column("view", _TEXT, "id of the view", nullable=False),
            _column("previous", _TEXT, "the view that it replaces at this process; null: none"),
            _column("members", _TEXTS, "its members", nullable=False),
            _column("transitional", _TEXTS, "the members that came along from the previous view"),
            _column("installed", _COUNT, "when", nullable=False),
            _column("in_force_ns", _COUNT, "until the next view, the leave, or the end of the trace", nullable=False),
            _column("reason", _TEXT, "`start`, `formed`, or why members are out: `silent`, `left`, …; null: unknown"),
        ]
    ),
)
STABILITY: Final = Table(
    "silver",
    "stability",
    "message that its own sender called stable",
    pa.schema(
        [
            *_MESSAGE,
            _column("requested", _COUNT, "when the application called"),
            _column("time", _COUNT, "when the sender first called it stable", nullable=False),
            _column("latency_ns", _COUNT, "from the request to `time`"),
            _column(
                "to_nobody",
                _TRUTH,
                "true if it was sent in a view without receivers, and stable at once",
                nullable=False,
            ),
        ]
    ),
)
BLOCKED: Final = Table(
    "silver",
    "blocked",
    "time that a sender was blocked",
    pa.schema(
        [
            _RUN,
            _GROUP,
            *_PROCESS,
            _column("began", _COUNT, "when it was blocked", nullable=False),
            _column("ended", _COUNT, "when it was released; null: never"),
            _column("blocked_ns", _COUNT, "until it was released, or its trace ends", nullable=False),
            _column("peer", _TEXT, "the peer that it waited for, if known"),
        ]
    ),
)
LATENCY: Final = Table(
    "gold",
    "latency",
    "run, group, member and measure",
    pa.schema(
        [
            *_MEMBER,
            _column("measure", _TEXT, "`delivery`, `stability` or `request`", nullable=False),
            _column("count", _COUNT, "number of samples", nullable=False),
            _column("mean_ns", _RATIO, "the mean", nullable=False),
            _column("p50_ns", _RATIO, "the median", nullable=False),
            _column("p90_ns", _RATIO, "the 90th percentile", nullable=False),
            _column("p99_ns", _RATIO, "the 99th percentile", nullable=False),
            _column("max_ns", _COUNT, "the longest", nullable=False),
            _column(
                "overhead_mean_ns", _RATIO, "for deliveries: the mean from the receipt; for a group, over its members"
            ),
        ]
    ),
)
THROUGHPUT: Final = Table(
    "gold",
    "throughput",
    "run, group and member",
    pa.schema(
        [
            *_MEMBER,
            _column("sent", _COUNT, "messages it sent", nullable=False),
            _column("delivered", _COUNT, "messages it delivered", nullable=False),
            _column(
                "per_second", _RATIO, "deliveries per second, from the first request; for a group, its slowest member"
            ),
            _column(
                "first_sender_per_second",
                _RATIO,
                "for a group: messages per second of the first sender, from its first request to its last delivery",
            ),
        ]
    ),
)
OVERHEAD: Final = Table(
    "gold",
    "overhead",
    "run and group",
    pa.schema(
        [
            _RUN,
            _GROUP,
            _column("sent", _COUNT, "application messages", nullable=False),
            _column("frames", _COUNT, "frames transmitted, each counted once", nullable=False),
            _column("messages_per_data_frame", _RATIO, "how well packing worked"),
            _column("header_bytes_per_message", _RATIO, "protocol bytes of all frames"),
            _column("header_ratio", _RATIO, "share of protocol bytes in all bytes transmitted"),
            _column("stamp_bytes_per_message", _RATIO, "ordering information of all frames"),
            _column("stamp_bytes_per_data_frame", _RATIO, "ordering information of frames that carry messages"),
            _column("announcements_per_message", _RATIO, "`alive` frames"),
            _column("acknowledgments_per_message", _RATIO, "`acknowledgment` frames"),
            _column("repairs_per_message", _RATIO, "`status`, `ack`, `request` and `repair` frames"),
            _column("copies_per_message", _RATIO, "frames, counted once per receiver"),
            _column("wire_bytes_per_message", _RATIO, "bytes of all those copies"),
            _column("delay_overhead_ns", _RATIO, "receipt to delivery: mean at each member, then over the members"),
        ]
    ),
)
BUFFERS: Final = Table(
    "gold",
    "buffers",
    "run, group and member",
    pa.schema(
        [
            *_MEMBER,
            _column("unstable_blocks_max", _COUNT, "most blocks held as unstable at once"),
            _column("unstable_max", _COUNT, "most frames held as unstable at once"),
            _column("buffers_max", _COUNT, "most frames held in the pool at once"),
            _column("blocked_times", _COUNT, "how often it was blocked", nullable=False),
            _column("blocked_ns", _COUNT, "for how long", nullable=False),
        ]
    ),
)
NULLS: Final = Table(
    "gold",
    "nulls",
    "run, group and member",
    pa.schema(
        [
            *_MEMBER,
            _column("sent", _COUNT, "application messages", nullable=False),
            _column("nulls", _COUNT, "null frames, each counted once", nullable=False),
            _column("nulls_per_message", _RATIO, "for a group: null frames per message sent"),
            _column("nulls_per_inactive_member", _RATIO, "for a group: mean over members that sent at most a reply"),
        ]
    ),
)
VIEW_CHANGES: Final = Table(
    "gold",
    "view_changes",
    "run, group and view that replaced another",
    pa.schema(
        [
            _RUN,
            _GROUP,
            _column("view", _TEXT, "id of the view", nullable=False),
            _column("members", _TEXTS, "its members", nullable=False),
            _column(
                "lost", _TEXTS, "members of the view before it, at a member of both, that are not in it", nullable=False
            ),
            _column("gained", _TEXTS, "members that were not in the view before it", nullable=False),
            _column("reason", _TEXT, "as in `views`"),
            _column("installed_first", _COUNT, "when the first member installed it", nullable=False),
            _column("installed_last", _COUNT, "when the last member that came along installed it", nullable=False),
            _column("suspected", _COUNT, "when a member first suspected a lost one; null: never"),
            _column("faulted", _COUNT, "the last fault before that, or before the installation; null: none"),
            _column("since_suspicion_ns", _COUNT, "from `suspected` to `installed_last`"),
            _column("since_fault_ns", _COUNT, "from `faulted` to `installed_last`"),
        ]
    ),
)
RECOVERY: Final = Table(
    "gold",
    "recovery",
    "run, group and time of a fault",
    pa.schema(
        [
            _RUN,
            _GROUP,
            _column("faulted", _COUNT, "when", nullable=False),
            _column("faults", _TEXTS, "the kinds: `crash`, `partition`, `cut`, `pause`, `stall`", nullable=False),
            _column("survivors", _COUNT, "processes that deliver before the next fault", nullable=False),
            _column("first_delivery_ns", _COUNT, "until the last of them delivers again", nullable=False),
            _column(
                "stood_still_ns", _COUNT, "the longest time that one of them then waited for a delivery", nullable=False
            ),
        ]
    ),
)

FIGURES: Final = pa.schema(
    [
        _column("sent", _COUNT, "application messages sent", nullable=False),
        _column("delivered", _COUNT, "deliveries, added up over the members", nullable=False),
        _column("seconds", _RATIO, "from the first row of a process to the last", nullable=False),
        _column("latency_mean_ns", _RATIO, "from the request to each delivery"),
        _column("latency_p50_ns", _RATIO, "the median of that"),
        _column("latency_p90_ns", _RATIO, "its 90th percentile"),
        _column("latency_p99_ns", _RATIO, "its 99th percentile"),
        _column("latency_max_ns", _COUNT, "the longest"),
        _column("stability_mean_ns", _RATIO, "from the request to when the sender called the message stable"),
        _column("request_mean_ns", _RATIO, "from a request to the group to its answer"),
        _column("delay_overhead_ns", _RATIO, "receipt to delivery: mean over messages at a member, then over members"),
        _column("per_second", _RATIO, "deliveries per second at the slowest member, groups added up"),
        _column("first_sender_per_second", _RATIO, "messages per second of the first sender, up to its last delivery"),
        _column("unstable_blocks_max", _COUNT, "most blocks that a member held as unstable at once"),
        _column("unstable_max", _COUNT, "most frames that a member held as unstable in a group at once"),
        _column("buffers_max", _COUNT, "most frames that a member held in its pool at once"),
        _column("frames", _COUNT, "frames transmitted, each counted once", nullable=False),
        _column("nulls", _COUNT, "null frames of all members", nullable=False),
        _column("nulls_per_inactive_member", _RATIO, "mean over members that sent at most a reply"),
        _column("header_bytes_per_message", _RATIO, "protocol bytes of all frames, per message sent"),
        _column("stamp_bytes_per_message", _RATIO, "ordering information of all frames, per message sent"),
        _column("copies_per_message", _RATIO, "frames, counted once per receiver, per message sent"),
        _column("wire_bytes_per_message", _RATIO, "bytes of all those copies, per message sent"),
        _column("blocked_times", _COUNT, "how often a sender was blocked", nullable=False),
        _column("blocked_ns", _COUNT, "for how long, added up over members and groups", nullable=False),
        _column("view_changes", _COUNT, "views that replaced another, each counted once", nullable=False),
    ]
)
"""The figures of one run, in one row: a sweep keeps them, and confidence intervals are computed from them."""

FIGURES_BY_RUN: Final = Table("gold", "figures", "run", pa.schema([_RUN, *FIGURES]))

SILVER: Final = (MESSAGES, DELIVERIES, VIEWS, STABILITY, BLOCKED)
GOLD: Final = (LATENCY, THROUGHPUT, OVERHEAD, BUFFERS, NULLS, VIEW_CHANGES, RECOVERY, FIGURES_BY_RUN)
