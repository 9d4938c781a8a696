"""The tallies and latencies of one run, from its Arrow table without Spark: a sweep measures where it simulates.

They equal those of `statistics.py`, which computes them for many runs at once; a test keeps the two equal.
"""

import json
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.errors import TraceError
from antiphon.pipeline.figures.summing import SPEAKS_ALWAYS, USEFUL, Measure, Row
from antiphon.types import WORLD, process_id

_MESSAGE: Final = ("group", "sender", "sender_incarnation", "number")
_WHO: Final = ("group", "process", "incarnation")
_SCOPES: Final = (("group", "process"), ("group",), ())
"""Latencies are taken per member, per group, and over the whole run."""
_TEXTS: Final = {"start": (SPEAKS_ALWAYS,), "transmit": ("type",), "gauge": ("name",), "end": ("quiet", "reason")}
_NUMBERS: Final = {
    "transmit": ("stamp_bytes", "count", "copies"),
    "gauge": ("value",),
    "stop": ("costs.sender_work", "costs.receiver_work"),
}
"""What is read of the detail of each kind of row."""
_STABLE: Final = pa.schema(
    {"group": pa.string(), "process": pa.string(), "latency_ns": pa.int64(), "to_nobody": pa.bool_()}
)
_FOR_EVER: Final = int(np.iinfo(np.int64).max)
_Columns = dict[str, Any]
"""Arrow arrays by name, all as long as the table."""


def tallies(events: pa.Table) -> list[Row]:
    """Everything that can be added up, for each group, process incarnation and frame type, busy and idle."""
    details = _details(events)
    done_ns, idle_ns = _phases(events, details)
    keys = {name: events[name] for name in ("run", *_WHO)} | {
        "type": details["type"],
        "idle": pc.greater(events["time"], _FOR_EVER if done_ns is None else done_ns),
    }
    sums, smallest, largest = _sums(events, details), _smallest(events), _largest(events, details)
    table = pa.table({**keys, **sums, **smallest, **largest})
    added = (
        table.filter(pc.not_equal(events["process"], WORLD))
        .group_by(list(keys), use_threads=False)
        .aggregate(
            [(name, "sum") for name in sums]
            + [(name, "min") for name in smallest]
            + [(name, "max") for name in largest]
        )
    )
    of_run = {"idle_ns": idle_ns, "view_changes": _view_changes(events)}
    return [{**row, **of_run} for row in added.rename_columns(table.column_names).to_pylist()]


def _sums(events: pa.Table, details: _Columns) -> _Columns:
    kind, time, is_frame = events["kind"], events["time"], _is(events["kind"], "transmit")
    frame_bytes = pc.add(pc.fill_null(events["payload_bytes"], 0), pc.fill_null(events["header_bytes"], 0))
    signed_time = pc.if_else(_is(kind, "unblock"), time, pc.if_else(_is(kind, "block"), pc.negate(time), 0))
    return {
        "sent": _is(kind, "send"),
        "delivered": _is(kind, "deliver"),
        "frames": is_frame,
        "moves": _is(kind, "crash", "leave", "join"),
        "blocks": _is(kind, "block"),
        "unblocks": _is(kind, "unblock"),
        "payload_bytes": _where(is_frame, events["payload_bytes"]),
        "header_bytes": _where(is_frame, events["header_bytes"]),
        "stamp_bytes": details["stamp_bytes"],
        "packed": details["count"],
        "frames_with_copies": pc.is_valid(details["copies"]),
        "copies": details["copies"],
        "wire_bytes": pc.multiply(details["copies"], frame_bytes),
        "sender_work": details["costs.sender_work"],
        "receiver_work": details["costs.receiver_work"],
        "waits_ns": pc.cast(signed_time, pa.decimal128(20)),  # times since 1970: 64 bits hold only the sum of four
    }


def _smallest(events: pa.Table) -> _Columns:
    first_request = _where(_is(events["kind"], "send"), events["requested"])
    return {"first_request_ns": first_request, "first_ns": events["time"]}


def _largest(events: pa.Table, details: _Columns) -> _Columns:
    return {
        "last_ns": events["time"],
        "last_delivery_ns": _where(_is(events["kind"], "deliver"), events["time"]),
        "unstable_max": events["unstable"],
        "unstable_blocks_max": _where(_is(details["name"], "unstable_blocks"), details["value"]),
        "buffers_max": _where(_is(details["name"], "buffers"), details["value"]),
    }


