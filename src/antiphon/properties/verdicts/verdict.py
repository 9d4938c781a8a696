"""What a checker reports: an outcome with its opportunities, and for a violation a minimal witness and a sentence.

An opportunity is an occasion on which the premise of the property was true. Zero violations mean something only if
there were opportunities; without any, the outcome is `vacuous`.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import pyarrow as pa

Outcome = Literal["pass", "violated", "vacuous", "not promised", "harness error"]


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation, described so that a reader can find it in the trace."""

    sentence: str
    """Names processes, messages and indexes, and says why they contradict the property."""
    processes: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    """Message names, `group/sender:number` (`sender#incarnation` for a restarted sender)."""
    indexes: tuple[int, ...] = ()
    """Positions in the local histories of `processes`, in the order of the sentence."""
    views: tuple[str, ...] = ()
    seen: tuple[int, str, int] | None = None
    """Time, process and index of the event where a reader would first see it; the earliest violation is reported."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one property for one run, and for one group if the property is judged by group."""

    run: str
    property: str
    group: str | None
    """None if the property covers all groups of the run."""
    outcome: Outcome
    opportunities: int
    violations: int
    """The number of violations; `example` is the first of them."""
    example: Violation | None = None
    note: str | None = None
    """Something a reader should know although it is not a violation."""


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
    """Convert verdicts to Arrow rows, so that they can be sent between processes."""
    rows = list(verdicts)
    columns: dict[str, list[Any]] = {name: [getattr(row, name) for row in rows] for name in VERDICTS.names}
    columns["example"] = [each and json.dumps(asdict(each)) for each in columns["example"]]
    return pa.Table.from_pydict(columns, schema=VERDICTS)


def from_table(table: pa.Table) -> list[Verdict]:
    """The inverse of `to_table`."""
    return [Verdict(**{**row, "example": _violation(row["example"])}) for row in table.to_pylist()]


def _violation(text: str | None) -> Violation | None:
    if text is None:
        return None
    fields: dict[str, Any] = json.loads(text)
    sentence = fields.pop("sentence")
    return Violation(sentence, **{key: tuple(value) for key, value in fields.items() if value is not None})
