"""A live table on the terminal with the state of each process of a local run."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.live import Live
from rich.table import Table

from antiphon.cli.shared.output import err
from antiphon.types import ProcessId

Watch = Callable[[dict[ProcessId, dict[str, Any]]], None]


@contextmanager
def watching(title: str) -> Iterator[Watch]:
    """Yields the function to call with the status of each process; it does nothing when piped."""
    if not err.is_terminal:
        yield lambda _: None
        return
    rates = _Rates()
    with Live(console=err, refresh_per_second=8, transient=True) as live:
        yield lambda statuses: live.update(_table(title, statuses, rates))


class _Rates:
    """Recent deliveries per second of each process."""

    def __init__(self) -> None:
        self._last: dict[ProcessId, tuple[float, int]] = {}
        self._rates: dict[ProcessId, float] = {}

    def of(self, process: ProcessId, deliveries: int) -> float:
        now = time.monotonic()
        then, before = self._last.setdefault(process, (now, deliveries))
        if now - then >= 0.5:
            self._rates[process] = (deliveries - before) / (now - then)
            self._last[process] = now, deliveries
        return self._rates.get(process, 0.0)


def _table(title: str, statuses: dict[ProcessId, dict[str, Any]], rates: _Rates) -> Table:
    table = Table(title=title)
    for column in ("process", "delivered", "per second", "to send", "unread", "views"):
        table.add_column(column, justify="left" if column in ("process", "views") else "right")
    for process, status in statuses.items():
        if status:
            views = ", ".join(f"{group} {view.rpartition('.')[0]}" for group, view in sorted(status["views"].items()))
            rate = f"{rates.of(process, status['deliveries']):,.0f}"
            counts = (f"{status[key]:,}" for key in ("left", "unread"))
            table.add_row(process, f"{status['deliveries']:,}", rate, *counts, views)
    return table
