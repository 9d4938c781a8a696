"""What a checker says: an outcome with its opportunities, and for a violation a minimal witness and a sentence.

A `0` counts only with its opportunities, how often the premise was true; without any the outcome is `vacuous`.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import pyarrow as pa

Outcome = Literal["pass", "violated", "vacuous", "not promised", "harness error"]


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken promise, told so that a person can look it up in the trace."""

    sentence: str
    """Names processes, messages and positions, and says why they cannot all be right."""
    processes: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    """Message names, `group/sender:number` (`sender#incarnation` for a restarted sender)."""
    indexes: tuple[int, ...] = ()
    """Positions in the local histories of `processes`, in the order in which the sentence tells them."""
    views: tuple[str, ...] = ()
    seen: tuple[int, str, int] | None = None
    """Time, process and index of the event where a person reading along would first see it; the first is told."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one property for one run, and for one group where the property speaks of one."""

    run: str
    property: str
    group: str | None
    """None where the property ranges over all groups of the run."""
    outcome: Outcome
    opportunities: int
    violations: int
    """How many; `example` tells the first of them."""
    example: Violation | None = None
    note: str | None = None
    """Something a reader should know although no promise is broken."""


VERDICTS: Final = pa.schema(
    [
        pa.field("run", pa.string(), nullable=False),
        pa.field("property", pa.string(), nullable=False),
        pa.field("group", pa.string()),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("opportunities", pa.int64(), nullable=False),
        pa.field("violations", pa.int64(), nullable=False),
        pa.field("example", pa.string()),  # JSON of the Violation
        pa.field("note", pa.string()),
    ]
)


def to_table(verdicts: Iterable[Verdict]) -> pa.Table:
    """Verdicts as Arrow rows, so that they can cross a process or a cluster."""
    rows = [
        {**asdict(verdict), "example": json.dumps(asdict(verdict.example)) if verdict.example else None}
        for verdict in verdicts
    ]
    return pa.Table.from_pylist(rows, schema=VERDICTS)


def from_table(table: pa.Table) -> list[Verdict]:
    """The inverse of `to_table`."""
    return [Verdict(**{**row, "example": _violation(row["example"])}) for row in table.to_pylist()]


def _violation(text: str | None) -> Violation | None:
    if text is None:
        return None
    fields: dict[str, Any] = json.loads(text)
    sentence = fields.pop("sentence")
    return Violation(sentence, **{key: tuple(value) for key, value in fields.items() if value is not None})
