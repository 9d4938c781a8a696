"""Which messages of an old epoch its survivors deliver before they install the next view.

From docs/spec/intergroup.md 7.6; errata M14, M15, J1, J2, J6. Everything here is a function of the claims, so that
all survivors that have the same claims get the same answer.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from antiphon.types import ProcessId

NO_END: Final = (1 << 62) - 1
"""The horizon of a process that left in order: it will never send again in this stint (J2)."""


class Claim(NamedTuple):
    """What one process has of another: compared by stint, then by number, then by horizon."""

    stint: int
    """The first number of the process's present membership in this epoch."""
    seq: int
    """The last number up to which nothing is missing."""
    horizon: int


Claims = tuple[tuple[ProcessId, Claim], ...]


class Survivor(NamedTuple):
    """What a proposed member of one old epoch reports about itself."""

    process: ProcessId
    last: int
    """The number of its last message."""
    stint: int
    gate: int
    claims: Claims
    receiver_claims: Claims
    """What receivers of the epoch have told it that they hold."""
    receiver_gate: int


class Ends(NamedTuple):
    """How far each sender of an old epoch counts."""

    survivors: Mapping[ProcessId, int]
    """For each survivor, the number of its last message: all of them count."""
    lost: Mapping[ProcessId, Claim]
    """For each other sender, the greatest claim: messages up to its number count if they are stamped early enough."""
    stints: Mapping[ProcessId, int]
    last_stamp: int
    """T: of senders that are lost, only messages with stamps up to here count (M15)."""
    gate: int
    """G: a change of the view takes effect before the next view iff it is stamped up to here (J1)."""


def ends(survivors: Iterable[Survivor]) -> Ends:
    """The ends of one old epoch."""
    present = {survivor.process: survivor for survivor in survivors}
    greatest: dict[ProcessId, Claim] = {}
    for survivor in present.values():
        for process, claim in (*survivor.claims, *survivor.receiver_claims):
            greatest[process] = max(greatest.get(process, claim), claim)
    lost = {process: claim for process, claim in sorted(greatest.items()) if process not in present}
    stints = {process: claim.stint for process, claim in greatest.items()}
    stints |= {process: survivor.stint for process, survivor in present.items()}
    return Ends(
        survivors={process: present[process].last for process in sorted(present)},
        lost=lost,
        stints=stints,
        last_stamp=min((claim.horizon for claim in lost.values()), default=NO_END),
        gate=max(max(survivor.gate, survivor.receiver_gate) for survivor in present.values()),
    )
