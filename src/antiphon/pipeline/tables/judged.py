"""The table of verdicts, from verdicts as the checkers give them; campaigns keep it, other directories are judged."""

import json
from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from antiphon.pipeline.tables.schemas import VERDICTS
from antiphon.properties.verdicts.verdict import Verdict, to_table

_WITNESS: Final = {
    "witness": "sentence",
    "witness_processes": "processes",
    "witness_messages": "messages",
    "witness_views": "views",
}
"""The columns of a witness, by the fields of a `Violation`."""


def verdict_rows(verdicts: pa.Table) -> pa.Table:
    """The table of verdicts, from rows as tasks send them; without properties that are not promised in a run."""
    kept = verdicts.filter(pc.not_equal(verdicts["outcome"], "not promised"))
    examples = [json.loads(text) if text else {} for text in kept["example"].to_pylist()]
    columns = [
        pa.array([example.get(_WITNESS[field.name]) for example in examples], field.type)
        if field.name in _WITNESS
        else kept[field.name]
        for field in VERDICTS.columns
    ]
    return pa.table(columns, schema=VERDICTS.columns)


def rows_of_a_run(verdicts: Iterable[Verdict]) -> list[dict[str, Any]]:
    """The verdicts of one run as rows without `run`, for those who keep them with the run."""
    rows: list[dict[str, Any]] = verdict_rows(to_table(verdicts)).drop_columns("run").to_pylist()
    return rows
