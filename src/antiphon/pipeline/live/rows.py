"""New events as numpy columns: every string a code, rows in the order of each process incarnation.

Most rows of a large trace are transmitted and received frames, which are only counted. So only these columns are read.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.errors import TraceError
from antiphon.trace.schema import EVENTS, KINDS
from antiphon.types import process_id

IntArray = npt.NDArray[np.int64]
Detail = TypeVar("Detail")

_COLUMNS: Final = (
    "run process incarnation index time requested kind group sender sender_incarnation number service view members "
    "previous detail"
).split()
SEEN: Final = pa.schema([EVENTS.field(name) for name in _COLUMNS])
"""The columns that are read; `detail` only of some kinds."""
WITH_DETAIL: Final = ("start", "view", "faults_end", "end")
"""The kinds of rows whose detail is read."""
_REQUIRED: Final = [field.name for field in SEEN if not field.nullable]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one or several process incarnations, with the meaning of their codes. A null has the code -1."""

    place: IntArray
    """The position of each row in the table."""
    log: IntArray
    index: IntArray
    time: IntArray
    kind: IntArray
    group: IntArray
    sender: IntArray
    number: IntArray
    service: IntArray
    names: "Names"

    def at(self, chosen: Any) -> "Rows":
        """The chosen rows."""
        return replace(self, **{name: getattr(self, name)[chosen] for name in _ARRAYS})

    def where(self, *kinds: str) -> IntArray:
        """The positions of the rows of these kinds."""
        chosen = [code for code, kind in enumerate(self.names.kinds) if kind in kinds]
        return np.flatnonzero(np.isin(self.kind, chosen))

    def cell(self, position: int, column: str) -> Any:
        """One value as a Python object."""
        return self.names.table.column(column)[int(self.place[position])].as_py()

    def detail(self, position: int, form: type[Detail]) -> Detail:
        """The parsed `detail` of a row; unknown keys are ignored."""
        try:
            return msgspec.json.decode(self.cell(position, "detail") or "{}", type=form)
        except msgspec.MsgspecError as error:
            run, who = self.names.logs[self.log[position]]
            kind = self.names.kinds[self.kind[position]]
            place = f"row {self.index[position]} ({kind}) of {who} in {run}"
            raise TraceError(f"{place} has an invalid detail: {error}") from error


_ARRAYS: Final = [field.name for field in fields(Rows) if field.name != "names"]


@dataclass(frozen=True, slots=True)
class Names:
    """The names behind the codes, and the table itself."""

    table: pa.Table
    logs: list[tuple[str, str]]
    """Run, and process with incarnation."""
    kinds: list[str]
    groups: list[str]
    senders: list[str]
    services: list[str]


def read(table: pa.Table) -> Rows:
    """The rows of a table of the columns `SEEN`, ordered by process incarnation and index."""
    for name in _REQUIRED:
        if table.column(name).null_count:
            raise TraceError(f"there are rows without a value in column `{name}`")
    runs, run = codes(table.column("run"))
    processes, process = _identities(table.column("process"), table.column("incarnation"))
    logs, log = np.unique(run * max(len(processes), 1) + process, return_inverse=True)
    kinds, kind = codes(table.column("kind"))
    for name in kinds:
        if name not in KINDS:
            raise TraceError(f"there are events of unknown kind {name}")
    groups, group = codes(table.column("group"))
    senders, sender = _identities(table.column("sender"), table.column("sender_incarnation"))
    services, service = codes(table.column("service"))
    named = [(runs[code // len(processes)], processes[code % len(processes)]) for code in logs.tolist()]
    index = _integers(table.column("index"))
    rows = Rows(
        place=np.arange(table.num_rows),
        log=log.astype(np.int64),
        index=index,
        time=_integers(table.column("time")),
        kind=kind,
        group=group,
        sender=sender,
        number=_integers(table.column("number")),
        service=service,
        names=Names(table, named, kinds, groups, senders, services),
    )
    return rows.at(np.lexsort((index, log)))


def by(values: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Each value that occurs, except the code of nulls, with its positions."""
    order = np.argsort(values, kind="stable")
    each, begin = np.unique(values[order], return_index=True)
    for value, positions in zip(each.tolist(), np.split(order, begin[1:]), strict=False):
        if value >= 0:
            yield value, positions


def codes(column: pa.ChunkedArray) -> tuple[list[str], IntArray]:
    """The distinct strings of a column, and for each row the position of its string; -1 for a null."""
    encoded = pc.dictionary_encode(column).combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # of an empty column
        return [], np.zeros(0, np.int64)
    places = pc.fill_null(encoded.indices.cast(pa.int64()), -1)
    return encoded.dictionary.to_pylist(), places.to_numpy(zero_copy_only=False)


def _identities(names: pa.ChunkedArray, incarnations: pa.ChunkedArray) -> tuple[list[str], IntArray]:
    """Process incarnations, as they are named elsewhere in the trace."""
    known, name = codes(names)
    incarnation = _integers(incarnations)
    width = int(incarnation.max(initial=0)) + 1
    pairs, code = np.unique(np.where(name < 0, -1, name * width + incarnation), return_inverse=True)
    missing = int(len(pairs) > 0 and pairs[0] < 0)
    identities = [str(process_id(known[pair // width], pair % width)) for pair in pairs[missing:].tolist()]
    return identities, code.astype(np.int64) - missing


def _integers(column: pa.ChunkedArray) -> IntArray:
    filled = pc.fill_null(column.cast(pa.int64()), -1)
    return np.asarray(filled.to_numpy(), dtype=np.int64)
