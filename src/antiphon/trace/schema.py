"""The event schema: the contents of a trace, independent of its writer.

Simulator and runtime write this table, checkers and pipeline read it. Column names and kinds are a contract with
people outside the project: add freely, never rename or remove.
"""

from typing import Final

import pyarrow as pa

EVENTS: Final = pa.schema(
    [
        pa.field("run", pa.string(), nullable=False),
        pa.field("process", pa.string(), nullable=False),
        pa.field("incarnation", pa.int32(), nullable=False),
        pa.field("index", pa.int64(), nullable=False),
        pa.field("time", pa.int64(), nullable=False),
        pa.field("requested", pa.int64()),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("group", pa.string()),
        pa.field("sender", pa.string()),
        pa.field("number", pa.int64()),
        pa.field("sender_incarnation", pa.int32()),
        pa.field("service", pa.string()),
        pa.field("view", pa.string()),
        pa.field("members", pa.list_(pa.string())),
        pa.field("previous", pa.string()),
        pa.field("transitional", pa.list_(pa.string())),
        pa.field("peer", pa.string()),
        pa.field("orderer", pa.string()),
        pa.field("clock", pa.int64()),
        pa.field("payload_bytes", pa.int32()),
        pa.field("header_bytes", pa.int32()),
        pa.field("unstable", pa.int32()),
        pa.field("digest", pa.int64()),
        pa.field("upto", pa.map_(pa.string(), pa.int64())),
        pa.field("detail", pa.string()),
        # Keys of `detail` that are read often, once more with their types (`typed.py`).
        pa.field("frame_type", pa.string()),
        pa.field("frame_stream", pa.string()),
        pa.field("frame_serial", pa.int64()),
        pa.field("frame_copies", pa.int32()),
        pa.field("frame_messages", pa.int32()),
        pa.field("frame_senders", pa.list_(pa.string())),
        pa.field("stamp_bytes", pa.int32()),
        pa.field("flow_number", pa.int64()),
        pa.field("flow_complete", pa.int64()),
        pa.field("flow_stable", pa.int64()),
        pa.field("flow_super_stable", pa.int64()),
        pa.field("gauge_name", pa.string()),
        pa.field("gauge_value", pa.int64()),
    ]
)

KINDS: Final = frozenset(
    "start send transmit receive deliver view stable discard suspect refute confirm transitional primary gauge state "
    "block unblock join leave promote demote crash recover stop answer unanswered fault faults_end end".split()
)
