"""The tables for people: their columns, types and meanings, in one place.

Bronze is the trace itself (`antiphon.trace.schema`); silver is what its events mean; gold is the verdicts, parameters
and figures of runs (`parameters.py` has the columns of `runs`). A table is shaped by its schema where it is made, so no
other columns can result. Times and durations are in nanoseconds, and their names end in `_ns`.
"""

from typing import Final

import pyarrow as pa

from antiphon.pipeline.tables.columns import COUNT, RATIO, SMALL, TEXT, TEXTS, TRUTH, Table, column
from antiphon.pipeline.tables.parameters import RUNS
from antiphon.trace.schema import EVENTS

_EVENT_MEANINGS: Final = {
    "run": "the run",
    "process": "the process",
    "incarnation": "how often the process had restarted",
    "index": "counts the rows of this process incarnation",
    "time": "when, in nanoseconds; virtual in simulations",
    "requested": "when the application made the call, in nanoseconds",
    "kind": "what happened (docs/reference/trace.md)",
    "group": "the group",
    "sender": "the sender of the message",
    "number": "counts the messages of this sender incarnation in the group",
    "sender_incarnation": "how often the sender had restarted",
    "service": "the service of the delivery",
    "view": "the current view in the group",
    "members": "members of the view",
    "previous": "the view that it replaces",
    "transitional": "members that came along from the previous view",
    "peer": "the other process that this is about",
    "orderer": "the process that gave the stamp, if it is not the sender",
    "clock": "the protocol's stamp, such as a block number",
    "payload_bytes": "application bytes",
    "header_bytes": "protocol bytes of a frame",
    "unstable": "frames held as unstable afterwards",
    "digest": "hash of the payload, or of a state",
    "upto": "by sender, the highest number that is stable or discarded",
    "detail": "all other fields as JSON",
    "frame_type": "type of the frame, detail.type",
    "frame_stream": "name of the frame without its serial number",
    "frame_serial": "serial number in the name of the frame",
    "frame_copies": "receivers of the frame, detail.copies",
    "frame_messages": "messages that the frame ends, detail.count",
    "frame_senders": "senders that an acknowledgment counts, detail.senders",
    "stamp_bytes": "bytes of a frame that only order it, detail.stamp_bytes",
    "flow_number": "number in the flow-control header, from detail.flow",
    "flow_complete": "up to here its sender had everything, from detail.flow",
    "flow_stable": "up to here its sender knew stability, from detail.flow",
    "flow_super_stable": "up to here its sender knew that all know stability, from detail.flow",
    "gauge_name": "the bounded quantity, detail.name",
    "gauge_value": "its new maximum, detail.value",
}

_RUN: Final = column("run", TEXT, "the run", nullable=False)
_GROUP: Final = column("group", TEXT, "the group", nullable=False)
_MESSAGE: Final = (
    _RUN,
    _GROUP,
    column("sender", TEXT, "the sender of the message", nullable=False),
    column("sender_incarnation", SMALL, "how often the sender had restarted", nullable=False),
    column("number", COUNT, "counts the messages of this sender incarnation in the group", nullable=False),
)
_PROCESS: Final = (
    column("process", TEXT, "the process", nullable=False),
    column("incarnation", SMALL, "how often the process had restarted", nullable=False),
)

EVENT_ROWS: Final = Table(
    "bronze",
    "events",
    "event at a process",
    pa.schema([field.with_metadata({"comment": _EVENT_MEANINGS[field.name]}) for field in EVENTS]),
)

