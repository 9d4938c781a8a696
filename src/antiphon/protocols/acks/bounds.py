"""How long a message may wait for its stability: the formulas of Berket98 §4 and stability.md 5, as pure functions.

Latencies include recovery from loss, clocks are synchronous unless a skew is given. Any unit of time, the same for all.
A process that sends and receives has its own messages at once: let the latency from it to itself be 0.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from antiphon.types import ProcessId


@dataclass(frozen=True, slots=True)
class Latencies:
    """How long messages and acknowledgments travel, by (from, to)."""

    messages: Mapping[tuple[ProcessId, ProcessId], int]
    acks: Mapping[tuple[ProcessId, ProcessId], int]


def vector_bound(of: ProcessId, receivers: Iterable[ProcessId], latencies: Latencies, *, ack_every: int) -> int:
    """t_1: the longest round trip, and a wait for the acknowledgment."""
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
    """t_2 as printed: a wait for any sender's next message, its way to any receiver, and the ack's way back."""
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
    """t_2' (T11): one does not wait for the next message of `of` itself, for its message is the one in question.

    `behind` says how far the clocks of other senders are behind that of `of`: so much longer it takes until one of
    their messages has a stamp as high.
    """
    skew, others = behind or {}, [s for s in senders if s != of]

    def complete_at(r: ProcessId) -> int:
        """When r at the latest has a message with such a stamp from everyone."""
        next_ones = (send_every + skew.get(s, 0) + latencies.messages[s, r] for s in others)
        return max(latencies.messages[of, r], *next_ones) if others else latencies.messages[of, r]

    return ack_every + max(complete_at(r) + latencies.acks[r, of] for r in receivers)
