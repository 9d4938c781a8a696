"""The columns of a trace that figures are made of, as numpy arrays: names as codes, a null as -1 or as zero."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.errors import TraceError
from antiphon.pipeline.figures.arrays import UNKNOWN, IntArray, dense
from antiphon.trace.typed import TYPED, untyped_rows, with_typed
from antiphon.types import ProcessId, process_id

MEASURED: Final = (
    "run process incarnation index time requested kind group sender number sender_incarnation view previous "
    "payload_bytes header_bytes unstable upto detail "
    "frame_type frame_copies frame_messages stamp_bytes gauge_name gauge_value"
).split()
"""The columns that figures are made of."""


class Names:
    """Codes of texts, the same for all parts of a run. Code 0 is a null."""

    def __init__(self) -> None:
        self.texts: list[str | None] = [None]
        self._code: dict[str | None, int] = {None: 0}

    def codes(self, column: Any) -> IntArray:
        """The codes of a column of texts; new texts get new codes."""
        coded = column.combine_chunks()
        coded = coded if pa.types.is_dictionary(coded.type) else coded.dictionary_encode()
        known = [self.code(text) for text in coded.dictionary.to_pylist()]
        places: IntArray = np.asarray(pc.fill_null(coded.indices, len(known)).to_numpy(zero_copy_only=False), np.int64)
        codes: IntArray = np.array([*known, 0], np.int64)[places]
        return codes

    def code(self, text: str | None) -> int:
        """The code of one text."""
        code = self._code.setdefault(text, len(self.texts))
        if code == len(self.texts):
            self.texts.append(text)
        return code


@dataclass(frozen=True, slots=True)
class Codes:
    """The names of one run."""

    processes: Names
    """Names of processes, without incarnation."""
    groups: Names
    views: Names
    kinds: Names

    @classmethod
    def empty(cls) -> "Codes":
        """No name yet."""
        return cls(Names(), Names(), Names(), Names())


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of one run, among them all rows of each process incarnation that has any."""

    codes: Codes
    kind: IntArray
    process: IntArray
    incarnation: IntArray
    owner: IntArray
    """The process incarnation that wrote the row, as a position in `owners`."""
    owners: tuple[tuple[int, int], ...]
    """Process and incarnation."""
    index: IntArray
    time: IntArray
    requested: IntArray
    group: IntArray
    sender: IntArray
    sender_incarnation: IntArray
    number: IntArray
    view: IntArray
    previous: IntArray
    payload_bytes: IntArray
    header_bytes: IntArray
    unstable: IntArray
    upto: Any
    """The Arrow column."""
    told: pa.Table
    """The column `detail`, and the typed columns of frames and gauges."""

    def of_kind(self, *kinds: str) -> IntArray:
        """The positions of the rows of these kinds."""
        wanted = [self.codes.kinds.code(kind) for kind in kinds]
        return np.flatnonzero(self.kind == wanted[0] if len(wanted) == 1 else np.isin(self.kind, wanted))

    def name(self, owner: int) -> ProcessId:
        """The name of a process incarnation."""
        process, incarnation = self.owners[owner]
        return process_id(self.codes.processes.texts[process] or "", incarnation)

    def numbers(self, name: str, rows: IntArray) -> IntArray:
        """A typed column of numbers at these rows."""
        return _integers(self.told[name].take(pa.array(rows)))

    def texts(self, name: str, rows: IntArray) -> tuple[IntArray, list[str | None]]:
        """A typed column of texts at these rows: for each a code, and the texts by code; the first is None."""
        names = Names()
        return names.codes(self.told[name].take(pa.array(rows))), names.texts

    def details(self, rows: IntArray) -> list[dict[str, Any]]:
        """The parsed details of these rows; what is no JSON object counts as empty."""
        return parsed(self.told["detail"].take(pa.array(rows)).to_pylist())


def read(table: pa.Table, codes: Codes) -> Rows:
    """The rows of a table, which are of one run."""
    table = with_typed(table)
    # A frame or gauge without a type is rare. Its detail may be damaged, which is told here.
    parsed(table["detail"].take(pa.array(untyped_rows(table))).to_pylist())
    process, incarnation = codes.processes.codes(table["process"]), _integers(table["incarnation"])
    sender_incarnation = _integers(table["sender_incarnation"], 0)
    if min(incarnation.min(initial=0), sender_incarnation.min(initial=0)) < 0:
        raise TraceError("the event table has a negative incarnation")
    owner, owners = dense(process << 32 | incarnation)
    return Rows(
        codes=codes,
        kind=codes.kinds.codes(table["kind"]),
        process=process,
        incarnation=incarnation,
        owner=owner,
        owners=tuple((each >> 32, each & 0xFFFFFFFF) for each in owners.tolist()),
        index=_integers(table["index"]),
        time=_integers(table["time"]),
        requested=_integers(table["requested"]),
        group=codes.groups.codes(table["group"]),
        sender=codes.processes.codes(table["sender"]),
        sender_incarnation=sender_incarnation,
        number=_integers(table["number"]),
        view=codes.views.codes(table["view"]),
        previous=codes.views.codes(table["previous"]),
        payload_bytes=_integers(table["payload_bytes"], 0),
        header_bytes=_integers(table["header_bytes"], 0),
        unstable=_integers(table["unstable"]),
        upto=table["upto"],
        told=table.select(["detail", *(name for name in MEASURED if name in TYPED)]),
    )


def parsed(texts: Iterable[str | None]) -> list[dict[str, Any]]:
    """Details as objects; TraceError if one is not JSON."""
    decode = msgspec.json.Decoder().decode
    try:
        found = [None if text is None else decode(text) for text in texts]
    except msgspec.DecodeError as error:
        raise TraceError(f"a detail is not JSON: {error}") from error
    return [each if isinstance(each, dict) else {} for each in found]


def found_at(detail: Any, *path: str) -> Any:
    """The value at this path of a detail; None if there is none."""
    for key in path:
        detail = detail.get(key) if isinstance(detail, dict) else None
    return detail


def _integers(column: Any, null: int = UNKNOWN) -> IntArray:
    filled = pc.fill_null(column.cast(pa.int64()), null) if column.null_count else column
    return np.asarray(filled.to_numpy(), np.int64)
