"""Three changes of an InterGroup sender group under load, and how long the processes take for each of them.

Four processes send and two only receive, all in the group timestamp order. A sender is killed, or two partitions merge,
or a receiver is promoted; each run has one of these.
"""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from antiphon.scenario.model import Scenario
from antiphon.scenario.read import parse_scenario
from antiphon.sim.run import Run
from antiphon.trace.recorder import Row

MS: Final = 1_000_000
_LOAD_S: Final = 8
_EVERY_MS: Final = 40

_COMMON: Final = """
name = "{name}"
protocol = "intergroup"
seed = {seed}
duration = "60s"
quiet = "6500ms"
network = {{ transport = "datagram", loss = {loss}, latency = {{ kind = "fixed", value = "{delay_ms}ms" }} }}
[options]
suspect_after = "1s"
keep_alive = {{ kind = "uniform", low = "100ms", high = "300ms" }}
[[group]]
name = "prices"
members = ["a", "b", "c", "d", "t1", "t2"]
[[member]]
process = "t1"
group = "prices"
role = "receiver"
[[member]]
process = "t2"
group = "prices"
role = "receiver"
[[workload]]
group = "prices"
senders = ["a", "b", "c", "d"]
messages = {messages}
interval = "{every_ms}ms"
jitter = 0.5
"""
"""No busy machine keeps a process from sending for the suspicion time of a second, or for two keep-alives (L10)."""


@dataclass(frozen=True, slots=True)
class Change:
    """One kind of change: its part of the scenario, and the views that follow it."""

    title: str
    scenario: str
    """What the scenario adds; `{at}` is the time of the fault."""
    last: str
    """The kind of the fault whose end, or moment, is the change."""
    is_new: Callable[[list[str]], bool]
    """True if a view has these members only after the change."""


CHANGES: Final[dict[str, Change]] = {
    "kill": Change(
        "a sender is killed",
        """
[[fault]]
at = "{at}ms"
kind = "crash"
process = "b"
""",
        "crash",
        lambda members: "b" not in members,
    ),
    "merge": Change(
        "two partitions of senders merge",
        """
[[fault]]
at = "{before}ms"
until = "{at}ms"
kind = "partition"
sides = [["a", "b", "t1"], ["c", "d", "t2"]]
""",
        "partition",
        lambda members: len(members) == 4,
    ),
    "promote": Change(
        "a receiver is promoted",
        """
[[workload]]
group = "prices"
senders = ["t2"]
messages = 50
interval = "20ms"
start = "6500ms"
[[fault]]
at = "{at}ms"
kind = "promote"
process = "t2"
group = "prices"
""",
        "promote",
        lambda members: "t2" in members,
    ),
}


def scenario_of(change: str, seed: int, loss: float = 0.05, delay_ms: float = 5.0) -> Scenario:
    """The scenario of a round: the seed also moves the change against the timers of the members."""
    at = 4_500 + random.Random(seed).randrange(1_000)
    text = (_COMMON + CHANGES[change].scenario).format(
        name=f"senders-{change}",
        seed=seed,
        loss=loss,
        delay_ms=f"{delay_ms:g}",
        messages=_LOAD_S * 1_000 // _EVERY_MS,
        every_ms=_EVERY_MS,
        at=at,
        before=at - 3_000,
    )
    return parse_scenario(text)


@dataclass(frozen=True, slots=True)
class Times:
    """What one process needed, in milliseconds since the change."""

    process: str
    view_ms: float
    """Until it installed a view that shows the change."""
    delivery_ms: float
    """Until it delivered the first message in that view."""
    pause_ms: float
    """The longest time without a delivery that ended between the change and that delivery."""


def times_of(change: str, run: Run) -> list[Times]:
    """The times of each process that lives on; a process that never shows the change is left out."""
    (world,) = (each.rows for each in run.histories if each.process == "world")
    changed_at = max(row["time"] for row in world if row["kind"] == "fault" and _is_about(row, CHANGES[change]))
    others = {each.process: each.rows for each in run.histories if each.process not in ("world", _absent(change))}
    return [times for process, rows in others.items() for times in _times(process, rows, change, changed_at)]


def _absent(change: str) -> str:
    """The process that is killed."""
    return "b" if change == "kill" else ""


def _is_about(row: Row, change: Change) -> bool:
    return bool(json.loads(row["detail"])["kind"] == change.last)


def _times(process: str, rows: list[Row], change: str, changed_at: int) -> Iterator[Times]:
    is_new = CHANGES[change].is_new
    later = [place for place, row in enumerate(rows) if row["time"] >= changed_at and row["kind"] == "view"]
    installed = next((place for place in later if is_new(rows[place]["members"])), None)
    if installed is None:
        return
    deliveries = [row["time"] for row in rows if row["kind"] == "deliver"]
    first = next((row["time"] for row in rows[installed:] if row["kind"] == "deliver"), None)
    if first is not None:
        pauses = [after - before for before, after in pairwise(deliveries) if changed_at <= after <= first]
        view_at = rows[installed]["time"]
        yield Times(process, (view_at - changed_at) / MS, (first - changed_at) / MS, max(pauses) / MS)
