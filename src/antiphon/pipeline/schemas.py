"""The tables that people read: their columns, types and meaning, in one place.

Bronze is the trace itself (`antiphon.trace.schema`). Every time is in nanoseconds.
"""

from typing import Final

import pyarrow as pa

_TEXT, _COUNT, _SMALL, _RATIO = pa.string(), pa.int64(), pa.int32(), pa.float64()


def _column(name: str, kind: pa.DataType, meaning: str, *, nullable: bool = True) -> pa.Field:
    return pa.field(name, kind, nullable=nullable, metadata={"comment": meaning})


def meaning(field: pa.Field) -> str:
    """What a column holds, in a sentence."""
    return str(field.metadata[b"comment"].decode())


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
        _column("stability_mean_ns", _RATIO, "from the request to the sender's own word that all have the message"),
        _column("request_mean_ns", _RATIO, "from a request to the group to its answers"),
        _column("delay_overhead_ns", _RATIO, "receipt to delivery: mean over messages at a member, then over members"),
        _column("per_second", _RATIO, "deliveries a second at the slowest member, groups added up"),
        _column("first_sender_per_second", _RATIO, "messages a second of the first sender, to its last delivery"),
        _column("unstable_blocks_max", _COUNT, "most blocks that a member held as unstable at once"),
        _column("unstable_max", _COUNT, "most frames that a member held as unstable in a group at once"),
        _column("buffers_max", _COUNT, "most frames that a member held in its pool at once"),
        _column("frames", _COUNT, "frames transmitted, each once whatever the fan-out", nullable=False),
        _column("nulls", _COUNT, "null frames of all members", nullable=False),
        _column("nulls_per_inactive_member", _RATIO, "mean over members that sent a reply at most"),
        _column("header_bytes_per_message", _RATIO, "protocol bytes of all frames in the messages sent"),
        _column("stamp_bytes_per_message", _RATIO, "ordering information of all frames in the messages sent"),
        _column("copies_per_message", _RATIO, "frames counted as often as they have receivers, in the messages sent"),
        _column("wire_bytes_per_message", _RATIO, "bytes of all those copies in the messages sent"),
        _column("blocked_times", _COUNT, "how often a sender had to wait", nullable=False),
        _column("blocked_ns", _COUNT, "for how long, added up over members and groups", nullable=False),
        _column("view_changes", _COUNT, "views that took the place of another, each once", nullable=False),
    ]
)
"""What one run comes to, in one row: what a sweep keeps of it, and what confidence intervals are of."""