def _view_changes(events: pa.Table) -> int:
    """The number of views that replaced another."""
    is_later = pc.and_(_is(events["kind"], "view"), pc.is_valid(events["previous"]))
    return len(events.filter(is_later).select(["group", "view"]).group_by(["group", "view"]).aggregate([]))


def _phases(events: pa.Table, details: _Columns) -> tuple[int | None, int | None]:
    """When all useful work was done, and how long the run was idle after that, if it did not end by itself."""
    done_ns = pc.max(events["time"].filter(_is(events["kind"], *USEFUL))).as_py()
    quiet_ns = pc.max(events["time"].filter(_is(details["quiet"], "true"))).as_py()
    speaks_always = details[SPEAKS_ALWAYS].null_count < len(events)
    is_cut_off = pc.any(_is(details["reason"], "duration")).as_py()
    if done_ns is None or quiet_ns is None or not (is_cut_off or speaks_always):
        return done_ns, None
    return done_ns, quiet_ns - done_ns


def _details(events: pa.Table) -> _Columns:
    """The values of details, each as a column over all rows."""
    columns: _Columns = {}
    for kind in {*_TEXTS, *_NUMBERS}:
        mask = pc.equal(events["kind"], kind).combine_chunks()
        details = [_parsed(text) for text in events["detail"].filter(mask).to_pylist()]
        for path in _TEXTS.get(kind, ()):
            columns[path] = _spread([_text(_at(detail, path)) for detail in details], mask, pa.string())
        for path in _NUMBERS.get(kind, ()):
            columns[path] = _spread([_number(_at(detail, path)) for detail in details], mask, pa.int64())
    return columns


def latencies(events: pa.Table) -> list[Row]:
    """Each measure per member, group and run: count, mean, percentiles and maximum; null stands for all."""
    run = events["run"][0].as_py()
    delivered = _deliveries(events)
    taken = (_taken(run, measure, waits) for measure, waits in _waits(events, delivered).items())
    return [*chain.from_iterable(taken), *_overheads(run, _lasting(delivered, _arrived(delivered)))]


def _overheads(run: str, waits: pa.Table) -> list[Row]:
    """The mean delay overhead at each member."""
    means = waits.group_by(["group", "process"], use_threads=False).aggregate([("latency_ns", "mean")])
    return [
        {**row, "run": run, "measure": "delivery", "count": 0, "overhead_mean_ns": row["latency_ns_mean"]}
        for row in means.to_pylist()
    ]


def _taken(run: str, measure: Measure, waits: pa.Table) -> Iterator[Row]:
    known = waits.filter(pc.is_valid(waits["latency_ns"]))
    values = known["latency_ns"].to_numpy()
    for scope in _SCOPES if len(known) else ():
        for names, chosen in _parts(known.select(scope)):
            spread = values[chosen]
            p50, p90, p99 = np.quantile(spread, (0.5, 0.9, 0.99)).tolist()
            yield {
                "measure": measure,
                "run": run,
                "group": names.get("group"),
                "process": names.get("process"),
                "count": len(spread),
                "mean_ns": float(spread.mean()),
                "p50_ns": p50,
                "p90_ns": p90,
                "p99_ns": p99,
                "max_ns": int(spread.max()),
                "overhead_mean_ns": None,
            }


def _parts(keys: pa.Table) -> Iterator[tuple[dict[str, Any], Any]]:
    """Groups of equal rows: their common values, and their positions; all rows if there are no columns."""
    if not keys.num_columns:
        yield {}, slice(None)
        return
    named = [column.combine_chunks().dictionary_encode(null_encoding="encode") for column in keys.columns]
    code = np.ravel_multi_index([each.indices.to_numpy() for each in named], [len(each.dictionary) for each in named])
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-1))
    for chosen in np.split(order, starts)[1:]:
        yield keys.slice(chosen[0], 1).to_pylist()[0], chosen


def _waits(events: pa.Table, delivered: pa.Table) -> dict[Measure, pa.Table]:
    """For each result of a request: where it happened, and how long it took."""
    stable = _stabilities(events)
    answers = events.filter(pc.equal(events["kind"], "answer"))
    return {
        "delivery": _lasting(delivered, delivered["requested"]),
        "stability": stable.filter(pc.invert(stable["to_nobody"])),
        "to nobody": stable.filter(stable["to_nobody"]),
        "request": _lasting(answers, answers["requested"]),
    }


