"""The state of a watch: what has been counted of every run, and the rows that wait for missing ones.

Rows are counted once, in the order of each process incarnation. `index` has no gaps, so the number of counted rows
tells which row is next. Repeated rows are ignored, and rows that come too early wait. So it does not matter how often
or in which order parts are read, and the stored state is all that a restart needs.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from antiphon.errors import TraceError
from antiphon.pipeline.live.latencies import PATIENCE_NS, RECENT_S, SECOND_NS, Open, Spread
from antiphon.pipeline.live.logs import Log
from antiphon.pipeline.live.rows import SEEN, Rows, by, codes, read
from antiphon.types import WORLD

_NEVER: Final = 2**63 - 1


class GroupLatencies(msgspec.Struct):
    """The latencies of one group."""

    all: Spread = msgspec.field(default_factory=Spread)
    recent: dict[int, Spread] = msgspec.field(default_factory=dict)
    """By second of the delivery."""


class Run(msgspec.Struct):
    """One run."""

    logs: dict[str, Log] = msgspec.field(default_factory=dict)
    """By process with incarnation; the world has one too."""
    latencies: dict[str, GroupLatencies] = msgspec.field(default_factory=dict)
    """By group."""
    quiet: bool | None = None
    """True if it ended quiet; None while it has not ended."""
    components: list[list[str]] | None = None

    @property
    def members(self) -> dict[str, Log]:
        """The logs of processes."""
        return {who: log for who, log in self.logs.items() if who != WORLD}

    @property
    def now_ns(self) -> int:
        """The time of its last event so far."""
        return max((log.last_ns for log in self.logs.values()), default=0)

    @property
    def over(self) -> bool:
        """True if it has ended, and every process in it too."""
        return self.quiet is not None and not self._missing and all(log.state != "up" for log in self.members.values())

    @property
    def forget_ns(self) -> int:
        """Requests before this time will not be delivered any more: all running processes are much further."""
        if self.over:
            return _NEVER
        up = [log.last_ns for log in self.members.values() if log.state == "up"]
        return 0 if self._missing else min(up, default=0) - PATIENCE_NS

    @property
    def _missing(self) -> bool:
        """True if a view names a process whose log has not been read yet."""
        named = {who for log in self.logs.values() for seat in log.seats.values() for who in seat.members}
        return not named <= {*self.logs}


class _World(msgspec.Struct):
    quiet: bool = True
    components: list[list[str]] | None = None


class _Stored(msgspec.Struct):
    directory: str
    runs: dict[str, Run]
    held: bytes
    requests: bytes
    deliveries: bytes
    unmatched: int


class State:
    """The state of all runs of one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self.runs: dict[str, Run] = {}
        self.unmatched = 0
        """Deliveries without a latency: their request is unknown, or was too long ago."""
        self._held = SEEN.empty_table()
        self._open = Open()

    @property
    def waiting(self) -> int:
        """The number of rows that wait for earlier ones."""
        return int(self._held.num_rows)

    def take(self, events: pa.Table) -> pa.Table:
        """Take more events, with the columns `SEEN`; return those that are counted now."""
        rows = read(pa.concat_tables([self._held, events]))
        new, early = list[Rows](), list[Rows]()
        for code, positions in by(rows.log):
            run, who = rows.names.logs[code]
            next_ones, rest = self._next_ones(run, who, rows.at(positions))
            new.append(next_ones)
            early.append(rest)
        table = rows.names.table
        self._held = table.take(_places(early))
        counted = table.take(_places(new))
        for own in new:
            self._take_log(own)
        self._measure(counted)
        return counted

    def _next_ones(self, run: str, who: str, rows: Rows) -> tuple[Rows, Rows]:
        """The rows that follow the counted ones without a gap, and the others."""
        log = self.runs.setdefault(run, Run()).logs.setdefault(who, Log())
        again = np.flatnonzero(rows.index == log.rows - 1)
        if len(again) and rows.time[again[0]] != log.last_ns:
            raise TraceError(
                f"the checkpoint belongs to another execution of {run}: row {log.rows - 1} of {who} differs from "
                "the one it has counted; use a new checkpoint"
            )
        rows = rows.at(np.unique(rows.index, return_index=True)[1])
        rows = rows.at(rows.index >= log.rows)
        follows = rows.index == log.rows + np.arange(len(rows.index))
        return rows.at(follows), rows.at(~follows)

    def _take_log(self, rows: Rows) -> None:
        if not len(rows.index):
            return
        run_id, who = rows.names.logs[int(rows.log[0])]
        run = self.runs[run_id]
        run.logs[who].take(who, rows)
        for position in rows.where("faults_end", "end").tolist():
            detail = rows.detail(position, _World)
            if rows.names.kinds[rows.kind[position]] == "end":
                run.quiet = detail.quiet
            else:
                run.components = detail.components

    def _measure(self, counted: pa.Table) -> None:
        found = self._open.take(counted)
        latency, time = (found.column(name).to_numpy() for name in ("latency", "time"))
        (runs, run), (groups, group) = codes(found.column("run")), codes(found.column("group"))
        for place, positions in by(run * len(groups) + group):
            latencies_of = self.runs[runs[place // len(groups)]].latencies
            latencies = latencies_of.setdefault(groups[place % len(groups)], GroupLatencies())
            latencies.all.take(latency[positions])
            for second, within in by(time[positions] // SECOND_NS):
                latencies.recent.setdefault(second, Spread()).take(latency[positions][within])
            for second in sorted(latencies.recent)[: -RECENT_S - 1]:
                del latencies.recent[second]
        self.unmatched += self._open.forget({name: each.forget_ns for name, each in self.runs.items()})

    # On disk

    def save(self, path: Path) -> None:
        """Store the state; the file is complete, or as it was before."""
        requests, deliveries = _packed(self._open.requests), _packed(self._open.deliveries)
        stored = _Stored(str(self.directory), self.runs, _packed(self._held), requests, deliveries, self.unmatched)
        aside = path.with_name(f".{path.name}")
        aside.write_bytes(msgspec.msgpack.encode(stored))
        aside.replace(path)

    @staticmethod
    def load(path: Path, directory: Path) -> "State":
        """Load the stored state, or create a new one."""
        state = State(directory)
        try:
            stored = msgspec.msgpack.decode(path.read_bytes(), type=_Stored)
            state._held, requests, deliveries = map(_unpacked, (stored.held, stored.requests, stored.deliveries))
        except FileNotFoundError:
            return state
        except (OSError, msgspec.MsgspecError, pa.ArrowException) as error:
            raise TraceError(f"{path} is not the state of a watch: {error}") from error
        if stored.directory != str(state.directory):
            raise TraceError(f"{path.parent} is the checkpoint of a watch of {stored.directory}; use another folder")
        state.runs, state.unmatched = stored.runs, stored.unmatched
        state._open = Open(requests, deliveries)
        return state


def _places(parts: Iterable[Rows]) -> pa.Array:
    return pa.array(np.concatenate([np.zeros(0, np.int64), *(rows.place for rows in parts)]))


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _unpacked(packed: bytes) -> pa.Table:
    return pa.ipc.open_stream(packed).read_all()