MESSAGES: Final = Table(
    "silver",
    "messages",
    "application message",
    pa.schema(
        [
            *_MESSAGE,
            column("requested_ns", COUNT, "when the application called"),
            column("sent_ns", COUNT, "when a frame took it and was transmitted", nullable=False),
            column("payload_bytes", SMALL, "its size"),
            column("service", TEXT, "the service of its delivery"),
            column("view", TEXT, "the sender's view when it was sent"),
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
            column("delivered_ns", COUNT, "when it was delivered to the application", nullable=False),
            column("requested_ns", COUNT, "when the sender's application called; null if the send is not in the trace"),
            column("received_ns", COUNT, "when the message first arrived here; for an own message, when it left"),
            column("latency_ns", COUNT, "from the request to the delivery"),
            column("overhead_ns", COUNT, "delay overhead: from `received_ns` to the delivery"),
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
            column("view", TEXT, "id of the view", nullable=False),
            column("previous", TEXT, "the view that it replaces at this process; null: none"),
            column("members", TEXTS, "its members", nullable=False),
            column("transitional", TEXTS, "the members that came along from the previous view"),
            column("installed_ns", COUNT, "when", nullable=False),
            column("in_force_ns", COUNT, "until the next view, the leave, or the end of the trace", nullable=False),
            column("reason", TEXT, "`start`, `formed`, or why members are out: `silent`, `left`, …; null: unknown"),
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
            column("requested_ns", COUNT, "when the application called"),
            column("stable_ns", COUNT, "when the sender first called it stable", nullable=False),
            column("latency_ns", COUNT, "from the request to `stable_ns`"),
            column(
                "to_nobody",
                TRUTH,
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
            column("began_ns", COUNT, "when it was blocked", nullable=False),
            column("ended_ns", COUNT, "when it was released; null: never"),
            column("blocked_ns", COUNT, "until it was released, or its trace ends", nullable=False),
            column("peer", TEXT, "the peer that it waited for, if known"),
        ]
    ),
)
VERDICTS: Final = Table(
    "gold",
    "verdicts",
    "run, promised property and group",
    pa.schema(
        [
            _RUN,
            column("property", TEXT, "the property (docs/spec/properties.md)", nullable=False),
            column("group", TEXT, "the group; null: the property covers all groups of the run"),
            column("outcome", TEXT, "`pass`, `violated`, `vacuous`, or `harness error`: not judged", nullable=False),
            column("opportunities", COUNT, "how often the premise of the property was true", nullable=False),
            column("violations", COUNT, "how often the property was violated then", nullable=False),
            column("witness", TEXT, "the first violation as a sentence"),
            column("witness_processes", TEXTS, "the processes that it names"),
            column("witness_messages", TEXTS, "the messages that it names, as group/sender:number"),
            column("witness_views", TEXTS, "the ids of the views that it names"),
            column("note", TEXT, "something to know although it is not a violation"),
        ]
    ),
)


def _spread(name: str, of: str) -> tuple[pa.Field, ...]:
    """The columns of a latency."""
    return (
        column(f"{name}_count", COUNT, f"number of samples of {name}: {of}"),
        column(f"{name}_mean_ns", RATIO, "the mean of these"),
        column(f"{name}_p50_ns", RATIO, "the median"),
        column(f"{name}_p90_ns", RATIO, "the 90th percentile"),
        column(f"{name}_p99_ns", RATIO, "the 99th percentile"),
        column(f"{name}_max_ns", COUNT, "the longest"),
    )


_BUFFERS: Final = (
    column("unstable_blocks_max", COUNT, "most blocks that a member held as unstable at once"),
    column("unstable_max", COUNT, "most frames that a member held as unstable at once"),
    column("buffers_max", COUNT, "most frames that a member held in its pool at once"),
    column("blocked_times", COUNT, "how often a sender was blocked", nullable=False),
    column("blocked_ns", COUNT, "for how long, added up", nullable=False),
)

GROUP_FIGURES: Final = Table(
    "gold",
    "group_figures",
    "run and group",
    pa.schema(
        [
            _RUN,
            _GROUP,
            column("sent", COUNT, "application messages sent", nullable=False),
            column("delivered", COUNT, "deliveries, added up over the members", nullable=False),
            column("per_second", RATIO, "deliveries per second at the slowest member, from the first request"),
            column(
                "first_sender_per_second",
                RATIO,
                "messages per second of the first sender, from its first request to its last delivery",
            ),
            *_spread("latency", "from the request to each delivery"),
            *_spread("stability", "from the request to when the sender called the message stable"),
            column("sent_to_nobody", COUNT, "messages left out of it: stable at once, without receivers"),
            *_spread("request", "from a request to the group to its answer"),
            column("delay_overhead_ns", RATIO, "receipt to delivery: mean at each member, then over the members"),
            column("frames", COUNT, "frames transmitted, each counted once", nullable=False),
            column("messages_per_data_frame", RATIO, "how well packing worked"),
            column("header_bytes_per_message", RATIO, "protocol bytes of all frames, per message sent"),
            column("header_ratio", RATIO, "share of protocol bytes in all bytes transmitted"),
            column("stamp_bytes_per_message", RATIO, "ordering information of all frames, per message sent"),
            column("stamp_bytes_per_data_frame", RATIO, "ordering information of frames that carry messages"),
            column("announcements_per_message", RATIO, "`alive` frames, per message sent"),
            column("acknowledgments_per_message", RATIO, "`acknowledgment` frames, per message sent"),
            column("repairs_per_message", RATIO, "`status`, `ack`, `request` and `repair` frames, per message sent"),
            column("copies_per_message", RATIO, "frames, counted once per receiver, per message sent"),
            column("wire_bytes_per_message", RATIO, "bytes of all those copies, per message sent"),
            column("nulls", COUNT, "null frames, each counted once", nullable=False),
            column("nulls_per_message", RATIO, "the same, per message sent"),
            column("nulls_per_inactive_member", RATIO, "mean over members that sent at most a reply"),
            *_BUFFERS,
        ]
    ),
)
MEMBER_FIGURES: Final = Table(
    "gold",
    "member_figures",
    "run, group and member",
    pa.schema(
        [
            _RUN,
            _GROUP,
            column("process", TEXT, "the member, all its incarnations together", nullable=False),
            column("sent", COUNT, "application messages that it sent", nullable=False),
            column("delivered", COUNT, "messages that it delivered", nullable=False),
            column("per_second", RATIO, "the same per second, from the first request in the group"),
            *_spread("latency", "from the request to each delivery at this member"),
            column("delay_overhead_ns", RATIO, "receipt to delivery: the mean"),
            column("nulls", COUNT, "null frames, each counted once", nullable=False),
            *_BUFFERS,
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
            column("view", TEXT, "id of the view", nullable=False),
            column("members", TEXTS, "its members", nullable=False),
            column(
                "lost", TEXTS, "members of the view before it, at a member of both, that are not in it", nullable=False
            ),
            column("gained", TEXTS, "members that were not in the view before it", nullable=False),
            column("reason", TEXT, "as in `views`"),
            column("installed_first_ns", COUNT, "when the first member installed it", nullable=False),
            column("installed_last_ns", COUNT, "when the last member that came along installed it", nullable=False),
            column("suspected_ns", COUNT, "when a member first suspected a lost one; null: never"),
            column("faulted_ns", COUNT, "the last fault before that, or before the installation; null: none"),
            column("faults", TEXTS, "its kinds: `crash`, `partition`, `cut`, `pause`, `stall`; null: none"),
            column("since_suspicion_ns", COUNT, "from `suspected_ns` to `installed_last_ns`"),
            column("since_fault_ns", COUNT, "from `faulted_ns` to `installed_last_ns`"),
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
            column("faulted_ns", COUNT, "when", nullable=False),
            column("faults", TEXTS, "the kinds: `crash`, `partition`, `cut`, `pause`, `stall`", nullable=False),
            column("survivors", COUNT, "processes that deliver before the next fault", nullable=False),
            column("first_delivery_ns", COUNT, "until the last of them delivers again", nullable=False),
            column(
                "stood_still_ns", COUNT, "the longest time that one of them then waited for a delivery", nullable=False
            ),
        ]
    ),
)

FIGURES: Final = pa.schema(
    [
        column("sent", COUNT, "application messages sent", nullable=False),
        column("delivered", COUNT, "deliveries, added up over the members", nullable=False),
        column("seconds", RATIO, "from the first row of a process to the last", nullable=False),
        column("latency_mean_ns", RATIO, "from the request to each delivery"),
        column("latency_p50_ns", RATIO, "the median of that"),
        column("latency_p90_ns", RATIO, "its 90th percentile"),
        column("latency_p99_ns", RATIO, "its 99th percentile"),
        column("latency_max_ns", COUNT, "the longest"),
        column("stability_mean_ns", RATIO, "from the request to when the sender called the message stable"),
        column("request_mean_ns", RATIO, "from a request to the group to its answer"),
        column("delay_overhead_ns", RATIO, "receipt to delivery: mean over messages at a member, then over members"),
        column("per_second", RATIO, "deliveries per second at the slowest member, groups added up"),
        column("first_sender_per_second", RATIO, "messages per second of the first sender, up to its last delivery"),
        column("unstable_blocks_max", COUNT, "most blocks that a member held as unstable at once"),
        column("unstable_max", COUNT, "most frames that a member held as unstable in a group at once"),
        column("buffers_max", COUNT, "most frames that a member held in its pool at once"),
        column("frames", COUNT, "frames transmitted, each counted once", nullable=False),
        column("nulls", COUNT, "null frames of all members", nullable=False),
        column("nulls_per_inactive_member", RATIO, "mean over members that sent at most a reply"),
        column("header_bytes_per_message", RATIO, "protocol bytes of all frames, per message sent"),
        column("stamp_bytes_per_message", RATIO, "ordering information of all frames, per message sent"),
        column("copies_per_message", RATIO, "frames, counted once per receiver, per message sent"),
        column("wire_bytes_per_message", RATIO, "bytes of all those copies, per message sent"),
        column("blocked_times", COUNT, "how often a sender was blocked", nullable=False),
        column("blocked_ns", COUNT, "for how long, added up over members and groups", nullable=False),
        column("view_changes", COUNT, "views that replaced another, each counted once", nullable=False),
    ]
)
"""The figures of one run, in one row: a sweep keeps them, and confidence intervals are computed from them."""

FIGURES_BY_RUN: Final = Table("gold", "figures", "run", pa.schema([_RUN, *FIGURES]))

BRONZE: Final = (EVENT_ROWS,)
SILVER: Final = (MESSAGES, DELIVERIES, VIEWS, STABILITY, BLOCKED)
GOLD: Final = (RUNS, VERDICTS, FIGURES_BY_RUN, GROUP_FIGURES, MEMBER_FIGURES, VIEW_CHANGES, RECOVERY)
TABLES: Final = (*BRONZE, *SILVER, *GOLD)
