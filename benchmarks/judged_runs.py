"""The runs that `benchmarks.judging` judges: fifteen kinds with failures, about 130,000 rows each.

All services, one group and two that overlap, a partition, merges, a recovery, a sequencer that crashes, twenty members.
Each is simulated once. A dataset of a hundred runs holds copies of these under other run ids: a simulator in Python
would need hours for data that is judged in minutes. To the checkers, which see one run at a time, a copy is a run like
any other; to a query over all files it is a run of its own too.
"""

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from antiphon.scenario.read import parse_scenario
from antiphon.sim.run import simulate
from antiphon.trace.directory import write_events
from antiphon.trace.table import events_table

_ONE: Final = '[[group]]\nname = "a"\nmembers = {members}\nservice = "{service}"\n{more}\n'
_PAIR: Final = (
    '[[group]]\nname = "a"\nmembers = ["p1", "p2", "p3", "p4"]\nservice = "{service}"\n'
    '[[group]]\nname = "b"\nmembers = ["p3", "p4", "p5", "p6"]\nservice = "{service}"\n{more}\n'
)
_SEND: Final = '[[workload]]\ngroup = "{group}"\nmessages = {messages}\ninterval = "{interval}"\njitter = 0.8\n'
_CRASH: Final = '[[fault]]\nat = "2s"\nkind = "crash"\nprocess = "{process}"\n'
_RECOVER: Final = '[[fault]]\nat = "5s"\nkind = "recover"\nprocess = "{process}"\n'
_SPLIT: Final = '[[fault]]\nat = "3s"\nuntil = "6s"\nkind = "partition"\nsides = [["p1", "p2", "p3"], ["p4", "p5"]]\n'
_PAUSE: Final = '[[fault]]\nat = "1s"\nuntil = "1200ms"\nkind = "pause"\nprocess = "p2"\n'


def _one(
    service: str,
    messages: int,
    *faults: str,
    members: int = 5,
    interval: str = "5ms",
    more: str = "",
    options: str = "",
) -> str:
    head = f"options = {{ {options} }}\n" if options else ""
    send = _SEND.format(group="a", messages=messages, interval=interval)
    return head + _ONE.format(members=members, service=service, more=more) + send + "".join(faults)


def _pair(service: str, messages: int, *faults: str, more: str = "", options: str = "") -> str:
    head = f"options = {{ {options} }}\n" if options else ""
    sends = "".join(_SEND.format(group=group, messages=messages, interval="5ms") for group in "ab")
    return head + _PAIR.format(service=service, more=more) + sends + "".join(faults)


_CLASSIC: Final = 'protocol = "classic"\n'
KINDS: Final[dict[str, str]] = {
    "total": _one("total", 2_000, _PAUSE, _CRASH.format(process="p5")),
    "safe": _one("total-safe", 1_400, _PAUSE, _CRASH.format(process="p5")),
    "blocks": _one("total", 2_000, _CRASH.format(process="p5"), more='numbering = "block"', options="flow_control = 1"),
    "closed": _one("total", 1_970, _CRASH.format(process="p5"), options='view_change = "closed"'),
    "merging": _one("total", 1_560, _SPLIT, options='merge_every = "1s"'),
    "returning": _one("total", 1_500, _CRASH.format(process="p4"), _RECOVER.format(process="p4")),
    "sequencer": _one("total", 2_200, _CRASH.format(process="p1"), more='mode = "asymmetric"'),
    "twenty": _one("total", 18, _CRASH.format(process="p7"), members=20, interval="170ms"),
    "overlapping": _pair("total", 1_430, _PAUSE, _CRASH.format(process="p3")),
    "vector": _pair("causal-vector", 1_250, _PAUSE, _CRASH.format(process="p6")),
    "fast": _pair("causal-fast", 1_620, _CRASH.format(process="p4"), options="compression = true"),
    "slow": _one("causal-slow", 2_200, _SPLIT),
    "two-phase": _CLASSIC + _one("total", 1_500, _CRASH.format(process="p5")),
    "causal": _CLASSIC + _one("causal", 300, _CRASH.format(process="p5")),
    "acks": 'protocol = "acks"\n' + _one("fifo", 2_650, _CRASH.format(process="p5"), options='acks = "timestamp"'),
}
"""A scenario of each kind, without its name."""

LONG: Final = _one("total", 20_000, _PAUSE, _CRASH.format(process="p5"))
"""The first kind, ten times as long; it is judged in one process only."""
_TEXT: Final = 'name = "{name}"\nduration = "1h"\nquiet = "30s"\n'


def simulated(directory: Path, kind: str) -> Path:
    """The file of one run of that kind, or of `long`; made if it is not there."""
    path = directory / "simulated" / "events" / f"{kind}.parquet"
    if not path.exists():
        run = simulate(parse_scenario(_TEXT.format(name=kind) + {**KINDS, "long": LONG}[kind]))
        _write(events_table(kind, run.histories), directory / "simulated", kind)
    return path


def dataset(directory: Path, runs: int) -> Path:
    """A run directory with this number of runs, the kinds in turn; existing files are kept."""
    (directory / f"{runs}" / "events").mkdir(parents=True, exist_ok=True)
    for number in range(runs):
        kind = [*KINDS][number % len(KINDS)]
        run = f"{kind}-{number:04}"
        copy, place = directory / "copies" / "events" / f"{run}.parquet", directory / f"{runs}" / "events"
        if not copy.exists():
            events = pq.read_table(simulated(directory, kind))
            renamed = events.set_column(0, events.schema.field(0), pa.repeat(pa.scalar(run), len(events)))
            _write(renamed, directory / "copies", run)
        if not (place / copy.name).exists():
            (place / copy.name).hardlink_to(copy)
    return directory / f"{runs}"


def _write(events: pa.Table, directory: Path, run: str) -> None:
    """Write to a temporary file first, so that an interrupted call leaves no partial file."""
    aside = directory / "unfinished"
    aside.mkdir(parents=True, exist_ok=True)
    (directory / "events").mkdir(exist_ok=True)
    write_events(events, aside, run)
    (aside / "events" / f"{run}.parquet").rename(directory / "events" / f"{run}.parquet")
