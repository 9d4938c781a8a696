"""The settings of the acknowledgment protocols, and who takes part in a group: field, unit, default, one sentence."""

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
    """The two phases are each process's own; all else is the same for everybody in a group."""

    acks: Acks = "timestamp"
    """How receipt is acknowledged."""
    clock: Clock = "physical"
    """What stamps are taken from."""
    send_every_ns: int = 50_000_000
    """t_send: a sender is never silent for longer."""
    ack_every_ns: int = 50_000_000
    """t_ack: how often a receiver acknowledges."""
    first_send_ns: int = 0
    """How long after its start or its joining a process sends first, if its application says nothing before."""
    first_ack_ns: int = 0
    """How long after its start or its joining it acknowledges first."""
    stability: Stability = "own"
    """Whether a process finds the stability of its own messages only, or of everybody's: then the group is static,
    all of it sends and receives, and acknowledgments are not explicit (Berket98, theorem 2)."""
    tracing: bool = False
    """Whether effects that only a trace wants are built."""


@dataclass(frozen=True, slots=True)
class AcksGroupPlan:
    """Who may take part in a group, and how."""

    roles: Mapping[ProcessId, Role]
    """Everybody who may ever be in the group."""
    present: frozenset[ProcessId]
    """Who is connected from the start; the others join."""
    sources: Mapping[ProcessId, Collection[ProcessId] | None] = field(default_factory=dict)
    """Per receiver, whose messages it takes; absent or None: every sender's."""


def sends(role: Role) -> bool:
    """Whether a process in this role has messages of its own."""
    return role != "receiver"


def receives(role: Role) -> bool:
    """Whether messages are delivered to a process in this role."""
    return role != "sender"