def _lasting(rows: pa.Table, since: Any) -> pa.Table:
    latency_ns = pc.subtract(rows["time"], since)
    return pa.table({"group": rows["group"], "process": rows["process"], "latency_ns": latency_ns})


def _deliveries(events: pa.Table) -> pa.Table:
    """Each delivery with the request and the transmission of its message, and when it first arrived."""
    of_kind = {kind: events.filter(pc.equal(events["kind"], kind)) for kind in ("send", "receive", "deliver")}
    delivers = of_kind["deliver"].select([*_MESSAGE, "process", "incarnation", "time"])
    sends = of_kind["send"].select([*_WHO, "number", "requested", "time"])
    sends = sends.rename_columns([*_MESSAGE, "requested", "sent"])
    here = [*_MESSAGE, "process", "incarnation"]
    receives = of_kind["receive"].filter(pc.is_valid(of_kind["receive"]["number"]))
    arrivals = receives.group_by(here, use_threads=False).aggregate([("time", "min")])
    arrivals = arrivals.rename_columns([*here, "received"])
    known = delivers.join(sends, keys=list(_MESSAGE), join_type="left outer", use_threads=False)
    return known.join(arrivals, keys=here, join_type="left outer", use_threads=False)


def _arrived(delivered: pa.Table) -> Any:
    """When a message reached the process that delivers it; for an own message, when it left."""
    is_own = pc.and_(
        pc.equal(delivered["process"], delivered["sender"]),
        pc.equal(delivered["incarnation"], delivered["sender_incarnation"]),
    )
    return pc.if_else(is_own, delivered["sent"], delivered["received"])


def _stabilities(events: pa.Table) -> pa.Table:
    """Each message that its own sender called stable: the time since the request, and whether it had no receivers."""
    rows = events.filter(_is(events["kind"], "send", "stable"))
    deserted = _without_receivers(events)
    parts = [_first_covered(rows.take(chosen), who, deserted) for who, chosen in _parts(rows.select(_WHO))]
    return pa.concat_tables([_STABLE.empty_table(), *parts])


def _first_covered(own: pa.Table, who: Row, deserted: AbstractSet[tuple[Any, ...]]) -> pa.Table:
    """The first report that covers a message is the earliest of those that reach its number or beyond."""
    sends, reports = (own.filter(pc.equal(own["kind"], kind)) for kind in ("send", "stable"))
    upto = pc.map_lookup(reports["upto"], process_id(who["process"], who["incarnation"]), "first")
    reports = reports.append_column("reach", upto).filter(pc.is_valid(upto)).sort_by([("reach", "descending")])
    reach, index, time = (reports[name].to_numpy() for name in ("reach", "index", "time"))
    earliest = np.minimum.accumulate(index)
    time_at = time[np.argsort(index)][np.searchsorted(np.sort(index), earliest)]
    covering = np.searchsorted(-reach, -sends["number"].to_numpy(), side="right") - 1
    known = sends.filter(covering >= 0)
    return pa.table(
        {
            "group": pa.repeat(who["group"], len(known)),
            "process": pa.repeat(who["process"], len(known)),
            "latency_ns": pc.subtract(time_at[covering[covering >= 0]], known["requested"]),
            "to_nobody": [(*who.values(), view) in deserted for view in known["view"].to_pylist()],
        },
        _STABLE,
    )


def _without_receivers(events: pa.Table) -> set[tuple[Any, ...]]:
    """The private views in which a process had no receivers."""
    views = events.filter(pc.equal(events["kind"], "view")).select([*_WHO, "view", "detail"]).to_pylist()
    return {
        (*(row[name] for name in _WHO), row["view"]) for row in views if _at(_parsed(row["detail"]), "receivers") == []
    }


def _spread(values: list[Any], mask: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values where the mask is true, nulls elsewhere."""
    return pc.replace_with_mask(pa.nulls(len(mask), kind), mask, pa.array(values, kind))


def _parsed(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError as error:
        raise TraceError(f"a detail is not JSON: {error}") from error


def _at(detail: Any, path: str) -> Any:
    for key in path.split("."):
        detail = detail.get(key) if isinstance(detail, dict) else None
    return detail


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _is(column: pa.ChunkedArray | pa.Array, *values: str) -> Any:
    return pc.is_in(column, pa.array(values, pa.string()))


def _where(mask: Any, values: Any) -> Any:
    return pc.if_else(mask, values, None)
