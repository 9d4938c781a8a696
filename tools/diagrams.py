"""The space-time diagrams of the guide: each service beside the next weaker one, on the same small scenario.

    python tools/diagrams.py            # writes docs/images/services/*.svg

A test compares the files with what this draws. A scenario of `scenarios/services` has the weaker service; the stronger
one is a change of one word. So a run differs from its neighbour in nothing else.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from antiphon.report.spacetime import Arrow, Happening, Lifeline, Mark, Scene, draw
from antiphon.report.wording import fault, fault_kind
from antiphon.scenario.read import parse_scenario
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table
from antiphon.types import WORLD

ROOT: Final = Path(__file__).parents[1]
IMAGES: Final = ROOT / "docs/images/services"
STYLE: Final = ROOT / "src/antiphon/report/templates/page.css"
_MS: Final = 1_000_000
_NOTED: Final = frozenset("send deliver view crash block".split())
"""The rows of a process that a diagram shows."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A scenario under two services, and the property in which their runs differ."""

    scenario: str
    weaker: str
    stronger: str
    """Words of the scenario file: the run of the stronger service has this one instead of the other."""
    property: str | None
    until_ms: int
    gap_ms: tuple[int, int] | None = None
    """A part of the time that is not drawn."""

    def events(self, word: str) -> pa.Table:
        """The trace of the run with that word."""
        text = (ROOT / f"scenarios/services/{self.scenario}.toml").read_text(encoding="utf-8")
        settings = re.sub(rf'(?m)^(\w+ = )"{self.weaker}"', rf'\1"{word}"', text)
        run = simulate(parse_scenario(settings))
        return events_table(run.id, run.histories)

    def drawing(self, word: str) -> str:
        """The diagram of the run with that word, as a file."""
        rows = self.events(word).to_pylist()
        window = (0, self.until_ms * _MS)
        gap = None if self.gap_ms is None else (self.gap_ms[0] * _MS, self.gap_ms[1] * _MS)
        shown = [row for row in rows if row["time"] <= window[1] and not (gap and gap[0] < row["time"] < gap[1])]
        scene = Scene(
            window_ns=window,
            lifelines=tuple(_lifelines(rows)),
            arrows=tuple(_arrows(shown)),
            marks=tuple(_marks(shown)),
            happenings=tuple(_happenings(shown)),
            gap_ns=gap,
        )
        return _styled(draw(scene, prefix=f"{self.scenario}-{word}").svg)

    def files(self) -> dict[Path, str]:
        """Both diagrams by their paths."""
        return {IMAGES / f"{self.scenario}-{word}.svg": self.drawing(word) for word in (self.weaker, self.stronger)}


COMPARISONS: Final = (
    Comparison("fifo", "reliable", "fifo", "O1", 9),
    Comparison("causal", "fifo", "causal-fast", "O3", 11),
    Comparison("total", "causal-fast", "total", "O6", 7),
    Comparison("safe", "total", "total-safe", "D11", 762, (14, 750)),
    Comparison("sequencer", "symmetric", "asymmetric", None, 7),
    Comparison("views", "cut", "closed", "D6", 17),
)


def _lifelines(rows: Iterable[Row]) -> Iterator[Lifeline]:
    times: dict[str, list[int]] = {}
    for row in rows:
        times.setdefault(row["process"], []).append(row["time"])
    for process in sorted(times.keys() - {WORLD}):
        yield Lifeline(process, min(times[process]), max(times[process]))


def _arrows(rows: Iterable[Row]) -> list[Arrow]:
    """One arrow for each frame at each receiver; one without a number is the last of its type from its sender."""
    sent: dict[tuple[str, str, str | None], int] = {}
    arrows: dict[tuple[str, str, int], Arrow] = {}
    for row in sorted(rows, key=lambda row: (row["time"], row["kind"] == "receive")):
        if row["kind"] not in ("transmit", "receive"):
            continue
        told = json.loads(row["detail"])
        frame, kind = told["frame"], told["type"]
        if row["kind"] == "transmit":
            sent[row["process"], kind, frame] = row["time"]
        elif (begun := sent.get((row["peer"], kind, frame))) is not None:
            arrow = Arrow(frame or kind, kind, row["peer"], row["process"], begun, row["time"])
            arrows.setdefault((arrow.frame, arrow.target, begun), arrow)
    return sorted(arrows.values(), key=lambda arrow: (arrow.sent_ns, arrow.source, arrow.received_ns, arrow.target))


def _marks(rows: Iterable[Row]) -> list[Mark]:
    """Sends, deliveries, and what changes a process; not the first view, with which every run begins."""
    shown = [row for row in rows if row["kind"] in _NOTED and not (row["kind"] == "view" and row["previous"] is None)]
    shown.sort(key=lambda row: (row["time"], row["process"], row["index"]))
    return [Mark(*(row[name] for name in ("process", "index", "time", "kind", "sender", "number"))) for row in shown]


def _happenings(rows: Iterable[Row]) -> list[Happening]:
    faults = [row for row in rows if row["kind"] == "fault"]
    return [Happening(row["time"], fault(row["detail"]), fault_kind(row["detail"])) for row in faults]


def _styled(svg: str) -> str:
    """The drawing as a file of its own, with the colours of report pages."""
    page = STYLE.read_text(encoding="utf-8")
    colours = page[: page.index("* {")]
    rules = "".join(line for line in page.splitlines(keepends=True) if re.match(r"\.(spacetime|fill-|line-)", line))
    own = "svg { font: 11px system-ui, sans-serif; }\n.paper { fill: var(--paper); }\n"
    style = f'<style>\n{colours}{own}{rules}</style><rect class="paper" width="100%" height="100%" />'
    return svg.replace("</desc>", f"</desc>{style}", 1) + "\n"


def main() -> None:
    """Write all diagrams."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    for comparison in COMPARISONS:
        for path, svg in comparison.files().items():
            path.write_text(svg, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: {len(svg):,} bytes")


if __name__ == "__main__":
    main()
