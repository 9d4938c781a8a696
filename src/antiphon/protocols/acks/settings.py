"""The settings of the acknowledgment protocols, and the plan of a group."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from antiphon.types import ProcessId

Acks = Literal["timestamp", "vector", "explicit", "transitive"]
Clock = Literal["physical", "logical"]
Stability = Literal["own", "all"]
Role = Literal["both", "sender", "receiver"]


@dataclass(frozen=True, slots=True)
class AcksSettings:
    """Equal at all processes of a group, except for the two `first_` settings."""

    acks: Acks = "timestamp"
    """The kind of acknowledgments."""
    clock: Clock = "physical"
    """The clock that stamps come from."""
    send_every_ns: int = 50_000_000
    """t_send: the longest silence of a sender."""
    ack_every_ns: int = 50_000_000
    """t_ack: the interval between the acknowledgments of a receiver."""
    first_send_ns: int = 0
    """Time from joining to the first message or null, unless the application sends earlier."""
    first_ack_ns: int = 0
    """Time from joining to the first acknowledgment."""
    stability: Stability = "own"
    """`own`: a process finds out which of its own messages are stable. `all`: which messages of all senders are; then
    the group is static, all members send and receive, and acknowledgments are not explicit (Berket98, theorem 2)."""
    tracing: bool = False
    """Whether effects that only a trace needs are built."""


@dataclass(frozen=True, slots=True)
class AcksGroupPlan:
    """The processes that may join a group, and their roles."""

    roles: Mapping[ProcessId, Role]
    """Every process that may ever be in the group."""
    present: frozenset[ProcessId]
    """The processes connected from the start; the others join later."""
    sources: Mapping[ProcessId, Collection[ProcessId] | None] = field(default_factory=dict)
    """For each receiver, the senders whose messages it receives; absent or None: all senders."""


def sends(role: Role) -> bool:
    return role != "receiver"


def receives(role: Role) -> bool:
    return role != "sender"
