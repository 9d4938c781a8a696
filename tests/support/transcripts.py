"""Scripts of tests/scripts: a scenario in, a transcript out, in the style of etcd/raft's testdata.

A script is a text file of commands. A command is a line, perhaps with input below it, then `----`, then its output up
to an empty line. `run` simulates the scenario that is its input (TOML). `transcript` shows what the processes did, in
virtual milliseconds; `from=` and `to=` limit the time, `show=` adds kinds of events, `hide=` leaves out events or types
of frames. `check` judges the run. Comments begin with `#`.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from antiphon.properties.judge import judge
from antiphon.scenario.read import parse_scenario
from antiphon.scenario.units import Duration
from antiphon.sim.run import Run, simulate
from antiphon.trace.recorder import Row
from antiphon.trace.table import events_table
from antiphon.types import process_id

SEPARATOR = "----"
MS = 1_000_000


@dataclass(slots=True)
class Command:
    """One command of a script, with the lines above it that belong to it."""

    comments: list[str]
    words: list[str]
    body: list[str] = field(default_factory=list)
    output: list[str] = field(default_factory=list)

    def text(self, output: list[str]) -> str:
        return "\n".join([*self.comments, " ".join(self.words), *self.body, SEPARATOR, *output]) + "\n"


def commands(text: str) -> Iterator[Command]:
    """The commands of a script."""
    lines = iter(text.splitlines())
    comments: list[str] = []
    for line in lines:
        if not line or line.startswith("#"):
            comments += [line] if line or comments else []
            continue
        command = Command(comments, line.split())
        comments = []
        for inside in lines:
            if inside == SEPARATOR:
                break
            command.body.append(inside)
        for inside in lines:
            if not inside:
                break
            command.output.append(inside)
        yield command


def played(text: str, name: str) -> str:
    """The script as it should be: its commands with the output that they have now."""
    run: Run | None = None
    done = []
    for command in commands(text):
        if command.words[0] == "run":
            run = simulate(parse_scenario("\n".join([f'name = "{name}"', *command.body])))
            done.append(command.text([summary(run)]))
            continue
        assert run is not None, "a script begins with `run`"
        done.append(command.text([*OTHERS[command.words[0]](run, command.words[1:])]))
    return "\n".join(done)


def summary(run: Run) -> str:
    times = [row["time"] for history in run.histories for row in history.rows]
    ended = "quiet" if run.quiet else "cut off"
    return f"{ended} after {max(times) / MS:g} ms, {run.deliveries} deliveries"


def checked(run: Run, _words: list[str]) -> Iterator[str]:
    verdicts = judge(events_table(run.id, run.histories))
    violated = [verdict for verdict in verdicts if verdict.violations]
    for verdict in violated:
        yield f"{verdict.property} violated: {verdict.example and verdict.example.sentence}"
    if not violated:
        yield "every promised property holds"


def transcript(run: Run, words: list[str]) -> Iterator[str]:
    """One line an event, in the order of time; at one time the world comes first, then the processes by name."""
    settings = dict(word.split("=", 1) for word in words)
    begin, end = (int(Duration.parse(settings.get(key, default))) for key, default in (("from", "0s"), ("to", "1h")))
    shown = SHOWN | {*settings.get("show", "").split(",")}
    hidden = {*settings.get("hide", "").split(",")} - {""}
    groups = len(run.scenario.group)
    rows = [
        (row["time"], history.process != "world", process_id(history.process, history.incarnation), place, row)
        for history in run.histories
        for place, row in enumerate(history.rows)
    ]
    for time, _, process, _, row in sorted(rows, key=lambda entry: entry[:4]):
        detail = json.loads(row.get("detail") or "{}")
        if begin <= time <= end and row["kind"] in shown and not {row["kind"], detail.get("type", "")} & hidden:
            place = f" in {row['group']}" if groups > 1 and row.get("group") else ""
            yield f"{time / MS:9.3f}  {process:<5} {SENTENCES[row['kind']](row, detail)}{place}"


def message(row: Row) -> str:
    return f"{process_id(row['sender'], row['sender_incarnation'])}/{row['number']}"


def listed(names: Any) -> str:
    return " ".join(names)


def transmitted(row: Row, detail: dict[str, Any]) -> str:
    copies, numbered = detail.get("copies", 1), detail.get("frame") is not None
    number = f" {row['clock']}" if numbered and row.get("clock") is not None else ""
    return f"transmits {detail['type']}{number} to {copies} peer{'s' * (copies != 1)}"


def received(row: Row, detail: dict[str, Any]) -> str:
    number = f" {row['clock']}" if detail.get("frame") is not None and row.get("clock") is not None else ""
    what = f" with {message(row)}" if row.get("number") is not None else ""
    return f"receives {detail['type']}{number} from {row['peer']}{what}"


def installed(row: Row, detail: dict[str, Any]) -> str:
    gone = "".join(f", {one['process']} {one['reason']}" for one in detail.get("left", ()))
    classes = "".join(f" [{listed(one)}]" for one in detail.get("classes", ()))
    return f"installs view {listed(row['members'])}{f' from{classes}' if classes else ''}{gone}"


def worded(entry: tuple[str, Any]) -> str:
    """A key of a fault and its value; the affected process stands without a key."""
    key, value = entry
    if key == "sides":
        return " " + " | ".join(map(listed, value))
    text = listed(value) if isinstance(value, list) else str(value)
    return f" {text}" if key in {"process", "group"} else f" {key} {text}"


def happened(_row: Row, detail: dict[str, Any]) -> str:
    rest = {key: value for key, value in detail.items() if key not in {"at", "until", "begins", "kind"}}
    return f"{'begins' if detail['begins'] else 'ends'}: {detail['kind']}{''.join(map(worded, rest.items()))}"


def prefixes(row: Row) -> str:
    return listed(f"{sender}/{number}" for sender, number in row["upto"])


SENTENCES: dict[str, Callable[[Row, dict[str, Any]], str]] = {
    "send": lambda row, _: f"sends {message(row)}",
    "transmit": transmitted,
    "receive": received,
    "deliver": lambda row, _: f"delivers {message(row)}",
    "view": installed,
    "stable": lambda row, _: f"knows to be stable: {prefixes(row)}",
    "discard": lambda row, _: f"discards {prefixes(row)}",
    "suspect": lambda row, detail: f"suspects {row['peer']}: {detail['reason']}",
    "refute": lambda row, _: f"no longer suspects {row['peer']}",
    "confirm": lambda row, _: f"confirms that {row['peer']} failed, after block {row['clock']}",
    "transitional": lambda row, _: f"tells the application: {listed(row['members'])} remain",
    "block": lambda row, _: f"is blocked{' by ' + row['peer'] if row.get('peer') else ''}",
    "unblock": lambda _row, _: "is no longer blocked",
    "state": lambda row, detail: f"state {detail['role']}, digest {row['digest'] & 0xFFFF:04x}",
    "join": lambda _row, _: "asks to join",
    "leave": lambda _row, _: "has left",
    "crash": lambda _row, _: "crashes",
    "fault": happened,
}
SHOWN = SENTENCES.keys() - {"receive", "stable", "discard", "send"}

OTHERS: dict[str, Callable[[Run, list[str]], Iterator[str]]] = {"transcript": transcript, "check": checked}
