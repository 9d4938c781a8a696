"""The longest time until a message is stable: the formulas of Berket98 §4 and docs/spec/stability.md 5.

Latencies include recovery from loss. Clocks are synchronous unless a skew is given. Any unit of time may be used, the
same one for all. A process that sends and receives has its own messages at once: its latency to itself is 0.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from antiphon.types import ProcessId


@dataclass(frozen=True, slots=True)
class Latencies:
    """Latencies of messages and acknowledgments, by (from, to)."""

    messages: Mapping[tuple[ProcessId, ProcessId], int]
    acks: Mapping[tuple[ProcessId, ProcessId], int]


def vector_bound(of: ProcessId, receivers: Iterable[ProcessId], latencies: Latencies, *, ack_every: int) -> int:
    """t_1: the longest round trip, plus the interval between acknowledgments."""
    return ack_every + max(latencies.messages[of, r] + latencies.acks[r, of] for r in receivers)


def timestamp_bound(
    of: ProcessId,
    senders: Iterable[ProcessId],
    receivers: Iterable[ProcessId],
    latencies: Latencies,
    *,
    send_every: int,
    ack_every: int,
) -> int:
    """t_2 as printed: the wait for the next message of any sender, its latency, and that of the acknowledgment."""
    to = [*receivers]
    longest = max(latencies.messages[s, r] + latencies.acks[r, of] for s in senders for r in to)
    return send_every + ack_every + longest


def tight_timestamp_bound(
    of: ProcessId,
    senders: Iterable[ProcessId],
    receivers: Iterable[ProcessId],
    latencies: Latencies,
    *,
    send_every: int,
    ack_every: int,
    behind: Mapping[ProcessId, int] | None = None,
) -> int:
    """t_2' (T11): no wait for the next message of `of`, because the message in question is one of `of` itself.

    `behind`: how far the clocks of other senders are behind that of `of`. Until their messages reach the same stamp, it
    takes longer by that time.
    """
    skew, others = behind or {}, [s for s in senders if s != of]

    def complete_at(r: ProcessId) -> int:
        """The latest time at which r has a message with such a stamp from every sender."""
        next_ones = (send_every + skew.get(s, 0) + latencies.messages[s, r] for s in others)
        return max(latencies.messages[of, r], *next_ones) if others else latencies.messages[of, r]

    return ack_every + max(complete_at(r) + latencies.acks[r, of] for r in receivers)
